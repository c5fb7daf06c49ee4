"""SERVICE: answers of other endpoints, fetched on request or by a timer, as tables of the graph.

Nothing is fetched that is not allowed: the endpoints are a list, empty unless told, and a redirect
to another one is an error. A table stays as it is until it is fetched again; the difference is one
transaction.
"""

from __future__ import annotations

import json
import weakref
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from logging import getLogger
from threading import Event, Thread
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlencode, urlsplit

import numpy as np
from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra import services as svc
from graphtide.arguments import each_of
from graphtide.engine import ingest
from graphtide.errors import GraphtideError, UnsupportedError
from graphtide.rdf.dictionary import HIDDEN_GRAPHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from urllib.request import OpenerDirector, Request

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.terms import Term

log = getLogger(__name__)
_JSON = "application/sparql-results+json"
PIECE = 1 << 20
_HINT = 'name it: LiveGraph(services=["{}"]), or --service-allow on the command line'


@dataclass(frozen=True, slots=True)
class Services:
    """The endpoints that SERVICE may ask, and the most that an answer may take.

    `allow` has their addresses; one that ends with `*` stands for all that begin so. With
    `refresh`, answers are fetched again every so many seconds; `graph.services.refresh()` does so
    at once.

    >>> Services(["http://localhost:7200/*"]).allows("http://localhost:7200/sparql")
    True
    """

    allow: Sequence[str] = ()
    refresh: float | None = None
    seconds: float = 30
    rows: int = 100_000
    bytes: int = 64 << 20

    def allows(self, endpoint: str) -> bool:
        """Whether an endpoint may be asked."""
        return urlsplit(endpoint).scheme in ("http", "https") and any(
            endpoint.startswith(each[:-1]) if each.endswith("*") else endpoint == each
            for each in self.allow
        )

    def named(self) -> list[str]:
        """The endpoints that a variable ranges over: those that have their names on the list."""
        patterns = [each for each in self.allow if each.endswith("*")]
        if patterns or not self.allow:
            what = f"{patterns[0]} names none" if patterns else "none is allowed"
            raise UnsupportedError(
                f"SERVICE with a variable needs endpoints that are named: {what}",
                hint='name each: LiveGraph(services=["https://a.example/sparql", …])',
            )
        return [each for each in self.allow if self.allows(each)]


def load_services(tables: ServiceTables | None, select: SelectQuery) -> None:
    """See to it that the tables of a query are there; without them it must not be answered."""
    clauses = svc.services_of(select.root)
    if clauses and tables is None:
        raise UnsupportedError(f"{clauses[0]} cannot be used here")
    if tables is not None:
        tables.load(clauses)


