"""What the page shows: a live graph as JSON, by the paths of its API.

The server and the notebook ask the same questions: `PageData.answer(method, path, …)`. Nothing is
registered for it and no callback is set, so a graph that nobody looks at pays nothing.
"""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict, deque
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from graphtide.errors import GraphtideError, PlacedError, QueryError
from graphtide.kernel.batch import DIFF, TX
from graphtide.lang.sparql import parse, scanner
from graphtide.lang.tide.program import Program
from graphtide.plan import choose, explain
from graphtide.rdf import terms
from graphtide.rdf.formats.results import json_row
from graphtide.serve.page import events, repairs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from graphtide.engine.results import Delta, Stats
    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph

MAX_ROWS: Final = 1000
"""Rows of an answer in one reply."""

MAX_COUNTED: Final = 20_000
"""Quads up to which the rows of every node of a plan are counted again and again."""

MAX_ASKED: Final = 10_000
"""Rows of a query that is evaluated once."""

SHOWN_DELTAS: Final = 40
SHOWN_DELTA_ROWS: Final = 50
SECONDS: Final = 60
"""Seconds that a sparkline shows."""

MAX_OWN_QUERIES: Final = 100
"""Queries that were registered on the page and are not closed."""

PAST_GRAPHS: Final = 2
"""Graphs of the past that are kept, the last ones that were asked for."""

_PROGRAM = re.compile(r"^\s*(QUERY|EVENT|PATTERN|RULE|GOAL|FIX|INCLUDE)\b", re.MULTILINE)


class NotFoundError(GraphtideError):
    """The page asked for something that is not there."""


