"""What all measurements share: a clock, garbage collection off, and a warm start."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Stopwatch:
    """Seconds between entering and leaving a `timed()` block."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Time a block with Python's garbage collection off, as for every engine measured here.

    >>> with timed() as watch:
    ...     pass
    >>> watch.seconds >= 0
    True
    """
    watch = Stopwatch()
    gc.collect()
    gc.disable()
    start = perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = perf_counter() - start
        gc.enable()


def time_each(actions: Iterator[Callable[[], object]]) -> list[float]:
    """Seconds that each action takes, one after the other."""
    spent = []
    with timed():
        for action in actions:
            start = perf_counter()
            action()
            spent.append(perf_counter() - start)
    return spent


def microseconds(spent: list[float]) -> dict[str, float]:
    """Median and 95th percentile.

    >>> microseconds([1e-6, 2e-6, 3e-6])
    {'update_us_median': 2.0, 'update_us_p95': 2.9}
    """
    median, p95 = np.percentile(np.array(spent) * 1e6, [50, 95])
    return {"update_us_median": round(float(median), 2), "update_us_p95": round(float(p95), 2)}
