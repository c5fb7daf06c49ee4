"""The SPARQL 1.1 Graph Store HTTP Protocol: graphs as resources.

https://www.w3.org/TR/sparql11-http-rdf-update/. A graph is named by `?default`, `?graph=IRI`, or is
the resource `/store/…` itself. An empty named graph does not exist.
"""

from __future__ import annotations

import email
import io
from email import policy
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from starlette.responses import Response
from starlette.routing import Route

from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.read import read_quads
from graphtide.rdf.formats.results import graph_text
from graphtide.rdf.terms import parse_term
from graphtide.serve import http, protocol

if TYPE_CHECKING:
    from pyoxigraph import NamedNode
    from starlette.requests import Request

    from graphtide.graph import LiveGraph
    from graphtide.serve.host import Host

PATH: Final = "/store"
READABLE: Final = {**protocol.GRAPHS, "application/xml": "rdf", "text/xml": "rdf"}
METHODS: Final = ["GET", "PUT", "POST", "DELETE"]

Triples = set[tuple[str, str, str]]


def routes(host: Host) -> list[Route]:
    """The routes of graphs."""

    async def store(request: Request) -> Response:
        name = _name(request)
        match request.method:
            case "GET" | "HEAD":
                return await _get(request, host, name)
            case "DELETE":
                return await _delete(host, name)
            case "PUT":
                return await _put(request, host, name)
            case _:
                return await _post(request, host, name)

    return [
        Route(PATH, store, methods=METHODS),
        Route(PATH + "/{path:path}", store, methods=METHODS),
    ]


def _name(request: Request) -> NamedNode | None:
    """The graph that a request is about; None is the default graph."""
    parameters = request.query_params
    named = parameters.getlist("graph")
    if request.path_params.get("path"):
        if parameters:
            raise http.HttpProblem(400, "a graph is named by its path or by a parameter, not both")
        return protocol.named_node(protocol.base_of(request))
    if "default" in parameters and not named:
        return None
    if len(named) == 1 and "default" not in parameters:
        return protocol.named_node(named[0])
    if request.method == "POST" and not parameters:
        return protocol.named_node(f"{protocol.base_of(request).rstrip('/')}/{uuid4()}")
    raise http.HttpProblem(400, "which graph is missing", hint="give ?default or ?graph=IRI")


async def _get(request: Request, host: Host, name: NamedNode | None) -> Response:
    media_type, form = http.negotiate(request.headers.get("accept"), protocol.GRAPHS)

    def found() -> str:
        triples = _triples(host.graph, name)
        if name is not None and not triples:
            raise http.HttpProblem(404, "there is no such graph")
        terms = (tuple(map(parse_term, triple)) for triple in triples)
        return graph_text(terms, form)

    return protocol.content_response(await host.call(found), media_type)


async def _put(request: Request, host: Host, name: NamedNode | None) -> Response:
    given = await _posted(request, host, name)

    def replace() -> bool:
        there = _triples(host.graph, name)
        _change(host.graph, name, there - given, given - there)
        return not there

    done = await host.write(replace)
    if done.result:
        return http.json_response(done.stamp(), 201, headers=_location(name))
    return Response(status_code=204)


async def _post(request: Request, host: Host, name: NamedNode | None) -> Response:
    given = await _posted(request, host, name)

    def merge() -> bool:
        there = _triples(host.graph, name)
        _change(host.graph, name, set(), given - there)
        return not there and name is not None

    done = await host.write(merge)
    status, headers = (201, _location(name)) if done.result else (200, {})
    return http.json_response(done.stamp(), status, headers=headers)


async def _delete(host: Host, name: NamedNode | None) -> Response:
    def drop() -> None:
        there = _triples(host.graph, name)
        if name is not None and not there:
            raise http.HttpProblem(404, "there is no such graph")
        _change(host.graph, name, there, set())

    done = await host.write(drop)
    return http.json_response(done.stamp())


def _location(name: NamedNode | None) -> dict[str, str]:
    return {} if name is None or not name.value.isascii() else {"location": name.value}


# --- graphs ---


def _triples(graph: LiveGraph, name: NamedNode | None) -> Triples:
    """The triples of a graph now, as N-Triples texts."""
    pattern = "?s ?p ?o" if name is None else f"GRAPH {name} {{ ?s ?p ?o }}"
    table = graph.query(f"SELECT ?s ?p ?o {{ {pattern} }}", terms=True)
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _change(graph: LiveGraph, name: NamedNode | None, gone: Triples, come: Triples) -> None:
    """Take triples out of a graph and put others in, as one transaction."""
    where = None if name is None else str(name)
    rows = [(0, 0, diff, *t, where) for diff, part in ((-1, gone), (1, come)) for t in part]
    if rows:
        graph.apply(ChangeBatch.of(rows), time=graph.clock)


async def _posted(request: Request, host: Host, name: NamedNode | None) -> Triples:
    """The triples of a body, with blank nodes of their own."""
    kind = http.MediaType.of(request).name
    body = await http.read_body(request, host)
    base = protocol.base_of(request) if name is None else name.value
    if kind != "multipart/form-data":
        return await host.call(parsed_triples, body, kind, base, host)
    head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode("latin-1")
    message = email.message_from_bytes(head + body, policy=policy.HTTP)
    found: Triples = set()
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        if isinstance(content, bytes):
            kind = part.get_content_type()
            found |= await host.call(parsed_triples, content, kind, base, host)
    return found


def parsed_triples(body: bytes, kind: str, base: str, host: Host) -> Triples:
    """The triples of an RDF document; a triple in a named graph is an error."""
    form = READABLE.get(kind)
    if form is None:
        hint = f"one of {', '.join(READABLE)}"
        raise http.HttpProblem(415, "the body is not in a known format of RDF", hint=hint)
    found: Triples = set()
    scope = f"_:g{uuid4().hex}x"
    for batch in read_quads(io.BytesIO(body), format=form, base=base, limits=host.graph.limits):
        if any(batch.g.unique().to_pylist()):
            raise http.HttpProblem(400, "the body names graphs, and is the content of one")
        columns = (column.to_pylist() for column in (batch.s, batch.p, batch.o))
        for s, p, o in zip(*columns, strict=True):
            found.add((_fresh(s, scope), p, _fresh(o, scope)))
    return found


def _fresh(text: str, scope: str) -> str:
    """A term; the label of a blank node gets a scope, so that it is nobody else's."""
    return scope + text[2:] if text.startswith("_:") else text
