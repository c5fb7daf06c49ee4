"""The SPARQL 1.1 Protocol: queries, updates, and the description of the service.

https://www.w3.org/TR/sparql11-protocol/ and https://www.w3.org/TR/sparql11-service-description/
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra import queries as qry
from graphtide.algebra.nodes import Dataset, SelectQuery
from graphtide.lang.sparql.parse import parse_any_query, parse_update
from graphtide.rdf.formats import results as res
from graphtide.rdf.terms import parse_term
from graphtide.serve import access, http

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphtide.graph import LiveGraph
    from graphtide.rdf.terms import Term
    from graphtide.serve.host import Host

ROWS: Final[Mapping[str, res.RowsFormat]] = {
    "application/sparql-results+json": "json",
    "application/json": "json",
    "application/sparql-results+xml": "xml",
    "application/xml": "xml",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
}
"""The formats of rows, by media type."""

GRAPHS: Final[Mapping[str, str]] = {
    "text/turtle": "ttl",
    "application/n-triples": "nt",
    "application/rdf+xml": "rdf",
    "application/ld+json": "jsonld",
    "application/n-quads": "nq",
    "application/trig": "trig",
}
"""The formats of graphs, by media type."""

FORM: Final = "application/x-www-form-urlencoded"
MAX_FIELDS: Final = 1000
MAX_QUERY: Final = 1 << 20
"""Characters of a query: parsed queries are cached."""

SD: Final = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS: Final = "http://www.w3.org/ns/formats/"
_RESULT_FORMATS: Final = (
    "SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV",
    "Turtle", "N-Triples", "RDF_XML", "JSON-LD", "N-Quads", "TriG",
)  # fmt: skip

Fields = list[tuple[str, str]]


def routes(host: Host) -> list[http.Route]:
    """The routes of queries and updates."""

    async def sparql(request: http.Request) -> http.Response:
        fields = parse_qsl(request.url.query, keep_blank_values=True)
        if request.method in ("GET", "HEAD"):
            if _values(fields, "update"):
                raise http.HttpProblem(400, "an update must be sent by POST")
            text = _single(fields, "query", required=bool(fields))
            if text is None:
                return _description(request, host.graph)
            return await _query(request, host, text, fields)
        kind = http.MediaType.of(request).name
        body = await http.read_text(request, host)
        if kind == "application/sparql-query":
            return await _query(request, host, body, fields)
        if kind == "application/sparql-update":
            return await _update(request, host, body, fields)
        fields += _form_fields(kind, body)
        asked, changed = _single(fields, "query"), _single(fields, "update")
        if (asked is None) == (changed is None):
            raise http.HttpProblem(400, 'give either "query" or "update"')
        if asked is not None:
            return await _query(request, host, asked, fields)
        return await _update(request, host, changed or "", fields)

    async def update(request: http.Request) -> http.Response:
        fields = parse_qsl(request.url.query, keep_blank_values=True)
        kind = http.MediaType.of(request).name
        body = await http.read_text(request, host)
        if kind != "application/sparql-update":
            fields += _form_fields(kind, body)
            body = _single(fields, "update", required=True) or ""
        return await _update(request, host, body, fields)

    return [
        http.Route("/sparql", sparql, methods=["GET", "POST"]),
        http.Route("/update", update, methods=["POST"]),
    ]


# --- requests ---


def _form_fields(kind: str, body: str) -> Fields:
    if kind != FORM:
        allowed = f"application/sparql-query, application/sparql-update or {FORM}"
        raise http.HttpProblem(415, "the body is neither SPARQL nor a form", hint=f"use {allowed}")
    try:
        return parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise http.HttpProblem(400, "the form cannot be read") from None


def _values(fields: Fields, name: str) -> list[str]:
    return [value for key, value in fields if key == name]


def _single(fields: Fields, name: str, *, required: bool = False) -> str | None:
    found = _values(fields, name)
    if len(found) > 1:
        raise http.HttpProblem(400, f'"{name}" is given more than once')
    if required and not found:
        raise http.HttpProblem(400, f'"{name}" is missing')
    return found[0] if found else None


def _dataset(fields: Fields, default: str, named: str) -> Dataset | None:
    """The graphs that a request names beside its text."""
    graphs = [tuple(named_node(iri) for iri in _values(fields, key)) for key in (default, named)]
    return Dataset(graphs[0], graphs[1]) if any(graphs) else None


def named_node(iri: str) -> NamedNode:
    """An absolute IRI of a request."""
    try:
        return NamedNode(iri)
    except ValueError:
        raise http.HttpProblem(400, "the name of a graph must be an absolute IRI") from None


def base_of(request: http.Request) -> str:
    """The IRI of the resource, which relative IRIs are relative to."""
    iri = str(request.url.replace(query="", fragment=""))
    try:
        return NamedNode(iri).value
    except ValueError:
        return f"http://localhost{request.scope['root_path']}/sparql"


async def _query(request: http.Request, host: Host, text: str, fields: Fields) -> http.Response:
    if len(text) > MAX_QUERY:
        raise http.HttpProblem(413, f"the query has more than {MAX_QUERY:,} characters")
    dataset = _dataset(fields, "default-graph-uri", "named-graph-uri")
    accept, base = request.headers.get("accept"), base_of(request)
    return await host.call_for(request, _answer, host, text, base, dataset, accept)


async def _update(request: http.Request, host: Host, text: str, fields: Fields) -> http.Response:
    access.require(request.scope, "write")
    using = _dataset(fields, "using-graph-uri", "using-named-graph-uri")
    base = base_of(request)

    def run() -> int:
        return host.graph.update(parse_update(text, base=base, using=using))

    done = await host.write(run)
    return http.json_response({"changed": done.result, **done.stamp()})


# --- answers ---


def _answer(
    host: Host, text: str, base: str, dataset: Dataset | None, accept: str | None
) -> http.Response:
    parsed = parse_any_query(text, base=base)
    if dataset is not None:
        parsed = _with_dataset(parsed, dataset)
    if isinstance(parsed, SelectQuery | qry.AskQuery):
        media_type, rows_form = http.negotiate(accept, ROWS)
        rows = evaluated(host, parsed)
        if isinstance(parsed, qry.AskQuery):
            ((truth,),) = rows
            is_true = str(truth).startswith('"true"')
            content = res.truth_text(is_true, rows_form)
        else:
            names = tuple(variable.name for variable in parsed.variables)
            content = res.rows_text(res.ResultRows(names, rows), rows_form)
        return content_response(content, media_type)
    media_type, graph_form = http.negotiate(accept, GRAPHS)
    return content_response(res.graph_text(evaluated(host, parsed), graph_form), media_type)


def _with_dataset(parsed: qry.Query, dataset: Dataset) -> qry.Query:
    """The dataset of the protocol takes the place of FROM."""
    if isinstance(parsed, SelectQuery):
        return replace(parsed, dataset=dataset)
    return replace(parsed, select=replace(parsed.select, dataset=dataset))


def evaluated(host: Host, parsed: qry.Query) -> list[res.Row]:
    """The rows of a query now, if they are not too many."""
    table = host.graph.query(qry.as_select(parsed), terms=True)
    if table.num_rows > host.settings.rows:
        raise http.HttpProblem(
            413,
            f"the answer has {table.num_rows:,} rows, more than the {host.settings.rows:,} allowed",
            hint="use LIMIT, or start the server with a larger --max-rows",
        )
    columns = [
        [None if text is None else parse_term(text) for text in column.to_pylist()]
        for column in table.columns
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def content_response(content: str, media_type: str) -> http.Response:
    """A text in UTF-8."""
    headers = {"content-type": f"{media_type}; charset=utf-8", "vary": "accept"}
    return http.Response(content.encode(), headers=headers)


# --- service description ---


def _description(request: http.Request, graph: LiveGraph) -> http.Response:
    media_type, form = http.negotiate(request.headers.get("accept"), GRAPHS)
    triples = list(_description_triples(base_of(request), len(graph)))
    return content_response(res.graph_text(triples, form), media_type)


def _description_triples(endpoint: str, quads: int) -> Iterable[tuple[Term, Term, Term]]:
    service, data, default = (BlankNode(name) for name in ("service", "data", "default"))

    def sd(name: str) -> NamedNode:
        return NamedNode(SD + name)

    kind = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    yield service, kind, sd("Service")
    yield service, sd("endpoint"), NamedNode(endpoint)
    yield service, sd("supportedLanguage"), sd("SPARQL11Query")
    yield service, sd("supportedLanguage"), sd("SPARQL11Update")
    for name in _RESULT_FORMATS:
        yield service, sd("resultFormat"), NamedNode(_FORMATS + name)
    yield service, sd("defaultDataset"), data
    yield data, kind, sd("Dataset")
    yield data, sd("defaultGraph"), default
    yield default, kind, sd("Graph")
    triples = parse_term(f'"{quads}"^^<http://www.w3.org/2001/XMLSchema#integer>')
    yield data, NamedNode("http://rdfs.org/ns/void#triples"), triples
