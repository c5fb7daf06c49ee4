"""Window shapes: when a window reports, and which events it then holds.

A window closes again and again, `step` apart, and holds the events of the last `range` ticks. Who
counts which border in differs between engines, and so does when the first window closes:

    close     [close - range, close), the first close at origin + range (CSRBench; the default)
    w3c       (close - range, close], from origin + step on (the draft's formula)
    yabench   [close - range, close], from origin + step on: windows that are not yet full report
    rsp4j     [close - range, close), from origin + step on
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from graphtide.algebra.windows import WindowClause
    from graphtide.kernel.batch import Longs

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
        if self.alignment not in ALIGNMENTS:
            known = ", ".join(ALIGNMENTS)
            raise GraphtideError(
                f"window alignment {self.alignment!r} is unknown", hint=f"choose from {known}"
            )

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
        begin = max(self.first_close, self._first_after(after))
        return np.arange(begin, until + 1, self.step, dtype=np.int64)

    def _first_after(self, time: int) -> int:
        return self.first_close + ((time - self.first_close) // self.step + 1) * self.step

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
    >>> from graphtide.rdf.term import NamedNode
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
