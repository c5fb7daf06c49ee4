"""Quiet closes: those between which the content of no window changes.

An event far in the future makes windows close as often as their step fits into the gap. All of
these results are equal, and most are evicted at once: whole periods of them are counted, and only
the results that are retained are made.
"""

from __future__ import annotations

from functools import reduce
from math import lcm
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Longs
    from graphtide.streams.reports import PlacedWindow

PERIOD: Final = 1 << 12
"""Closes of all windows within the least common multiple of their steps, at most."""

WORTH: Final = 1 << 12
"""Fewer closes are reported as all others are."""


def skip(windows: Iterable[PlacedWindow], runtime: Runtime) -> None:
    """Pass quiet closes that are due, if they are many: whole periods from the last close on.

    All changes so far have been reported.
    """
    due = [(each, each.content.quiet(each.watermark())) for each in windows if each.is_due()]
    queries = dict.fromkeys(query for placed, _ in due for query in placed.queries)
    if not due or not all(len(closes) for _, closes in due):
        return
    start = max(closes.start - closes.step for _, closes in due)
    period = lcm(*(closes.step for _, closes in due))
    size = sum(period // closes.step for _, closes in due)
    many = (min(closes.stop for _, closes in due) - 1 - start) // period
    if size > PERIOD or many * size < WORTH or not all(query.is_settled for query in queries):
        return
    if any(closes.start <= start for _, closes in due):  # it is behind the others
        return
    listed = [
        (each.queries, np.arange(closes.start, start + period + 1, closes.step))
        for each, closes in due
    ]
    for placed, _ in due:
        placed.content.pass_closes(many * period)
    for query in queries:
        own = _union(times for readers, times in listed if query in readers)
        query.repeat(own, period, many)
    runtime.pass_closes(many * len(_union(times for _, times in listed)), start + many * period)


def quiet_until(windows: Iterable[PlacedWindow], to: int) -> int:
    """Return the last watermark up to a time at which only quiet closes are due."""
    for placed in windows:
        if not all(query.is_settled for query in placed.queries):
            return -(1 << 62)
        to = min(to, placed.content.quiet_watermark())
    return to


def _union(times: Iterable[Longs]) -> Longs:
    return reduce(np.union1d, times)
