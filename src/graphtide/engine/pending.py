"""Pending: single changes that wait for the next kernel call.

A kernel call costs more than a change. Answers are only looked at after `settle`, and a batch keeps
its transactions apart, so nobody can tell that changes waited.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphtide.engine.quads import Ids
    from graphtide.kernel.batch import Ints

MOST_PENDING = 4096

_ROW = Struct("6i")
_write = _ROW.pack_into


class Pending:
    """Changes of whole transactions, and the stamps of these; `waiting` counts the transactions.

    >>> pending = Pending()
    >>> pending.begin(time=17, tx=0)
    >>> pending.add(1, (2, 3, 4, 0))
    >>> pending.take()[0].tolist()
    [[0, 1, 2, 3, 4, 0]]
    """

    __slots__ = ("_bytes", "_end", "_rows", "_times", "_txs", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self._end = 0
        self._times: list[int] = []
        self._txs: list[int] = []
        self._make_room(MOST_PENDING)

    def _make_room(self, rows: int) -> None:
        larger = np.zeros((rows, 6), np.int32)
        if self._end:
            larger[: len(self._rows)] = self._rows
        self._rows: Ints = larger
        self._bytes = larger.data.cast("B")

    def begin(self, time: int, tx: int) -> None:
        """Start a transaction."""
        self._times.append(time)
        self._txs.append(tx)
        self.waiting += 1

    def add(self, diff: int, ids: Ids) -> None:
        """Add a change to the transaction begun last."""
        if self._end == len(self._bytes):
            self._make_room(2 * len(self._rows))
        _write(self._bytes, self._end, self.waiting - 1, diff, *ids)
        self._end += 24

    def single(self, time: int, tx: int, diff: int, ids: Ids) -> int:
        """Add a transaction of one change; how many transactions wait now."""
        self._times.append(time)
        self._txs.append(tx)
        if self._end == len(self._bytes):
            self._make_room(2 * len(self._rows))
        _write(self._bytes, self._end, self.waiting, diff, *ids)
        self._end += 24
        self.waiting += 1
        return self.waiting

    def take(self) -> tuple[Ints, list[int], list[int]]:
        """All that waits: a batch of changes, its times and its numbers; nothing waits then.

        The batch is good until the next change is added.
        """
        changes = self._rows[: self._end // 24]
        times, txs = self._times, self._txs
        self._end = self.waiting = 0
        self._times, self._txs = [], []
        return changes, times, txs