class ServiceTables:
    """The tables of the SERVICE clauses of a graph's queries, by the names of their graphs."""

    def __init__(self, runtime: Runtime, given: Services | Iterable[str] | None = None) -> None:
        if isinstance(given, str):
            raise GraphtideError("services= is a list of endpoints", hint=f"write [{given!r}]")
        if not isinstance(given, Services):
            allowed = () if given is None else each_of(given, "services", str)
            given = Services(tuple(allowed))
        self.settings = given
        self._runtime = weakref.ref(runtime)
        self._tables: dict[NamedNode, svc.Table] = {}
        self._timer: _Timer | None = None
        self.held = 0
        """How many quads the tables have."""
        runtime.queries.services = self

    def load(self, clauses: list[svc.ServiceClause]) -> None:
        """Fetch the tables that are not there yet."""
        runtime = self._runtime()
        if not clauses or runtime is None:
            return
        if runtime.schedule.recording is not None or runtime.storage != "all":
            raise UnsupportedError(
                "SERVICE cannot be used in a durable graph or one that stores only some quads",
                hint="use it in an in-memory LiveGraph(), or in graph.query()",
            )
        for clause in clauses:
            if clause.graph not in self._tables:
                self._apply(runtime, {clause.graph: fetch(clause, self.settings)})
        if self._timer is None and self.settings.refresh is not None:
            self._timer = _Timer(weakref.ref(self), self.settings.refresh)

    def once(self, select: SelectQuery) -> SelectQuery:
        """A query for one evaluation, with what its endpoints answer now."""
        clauses = svc.services_of(select.root)
        if not clauses:
            return select
        tables = {clause.graph: fetch(clause, self.settings) for clause in clauses}
        return replace(select, root=svc.with_rows(select.root, tables))

    def refresh(self) -> int:
        """Fetch the tables that a query reads, and forget the others; how many rows changed.

        The graph is not locked while endpoints are asked. If one fails, no table changes.
        """
        runtime = self._runtime()
        if runtime is None:
            return 0
        with runtime.lock:
            used = [clause for query in runtime.queries for clause in _clauses(query)]
        tables = {clause.graph: fetch(clause, self.settings) for clause in used}
        with runtime.lock:
            late = {graph for graph in self._tables if graph not in tables}
            unused = late - {c.graph for query in runtime.queries for c in _clauses(query)}
            changed = self._apply(runtime, {**tables, **{graph: {} for graph in unused}})
            for graph in unused:
                del self._tables[graph]
        return changed

    def close(self) -> None:
        """Fetch nothing any more by the timer."""
        if self._timer is not None:
            self._timer.stop()

    def _apply(self, runtime: Runtime, tables: dict[NamedNode, svc.Table]) -> int:
        """Let tables take the place of those that are there, as one transaction."""
        come: list[ingest.Ids] = []
        gone: list[ingest.Ids] = []
        changed = 0
        for graph, new in tables.items():
            old = self._tables.get(graph, {})
            changed += len(old.keys() ^ new.keys())
            come += _quads(runtime, graph, {row: new[row] for row in new.keys() - old.keys()})
            gone += _quads(runtime, graph, {row: old[row] for row in old.keys() - new.keys()})
        if changed:
            changes = np.concatenate([_signed(gone, -1), _signed(come, 1)])
            runtime.apply_now(changes)
            self.held += len(come) - len(gone)
        self._tables.update(tables)
        return changed


def _clauses(query: Query) -> list[svc.ServiceClause]:
    return svc.services_of(query.asked.select.root)


def _signed(quads: list[ingest.Ids], diff: int) -> Ints:
    return ingest.signed(np.array(quads, np.int32).reshape(-1, 4), diff)


def _quads(runtime: Runtime, graph: NamedNode, table: svc.Table) -> list[ingest.Ids]:
    intern, here = runtime.terms.intern, runtime.terms.hidden_graph(graph.value)
    assert here >= HIDDEN_GRAPHS  # noqa: S101 - no pattern of a user reads it
    is_row = intern(svc.IS_ROW)
    return [
        quad
        for row, cells in table.items()
        for node in [intern(row)]
        for quad in (
            (node, is_row, is_row, here),
            *((node, intern(svc.column_iri(n)), intern(t), here) for n, t in cells.items()),
        )
    ]


# --- asking an endpoint ---


# ruff: noqa: PLC0415 - what speaks HTTP is imported when an endpoint is asked: most graphs ask none.


@cache
def _opener() -> OpenerDirector:
    from urllib.request import HTTPRedirectHandler, build_opener

    class NoRedirect(HTTPRedirectHandler):
        """An endpoint that is not on the list is not asked because another one says so."""

        def redirect_request(
            self,
            req: Request,
            fp: IO[bytes],
            code: int,
            msg: str,  # noqa: ARG002 - as urllib calls it
            headers: Any,  # noqa: ANN401, ARG002
            newurl: str,
        ) -> NoReturn:
            fp.close()
            asked = f"it answers {code} and redirects {req.full_url} to {newurl}"
            raise OSError(f"{asked}: ask that one")

    return build_opener(NoRedirect)


def fetch(clause: svc.ServiceClause, settings: Services) -> svc.Table:
    """The answer of an endpoint; of a variable, those of all that are named, with their names."""
    variable = clause.variable
    if variable is None:
        return _fetch(clause, settings)
    table: svc.Table = {}
    for here in map(NamedNode, settings.named()):
        for row, cells in _fetch(replace(clause, endpoint=here.value), settings).items():
            if cells.get(variable, here) == here:
                table[row] = {**cells, variable: here}
    return table


