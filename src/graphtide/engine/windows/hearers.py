"""Hearers: the listeners of a graph, as its streams tell them of events.

Events of a stream go to the windows first, then to the listeners. Where windows are registered, or
other streams hold events back, that happens time by time; else many events are told at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.graph_events import group_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.kernel.batch import Ints, Longs

Lines = tuple["Longs", "Ints", "Longs"]
"""Times, quads, and the number of the event that each quad is of."""


class Hearers:
    """Numbers the events of all streams of a graph, and tells its listeners of them."""

    def __init__(self, graph: LiveGraph, apart: Callable[[], bool]) -> None:
        self._graph = graph
        self._apart = apart
        self.numbers = 0

    @property
    def listening(self) -> bool:
        """Whether anybody wants to hear of events."""
        return bool(self._graph.listeners)

    def number(self, times: Longs, quads: Ints, events: Longs | None) -> Longs:
        """A number for the event of each quad that no other event has."""
        if events is None:
            begins = (times[1:] != times[:-1]) | (quads[1:, 3] != quads[:-1, 3])
            events = np.concatenate([[0], np.cumsum(begins)])
        else:
            steps = np.diff(events, prepend=events[:1])
            if (steps >= 0).all():
                events = np.cumsum(steps > 0)
            else:
                _, events = np.unique(events, return_inverse=True)
        numbers: Longs = events + self.numbers
        self.numbers = int(numbers.max()) + 1
        return numbers

    def parts(self, lines: Lines, complete: int) -> Iterator[tuple[Lines, int]]:
        """Events to be told together, and the time up to which they are all."""
        times, quads, numbers = lines
        if not self._apart() and len(self._graph.followers) < 2:
            yield lines, complete
            return
        begins = np.flatnonzero(np.diff(times, prepend=times[0] - 1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(times)], strict=True):
            at = slice(begin, end)
            yield (times[at], quads[at], numbers[at]), int(times[begin])

    def tell(self, lines: Lines) -> int:
        """Tell of events; how many quads were not told, being older than the graph's clock."""
        graph, (times, quads, numbers) = self._graph, lines
        if int(times[-1]) < graph.clock:
            return len(times)
        if int(times[0]) > graph.clock:
            graph.advance(int(times[0]))
        late = int(np.searchsorted(times, graph.clock))
        events = group_events(times[late:], quads[late:], numbers[late:])
        for listener in tuple(graph.listeners):
            listener.take_events(events)
        return late
