r"""Changes and events from outside: RDF Patch, N-Quads, N-Triples or lines of JSON, by POST.

    {"diff": 1, "s": "<ex:a>", "p": "<ex:p>", "o": {"type": "literal", "value": "x"}, "time": 17}
    {"changes": [{"s": "<ex:a>", "p": "<ex:p>", "o": "\"x\"@en"}, …], "time": 18}

A line of JSON is a transaction; so is the whole of N-Quads. What has no time happens now. The
answer comes when the changes are on disk, if there is a store.
"""

from __future__ import annotations

import io
import json
import sqlite3
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pyoxigraph import NamedNode

from graphtide.rdf.changes import ChangeBatch, concat_batches
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.results import term_of_json
from graphtide.rdf.terms import parse_term
from graphtide.serve import http

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
FILE: Final = "requests.db"
MAX_KEYS: Final = 100_000
"""Keys that are remembered."""

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS requests
(key TEXT PRIMARY KEY, digest TEXT, first INTEGER, count INTEGER, applied INTEGER)
"""

Row = tuple[int, int, int, str, str, str, "str | None"]


def routes(host: Host) -> list[http.Route]:
    """The routes of changes and events."""
    log = RequestLog(host)

    async def changes(request: http.Request) -> http.Response:
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

    async def events(request: http.Request) -> http.Response:
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
        http.Route("/changes", changes, methods=["POST"]),
        http.Route("/streams/{name:path}/events", events, methods=["POST"]),
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


def _key(request: http.Request) -> str | None:
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
        if isinstance(given, dict):
            return term_of_json(given)
    except (ValueError, TypeError, LookupError) as error:
        raise _wrong(number, f'"{name}" is not a term: {error}') from None
    raise _wrong(number, f'"{name}" is not a term')


def _wrong(number: int, message: str) -> http.HttpProblem:
    return http.HttpProblem(400, f"line {number}: {message}")


# --- idempotency keys ---


class KnownRequest(NamedTuple):
    """A request that came before: a fingerprint of its body, and how many transactions of it."""

    digest: str
    applied: int


class RequestLog:
    """The idempotency keys of a server: changes are applied once, however often they are sent.

    With a store, the keys are in its directory, and known after a crash. A key is written before
    its changes, with the number of the transaction that they begin with: so it is known afterwards
    whether they are in the journal, and how many of them. Called with the lock of the graph.
    """

    def __init__(self, host: Host) -> None:
        self._graph = host.graph
        self._durable = host.durable
        store = host.graph.store.store if host.durable else None
        folder = None if store is None or store.read_only else store.folder
        self._database = sqlite3.connect(
            ":memory:" if folder is None else folder / FILE,
            isolation_level=None,
            check_same_thread=False,
        )
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(_TABLE)
        done = host.graph.transactions
        # A crash may have come before, or in the middle of, the last of them.
        self._run("DELETE FROM requests WHERE first >= ?", done)
        self._run("UPDATE requests SET applied = MIN(count, ? - first) WHERE applied < count", done)
        host.at_close(self._database.close)

    def apply(self, key: str | None, digest: str, batch: ChangeBatch) -> dict[str, Any]:
        """Apply changes, if they have not been applied under that key."""
        starts = batch.transaction_starts().tolist()
        said = {"transactions": len(starts), "changes": len(batch)}
        if key is None or self._graph.feed().streams:
            # Events have no transactions of their own, by which to tell how many were applied.
            return self.once(key, digest, lambda: self._applied(batch, said))
        known = self._known(key, digest)
        skipped = 0 if known is None else known.applied
        if skipped == len(starts):
            return said if known is None else said | {"repeated": True}
        self._add(key, digest, self._graph.transactions - skipped, len(starts), skipped)
        try:
            self._applied(batch.slice(starts[skipped], len(batch)), said)
        except BaseException:
            self._run("DELETE FROM requests WHERE key = ?", key)
            raise
        self._run("UPDATE requests SET applied = count WHERE key = ?", key)
        return said

    def once(
        self, key: str | None, digest: str, function: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Call a function, unless that was done under that key."""
        if key is None:
            return function()
        if self._known(key, digest) is not None:
            return {"repeated": True}
        result = function()
        if self._durable:
            self._graph.flush()
        self._add(key, digest, -1, 0, 0)
        return result

    def _applied(self, batch: ChangeBatch, said: dict[str, Any]) -> dict[str, Any]:
        if len(batch):
            self._graph.apply(stamped(batch, self._graph.clock, self._graph.transactions))
        return said

    def _known(self, key: str, digest: str) -> KnownRequest | None:
        rows = self._run("SELECT digest, applied FROM requests WHERE key = ?", key)
        if not rows:
            return None
        known = KnownRequest(*rows[0])
        if known.digest != digest:
            raise http.HttpProblem(
                422, "this idempotency key was used for another body", hint="use a new key"
            )
        return known

    def _add(self, key: str, digest: str, first: int, count: int, applied: int) -> None:
        values = key, digest, first, count, applied
        self._run("INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)", *values)
        self._run("DELETE FROM requests WHERE rowid <= last_insert_rowid() - ?", MAX_KEYS)

    def _run(self, text: str, *values: object) -> list[Any]:
        try:
            return self._database.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise http.HttpProblem(507, f"the idempotency key cannot be kept: {error}") from None


def stamped(batch: ChangeBatch, clock: int, tx: int) -> ChangeBatch:
    """A batch with the clock in place of missing times, and its transactions numbered from `tx`.

    >>> rows = [(t, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None) for t in (0, 0, 9)]
    >>> found = stamped(ChangeBatch.of(rows), 7, 100)
    >>> found.time.tolist(), found.tx.tolist()
    ([7, 7, 9], [100, 100, 101])
    """
    begins = np.zeros(len(batch), np.int64)
    begins[batch.transaction_starts()] = 1
    times = np.where(batch.time == 0, clock, batch.time).astype(np.int64)
    txs = np.cumsum(begins) - 1 + tx
    return ChangeBatch(times, txs, batch.diff, batch.s, batch.p, batch.o, batch.g)
