"""Streams of a live graph: the part of `LiveGraph` that has to do with windows."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Literal

from graphtide.algebra.substitute import substitute
from graphtide.algebra.windows import WINDOW_SPACE
from graphtide.engine.windows.content import NO_TIMES
from graphtide.engine.windows.continuous import Continuous, Reevaluated
from graphtide.engine.windows.registry import WindowRegistry
from graphtide.engine.windows.shape import ChangingWindow, TimeWindow, window_shape
from graphtide.engine.windows.statements import StatementLog
from graphtide.engine.windows.summary import EVERYTHING, asked_of
from graphtide.errors import GraphtideError
from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from graphtide.algebra.windows import WindowClause, WindowedQuery
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.quads import TermLike
    from graphtide.engine.windows.registry import Placed
    from graphtide.engine.windows.shape import Alignment, WindowShape
    from graphtide.engine.windows.stream import Stream
    from graphtide.engine.windows.summary import Asked
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.term import Term

ReportPolicy = Literal["close", "change"]
"""When a query reports: when a window closes, or whenever events come."""

MOST_REPORTS = 10_000
"""Reports of a query that are kept; the oldest go first."""


class Streams:
    """The streams of a graph, and the windowed queries over them."""

    def __init__(self, graph: LiveGraph, tick_ms: int, origin: int, alignment: Alignment) -> None:
        if tick_ms < 1:
            raise GraphtideError(f"a tick of {tick_ms} ms is too short", hint="use at least 1")
        self._graph = graph
        self._tick_ms = tick_ms
        self._origin = origin
        self._alignment = alignment
        self._registry = WindowRegistry(graph, tick_ms)
        self._queries: dict[str, Continuous] = {}

    def __bool__(self) -> bool:
        return bool(self._registry.streams)

    @property
    def has_windows(self) -> bool:
        """Whether there are windows on any of them."""
        return self._registry.has_windows

    def stream(self, name: TermLike, lateness: int | None) -> Stream:
        """The stream of that name, made if need be."""
        text = str(name)
        iri = text[1:-1] if text.startswith("<") and text.endswith(">") else text
        return self._registry.stream(iri, lateness)

    def watch(
        self,
        query: WindowedQuery,
        strategy: Strategy | None,
        name: str | None,
        report: ReportPolicy,
        *,
        reevaluate: bool,
    ) -> Continuous:
        """Register a query over windows; it reports from its windows' first close on."""
        if report not in ("close", "change"):
            raise GraphtideError(f"report={report!r} is unknown", hint='use "close" or "change"')
        graphs: dict[Term, Term] = {}
        windows: dict[int, tuple[Stream, Asked]] = {}
        for clause in query.windows:
            root = query.select.root
            by_graph = clause.quads in _terms_of(root)
            asked = EVERYTHING if by_graph else asked_of(root, clause.graph, self._graph.terms)
            name_of, placed = self._place(clause, self._shape(clause, report), asked)
            graphs[clause.graph] = name_of
            if by_graph:
                graphs[clause.quads] = self._written_down(placed, name_of)
            before = windows.get(placed.graph, (placed.stream, frozenset()))[1]
            windows[placed.graph] = placed.stream, before | asked
        select = replace(query.select, root=substitute(query.select.root, graphs))
        graph, name = self._graph, name or query.name
        if reevaluate:
            name = name or f"query{len(self._queries) + 1} over windows"
            found: Continuous = Reevaluated(graph, query, select, name, windows, MOST_REPORTS)
        else:
            watch = graph.watch(select, strategy=strategy, name=name, history=2**62)
            found = Continuous(graph, query, watch, windows, MOST_REPORTS)
            found.take(NO_TIMES, NO_TIMES)
        self._registry.add(found)
        self._queries[found.name] = found
        return found

    def _place(
        self, clause: WindowClause, shape: WindowShape, asked: Asked
    ) -> tuple[NamedNode, Placed]:
        """A window and its graph's name: that of other queries, if it holds all that is asked."""
        stream = self._registry.stream(clause.stream.value, None)
        for number in count():
            name = _graph_of(clause.stream.value, shape, number)
            graph = self._graph.terms.hidden_graph(name.value)
            placed = self._registry.window(stream, shape, graph, asked)
            if placed is not None:
                return name, placed
        raise AssertionError

    def _written_down(self, placed: Placed, window: NamedNode) -> NamedNode:
        """The graph in which the quads of a window's event graphs are written down."""
        name = NamedNode(window.value.replace(WINDOW_SPACE, f"{WINDOW_SPACE}quads:", 1))
        content, terms = placed.content, self._graph.terms
        if content.by_graph is None:
            if len(content):
                raise GraphtideError(
                    "this window is in use already, without the graphs of its events",
                    hint="register queries with GRAPH inside WINDOW before the events come",
                )
            content.by_graph = StatementLog(terms.hidden_graph(name.value), terms)
        return name

    def unwatch(self, query: Continuous) -> None:
        """End a windowed query."""
        if self._queries.pop(query.name, None) is not query:
            raise GraphtideError(f"{query.name} does not watch this graph (any more)")
        self._graph.unwatch(query.watch)
        self._registry.remove(query)

    def advance(self, to: int) -> None:
        """Nothing before a time comes any more: close what closes up to then."""
        self._registry.advance(to)

    def _shape(self, clause: WindowClause, report: ReportPolicy) -> WindowShape:
        shape = window_shape(clause, self._tick_ms, self._origin, self._alignment)
        if report == "change" and isinstance(shape, TimeWindow):
            return ChangingWindow(shape.range, shape.step, self._origin)
        return shape

    def pruned(self) -> int:
        """How many triples streams have dropped, because no query can match them."""
        return self._registry.pruned()

    def held(self) -> int:
        """How many quads are in windows."""
        return self._registry.held()


def _terms_of(part: object) -> set[object]:
    """All names of graphs in a node."""
    if isinstance(part, NamedNode):
        return {part}
    if isinstance(part, tuple | frozenset):
        return {term for each in part for term in _terms_of(each)}
    if is_dataclass(part):
        return {term for f in fields(part) for term in _terms_of(getattr(part, f.name))}
    return set()


def _graph_of(stream: str, shape: WindowShape, number: int) -> NamedNode:
    """The graph that holds a window: equal windows on one stream are one, as far as they can."""
    again = f"/{number}" if number else ""
    stream = stream.replace("#", "%23")
    return NamedNode(f"{WINDOW_SPACE}{stream}#{shape}{again}".replace(" ", "").replace("'", ""))
