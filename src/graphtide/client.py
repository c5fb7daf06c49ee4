"""A client of `graphtide serve`, with the standard library alone: `graphtide.connect(url)`.

It has the words of `LiveGraph`: `query`, `update`, `insert`, `apply`, `watch`, and `cursor` and
`why` of a query. A connection that is lost is made again, and goes on where it was.
"""

from __future__ import annotations

import http.client
import io
import json
import time
import uuid
import weakref
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias
from urllib.parse import quote, urlsplit

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.arguments import check_type
from graphtide.errors import GraphtideError, QueryError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from graphtide.rdf.changes import ChangeBatch
    from graphtide.rdf.terms import Term

Value: TypeAlias = "Term | str | float"
"""A term, its N-Triples text, or a Python value as an object."""

RemoteRow = dict[str, "Term | None"]

SILENCE_SECONDS: Final = 60
"""A server that says nothing for so long, not even a heartbeat, is lost."""

RETRY_SECONDS: Final = 0.2
NOTHING: Final[Mapping[str, str]] = {}


def connect(
    url: str, *, token: str | None = None, timeout: float = 60, patience: float = 30
) -> RemoteGraph:
    """A graph behind a server; a lost connection is tried again for `patience` seconds."""
    return RemoteGraph(url, token=token, timeout=timeout, patience=patience)


class RemoteDelta(NamedTuple):
    """The rows that a transaction added to an answer and removed from it."""

    seq: int
    time: int
    added: list[RemoteRow]
    removed: list[RemoteRow]


