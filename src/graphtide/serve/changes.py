r"""Changes and events from outside: RDF Patch, N-Quads, N-Triples or lines of JSON, by POST.

    {"diff": 1, "s": "<ex:a>", "p": "<ex:p>", "o": {"type": "literal", "value": "x"}, "time": 17}
    {"changes": [{"s": "<ex:a>", "p": "<ex:p>", "o": "\"x\"@en"}, …], "time": 18}

A line of JSON is a transaction; so is the whole of N-Quads. What has no time happens now. The
answer comes when the changes are on disk, if there is a store.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyoxigraph import BlankNode, Literal, NamedNode
from starlette.routing import Route

from graphtide.rdf.changes import ChangeBatch, concat_batches
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.terms import parse_term
from graphtide.serve import http
from graphtide.serve.request_log import RequestLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from graphtide.rdf.terms import Term
    from graphtide.serve.host import Host

PATCHES: Final = {
    "application/rdf-patch": "rdfp",
    "text/rdf-patch": "rdfp",
    "application/n-quads": "nq",
    "application/n-triples": "nt",
}
LINES: Final = ("application/x-ndjson", "application/jsonl", "application/json")
MAX_KEY: Final = 200

Row = tuple[int, int, int, str, str, str, "str | None"]


def routes(host: Host) -> list[Route]:
    """The routes of changes and events."""
    log = RequestLog(host)

    async def changes(request: Request) -> Response:
        kind = http.MediaType.of(request).name
        if kind not in (*PATCHES, *LINES):
            known = ", ".join((*PATCHES, *LINES))
            raise http.HttpProblem(415, "the body holds no changes", hint=f"one of {known}")
        body = await http.read_body(request, host)
        asked = Keyed(_key(request), body)
        batch = await host.call(read_batch, body, kind, host)
        done = await host.write(log.apply, asked.key, asked.digest, batch)
        host.metrics.changes += len(batch)
        return http.json_response(done.result | done.stamp(), 202)

    async def events(request: Request) -> Response:
        if http.MediaType.of(request).name not in LINES:
            raise http.HttpProblem(415, f"events are lines of JSON: {LINES[0]}")
        body = await http.read_body(request, host)
        name, asked = request.path_params["name"], Keyed(_key(request), body)
        pushed = await host.call(lambda: list(read_events(body)))

        def push() -> dict[str, Any]:
            graph = host.graph
            stream = graph.stream(_stream_name(name))
            for event in pushed:
                stream.push(event.triples, time=graph.clock if event.time is None else event.time)
            return {"events": len(pushed)}

        done = await host.write(log.once, asked.key, asked.digest, push)
        return http.json_response(done.result | done.stamp(), 202)

    return [
        Route("/changes", changes, methods=["POST"]),
        Route("/streams/{name:path}/events", events, methods=["POST"]),
    ]


@dataclass(frozen=True, slots=True)
class Keyed:
    """A request's idempotency key, if it has one, and its body."""

    key: str | None
    body: bytes

    @property
    def digest(self) -> str:
        """A fingerprint of the body."""
        return sha256(self.body).hexdigest()


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MAX_KEY:
        raise http.HttpProblem(400, f"an idempotency key has 1 to {MAX_KEY} characters")
    return key


def _stream_name(name: str) -> str:
    try:
        return str(NamedNode(name))
    except ValueError:
        raise http.HttpProblem(
            400, "the name of a stream must be an absolute IRI", hint="write its slashes as %2F"
        ) from None


# --- bodies ---


def read_batch(body: bytes, kind: str, host: Host) -> ChangeBatch:
    """The changes of a body; times that are missing are 0."""
    if kind in LINES:
        return ChangeBatch.of(_json_rows(body))
    found = read_changes(io.BytesIO(body), format=PATCHES[kind], limits=host.graph.limits)
    return concat_batches([ChangeBatch.of([]), *found])


class StreamEvent(NamedTuple):
    """Triples that happen together, and when; None is now."""

    triples: list[tuple[Term, Term, Term]]
    time: int | None


def read_events(body: bytes) -> Iterator[StreamEvent]:
    """The events of lines of JSON: `{"time": 17, "triples": [{"s": …, "p": …, "o": …}, …]}`."""
    for number, line in _json_lines(body):
        listed = line.get("triples", [line])
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise _wrong(number, '"triples" must be a list of objects')
        triples = [
            (_term(each, "s", number), _term(each, "p", number), _term(each, "o", number))
            for each in listed
        ]
        yield StreamEvent(triples, _number(line, "time", number, None))


def _json_rows(body: bytes) -> Iterator[Row]:
    tx, last = 0, None
    for number, line in _json_lines(body):
        time, own = _number(line, "time", number, 0), _number(line, "tx", number, None)
        if own is None or (time, own) != last:
            tx += 1
        last = time, own
        listed = line.get("changes", [line])
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise _wrong(number, '"changes" must be a list of objects')
        for each in listed:
            diff = _number(each, "diff", number, 1)
            if diff not in (1, -1):
                raise _wrong(number, '"diff" must be 1 or -1')
            graph = None if each.get("g") is None else str(_term(each, "g", number))
            s, p, o = (str(_term(each, name, number)) for name in "spo")
            yield time or 0, tx, diff, s, p, o, graph


def _json_lines(body: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(body.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise _wrong(number, "this is not JSON") from None
        if not isinstance(found, dict):
            raise _wrong(number, "this is not a JSON object")
        yield number, found


def _number(line: dict[str, Any], name: str, number: int, default: int | None) -> int | None:
    value = line.get(name, default)
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53
    if value is not None and not whole:
        raise _wrong(number, f'"{name}" must be a whole number')
    return value


def _term(line: dict[str, Any], name: str, number: int) -> Term:
    """A term: N-Triples text, or an object as in SPARQL's JSON."""
    given = line.get(name)
    try:
        if isinstance(given, str):
            return parse_term(given)
        if isinstance(given, dict) and isinstance(given.get("value"), str):
            return _json_term(given)
    except (ValueError, TypeError) as error:
        raise _wrong(number, f'"{name}" is not a term: {error}') from None
    raise _wrong(number, f'"{name}" is not a term')


def _json_term(given: dict[str, Any]) -> Term:
    match given.get("type"):
        case "uri":
            return NamedNode(given["value"])
        case "bnode":
            return BlankNode(given["value"])
        case "literal" | "typed-literal":
            if (language := given.get("xml:lang")) is not None:
                return Literal(given["value"], language=language)
            kind = given.get("datatype")
            return Literal(given["value"], datatype=None if kind is None else NamedNode(kind))
        case _:
            raise ValueError("its type must be uri, bnode or literal")


def _wrong(number: int, message: str) -> http.HttpProblem:
    return http.HttpProblem(400, f"line {number}: {message}")
