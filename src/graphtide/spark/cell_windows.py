"""CellWindows: the windows of one cell, over the events that were routed to it.

Windows close by time alone, so all cells agree on when, and each holds its own part of them. Where
changes of the graph come between two closes, they are taken in between these closes.
"""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.kernel.batch import TX, Ints, Longs
from graphtide.spark.pack_events import moment_rows, places_of
from graphtide.spark.schemas import EVENTS, table_of
from graphtide.streams.pruning import EVERYTHING
from graphtide.streams.query import WindowQuery
from graphtide.streams.registry import StatementLog, WindowRegistry
from graphtide.streams.windows import ElementWindow, TimeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.watch import Watch
    from graphtide.spark.task import Task
    from graphtide.spark.windows import CellWindow, Windowed
    from graphtide.streams.registry import Placed
    from graphtide.streams.stream import Stream

PENDING = 2**63 - 1
"""The time of what is not put out yet: no window has closed since."""

NOT_YET = np.array([[PENDING, 0]])


class CellReports(WindowQuery):
    """When a query over windows reports in a cell, and which rows have changed by then."""

    def __init__(
        self,
        graph: LiveGraph,
        windowed: Windowed,
        watch: Watch,
        windows: dict[int, tuple[Stream, frozenset[tuple[int, int, int]]]],
        own: Callable[[Ints], Ints],
    ) -> None:
        super().__init__(graph, windowed.query, watch, windows, 1)
        self._own = own
        self._closes: list[Longs] = []
        self._changed: list[tuple[Longs, Ints]] = []

    def take(self, numbers: Longs, times: Longs) -> None:
        """Put what has changed under the closes where it is told of."""
        # All closes of one time come at once: windows of elements close several times.
        closes = np.column_stack([times, np.arange(len(times)) - np.searchsorted(times, times)])
        self._closes.append(closes)
        self._drain(numbers, np.append(closes, NOT_YET, axis=0))

    def _drain(self, numbers: Longs, closes: Longs) -> None:
        for net, stamps in self.watch.drain():
            rows = self._own(net)
            at = np.searchsorted(numbers, rows[:, TX] + stamps.first)
            self._changed.append((closes[at], rows))

    def taken(self) -> tuple[Longs, list[tuple[Longs, Ints]]]:
        """The closes since last asked; and changed rows, each with the close that tells of it.

        A close is a time, and its number among those of this time.
        """
        self._drain(np.empty(0, np.int64), NOT_YET)
        closes, self._closes = self._closes, []
        changed, self._changed = self._changed, []
        return np.concatenate([np.empty((0, 2), np.int64), *closes]), changed


class CellWindows:
    """Streams, windows on them, and the queries over these, in the graph of a cell."""

    def __init__(self, graph: LiveGraph, task: Task) -> None:
        self._graph = graph
        # Not the graph's own streams: those would let in one transaction after the other.
        self._registry = WindowRegistry(graph, task.clock.tick_ms)
        self._placed = {window.graph: self._place(window) for window in task.windows.values()}
        self._shapes = {placed.content.shape for placed in self._placed.values()}

    def _place(self, window: CellWindow) -> Placed:
        terms = self._graph.terms
        stream = self._registry.stream(window.stream, None)
        graph = terms.hidden_graph(window.graph.value)
        placed = self._registry.window(stream, window.shape, graph, EVERYTHING)
        if placed is None:
            raise AssertionError
        if window.quads is not None:
            quads = terms.hidden_graph(window.quads.value)
            placed.content.by_graph = StatementLog(quads, terms)
        return placed

    def add(self, windowed: Windowed, watch: Watch, own: Callable[[Ints], Ints]) -> CellReports:
        """Let a query report when one of its windows closes."""
        found = [self._placed[window.graph] for window in windowed.windows]
        windows = {placed.graph: (placed.stream, EVERYTHING) for placed in found}
        reports = CellReports(self._graph, windowed, watch, windows, own)
        self._registry.add(reports)
        return reports

    def take(self, events: pa.Table) -> None:
        """Add events, sorted by time; nothing closes yet."""
        terms = self._graph.terms
        for stream in self._registry.streams.values():
            rows = events.take(places_of(events["stream"], stream.name))
            quads = np.empty((len(rows), 4), np.int32)
            for column, name in enumerate("spog"):
                quads[:, column] = terms.encode_column(rows[name])
            stream.events.append(rows["time"].to_numpy(), quads, quads[:, 0] != 0)

    def advance(self, to: int) -> None:
        """Close what closes up to a time."""
        self._registry.advance(to)

    def between_closes(self, times: Longs) -> Iterator[slice]:
        """Changes of the graph, by time, in runs between which windows may close."""
        begins = np.zeros(len(times), np.bool_)
        begins[:1] = True
        for shape in self._shapes:
            closes = times
            if isinstance(shape, TimeWindow):
                closes = (times - shape.bounds(0)[1] - shape.first_close) // shape.step
            begins[1:] |= closes[1:] != closes[:-1]
        begins[1:] &= times[1:] >= self._first_event()
        starts = np.flatnonzero(begins).tolist()
        yield from map(slice, starts, [*starts[1:], len(times)])

    def _first_event(self) -> int:
        """A time before which no window can have closed."""
        moments = [stream.events.moments for stream in self._registry.streams.values()]
        if any(each.begin for each in moments):
            return -PENDING
        return min((int(each.rows(0, 1)[0]) for each in moments if each.end), default=PENDING)

    def __len__(self) -> int:
        """How many events may still be needed."""
        return sum(len(stream.events) for stream in self._registry.streams.values())

    def held(self) -> int:
        """How many quads the windows have put into the graph."""
        return self._registry.held()

    def snapshot(self) -> pa.Table:
        """The events that may still be needed, by time."""
        parts = [self._events(stream) for stream in self._registry.streams.values()]
        table = pa.concat_tables(parts)
        return table.take(np.argsort(table["time"].to_numpy(), kind="stable"))

    def _events(self, stream: Stream) -> pa.Table:
        """The events of a stream. Of none that are left, it still is known that there were some."""
        events, n = stream.events, len(stream.events)
        if not n:
            times = np.array([stream.complete] if events.moments.end else [], np.int64)
            return moment_rows(stream.name, times)
        steps = [w.step for w in self._shapes_on(stream) if isinstance(w, ElementWindow)]
        # Element windows count from the first event ever: those that are gone are stood in for.
        places = np.append(np.zeros(events.begin % lcm(*steps), np.int64), np.arange(n))
        quads = events.quads(events.begin, events.end)[places]
        texts = [self._graph.terms.decode_column(quads[:, column]) for column in range(4)]
        zeros, ones = np.zeros(len(places), np.int64), np.ones(len(places), np.int8)
        stamps = [events.times(events.begin, events.end)[places], zeros, zeros, ones]
        names: Any = [stream.name] * len(places)
        return table_of(EVENTS, [*stamps, ones.astype(np.bool_), *texts, names])

    def _shapes_on(self, stream: Stream) -> list[object]:
        return [p.content.shape for p in self._placed.values() if p.stream is stream]
