"""From changes of coordinates to gestures: as a chain of parts, and as a program.

`Chain` connects posture queries and a pattern detector by hand; `ProgramChain` runs the same as a
program on a live graph, with a rule that fires for each gesture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from graphtide.bench.sequence import pattern_detector
from graphtide.datasets.queries import GESTURE, program_text
from graphtide.graph import LiveGraph
from graphtide.kernel.batch import DIFF, TX, Ints, Longs
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.lang.tide.ast import QueryChange
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from graphtide.engine.results import TransactionTimes
    from graphtide.engine.watch import Query
    from graphtide.patterns.general import MatchColumns

RULE: Final = "RULE NextSlide ON Forward(?body) THEN CALL next_slide(?body)\n"

EVENTS_PER_GESTURE: Final = 6


class Chain:
    """A live graph with the posture queries, and a detector for the events that they output.

    >>> from graphtide.datasets.gesture import GestureEncoder
    >>> from graphtide.datasets.gesture_scene import GestureScene
    >>> chain = Chain()
    >>> for frame in GestureEncoder(GestureScene(bodies=2, cycles=1)).frames():
    ...     chain.graph.apply(frame.changes())
    ...     found = chain.detect()
    >>> chain.events, chain.gestures
    (12, 2)
    """

    def __init__(self) -> None:
        program = Program.parse(program_text())
        self.graph = LiveGraph(tick_ms=1)
        self.events = 0
        self.gestures = 0
        queries = {query.name: query.text for query in program.queries}
        watches = {name: self.graph.watch(text) for name, text in queries.items()}
        self._sources: dict[Query, dict[bool, int]] = {watch: {} for watch in watches.values()}
        types: dict[str, int] = {}
        for event in program.events:
            if isinstance(event.source, QueryChange):
                types[event.name] = len(types)
                watch = watches[event.source.query]
                self._sources[watch][event.source.appears] = types[event.name]
        (pattern,) = (each for each in program.patterns if each.name == GESTURE)
        self.detector = pattern_detector(pattern, types, self.graph.terms.encode, tick_ms=1)
        self.graph.terms.holders.add(self.detector)

    def detect(self) -> MatchColumns | None:
        """Feed the deltas since the last call to the detector; the gestures that it finds."""
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


class EventColumns(NamedTuple):
    """Columns of events."""

    types: Longs
    values: Longs
    times: Longs


def _events(net: Ints, stamps: TransactionTimes, types: dict[bool, int]) -> list[EventColumns]:
    """Rows of a delta as events: rows that appear, and rows that disappear."""
    before = net[:, COUNT_BEFORE]
    after = before + net[:, DIFF]
    found: list[EventColumns] = []
    for appears, number in types.items():
        rows = net[(before <= 0) & (after > 0) if appears else (after <= 0) & (before > 0)]
        times = np.asarray(stamps.times, np.int64)[rows[:, TX]]
        values = rows[:, DELTA_VALUES:].astype(np.int64)
        found.append(EventColumns(np.full(len(rows), number, np.int64), values, times))
    return found


class ProgramChain:
    """A live graph on which the program runs; its rule counts the gestures.

    >>> from graphtide.datasets.gesture import GestureEncoder
    >>> from graphtide.datasets.gesture_scene import GestureScene
    >>> program = ProgramChain()
    >>> for frame in GestureEncoder(GestureScene(bodies=2, cycles=1)).frames():
    ...     program.graph.apply(frame.changes())
    >>> program.gestures
    2
    """

    def __init__(self, *, smoothed: bool = False) -> None:
        self.graph = LiveGraph(tick_ms=1)
        self.gestures = 0
        program = Program.parse(program_text(smoothed=smoothed) + RULE)
        self.running = self.graph.run(program, functions={"next_slide": self._next_slide})

    def _next_slide(self, _body: object) -> None:
        self.gestures += 1

    @property
    def events(self) -> int:
        """Atomic events as the paper counts them: six for each gesture."""
        return EVENTS_PER_GESTURE * self.gestures

    def detect(self) -> None:
        """Nothing: rules fire at the end of each transaction."""
