"""Windows on cells: what a windowed query asks of which streams, as plain data.

Inside a query, a window is a graph with a name of its own. Windows of the same shape on the same
stream have the same name, so that several queries share one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyoxigraph import NamedNode

from graphtide.algebra.traverse import substitute, walk
from graphtide.algebra.windows import WINDOW_SPACE, Output, WindowClause, WindowedQuery
from graphtide.errors import GraphtideError, UnsupportedError
from graphtide.streams.windows import Alignment, ElementWindow, TimeWindow, window_shape

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class Clock:
    """How windows see time: as the options of `LiveGraph`, and how late rows may come.

    Rows may be late by up to `lateness` ticks of `tick_ms` milliseconds. What is later than that is
    set aside.
    """

    lateness: int = 0
    tick_ms: int = 1000
    window_origin: int = 0
    window_alignment: Alignment = "close"

    def __post_init__(self) -> None:
        if self.lateness < 0:
            raise GraphtideError(f"lateness {self.lateness} is negative", hint="use 0 or more")
        if self.tick_ms < 1:
            raise GraphtideError(f"a tick of {self.tick_ms} ms is too short", hint="use at least 1")
        if self.window_alignment == "rsp4j":
            raise GraphtideError(
                "windows aligned as rsp4j report by when events come, which is not the same for "
                "every cut into micro-batches",
                hint='use "close", "w3c" or "yabench", or one process',
            )


DEFAULT_CLOCK: Final = Clock()


@dataclass(frozen=True, slots=True)
class CellWindow:
    """A window: its stream, its shape, the graph it is in; `quads` if event graphs are asked of."""

    graph: NamedNode
    stream: str
    shape: TimeWindow | ElementWindow
    quads: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class Windowed:
    """What a windowed query has that others have not."""

    query: WindowedQuery
    windows: tuple[CellWindow, ...]

    @property
    def output(self) -> Output:
        """Which rows are put out at a report."""
        return self.query.output

    @property
    def pairs(self) -> tuple[tuple[WindowClause, CellWindow], ...]:
        """Each window as it is written, and as it is placed."""
        return tuple(zip(self.query.windows, self.windows, strict=True))

    @property
    def whole(self) -> str | None:
        """Why one cell has to see the whole streams, if so."""
        if any(isinstance(window.shape, ElementWindow) for window in self.windows):
            return "an ELEMENTS window counts all events of its stream"
        if any(window.quads is not None for window in self.windows):
            return "GRAPH inside WINDOW asks of whole events"
        return None


def with_windows(query: WindowedQuery, clock: Clock) -> tuple[SelectQuery, Windowed]:
    """A windowed query with its windows placed in graphs.

    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> window = "FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE 10 STEP 5]"
    >>> text = f"SELECT ?a {window} WHERE {{ WINDOW <ex:w> {{ ?a <ex:p> ?b }} }}"
    >>> select, windowed = with_windows(parse_standing(text), Clock())
    >>> windowed.windows[0].stream, windowed.windows[0].shape.step, windowed.output
    ('ex:s', 5, 'RSTREAM')
    """
    if len({clause.kind for clause in query.windows}) > 1:
        raise UnsupportedError(
            "a query over both RANGE and ELEMENTS windows reports by when events come, which is "
            "not the same for every cut into micro-batches",
            hint="ask two queries, or use one process",
        )
    named = {part for part in walk(query.select.root) if isinstance(part, NamedNode)}
    placed = tuple(_placed(c, clock, by_graph=c.quads in named) for c in query.windows)
    names: dict[Term, Term] = {}
    for clause, window in zip(query.windows, placed, strict=True):
        names[clause.graph] = window.graph
        if window.quads is not None:
            names[clause.quads] = window.quads
    root = substitute(query.select.root, names)
    return replace(query.select, root=root), Windowed(query, placed)


def _placed(clause: WindowClause, clock: Clock, *, by_graph: bool) -> CellWindow:
    shape = window_shape(clause, clock.tick_ms, clock.window_origin, clock.window_alignment)
    stream = clause.stream.value
    # Of one clock, all windows have the same origin and alignment.
    name = f"{stream.replace('#', '%23')}#{words_of(shape).replace(' ', '-')}"
    quads = NamedNode(f"{WINDOW_SPACE}quads:{name}") if by_graph else None
    return CellWindow(NamedNode(WINDOW_SPACE + name), stream, shape, quads)


def words_of(shape: TimeWindow | ElementWindow) -> str:
    """A shape in words.

    >>> words_of(TimeWindow(10, 5)), words_of(ElementWindow(3))
    ('range 10 step 5', 'elements 3 step 1')
    """
    if isinstance(shape, TimeWindow):
        return f"range {shape.range} step {shape.step}"
    return f"elements {shape.count} step {shape.step}"


def of_window(graph: object) -> bool:
    """Whether a pattern's graph is a window."""
    return isinstance(graph, NamedNode) and graph.value.startswith(WINDOW_SPACE)
