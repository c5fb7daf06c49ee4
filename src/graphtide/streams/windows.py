"""Windows: when they close, and what they hold, as changes of a set of triples at each close.

A triple that arrives again while it is in the window stays until its latest copy leaves: copies are
counted, and only the first arrival and the last eviction are changes. No window is ever recomputed.

A time window closes again and again, `step` apart, and holds the events of the last `range` ticks.
Engines differ in which border is included, and in when the first window closes:

    close     [close - range, close), the first close at origin + range (CSRBench; the default)
    w3c       (close - range, close], from origin + step on (the draft's formula)
    yabench   [close - range, close], from origin + step on: windows that are not yet full report
    rsp4j     [close - range, close), from origin + step on
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from graphtide.arguments import check_choice
from graphtide.errors import GraphtideError
from graphtide.kernel import DistinctKernel
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphtide.algebra.windows import WindowClause
    from graphtide.streams.statements import StatementLog
    from graphtide.streams.timelist import Timelist


# --- shapes ---

Alignment = Literal["close", "w3c", "yabench", "rsp4j"]

ALIGNMENTS: Final[tuple[Alignment, ...]] = ("close", "w3c", "yabench", "rsp4j")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A window over the last `range` ticks that closes every `step` ticks.

    >>> window = TimeWindow(range=10, step=5)
    >>> window.first_close, window.bounds(10), window.bounds(15)
    (10, (0, 10), (5, 15))
    """

    range: int
    step: int
    origin: int = 0
    alignment: Alignment = "close"

    def __post_init__(self) -> None:
        if self.range < 1 or self.step < 1:
            raise GraphtideError(
                f"a window needs a range and a step of at least one tick, "
                f"not {self.range} and {self.step}",
                hint="check the durations against the length of a tick",
            )
        check_choice(self.alignment, "window_alignment", ALIGNMENTS)

    @property
    def first_close(self) -> int:
        """The first time at which the window reports."""
        return self.origin + (self.range if self.alignment == "close" else self.step)

    def bounds(self, close: int) -> tuple[int, int]:
        """The window that closes then holds events from the first of these to before the second."""
        first, last = self._shifts
        return close - self.range + first, close + last

    @property
    def _shifts(self) -> tuple[int, int]:
        """How far the borders are from those of [close - range, close), in whole ticks."""
        match self.alignment:
            case "w3c":
                return 1, 1
            case "yabench":
                return 0, 1
            case _:
                return 0, 0

    def closes(self, after: int, until: int) -> Longs:
        """The times after `after` and up to `until` at which the window reports."""
        return np.arange(self.next_close(after), until + 1, self.step, dtype=np.int64)

    def next_close(self, after: int) -> int:
        """The first time after `after` at which the window reports."""
        later = self.first_close + ((after - self.first_close) // self.step + 1) * self.step
        return max(self.first_close, later)

    def enters(self, times: Longs) -> Longs:
        """The first close whose window holds an event, or is past it, for each time."""
        return self._first_close_with(times - self._shifts[1])

    def leaves(self, times: Longs) -> Longs:
        """The first close whose window no longer holds an event, for each time."""
        return self._first_close_with(times + self.range - self._shifts[0])

    def _first_close_with(self, before: Longs) -> Longs:
        """The first close after each of these times."""
        passed = (before - self.first_close) // self.step + 1
        return np.asarray(self.first_close + np.maximum(passed, 0) * self.step, np.int64)


@dataclass(frozen=True, slots=True)
class ChangingWindow:
    """A window that reports whenever events come, not only when it closes.

    At time t it holds the events from floor((t - range) / step) * step on: old ones leave a step at
    a time.

    >>> ChangingWindow(range=10, step=5).begin(np.array([12, 15, 19, 20])).tolist()
    [0, 5, 5, 10]
    """

    range: int
    step: int
    origin: int = 0

    def __post_init__(self) -> None:
        TimeWindow(self.range, self.step)  # the same lengths are refused

    def begin(self, times: Longs) -> Longs:
        """The time of the oldest event that the window may hold, at each of some times."""
        steps = (times - self.origin - self.range) // self.step
        return np.asarray(self.origin + steps * self.step, np.int64)


@dataclass(frozen=True, slots=True)
class ElementWindow:
    """A window over the last `count` events that reports after every `step` of them."""

    count: int
    step: int = 1

    def __post_init__(self) -> None:
        if self.count < 1 or self.step < 1:
            raise GraphtideError(
                f"a window needs at least one element, not {self.count} with step {self.step}"
            )


WindowShape = TimeWindow | ChangingWindow | ElementWindow


def window_shape(
    clause: WindowClause, tick_ms: int, origin: int, alignment: Alignment
) -> TimeWindow | ElementWindow:
    """The shape that a clause of a query asks for, in ticks.

    >>> from graphtide.algebra.windows import WindowClause
    >>> from pyoxigraph import NamedNode
    >>> clause = WindowClause(NamedNode("ex:w"), NamedNode("ex:s"), "RANGE", 10_000, 5000, True)
    >>> window_shape(clause, 1000, 0, "close").bounds(10)
    (0, 10)
    """
    if clause.kind == "ELEMENTS":
        return ElementWindow(clause.length, clause.step)
    length, step = clause.length, clause.step
    if clause.in_time:
        length, step = _ticks(length, tick_ms), _ticks(step, tick_ms)
    return TimeWindow(length, step, origin, alignment)


def _ticks(milliseconds: int, tick_ms: int) -> int:
    ticks, rest = divmod(milliseconds, tick_ms)
    if rest:
        raise GraphtideError(
            f"{milliseconds} ms is no whole number of ticks of {tick_ms} ms",
            hint="use a shorter tick (LiveGraph(tick_ms=…), --tick-ms), and times in such ticks",
        )
    return ticks


# --- closes ---


class ReportPhase(IntEnum):
    """The order of reports at one time.

    Windows without the events of their close report before these happen. Then windows of elements
    report for each element that completes one, in the order in which elements came; of several
    streams, by their names. Then windows with the events of their close report. What closes in the
    same phase closes together.
    """

    BEFORE = 0
    AMID = 1
    AFTER = 2


@dataclass(frozen=True, slots=True)
class Closes:
    """The next closes of one window, in order. Those of elements have a stream, and indexes in it.

    A window has all closes of a phase of a time at once, so one of them is known by its time alone
    unless elements are counted.
    """

    times: Longs
    phase: ReportPhase = ReportPhase.BEFORE
    stream: str = ""
    indexes: range | None = None

    def __len__(self) -> int:
        return len(self.times)


def unite(windows: Sequence[Closes]) -> tuple[Longs, list[Longs]]:
    """The times of all reports, in order; and for each window, which of them are its closes.

    >>> clock = Closes(np.array([5, 10]))
    >>> count = Closes(np.array([5, 5, 7]), ReportPhase.AMID, "ex:s", range(1, 4))
    >>> times, (of_clock, of_count) = unite([clock, count])
    >>> times.tolist(), of_clock.tolist(), of_count.tolist()
    ([5, 5, 5, 7, 10], [0, 4], [1, 2, 3])
    """
    if len(windows) == 1:
        times = windows[0].times
        return times, [FIRST if len(times) == 1 else np.arange(len(times))]
    if all(w.indexes is None and w.phase == windows[0].phase for w in windows):
        times = np.unique(np.concatenate([w.times for w in windows]))
        return times, [np.searchsorted(times, w.times) for w in windows]
    return _ordered(windows)


def _ordered(windows: Sequence[Closes]) -> tuple[Longs, list[Longs]]:
    """As `unite`, of windows that may close several times at one time."""
    names = sorted({w.stream for w in windows})
    keys = np.concatenate([_keys(w, names.index(w.stream)) for w in windows])
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(first) - 1
    ends = np.cumsum([len(w) for w in windows])
    return ordered[first, 0], np.split(numbers, ends[:-1])


def _keys(window: Closes, rank: int) -> Longs:
    """What the closes of a window are sorted by: time, phase, stream, index."""
    keys = np.zeros((len(window), 4), np.int64)
    keys[:, 0] = window.times
    keys[:, 1] = window.phase
    if window.indexes is not None:
        keys[:, 2] = rank
        keys[:, 3] = np.array(window.indexes)
    return keys


# --- content ---

GRAPH_COLUMN: Final = VALUES + 3
"""The column of a change that has its graph."""

NO_TIMES: Longs = np.empty(0, np.int64)
FIRST: Longs = np.zeros(1, np.int64)
"""The place of a close that is the only one."""
NO_CHANGES: Ints = np.empty((0, VALUES + 4), np.int32)
MAX_CLOSES: Final = 1 << 16
"""Closes that are computed at a time."""

UNLIMITED = 1 << 62


class WindowMark(NamedTuple):
    """The events in a window, by their indexes; its last close; and a copy of its statements."""

    entered: int
    left: int
    seen: int
    last: int | None
    statements: StatementLog | None


class WindowContent:
    """What one window of a stream holds, close after close, from its first event on.

    The triples of all event graphs are one set; if somebody asks `by_graph`, the quads of named
    event graphs are kept as a set too.
    """

    def __init__(self, shape: WindowShape, events: Timelist, stream: str = "") -> None:
        self.shape = shape
        self._events = events
        self._stream = stream
        self._counts = DistinctKernel(4)
        self.by_graph: StatementLog | None = None
        self._entered = events.end
        self._left = events.end
        self._seen = events.moments.end
        self._last: int | None = None

    def needed(self) -> tuple[int, int]:
        """The indexes of the oldest event, and of the oldest moment, that it may still need."""
        return self._left, self._seen

    @property
    def held(self) -> range:
        """The indexes of the events in the window; older ones it does not need any more."""
        return range(self._left, self._entered)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of the quads in the window; the stream holds those of the events."""
        yield from self._counts.held_ids()
        if self.by_graph is not None:
            yield from self.by_graph.held_ids()

    def __len__(self) -> int:
        """The different quads in the window."""
        return self._counts.sizes()["rows"]

    def advance(self, watermark: int) -> tuple[Closes, Ints]:
        """Close windows up to the watermark: no event before it comes any more.

        The next closes, and the changes of the content, with the index of the close as `tx`.
        """
        match self.shape:
            case TimeWindow():
                times, changes = self._advance_time(self.shape, watermark)
                phase = ReportPhase.AFTER if self._lead(self.shape) else ReportPhase.BEFORE
                return Closes(times, phase), changes
            case ChangingWindow():
                times, changes = self._advance_changing(self.shape, watermark)
                return Closes(times, ReportPhase.AFTER), changes
            case ElementWindow(step=step):
                times, changes = self._advance_elements(self.shape, watermark)
                first = self._entered - step * (len(times) - 1)
                indexes = range(first, self._entered + 1, step)
                return Closes(times, ReportPhase.AMID, self._stream, indexes), changes

    def mark(self) -> WindowMark:
        """The state of the window, for `restore`."""
        statements = None if self.by_graph is None else deepcopy(self.by_graph)
        return WindowMark(self._entered, self._left, self._seen, self._last, statements)

    def restore(self, mark: WindowMark) -> None:
        """Go back to a state; the quads are counted again from the events in the window."""
        held = self._copies(mark.left, mark.entered)
        held[:, GRAPH_COLUMN] = 0
        counts = DistinctKernel(4)
        counts.step(held)
        self._entered, self._left, self._seen, self._last, self.by_graph = mark
        self._counts = counts

    def _copies(self, left: int, entered: int) -> Ints:
        """The quads that the window holds, a row for each event."""
        held = self._rows(left, entered, 1)
        held[:, TX] = 0
        if isinstance(self.shape, TimeWindow):
            times = self._events.times(left, entered)
            held = held[self.shape.enters(times) < self.shape.leaves(times)]
        return held

    def dump(self) -> dict[str, Any]:
        """The state of the window beside the events of its stream, for `load`."""
        quads = None if self.by_graph is None else self.by_graph.quads()
        return {"at": [self._entered, self._left, self._seen, self._last], "quads": quads}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state, when the stream has its events."""
        entered, left, seen, last = saved["at"]
        if self.by_graph is not None:
            self.by_graph.load(saved["quads"], self._copies(left, entered))
        self.restore(WindowMark(entered, left, seen, last, self.by_graph))

    def next_watermark(self) -> int | None:
        """The watermark at which the window closes next, as far as events have come."""
        match self.shape:
            case TimeWindow():
                begun = self._begun(self.shape)
                if begun is None:
                    return None
                return self.shape.next_close(begun) + self._lead(self.shape)
            case ChangingWindow():
                moments = self._events.moments
                if self._seen >= moments.end:
                    return None
                return int(moments.rows(self._seen, self._seen + 1)[0]) + 1
            case ElementWindow(step=step):
                last = self._entered + step
                if last > self._events.end:
                    return None
                return int(self._events.times(last - 1, last)[0]) + 1

    def reach(self) -> int:
        """The time that it can be taken to at once: a few closes, not a whole backlog."""
        match self.shape:
            case TimeWindow(step=step):
                begun = self._begun(self.shape)
                return (
                    UNLIMITED
                    if begun is None
                    else begun + MAX_CLOSES * step + self._lead(self.shape)
                )
            case ChangingWindow() if self._seen + MAX_CLOSES < self._events.moments.end:
                last = self._seen + MAX_CLOSES
                return int(self._events.moments.rows(last - 1, last)[0]) + 1
            case _:
                return UNLIMITED

    def quiet(self, watermark: int) -> range:
        """Return the next closes up to a watermark that change nothing, if this is known of any."""
        if not isinstance(self.shape, TimeWindow) or self.shape.alignment == "rsp4j":
            return range(0)
        begun = self._begun(self.shape)
        if begun is None:
            return range(0)
        end = watermark - self._lead(self.shape) + 1
        if self._left < self._entered:
            end = min(end, *self.shape.leaves(self._events.times(self._left, self._left + 1)))
        if self._entered < self._events.end:
            next_ = self._events.times(self._entered, self._entered + 1)
            end = min(end, *self.shape.enters(next_))
        return range(begun + self.shape.step, int(end), self.shape.step)

    def quiet_watermark(self) -> int:
        """Return the last watermark up to which nothing that is due changes the content."""
        due = self.next_watermark()
        if due is None:
            return UNLIMITED
        closes = self.quiet(UNLIMITED)
        if not len(closes) or not isinstance(self.shape, TimeWindow):
            return due - 1
        return closes[-1] + self.shape.step + self._lead(self.shape) - 1

    def pass_closes(self, ticks: int) -> None:
        """Pass quiet closes of some ticks, a multiple of the step."""
        if self._last is not None:
            self._last += ticks

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

    def _advance_time(self, shape: TimeWindow, watermark: int) -> tuple[Longs, Ints]:
        begun = self._begun(shape)
        if begun is None:
            return NO_TIMES, NO_CHANGES
        closes = shape.closes(begun, watermark - self._lead(shape))
        if not len(closes):
            return NO_TIMES, NO_CHANGES
        last = int(closes[-1])
        first_out, first_in = shape.bounds(last)
        entered = self._index_of(first_in, self._entered)
        left = min(self._index_of(first_out, self._left), entered)
        arrived = self._changes(shape, self._entered, entered, closes, 1)
        evicted = self._changes(shape, self._left, left, closes, -1)
        self._entered, self._left, self._last = entered, left, last
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

    def _advance_changing(self, shape: ChangingWindow, watermark: int) -> tuple[Longs, Ints]:
        """A report for every time at which there are events."""
        seen = max(self._events.moment_of(watermark), self._seen)
        reports = _different(self._events.moments.rows(self._seen, seen))
        if not len(reports):
            return NO_TIMES, NO_CHANGES
        entered = self._index_of(int(reports[-1]) + 1, self._entered)
        begins = shape.begin(reports)
        left = min(self._index_of(int(begins[-1]), self._left), entered)
        arrived = self._rows(self._entered, entered, 1)
        arrived[:, TX] = np.searchsorted(reports, self._events.times(self._entered, entered))
        evicted = self._rows(self._left, left, -1)
        evicted[:, TX] = np.searchsorted(begins, self._events.times(self._left, left), side="right")
        self._entered, self._left, self._seen = entered, left, seen
        return reports, self._counted(arrived, evicted)

    def _index_of(self, time: int, least: int) -> int:
        """The index of the first event at or after a time; older ones are none of the window's."""
        return max(self._events.index_of(time), least)

    def _rows(self, first: int, last: int, diff: int) -> Ints:
        rows = np.empty((last - first, VALUES + 4), np.int32)
        rows[:, DIFF] = diff
        rows[:, VALUES:] = self._events.quads(first, last)
        return rows

    def _advance_elements(self, shape: ElementWindow, watermark: int) -> tuple[Longs, Ints]:
        """One event more and one less, and a report after every `step` events."""
        self._seen = self._events.moments.end
        next_ = self._entered + shape.step
        if next_ > self._events.end:
            return NO_TIMES, NO_CHANGES
        end = self._index_of(watermark, self._entered)
        if next_ > end:
            return NO_TIMES, NO_CHANGES
        last = end - (end - self._entered) % shape.step
        begin = max(self._left, last - shape.count)
        if last == next_:  # one report: nothing has to be numbered or sorted
            closes = self._events.times(last - 1, last).copy()
            both = self._both(self._entered, last, self._left, begin)
            self._entered, self._left = last, begin
            return closes, self._distinct(both)
        arrived = self._numbered(self._entered, last, self._entered, 1, shape)
        evicted = self._numbered(self._left, begin, self._entered - shape.count, -1, shape)
        closes = self._events.times(self._entered, last)[shape.step - 1 :: shape.step].copy()
        self._entered, self._left = last, begin
        return closes, self._counted(arrived, evicted)

    def _numbered(self, first: int, last: int, base: int, diff: int, shape: ElementWindow) -> Ints:
        rows = self._rows(first, last, diff)
        rows[:, TX] = np.maximum(np.arange(first, last) - base, 0) // shape.step
        return rows

    def _both(self, first_in: int, last_in: int, first_out: int, last_out: int) -> Ints:
        """Events that enter and others that leave at one close."""
        arrived = last_in - first_in
        rows = np.zeros((arrived + last_out - first_out, VALUES + 4), np.int32)
        rows[:arrived, DIFF] = 1
        rows[:arrived, VALUES:] = self._events.quads(first_in, last_in)
        if first_out < last_out:
            rows[arrived:, DIFF] = -1
            rows[arrived:, VALUES:] = self._events.quads(first_out, last_out)
        return rows

    def _counted(self, arrived: Ints, evicted: Ints) -> Ints:
        """Changes of the set; arrivals of a close count before its evictions."""
        both = arrived
        if len(evicted):
            both = np.concatenate([arrived, evicted])
            both = both[np.argsort(both[:, TX], kind="stable")]
        return self._distinct(both)

    def _distinct(self, both: Ints) -> Ints:
        """Changes of the set of triples, in order of their closes."""
        if self.by_graph is not None:
            self.by_graph.take(both)
        both[:, GRAPH_COLUMN] = 0
        return self._counts.step(both)


def oldest(needed: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """What several windows need of a stream, as one of them does; of none, nothing."""
    if not needed:
        return UNLIMITED, UNLIMITED
    events, moments = zip(*needed, strict=True)
    return min(events), min(moments)


def _different(times: Longs) -> Longs:
    """Times in order, each once."""
    first = np.ones(len(times), np.bool_)
    np.not_equal(times[1:], times[:-1], out=first[1:])
    return times[first]
