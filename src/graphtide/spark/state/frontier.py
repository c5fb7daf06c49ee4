"""Frontier: the latest transaction `(time, tx)` that a stream has shown.

Transactions come in the order of `(time, tx)`. One is complete as soon as a later one is seen, or a
row with diff 0 that ends it. Until then its changes are held, so that a transaction stays one
transaction however the stream is cut into micro-batches. A change of a transaction that was already
complete is late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Frontier(NamedTuple):
    """The latest transaction seen, and whether its end was seen as well.

    >>> Frontier(17, 3, 0) < Frontier(17, 3, 1) < Frontier(17, 4, 0)
    True
    """

    time: int
    tx: int
    ended: int

    def watermark(self, lateness: int) -> Frontier:
        """The frontier behind which all is complete, if rows may be late by so many ticks.

        >>> Frontier(17, 3, 1).watermark(5)
        Frontier(time=12, tx=-9223372036854775808, ended=0)
        """
        return Frontier(self.time - lateness, START.tx, 0) if lateness else self

    def at_end(self) -> Frontier:
        """The frontier if nothing comes after what was seen: all of it is complete."""
        return Frontier(self.time, END.tx, END.ended)

    def completed(self, time: NDArray[np.int64], tx: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which changes belong to complete transactions."""
        same_time = (time == self.time) & ((tx < self.tx) | ((tx == self.tx) & bool(self.ended)))
        return np.asarray((time < self.time) | same_time)


START = Frontier(-(2**63), -(2**63), 0)
END = Frontier(2**63 - 1, 2**63 - 1, 1)
"""Before any transaction, and after all: a bounded input is complete when it has been read."""


def frontier_of(time: NDArray[np.int64], tx: NDArray[np.int64], diff: NDArray[np.int8]) -> Frontier:
    """The frontier that a set of rows shows."""
    if not len(time):
        return START
    latest = time == time.max()
    last = tx[latest].max()
    ended = (diff[latest] == 0) & (tx[latest] == last)
    return Frontier(int(time.max()), int(last), int(ended.any()))
