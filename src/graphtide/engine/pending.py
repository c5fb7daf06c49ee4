"""Pending: single changes that wait for the next kernel call.

A kernel call costs more than a change. Answers are only looked at after `settle`, and a batch keeps
its transactions apart, so nobody can tell that changes waited.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.stamps import Stamps

if TYPE_CHECKING:
    from graphtide.engine.quads import Ids
    from graphtide.kernel.batch import Ints

MOST_PENDING = 4096


class Pending:
    """Changes of whole transactions, and the stamps of these.

    >>> pending = Pending()
    >>> pending.begin(time=17, tx=0)
    >>> pending.add(1, (2, 3, 4, 0))
    >>> pending.take(first=0)[0].tolist()
    [[0, 1, 2, 3, 4, 0]]
    """

    __slots__ = ("_changes", "_times", "_txs")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._changes = array("i")
        self._times: list[int] = []
        self._txs: list[int] = []

    def __len__(self) -> int:
        return len(self._txs)

    def begin(self, time: int, tx: int) -> None:
        """Start a transaction."""
        self._times.append(time)
        self._txs.append(tx)

    def add(self, diff: int, ids: Ids) -> None:
        """Add a change to the transaction begun last."""
        self._changes.extend((len(self._txs) - 1, diff, *ids))

    def single(self, time: int, tx: int, diff: int, ids: Ids) -> int:
        """Add a transaction of one change; how many transactions wait now."""
        waiting = len(self._txs)
        self._times.append(time)
        self._txs.append(tx)
        self._changes.extend((waiting, diff, *ids))
        return waiting + 1

    def take(self, first: int) -> tuple[Ints, Stamps]:
        """All that waits, as a batch of changes and its stamps; nothing waits then."""
        changes = np.frombuffer(self._changes, np.int32).reshape(-1, 6)
        stamps = Stamps(self._times, self._txs, first)
        self._clear()
        return changes, stamps