class PageData:
    """Answers what the page asks of one graph."""

    def __init__(self, graph: LiveGraph) -> None:
        self.graph: Final = graph
        self._rates = Rates()
        self._repairs = repairs.RepairDesk(graph)
        self._past: OrderedDict[int, PageData] = OrderedDict()
        self._going_back = Lock()
        self._fired = events.FiringCounts()
        self._own: set[str] = set()

    def answer(
        self,
        method: str,
        path: Sequence[str],
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """The answer to a request: its path is what follows `/api/`, part by part."""
        given, sent = dict(params or {}), dict(body or {})
        at = given.pop("at", None) or sent.pop("at", None)
        if at is not None:
            return self._of_past(_whole(at, "at")).answer(method, path, given, sent)
        match (method, *path):
            case "GET", "overview":
                return self.overview()
            case "POST", "queries":
                return self.watch(_text(sent, "text"), sent.get("name"))
            case "GET", "queries", name:
                return self.query(name)
            case "DELETE", "queries", name:
                return self.close(name)
            case "GET", "queries", name, "rows":
                first, many = given.get("offset", 0), given.get("limit", 100)
                return self.rows(name, _whole(first, "offset"), _whole(many, "limit"))
            case "GET", "queries", name, "deltas":
                after, many = given.get("after", -1), given.get("limit", SHOWN_DELTAS)
                return self.deltas(name, _whole(after, "after", -1), _whole(many, "limit"))
            case "GET", "queries", name, "plan":
                return plan(self._query(name))
            case "POST", "queries", name, "why":
                return self.why(name, sent.get("row"), every=bool(sent.get("all")))
            case "POST", "queries", name, "why-not":
                return self.why_not(name, sent.get("bindings"))
            case "GET", "patterns", name:
                return events.pattern(self.graph, name)
            case "GET", "rules", name:
                return events.rule(self.graph, name, self._fired)
            case "GET", "repairs":
                return self._repairs.goals()
            case "POST", "repairs", "preview":
                return self._repairs.preview(_text(sent, "program"))
            case "POST", "repairs", "apply":
                return self._repairs.apply(_text(sent, "plan"))
            case "POST", "check":
                return check(_text(sent, "text"))
            case "POST", "ask":
                return self.ask(_text(sent, "text"))
            case _:
                raise NotFoundError(f"there is no {method} /api/{'/'.join(path)}")

    def _of_past(self, tx: int) -> PageData:
        with self._going_back:  # one replay at a time
            found = self._past.get(tx) or PageData(self.graph.at(tx=tx))
            self._past[tx] = found
            self._past.move_to_end(tx)
            while len(self._past) > PAST_GRAPHS:
                self._past.popitem(last=False)
            return found

    # --- the whole graph ---

    def overview(self) -> dict[str, Any]:
        """The clock, sizes and speed of the graph; its queries, patterns and rules."""
        with self.graph.lock:
            stats = self.graph.stats()
            shown = self._shown()
            self._rates.sample(shown.values(), stats)
            queries = [self._summary(query) for query in shown.values()]
            queries += events.summaries(self.graph, self._fired)
            return {
                "clock": stats.clock,
                "tx": stats.transactions,
                "quads": stats.quads,
                "memory_bytes": stats.quad_bytes + stats.term_bytes + stats.query_bytes,
                "changes_per_second": self._rates.changes_per_second,
                "queries": queries,
                "repairs": bool(self._repairs.programs()),
                "history": self._history(stats.transactions, stats.clock),
            }

    def _history(self, last_tx: int, last_time: int) -> dict[str, int] | None:
        try:
            first_tx, first_time = self.graph.store.begins_at()
        except GraphtideError:  # in memory only, or itself a graph of the past
            return None
        return {
            "first_tx": first_tx,
            "last_tx": last_tx,
            "first_time": first_time,
            "last_time": last_time,
        }

    def _shown(self) -> dict[str, Query]:
        """The queries that users made; those that rules made for themselves are left out."""
        internal = {id(q) for program in self.graph.programs for q in program.internal_queries}
        return {q.name: q for q in self.graph.queries if id(q) not in internal}

    def _query(self, name: str) -> Query:
        known = self._shown()
        if name not in known:
            raise NotFoundError(
                f"there is no query named {name}", hint=scanner.name_hint(name, known, "query")
            )
        return known[name]

    def _summary(self, query: Query) -> dict[str, Any]:
        last = query.recent(limit=1) if query.windows is None else []
        result = None if query.windows is None else query.last_result()
        rows = query.count() if query.windows is None else len(result or ())
        added, removed = self._rates.of(query)
        return {
            "name": query.name,
            "kind": "query" if query.windows is None else "window",
            "text": query.text,
            "rows": rows,
            "added": added,
            "removed": removed,
            "last": _delta_json(last[0], 3) if last else _result_json(result, 3),
            "own": query.name in self._own,
        }

    # --- one query ---

    def query(self, name: str) -> dict[str, Any]:
        """A query: its text, its columns, how many rows it has, and its last deltas."""
        with self.graph.lock:
            query = self._query(name)
            return {
                **self._summary(query),
                "columns": list(query.variables),
                "strategy": query.strategy,
                "clock": self.graph.clock,
                **self.deltas(name, -1, SHOWN_DELTAS),
            }

    def rows(self, name: str, offset: int, limit: int) -> dict[str, Any]:
        """A part of the answer as SPARQL results, and how many rows there are in all."""
        limit = min(limit, MAX_ROWS)
        with self.graph.lock:
            query = self._query(name)
            if query.windows is not None:
                result = query.last_result()
                found = [] if result is None else result[offset : offset + limit]
                rows, total = [json_row(row) for row in found], len(result or ())
            else:
                rows = table_json(query.table(terms=True, offset=offset, limit=limit))
                total = query.count()
        return {
            "head": {"vars": list(query.variables)},
            "results": {"bindings": rows},
            "offset": offset,
            "total": total,
        }

    def deltas(self, name: str, after: int, limit: int) -> dict[str, Any]:
        """The last deltas, newest first, of at most some rows each; of windows, their results."""
        query = self._query(name)
        if query.windows is not None:
            results = [r for r in query.results()[-limit:] if r.time > after]
            shown = [_result_json(r, SHOWN_DELTA_ROWS) for r in reversed(results)]
        else:
            found = query.recent(after, min(limit, MAX_ROWS))
            shown = [_delta_json(delta, SHOWN_DELTA_ROWS) for delta in reversed(found)]
        return {"deltas": shown}

    def watch(self, text: str, name: object = None) -> dict[str, Any]:
        """Register a standing query, under a name that is free."""
        with self.graph.lock:
            known = {query.name for query in self.graph.queries}
            if len(self._own & known) >= MAX_OWN_QUERIES:
                raise GraphtideError(
                    f"{MAX_OWN_QUERIES} queries were registered on the page",
                    hint="close one of them",
                )
            if name is not None and (not isinstance(name, str) or name in known):
                raise GraphtideError(f"{name!r} is not a free name", hint="choose another one")
            if name is None and is_reader(self.graph):  # the writer gives names, too
                name = f"asked-{token_hex(4)}"
            query = self.graph.watch(text, name=name)
            self._own.add(query.name)
            return {"name": query.name}

    def close(self, name: str) -> dict[str, Any]:
        """Close a query that was registered on the page."""
        if name not in self._own:
            raise GraphtideError(
                f"{name} was not registered on the page", hint="only what was asked here ends here"
            )
        self._query(name).close()
        self._own.discard(name)
        return {"closed": name}

    def ask(self, text: str) -> dict[str, Any]:
        """Evaluate a query once."""
        start = time.perf_counter()
        table = self.graph.query(text, terms=True)
        return {
            "head": {"vars": table.column_names},
            "results": {"bindings": table_json(table.slice(0, MAX_ASKED))},
            "total": table.num_rows,
            "seconds": time.perf_counter() - start,
        }

    # --- explanations ---

    def why(self, name: str, row: object, *, every: bool) -> Any:  # noqa: ANN401 - JSON
        """Why a row, with its terms in N-Triples, is in the answer."""
        return json.loads(self._query(name).why(_object(row, "row"), all=every).json())

    def why_not(self, name: str, bindings: object) -> Any:  # noqa: ANN401 - JSON
        """Why no row with some values, written as the query would write them, is in the answer."""
        query = self._query(name)
        given = _object(bindings, "bindings")
        row = {column: parse.parse_value(str(text), query.text) for column, text in given.items()}
        return json.loads(query.why_not(row).json())


def is_reader(graph: LiveGraph) -> bool:
    """Whether another process writes to the store of a graph."""
    try:
        return graph.store.read_only
    except GraphtideError:
        return False


def plan(query: Query) -> dict[str, Any]:
    """The plan of a query: nodes and edges, text, strategy, and why that was chosen."""
    with query.lock:
        facts = query.facts(actual=False)
        known = facts.statistics
        if known is not None and known.quads <= MAX_COUNTED:
            facts = query.facts(actual=True)
        asked = query.asked
        why = (
            ""
            if known is None
            else choose.reason(asked.select, query.plan, known, asked.strategy, asked.pinned)
        )
        size = query.cache_size()
        return {
            **explain.drawing(query.plan, facts).json(),
            "text": query.explain(actual=facts.actual is not None),
            "strategy": query.strategy,
            "why": why,
            "stored": size.entries,
            "bytes": size.bytes,
        }


def check(text: str) -> dict[str, Any]:
    """What a text is, or its first error and where that is."""
    try:
        if _PROGRAM.search(text):
            Program.parse(text)
            return {"ok": True, "kind": "program"}
        return {"ok": True, "kind": _kind(text)}
    except GraphtideError as error:
        return {"ok": False, "kind": None, "error": error_json(error)}


def _kind(text: str) -> str:
    """Whether a text can stand as a query, or only be evaluated once."""
    try:
        parse.parse_standing(text)
    except QueryError as error:
        try:
            parse.parse_any_query(text)
        except QueryError:
            raise error from None
        return "once"
    return "query"


def error_json(error: GraphtideError) -> dict[str, Any]:
    """An error with its place, if it has one."""
    placed = error if isinstance(error, PlacedError) else None
    return {
        "message": error.message.partition("\n")[0],  # what follows is a picture of the place
        "line": placed.line if placed else None,
        "column": placed.column if placed else None,
        "hint": error.hint,
    }


def _delta_json(delta: Delta, rows: int) -> dict[str, Any]:
    added = len(delta.added())
    return {
        "seq": delta.seq,
        "tx": delta.tx,
        "time": delta.time,
        "added": added,
        "removed": len(delta) - added,
        "rows": [{"diff": row.diff, "row": json_row(row.row)} for row in delta[:rows]],
    }


def _result_json(result: Sequence[Any] | None, rows: int) -> dict[str, Any] | None:
    """What a window gave, in the shape of a delta."""
    if result is None:
        return None
    return {
        "seq": result.time,  # type: ignore[attr-defined] # a WindowResult
        "tx": None,
        "time": result.time,  # type: ignore[attr-defined]
        "added": len(result),
        "removed": 0,
        "rows": [{"diff": 1, "row": json_row(row)} for row in result[:rows]],
    }


def table_json(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table of N-Triples texts."""
    rows = ({k: v and terms.parse_term(v) for k, v in row.items()} for row in table.to_pylist())
    return list(map(json_row, rows))


def _text(sent: Mapping[str, Any], name: str) -> str:
    value = sent.get(name)
    if not isinstance(value, str):
        raise GraphtideError(f"{name!r} is missing, or not a text")
    return value


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise GraphtideError(f"{name!r} is missing, or not an object")
    return value


def _whole(value: object, name: str, least: int = 0) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if number < least or number > 2**62:
        raise GraphtideError(f"{name}={value!r} is not a whole number of {least} or more")
    return number


# --- rows per second ---


class Rates:
    """Samples queries about once a second while somebody looks; never before.

    It reads the deltas that queries retain, so of more than those in one second the rest is not
    counted.
    """

    def __init__(self) -> None:
        self.changes_per_second = 0.0
        self._sampled = 0.0
        self._changes = 0
        self._seen: dict[str, int] = {}
        self._added: dict[str, deque[int]] = {}
        self._removed: dict[str, deque[int]] = {}

    def sample(self, queries: Collection[Query], stats: Stats) -> None:
        """Count what came since the last sample, unless that was just now."""
        now = time.monotonic()
        passed = now - self._sampled
        if passed < 0.9:
            return
        changes = stats.inserted + stats.deleted
        fresh = self._sampled == 0
        self.changes_per_second = 0.0 if fresh else round((changes - self._changes) / passed, 1)
        self._sampled, self._changes = now, changes
        names = {query.name for query in queries}
        for name in self._seen.keys() - names:
            del self._seen[name], self._added[name], self._removed[name]
        for query in queries:
            self._count(query)

    def of(self, query: Query) -> tuple[list[int], list[int]]:
        """The added and the removed rows of each of the last seconds."""
        empty: deque[int] = deque()
        return (
            list(self._added.get(query.name, empty)),
            list(self._removed.get(query.name, empty)),
        )

    def _count(self, query: Query) -> None:
        """One more second of a query; at the first sight of it, only where it is."""
        name, history = query.name, query.history()
        seen = self._seen.get(name)
        last, added, removed = -1 if seen is None else seen, 0, 0
        for net, stamps in reversed(history):
            numbers = net[:, TX] + stamps.first
            last = max(last, int(numbers[-1]))
            if seen is None or numbers[-1] <= seen:
                break
            diffs = net[numbers > seen, DIFF]
            added += int(diffs[diffs > 0].sum())
            removed -= int(diffs[diffs < 0].sum())
        self._seen[name] = last
        for kept, number in ((self._added, added), (self._removed, removed)):
            kept.setdefault(name, deque([0] * SECONDS, SECONDS)).append(number)
