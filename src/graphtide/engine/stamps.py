"""Stamps: the times and transaction numbers of the transactions of one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Longs


class Stamps(NamedTuple):
    """Per transaction of a batch its `(time, tx)`; `first` counts transactions since the start.

    >>> Stamps([17, 18], [0, 1], first=5).stamp(1)
    (18, 1)
    """

    times: Sequence[int] | Longs
    txs: Sequence[int] | Longs
    first: int

    def stamp(self, index: int) -> tuple[int, int]:
        """The time and number of a transaction of the batch."""
        return int(self.times[index]), int(self.txs[index])