class RemoteGraph:
    """A live graph behind a server. Made by `graphtide.connect`."""

    def __init__(self, url: str, *, token: str | None, timeout: float, patience: float) -> None:
        check_type(url, "url", str)
        check_type(token, "token", str, None)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise GraphtideError(f"{url} is not the URL of a server", hint="http://HOST:PORT")
        self._secure = parts.scheme == "https"
        self._place = parts.hostname, parts.port or (443 if self._secure else 80)
        self._root = parts.path.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.patience: Final = patience
        self._lock = Lock()
        self._connection = self._connected(timeout)
        weakref.finalize(self, self._connection.close)  # for those who do not call close()

    def _connected(self, timeout: float) -> http.client.HTTPConnection:
        made = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return made(*self._place, timeout=timeout)

    # --- the graph now ---

    def version(self) -> str:
        """The version of the server."""
        return str(self.call("GET", "/version")["version"])

    def query(self, text: str) -> list[RemoteRow]:
        """The rows of a SELECT query now; ASK has one row, `answer`."""
        kind = {"Content-Type": "application/sparql-query"}
        accept = {"Accept": "application/sparql-results+json"}
        found = self.call("POST", "/sparql", text.encode(), {**kind, **accept})
        if "boolean" in found:
            return [{"answer": Literal(found["boolean"])}]
        return rows_of(found)

    # --- changes ---

    def update(self, text: str) -> int:
        """Run a SPARQL Update request as one transaction; how many quads it changed."""
        kind = {"Content-Type": "application/sparql-update"}
        return int(self.call("POST", "/update", text.encode(), kind)["changed"])

    def insert(
        self, s: Value, p: Value, o: Value, g: Value | None = None, *, time: int | None = None
    ) -> int:
        """Insert one quad, as a transaction of its own; the number of that."""
        return self._change(1, (s, p, o, g), time)

    def delete(
        self, s: Value, p: Value, o: Value, g: Value | None = None, *, time: int | None = None
    ) -> int:
        """Delete one quad, as a transaction of its own; the number of that."""
        return self._change(-1, (s, p, o, g), time)

    def _change(self, diff: int, quad: tuple[Value | None, ...], time: int | None) -> int:
        texts = {n: _text(v) for n, v in zip("spog", quad, strict=True) if v is not None}
        line = {"diff": diff, **texts} | ({} if time is None else {"time": time})
        return self._send(json.dumps(line).encode(), "application/x-ndjson")

    def apply(self, changes: ChangeBatch | Iterable[ChangeBatch] | str | Path) -> int:
        """Apply changes, in their transactions, or a file of them; the number of the last one.

        They are sent as one request, which is applied once even if the connection breaks.
        """
        from graphtide.rdf.formats import change_log as log  # noqa: PLC0415 - few need it

        found = log.read_changes(changes) if isinstance(changes, str | Path) else changes
        file = io.BytesIO()
        log.write_changes(found, file, format="rdfp")
        return self._send(file.getvalue(), "application/rdf-patch")

    def push(
        self, stream: str, triples: Iterable[tuple[Value, Value, Value]], *, time: int
    ) -> None:
        """Push one event to a stream."""
        listed = [dict(zip("spo", map(_text, triple), strict=True)) for triple in triples]
        body = json.dumps({"time": time, "triples": listed}).encode()
        name = quote(stream.removeprefix("<").removesuffix(">"), safe="")
        self._send(body, "application/x-ndjson", f"/streams/{name}/events")

    def _send(self, body: bytes, kind: str, path: str = "/changes") -> int:
        headers = {"Content-Type": kind, "Idempotency-Key": str(uuid.uuid4())}
        return int(self.call("POST", path, body, headers)["tx"])

    # --- standing queries ---

    def watch(self, query: str | None = None, *, name: str | None = None) -> RemoteQuery:
        """Subscribe to a query, given by its text or by the name of one that runs."""
        return RemoteQuery(self, _asked(query, name))

    def cursor(
        self, cursor: str, query: str | None = None, *, name: str | None = None
    ) -> RemoteCursor:
        """The deltas of a query that a consumer has not acknowledged, also across restarts."""
        return RemoteCursor(self, _asked(query, name) | {"cursor": cursor})

    # --- requests ---

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = NOTHING,
    ) -> Any:  # noqa: ANN401 - JSON
        """The JSON that a request gives; a broken connection is made again."""
        end = time.monotonic() + self.patience
        safe = path != "/update"  # all others may be sent twice
        with self._lock:
            if not safe:
                self._connection.close()  # it may be stale
            while True:
                try:
                    found = self._exchange(method, path, body, headers)
                    break
                except (OSError, http.client.HTTPException) as error:
                    again = safe or isinstance(error, ConnectionRefusedError)
                    if not again or time.monotonic() > end:
                        raise GraphtideError(f"the server cannot be reached: {error}") from None
                    time.sleep(RETRY_SECONDS)
        return _checked(*found)

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """The status and body of a response; a connection on which that fails is closed."""
        try:
            self._connection.request(method, self._root + path, body, {**self._headers, **headers})
            with closing(self._connection.getresponse()) as response:
                return response.status, response.read()
        except BaseException:
            self._connection.close()
            raise

    def stream(self, path: str, last: int | None) -> EventLines:
        """The response to a request for events, on a connection of its own."""
        headers = {**self._headers, "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        return EventLines(self._connected(SILENCE_SECONDS), self._root + path, headers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class EventLines:
    """The lines of a stream of events, on a connection of its own: until `close()`, or the end.

    Without `close()`, the connection ends with this object. Until then the finalizer holds it, so
    the garbage collector never finds an open socket in a cycle.
    """

    def __init__(
        self, connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
    ) -> None:
        opened = ExitStack()
        self.close: Final = weakref.finalize(self, opened.close)
        opened.callback(connection.close)
        try:
            connection.request("GET", path, headers=dict(headers))
            response = opened.enter_context(closing(connection.getresponse()))
            if response.status == http.client.SERVICE_UNAVAILABLE:
                raise ConnectionError("the server is stopping")  # as if it were gone already
            if response.status != http.client.OK:
                _checked(response.status, response.read())
        except BaseException:
            self.close()
            raise
        self._response = response

    def __iter__(self) -> Iterator[str]:
        while line := self._response.readline():
            yield line.decode().rstrip("\r\n")


class RemoteQuery:
    """A standing query behind a server. Made by `RemoteGraph.watch`, ended by `close()`.

    `rows` is a copy of the answer, as of the last delta that was read.
    """

    def __init__(self, graph: RemoteGraph, asked: Mapping[str, str]) -> None:
        self._graph = graph
        self._asked = asked
        self._last: int | None = None
        self.rows: Counter[tuple[tuple[str, Term], ...]] = Counter()
        self._subscribe()

    def _subscribe(self) -> None:
        body, kind = json.dumps(self._asked).encode(), {"Content-Type": "application/json"}
        made = self._graph.call("POST", "/subscriptions", body, kind)
        self.id = str(made["id"])
        self.variables: tuple[str, ...] = tuple(made["variables"])

    def deltas(self) -> Generator[RemoteDelta, None, None]:
        """The answer as the first delta, then each one as it comes, without end.

        After a lost connection nothing is missing and nothing comes twice; if the server has to
        send the whole answer again, the difference is one delta.
        """
        lost = time.monotonic()
        while True:
            try:
                with closing(self._events()) as events:
                    for kind, data in events:
                        lost = time.monotonic()
                        delta = self._taken(kind, data)
                        if delta is not None:
                            yield delta
            except (OSError, http.client.HTTPException, ValueError) as error:
                if time.monotonic() - lost > self._graph.patience:
                    raise GraphtideError(f"the server cannot be reached: {error}") from None
            except RemoteMissingError:  # it was restarted, without a store
                self._last = None
                self._subscribe()
            time.sleep(RETRY_SECONDS)

    def __iter__(self) -> Iterator[RemoteDelta]:
        return self.deltas()

    def _events(self) -> Generator[tuple[str, Any], None, None]:
        """The events of one connection: their names and data."""
        fields: dict[str, str] = {}
        where = f"/subscriptions/{self.id}/events"
        with closing(self._graph.stream(where, self._last)) as lines:
            for line in lines:
                name, _, value = line.partition(": ")
                if name:
                    fields[name] = value
                elif "event" in fields:
                    yield fields["event"], json.loads(fields["data"])
                    fields = {}

    def _taken(self, kind: str, data: Any) -> RemoteDelta | None:  # noqa: ANN401 - JSON
        """Bring the copy up to date; the delta, unless there is none."""
        if kind not in ("answer", "delta", "result"):
            return None
        first, self._last = self._last is None, int(data["seq"])
        added = Counter(map(_key, rows_of(data["added"])))
        if kind == "delta":
            removed = Counter(map(_key, rows_of(data["removed"])))
        else:
            added, removed = added - self.rows, self.rows - added
        self.rows = self.rows + added - removed
        if not (added or removed or first):
            return None
        listed = [[self._row(row) for row in bag.elements()] for bag in (added, removed)]
        return RemoteDelta(self._last, int(data["time"]), listed[0], listed[1])

    def _row(self, key: tuple[tuple[str, Term], ...]) -> RemoteRow:
        return {**dict.fromkeys(self.variables), **dict(key)}

    def why(self, row: Mapping[str, Value] | None = None, **columns: Value) -> str:
        """Why a row is in the answer now: the quads that make it true, as a text."""
        return self._explained({"row": _texts(row, columns)})

    def why_not(self, row: Mapping[str, Value] | None = None, **columns: Value) -> str:
        """Why no row with these values is in the answer now, as a text."""
        return self._explained({"row": _texts(row, columns), "missing": True})

    def _explained(self, asked: Mapping[str, object]) -> str:
        body, kind = json.dumps(asked).encode(), {"Content-Type": "application/json"}
        found = self._graph.call("POST", f"/subscriptions/{self.id}/why", body, kind)
        return str(found["text"])

    def close(self) -> None:
        """End the subscription."""
        self._graph.call("DELETE", f"/subscriptions/{self.id}")


class RemoteCursor:
    """The deltas of a query, from where a consumer last acknowledged."""

    def __init__(self, graph: RemoteGraph, asked: Mapping[str, str]) -> None:
        self._graph = graph
        self._query = RemoteQuery(graph, asked)
        self._read: int | None = None

    def __iter__(self) -> Generator[RemoteDelta, None, None]:
        with closing(self._query.deltas()) as deltas:
            for delta in deltas:
                self._read = delta.seq
                yield delta

    def ack(self, delta: RemoteDelta | None = None) -> None:
        """Acknowledge everything up to a delta; by default all that was read."""
        seq = self._read if delta is None else delta.seq
        if seq is not None:
            body, kind = json.dumps({"seq": seq}).encode(), {"Content-Type": "application/json"}
            self._graph.call("POST", f"/subscriptions/{self._query.id}/ack", body, kind)


# --- requests and responses ---


class RemoteMissingError(GraphtideError):
    """The server does not have what was asked for."""


def _asked(query: str | None, name: str | None) -> dict[str, str]:
    if (query is None) == (name is None):
        raise GraphtideError("give either a query or the name of one")
    return {"query": query} if query is not None else {"name": str(name)}


def _checked(status: int, body: bytes) -> Any:  # noqa: ANN401 - JSON
    """The JSON of a response; an error is raised as the server says it."""
    try:
        found = json.loads(body) if body else {}
    except ValueError:
        found = {"title": f"the server answers with status {status}"}
    if status < http.client.BAD_REQUEST:
        return found
    message, hint = str(found.get("title", status)), found.get("hint")
    if "line" in found:
        raise QueryError(message, line=found["line"], column=found.get("column"), hint=hint)
    if status == http.client.NOT_FOUND:
        raise RemoteMissingError(message, hint=hint)
    raise GraphtideError(message, hint=hint)


def rows_of(found: Mapping[str, Any]) -> list[RemoteRow]:
    """The rows of SPARQL's JSON.

    >>> rows_of({"head": {"vars": ["a"]}, "results": {"bindings": [{}]}})
    [{'a': None}]
    """
    names = found["head"]["vars"]
    return [
        {name: _term(row[name]) if name in row else None for name in names}
        for row in found["results"]["bindings"]
    ]


def _term(found: Mapping[str, Any]) -> Term:
    if found["type"] == "triple" or "its:dir" in found:
        from graphtide.rdf.formats.results import term_of_json  # noqa: PLC0415 - rare, and slow

        return term_of_json(found)
    if found["type"] == "uri":
        return NamedNode(found["value"])
    if found["type"] == "bnode":
        return BlankNode(found["value"])
    if "xml:lang" in found:
        return Literal(found["value"], language=found["xml:lang"])
    kind = found.get("datatype")
    return Literal(found["value"], datatype=None if kind is None else NamedNode(kind))


def _key(row: RemoteRow) -> tuple[tuple[str, Term], ...]:
    return tuple((name, term) for name, term in row.items() if term is not None)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else str(_as_term(value))


def _as_term(value: Term | float) -> Term:
    return Literal(value) if isinstance(value, int | float) else value


def _texts(row: Mapping[str, Value] | None, columns: Mapping[str, Value]) -> dict[str, str]:
    return {name: _text(value) for name, value in {**(row or {}), **columns}.items()}
