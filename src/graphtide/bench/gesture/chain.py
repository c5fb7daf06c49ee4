"""Chain: from changes of attributes to gestures, by way of postures and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.bench.gesture.queries import GESTURE, program_text
from graphtide.bench.sequence.detector import make_detector
from graphtide.engine.live_graph import LiveGraph
from graphtide.kernel.batch import DIFF, TX
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.lang.tide.ast import QueryChange
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from graphtide.engine.runtime import TransactionTimes
    from graphtide.engine.watch import Watch
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.patterns.detector import FoundColumns


class Chain:
    """A live graph with the queries of the gesture, and a detector for what they tell.

    >>> from graphtide.bench.gesture.model import Stage
    >>> from graphtide.bench.gesture.texts import Coder
    >>> chain = Chain()
    >>> for frame in Coder(Stage(bodies=2, cycles=1)).frames():
    ...     chain.graph.apply(frame.changes())
    ...     found = chain.listen()
    >>> chain.events, chain.gestures
    (12, 2)
    """

    def __init__(self, program: Program | None = None) -> None:
        program = Program.parse(program_text()) if program is None else program
        self.graph = LiveGraph(tick_ms=1)
        self.events = 0
        self.gestures = 0
        queries = {query.name: query.text for query in program.queries}
        watches = {name: self.graph.watch(text) for name, text in queries.items()}
        self._sources: dict[Watch, dict[bool, int]] = {watch: {} for watch in watches.values()}
        types: dict[str, int] = {}
        for event in program.events:
            if isinstance(event.source, QueryChange):
                types[event.name] = len(types)
                watch = watches[event.source.query]
                self._sources[watch][event.source.appears] = types[event.name]
        (pattern,) = (each for each in program.patterns if each.name == GESTURE)
        self.detector = make_detector(pattern, types, self.graph.terms.encode, tick_ms=1)

    def listen(self) -> FoundColumns | None:
        """Let the detector hear of what came and went since it last did; the gestures it finds."""
        parts = [
            part
            for watch, types in self._sources.items()
            for net, stamps in watch.drain()
            for part in _events(net, stamps, types)
        ]
        if not parts:
            return None
        type_, body, time = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((type_, time))
        self.events += len(order)
        found = self.detector.feed(type_[order], body[order], time[order])
        self.gestures += len(found.time)
        return found


def _events(
    net: Ints, stamps: TransactionTimes, types: dict[bool, int]
) -> list[tuple[Longs, Longs, Longs]]:
    """Net rows of a query as events: types, values and times."""
    before = net[:, COUNT_BEFORE]
    after = before + net[:, DIFF]
    found: list[tuple[Longs, Longs, Longs]] = []
    for appears, number in types.items():
        rows = net[(before <= 0) & (after > 0) if appears else (after <= 0) & (before > 0)]
        times = np.asarray(stamps.times, np.int64)[rows[:, TX]]
        values = rows[:, DELTA_VALUES:].astype(np.int64)
        found.append((np.full(len(rows), number, np.int64), values, times))
    return found
