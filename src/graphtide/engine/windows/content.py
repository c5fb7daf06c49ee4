"""Window content: arrivals and evictions, as changes of a set of triples at each close.

A triple that arrives again while it is in the window lives until its latest copy leaves: copies are
counted, and only the first to come and the last to go are changes. No window is ever computed anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.windows.closes import Closes, Part
from graphtide.engine.windows.shape import ChangingWindow, ElementWindow, TimeWindow
from graphtide.kernel import Distinct
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs

if TYPE_CHECKING:
    from graphtide.engine.windows.shape import WindowShape
    from graphtide.engine.windows.statements import StatementLog
    from graphtide.engine.windows.timelist import Timelist

GRAPH = VALUES + 3

NO_TIMES: Longs = np.empty(0, np.int64)

MOST = 1 << 16
"""Closes that are carried out at a time."""

UNLIMITED = 1 << 62


class WindowContent:
    """What one window of a stream holds, close after close, from its first event on.

    The triples of all event graphs are one set; if somebody asks `by_graph`, the quads of named
    event graphs are kept as a set too.
    """

    def __init__(self, shape: WindowShape, events: Timelist, stream: str = "") -> None:
        self.shape = shape
        self._events = events
        self._stream = stream
        self._counts = Distinct(4)
        self.by_graph: StatementLog | None = None
        self._entered = events.end
        self._left = events.end
        self._seen = events.moments.end
        self._last: int | None = None

    @property
    def oldest_moment(self) -> int:
        """The place of the oldest moment that the window may still need."""
        return self._seen

    @property
    def oldest(self) -> int:
        """The place of the oldest event that the window may still need."""
        return self._left

    def __len__(self) -> int:
        """The different quads in the window."""
        return self._counts.sizes()["rows"]

    def advance(self, complete: int) -> tuple[Closes, Ints]:
        """Close windows that no further event can be part of: all before `complete` are here.

        The next closes, and the changes of the content, with the close's place as `tx`.
        """
        match self.shape:
            case TimeWindow():
                times, changes = self._advance_time(self.shape, complete)
                part = Part.AFTER if self._lead(self.shape) else Part.BEFORE
                return Closes(times, part), changes
            case ChangingWindow():
                times, changes = self._advance_changing(self.shape, complete)
                return Closes(times, Part.AFTER), changes
            case ElementWindow(step=step):
                times, changes = self._advance_elements(self.shape, complete)
                places = self._entered - step * np.arange(len(times))[::-1]
                return Closes(times, Part.AMID, self._stream, places), changes

    def reach(self) -> int:
        """The time that it can be taken to at once: a few closes, not a whole backlog."""
        match self.shape:
            case TimeWindow(step=step):
                begun = self._begun(self.shape)
                return UNLIMITED if begun is None else begun + MOST * step + self._lead(self.shape)
            case ChangingWindow() if self._seen + MOST < self._events.moments.end:
                last = self._seen + MOST
                return int(self._events.moments.rows(last - 1, last)[0]) + 1
            case _:
                return UNLIMITED

    def _begun(self, shape: TimeWindow) -> int | None:
        """The last close that there was, or the one before the first; None before any event."""
        moments = self._events.moments
        if self._last is None and self._seen < moments.end:
            first = moments.rows(self._seen, self._seen + 1)
            self._last = int(shape.enters(first)[0]) - shape.step
        self._seen = moments.end
        return self._last

    def _lead(self, shape: TimeWindow) -> int:
        """How long after a close an event may still be part of the window."""
        return shape.bounds(0)[1] + (shape.alignment == "rsp4j")

    def _advance_time(self, shape: TimeWindow, complete: int) -> tuple[Longs, Ints]:
        begun = self._begun(shape)
        if begun is None:
            return NO_TIMES, _no_changes()
        closes = shape.closes(begun, complete - self._lead(shape))
        if not len(closes):
            return NO_TIMES, _no_changes()
        last = int(closes[-1])
        first_out, first_in = shape.bounds(last)
        come = self._place_of(first_in, self._entered)
        gone = min(self._place_of(first_out, self._left), come)
        arrived = self._changes(shape, self._entered, come, closes, 1)
        evicted = self._changes(shape, self._left, gone, closes, -1)
        self._entered, self._left, self._last = come, gone, last
        if shape.alignment == "rsp4j" and len(closes) > 1:  # only the latest of them reports
            closes = closes[-1:]
            arrived[:, TX] = evicted[:, TX] = 0
        return closes, self._counted(arrived, evicted)

    def _changes(self, shape: TimeWindow, first: int, last: int, closes: Longs, diff: int) -> Ints:
        """Events that enter or leave, at the close where they do; not those never held."""
        times = self._events.times(first, last)
        enters, leaves = shape.enters(times), shape.leaves(times)
        held = enters < leaves
        at = enters if diff > 0 else leaves
        rows = self._rows(first, last, diff)
        rows[:, TX] = np.maximum(at - closes[0], 0) // shape.step
        return rows if held.all() else rows[held]

    def _advance_changing(self, shape: ChangingWindow, complete: int) -> tuple[Longs, Ints]:
        """A report for every time at which there are events."""
        seen = max(self._events.moment_of(complete), self._seen)
        reports = _different(self._events.moments.rows(self._seen, seen))
        if not len(reports):
            return NO_TIMES, _no_changes()
        come = self._place_of(int(reports[-1]) + 1, self._entered)
        begins = shape.begin(reports)
        gone = min(self._place_of(int(begins[-1]), self._left), come)
        arrived = self._rows(self._entered, come, 1)
        arrived[:, TX] = np.searchsorted(reports, self._events.times(self._entered, come))
        evicted = self._rows(self._left, gone, -1)
        evicted[:, TX] = np.searchsorted(begins, self._events.times(self._left, gone), side="right")
        self._entered, self._left, self._seen = come, gone, seen
        return reports, self._counted(arrived, evicted)

    def _place_of(self, time: int, least: int) -> int:
        """The place of the first event at or after a time; older ones are none of the window's."""
        return max(self._events.place_of(time), least)

    def _rows(self, first: int, last: int, diff: int) -> Ints:
        rows = np.empty((last - first, VALUES + 4), np.int32)
        rows[:, DIFF] = diff
        rows[:, VALUES:] = self._events.quads(first, last)
        return rows

    def _advance_elements(self, shape: ElementWindow, complete: int) -> tuple[Longs, Ints]:
        """One event more and one less, and a report after every `step` events."""
        self._seen = self._events.moments.end
        end = self._place_of(complete, self._entered)
        reports = np.arange(self._entered + shape.step, end + 1, shape.step)
        if not len(reports):
            return NO_TIMES, _no_changes()
        last = int(reports[-1])
        begin = max(self._left, last - shape.count)
        arrived = self._numbered(self._entered, last, self._entered, 1, shape)
        evicted = self._numbered(self._left, begin, self._entered - shape.count, -1, shape)
        closes = self._events.times(self._entered, last)[shape.step - 1 :: shape.step].copy()
        self._entered, self._left = last, begin
        return closes, self._counted(arrived, evicted)

    def _numbered(self, first: int, last: int, base: int, diff: int, shape: ElementWindow) -> Ints:
        rows = self._rows(first, last, diff)
        rows[:, TX] = np.maximum(np.arange(first, last) - base, 0) // shape.step
        return rows

    def _counted(self, arrived: Ints, evicted: Ints) -> Ints:
        """Changes of the set; arrivals of a close count before its evictions."""
        both = arrived
        if len(evicted):
            both = np.concatenate([arrived, evicted])
            both = both[np.argsort(both[:, TX], kind="stable")]
        if self.by_graph is not None:
            self.by_graph.take(both)
        both[:, GRAPH] = 0
        return self._counts.step(both)


def _different(times: Longs) -> Longs:
    """Times in order, each once."""
    first = np.ones(len(times), np.bool_)
    np.not_equal(times[1:], times[:-1], out=first[1:])
    return times[first]


def _no_changes() -> Ints:
    return np.empty((0, VALUES + 4), np.int32)
