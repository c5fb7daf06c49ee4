"""Windows of queries: their streams and shapes, as plain data.

Inside a query, a window is a graph with a name of its own. Windows of the same shape on the same
stream have the same name, so that several queries share one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from pyoxigraph import NamedNode

from graphtide.algebra.traverse import substitute
from graphtide.algebra.windows import WINDOW_SPACE, Output, WindowClause, WindowedQuery
from graphtide.errors import GraphtideError, UnsupportedError
from graphtide.streams.windows import Alignment, ElementWindow, TimeWindow, window_shape

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery
    from graphtide.rdf.terms import Term


Late = Literal["error", "reject"]
"""What happens to rows that come too late: the stream stops, or they are rejected."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Ticks, lateness and window bounds, the latter as in `LiveGraph`; and the shards of a source.

    Rows may be late by up to `lateness` ticks of `tick_ms` milliseconds. Nothing is complete before
    `shards` shards were seen; with None, before one was. A shard that is more than `idle` ticks
    behind the others does not hold them back. After `idle_seconds` without any input the clock goes
    on by itself, that long behind processing time. `late` says what happens to rows that come later
    than that; by default they are rejected, and with neither lateness nor idle they are an error.

    >>> Clock().rejects_late, Clock(lateness=5).rejects_late
    (False, True)
    """

    lateness: int = 0
    tick_ms: int = 1000
    window_origin: int = 0
    window_alignment: Alignment = "close"
    shards: int | None = None
    idle: int | None = None
    late: Late | None = None
    idle_seconds: float | None = None

    @property
    def rejects_late(self) -> bool:
        """Whether rows that come too late are rejected; otherwise they are an error."""
        if self.late is not None:
            return self.late == "reject"
        return self.lateness > 0 or self.idle is not None or self.idle_seconds is not None

    @property
    def window_times(self) -> tuple[int, int, Alignment]:
        """What the bounds of windows depend on."""
        return self.tick_ms, self.window_origin, self.window_alignment

    def __post_init__(self) -> None:
        if self.lateness < 0:
            raise GraphtideError(f"lateness {self.lateness} is negative", hint="use 0 or more")
        if self.shards is not None and self.shards < 1:
            raise GraphtideError(f"shards={self.shards}: there is at least one shard")
        if self.idle is not None and self.idle < 0:
            raise GraphtideError(f"idle {self.idle} is negative", hint="use 0 or more ticks")
        if self.idle_seconds is not None and not self.idle_seconds >= 0:
            raise GraphtideError(f"idle_seconds={self.idle_seconds}", hint="use 0 or more seconds")
        if self.late not in (None, "error", "reject"):
            raise GraphtideError(f'late is "{self.late}"', hint='it is "error" or "reject"')
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
class WindowSpec:
    """A window: its graph, its stream and its shape; `quads` if the query asks for event graphs."""

    graph: NamedNode
    stream: str
    shape: TimeWindow | ElementWindow
    quads: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class Windowed:
    """A windowed query, and the windows that it uses."""

    query: WindowedQuery
    windows: tuple[WindowSpec, ...]

    @property
    def output(self) -> Output:
        """Which rows are emitted when a window closes."""
        return self.query.output

    @property
    def pairs(self) -> tuple[tuple[WindowClause, WindowSpec], ...]:
        """Each window as it is written, and as it is specified."""
        return tuple(zip(self.query.windows, self.windows, strict=True))

    @property
    def whole(self) -> str | None:
        """Why one partition has to see the whole streams, if so."""
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
    named = names_in(query.select.root)
    placed = tuple(_placed(c, clock, by_graph=c.quads in named) for c in query.windows)
    names: dict[Term, Term] = {}
    for clause, window in zip(query.windows, placed, strict=True):
        names[clause.graph] = window.graph
        if window.quads is not None:
            names[clause.quads] = window.quads
    root = substitute(query.select.root, names)
    return replace(query.select, root=root), Windowed(query, placed)


def _placed(clause: WindowClause, clock: Clock, *, by_graph: bool) -> WindowSpec:
    shape = window_shape(clause, clock.tick_ms, clock.window_origin, clock.window_alignment)
    stream = clause.stream.value
    # Of one clock, all windows have the same origin and alignment.
    name = f"{stream.replace('#', '%23')}#{shape_text(shape).replace(' ', '-')}"
    quads = NamedNode(f"{WINDOW_SPACE}quads:{name}") if by_graph else None
    return WindowSpec(NamedNode(WINDOW_SPACE + name), stream, shape, quads)


def shape_text(shape: TimeWindow | ElementWindow) -> str:
    """A shape as text.

    >>> shape_text(TimeWindow(10, 5)), shape_text(ElementWindow(3))
    ('range 10 step 5', 'elements 3 step 1')
    """
    if isinstance(shape, TimeWindow):
        return f"range {shape.range} step {shape.step}"
    return f"elements {shape.count} step {shape.step}"


def names_in(part: object) -> set[NamedNode]:
    """All IRIs in a node."""
    if isinstance(part, NamedNode):
        return {part}
    if isinstance(part, tuple | frozenset):
        return {name for each in part for name in names_in(each)}
    if is_dataclass(part):
        return {name for f in fields(part) for name in names_in(getattr(part, f.name))}
    return set()


def of_window(graph: object) -> bool:
    """Whether a pattern's graph is a window."""
    return isinstance(graph, NamedNode) and graph.value.startswith(WINDOW_SPACE)
