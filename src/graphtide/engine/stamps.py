"""Stamps: the times and transaction numbers of the transactions of one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Stamps:
    """Per transaction of a batch its `(time, tx)`; `first` counts transactions since the start.

    >>> Stamps([17, 18], [0, 1], first=5)[1]
    (18, 1)
    """

    times: Sequence[int]
    txs: Sequence[int]
    first: int

    def __getitem__(self, index: int) -> tuple[int, int]:
        return int(self.times[index]), int(self.txs[index])

    def __len__(self) -> int:
        return len(self.times)