def _fetch(clause: svc.ServiceClause, settings: Services) -> svc.Table:
    """The answer of one endpoint; with SILENT, one row without values if it has none."""
    from http.client import HTTPException
    from urllib.error import HTTPError

    if not settings.allows(clause.endpoint):
        raise UnsupportedError(f"{clause} is not allowed", hint=_HINT.format(clause.endpoint))
    try:
        return _table(clause, _asked(clause, settings))
    except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = ""
        if isinstance(error, HTTPError):
            with error, suppress(OSError, HTTPException):
                reason = error.read(200).decode(errors="replace")
        if clause.silent:
            log.warning("SERVICE SILENT <%s>: %s", clause.endpoint, error)
            return {_node(clause, (), 0): {}}
        raise GraphtideError(
            f"{clause} failed: {error} {reason}".rstrip(),
            hint="SERVICE SILENT goes on without it",
        ) from None


def _asked(clause: svc.ServiceClause, settings: Services) -> list[dict[str, Term]]:
    from urllib.request import Request

    from graphtide.rdf.formats.results import term_of_json

    body = urlencode({"query": clause.query}).encode()
    request = Request(clause.endpoint, body, {"Accept": _JSON})  # noqa: S310 - see allows()
    text, until = b"", monotonic() + settings.seconds
    with _opener().open(request, timeout=settings.seconds) as answer:
        while part := answer.read1(PIECE):
            text += part
            if len(text) > settings.bytes:
                raise OSError(
                    f"its answer has more than {settings.bytes:,} bytes: Services(bytes=…)"
                )
            if monotonic() > until:  # the time limit of a socket is for each piece
                raise OSError(f"its answer takes over {settings.seconds:g} s: Services(seconds=…)")
    bindings = json.loads(text)["results"]["bindings"]
    if len(bindings) > settings.rows:
        raise OSError(f"its answer has {len(bindings):,} rows: Services(rows=…)")
    return [
        {name: term_of_json(cell) for name, cell in row.items() if name in clause.columns}
        for row in bindings
    ]


def _table(clause: svc.ServiceClause, rows: list[dict[str, Term]]) -> svc.Table:
    """Rows by nodes that are the same for equal rows, so that only differences are changes."""
    seen: Counter[tuple[str, ...]] = Counter()
    table: svc.Table = {}
    for row in rows:
        if missing := [name for name in clause.certain if name not in row]:
            raise ValueError(f"it leaves ?{missing[0]} unbound, which its pattern binds")
        cells = {name: _own(clause, term) for name, term in row.items()}
        key = tuple(f"{name} {cells[name]}" for name in sorted(cells))
        table[_node(clause, key, seen[key])] = cells
        seen[key] += 1
    return table


def _own(clause: svc.ServiceClause, term: Term) -> Term:
    """A blank node of an endpoint is none of ours, whatever its label."""
    return _node(clause, (str(term),), -1) if isinstance(term, BlankNode) else term


def _node(clause: svc.ServiceClause, key: tuple[str, ...], copy: int) -> BlankNode:
    text = "\0".join((clause.endpoint, clause.query, *key, str(copy)))
    return BlankNode(f"s{sha256(text.encode()).hexdigest()[:32]}")


class _Timer:
    """Fetches the tables of a graph every so many seconds, as long as the graph exists."""

    def __init__(self, tables: weakref.ref[ServiceTables], seconds: float) -> None:
        self._stop = Event()
        arguments = tables, seconds, self._stop
        Thread(target=_fetch_again, args=arguments, daemon=True, name="services").start()

    def stop(self) -> None:
        """Fetch nothing any more."""
        self._stop.set()

    __del__ = stop


def _fetch_again(tables: weakref.ref[ServiceTables], seconds: float, stop: Event) -> None:
    while not stop.wait(seconds):
        there = tables()
        if there is None:
            return
        try:
            there.refresh()
        except GraphtideError as error:
            log.warning("%s", error)
        del there
