"""Closes: when windows report, and in which order those do that report at one time.

At one time there may be several reports. A window that does not hold the events of its close closes
before they happen. Then come the windows of elements: a report for each element that completes one,
in the order in which the elements came; of several streams, by their names. Then close the windows
that do hold the events of their close. What closes at the same of these moments closes together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Longs


class Part(IntEnum):
    """The part of a time at which a window reports: before its events, with each, after them."""

    BEFORE = 0
    AMID = 1
    AFTER = 2


@dataclass(frozen=True, slots=True)
class Closes:
    """The next closes of one window, in order. Those of elements have a stream, and places in it.

    A window has all closes of a part of a time at once, so one of them is known by its time alone
    unless elements are counted.
    """

    times: Longs
    part: Part = Part.BEFORE
    stream: str = ""
    places: Longs | None = None

    def __len__(self) -> int:
        return len(self.times)


def unite(windows: Sequence[Closes]) -> tuple[Longs, list[Longs]]:
    """The times of all reports, in order; and for each window, which of them are its closes.

    >>> clock = Closes(np.array([5, 10]))
    >>> count = Closes(np.array([5, 5, 7]), Part.AMID, "ex:s", np.array([1, 2, 3]))
    >>> times, (of_clock, of_count) = unite([clock, count])
    >>> times.tolist(), of_clock.tolist(), of_count.tolist()
    ([5, 5, 5, 7, 10], [0, 4], [1, 2, 3])
    """
    if len(windows) == 1:
        return windows[0].times, [np.arange(len(windows[0]))]
    if all(w.places is None and w.part == windows[0].part for w in windows):
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
    """What the closes of a window are sorted by: time, part of it, stream, place."""
    keys = np.zeros((len(window), 4), np.int64)
    keys[:, 0] = window.times
    keys[:, 1] = window.part
    if window.places is not None:
        keys[:, 2] = rank
        keys[:, 3] = window.places
    return keys
