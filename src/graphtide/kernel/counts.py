"""Counted rows: the current answer of a query, DISTINCT, and the consolidation of batches.

Within one transaction a row may be inserted and deleted several times. Consolidation adds up these
diffs, which leaves the difference between the answer before and after the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import compiled
from graphtide.kernel.batch import DIFF, MOST_COPIES, TX, VALUES, Int, Ints, too_many_copies
from graphtide.kernel.rowtable import (
    HEAD,
    RowTable,
    Table,
    add_row,
    add_to_row,
    find_slot,
    remove_row,
    row_hash,
)
from graphtide.views import UNKNOWN, ints1, ints2, longs1, make_block, not_copied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.arrays import Ints2, Longs1
    from graphtide.views import Block

COUNT_BEFORE, DELTA_VALUES = 2, 3
"""Columns of the output after transaction and diff: the count before, then the values."""

FEW = 64
"""Rows for which room is made at least; after fewer, an answer gives no room back."""

SPARSE, LEAST_ROOM = 8, 4096
"""An answer with room for so many times its rows, and more than so many, gives it back."""


@compiled
def consolidate_step(block: Block, width: int, batch: Ints2, out: Ints2) -> tuple[Int, Int]:
    """Consolidate each transaction into the table; write the rows that changed, return how many.

    Returns also the sum of all diffs. The block has the table, the columns of the batch that it
    has, and scratch space for a row. At first, the output has the rows that a transaction touches,
    and their counts before.
    """
    t = Table(
        ints2(block, 0), ints2(block, 1), ints2(block, 2), ints2(block, 3), longs1(block, 4), width
    )
    columns = ints1(block, 5)
    key = ints2(block, 6)
    note = t.width + 1  # a live row's unused cell says whether it is touched
    n = 0
    i = 0
    total = np.int64(0)
    while i < len(batch):
        tx = batch[i, TX]
        first = n
        end = n
        while i < len(batch) and batch[i, TX] == tx:
            for c in range(t.width):
                key[0, c] = batch[i, columns[c]]
            hash_ = row_hash(t.width, key, 0, 0)
            slot = find_slot(t, hash_, key, 0, 0)
            row = t.slots[slot, HEAD] - 1
            if row < 0:
                row = add_row(t, slot, hash_, key, 0, 0)
                t.rows[row, note] = 0
            if t.rows[row, note] == 0:
                t.rows[row, note] = 1
                out[end, 0] = row
                out[end, 1] = t.rows[row, t.width]
                end += 1
            t.rows[row, t.width] += batch[i, DIFF]
            total += batch[i, DIFF]
            i += 1
        for k in range(first, end):
            row = out[k, 0]
            before = out[k, 1]
            t.rows[row, note] = 0
            after = t.rows[row, t.width]
            if after != before:
                out[n, TX] = tx
                out[n, DIFF] = after - before
                out[n, COUNT_BEFORE] = before
                for c in range(t.width):
                    out[n, DELTA_VALUES + c] = t.rows[row, c]
                n += 1
            if after == 0:
                remove_row(t, row)
    return n, total


class Answer:
    """The current rows of a query with their counts, and `total`, the sum of these.

    >>> from graphtide.kernel.batch import make_batch
    >>> answer = Answer(1)
    >>> answer.step(make_batch([(0, 1, 7), (0, -1, 7), (0, 2, 8), (1, -1, 8)], 1)).tolist()
    [[0, 2, 0, 8], [1, -1, 2, 8]]
    >>> answer.rows().tolist()
    [[8, 1]]
    """

    __reduce_ex__ = not_copied

    def __init__(self, width: int) -> None:
        self.total = 0
        self._table = RowTable(width)
        self._room = UNKNOWN
        self._columns: Ints = np.arange(VALUES, VALUES + width, dtype=np.int32)
        self._taken: Ints = self._columns  # which columns the block has
        self._key: Ints = np.zeros((1, max(width, 1)), np.int32)
        self._block: Block = None
        self._viewed: Table | None = None  # the table that the block has
        self._width = DELTA_VALUES + width

    def step(self, batch: Ints, columns: Ints | None = None) -> Ints:
        """Apply a batch; its consolidated rows `[transaction, diff, count before, values…]`.

        With `columns`, only those of the batch, in this order.
        """
        rows = len(batch)
        taken = self._columns if columns is None else columns
        if self._room < rows or taken is not self._taken:
            self._make_room(rows, taken)
        self._room -= rows
        out = np.empty((rows, self._width), np.int32)
        kernel: Any = consolidate_step
        n, added = kernel(self._block, self._table.width, batch, out)
        self.total += added
        if rows > FEW:
            self._shrink()
        if n == rows:
            return out
        # Deltas are kept for a while: a short one must not keep a long array alive.
        return out[:n].copy() if 2 * n < rows else out[:n]

    def _make_room(self, rows: int, taken: Ints) -> None:
        """Make room for so many rows, and lay out the arrays."""
        self._room = UNKNOWN  # also after an interrupt
        room = self._table.reserve(max(rows, FEW))
        table = self._table.arrays
        if table is not self._viewed or taken is not self._taken:
            block = self._laid_out(table, taken)
            self._block, self._viewed, self._taken = block, table, taken
        self._room = room

    def _laid_out(self, table: Table, columns: Ints) -> Block:
        return make_block((*table[:-1], columns, self._key))

    def _shrink(self) -> None:
        """Give back the room of an answer that was many times as large."""
        if len(self._table.arrays.rows) <= max(SPARSE * len(self._table), LEAST_ROOM):
            return
        width, rows = self._table.width, self._table.values()
        batch = np.zeros((len(rows), VALUES + width), np.int32)
        batch[:, DIFF], batch[:, VALUES:] = rows[:, width], rows[:, :width]
        table = RowTable(width)
        table.reserve(len(rows))
        unused = np.empty((len(rows), DELTA_VALUES + width), np.int32)
        consolidate_step(self._laid_out(table.arrays, self._columns), width, batch, unused)
        self._room, self._table = UNKNOWN, table  # last: whatever fails before has changed nothing

    def rows(self) -> Ints:
        """The current rows `[values…, count]`."""
        return self._table.values()

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        return self._table.held_ids()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes


@compiled
def distinct_step(
    rows: Ints2,
    slots: Ints2,
    heads: Ints2,
    indexes: Ints2,
    meta: Longs1,
    width: int,
    batch: Ints2,
    out: Ints2,
) -> Int:
    """Count each row; write +1 or -1 where its count crosses zero; the number written."""
    t = Table(rows, slots, heads, indexes, meta, width)
    n = 0
    for i in range(len(batch)):
        after = add_to_row(t, batch[i, DIFF], batch, i, VALUES)
        turned = np.int64(after > 0) - np.int64(after - batch[i, DIFF] > 0)
        if turned != 0:
            for k in range(batch.shape[1]):
                out[n, k] = batch[i, k]
            out[n, DIFF] = turned
            n += 1
    return n


class DistinctKernel:
    """DISTINCT: +1 where a row's count rises above 0, -1 where it falls back to 0.

    >>> from graphtide.kernel.batch import make_batch
    >>> DistinctKernel(1).step(
    ...     make_batch([(0, 1, 7), (0, 1, 7), (1, -1, 7), (2, -1, 7)], 1)
    ... ).tolist()
    [[0, 1, 7], [2, -1, 7]]
    """

    def __init__(self, width: int) -> None:
        self._table = RowTable(width)
        self._room = 0

    def step(self, batch: Ints) -> Ints:
        """The change of the set of rows for a change of their counts."""
        rows = len(batch)
        if self._room < rows:
            self._room = self._table.reserve(rows)
        self._room -= rows
        out = np.empty_like(batch)
        return out[: distinct_step(*self._table.arrays, batch, out)]

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        return self._table.held_ids()

    def sizes(self) -> dict[str, int]:
        """Distinct rows held."""
        return {"rows": len(self._table)}

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes


def consolidate(batch: Ints) -> Ints:
    """Each row once per transaction, sorted by transaction; none whose diffs cancel.

    >>> from graphtide.kernel.batch import make_batch
    >>> consolidate(make_batch([(3, -1, 7), (3, 1, 7), (3, 1, 8)], 1)).tolist()
    [[3, 1, 8]]
    """
    if len(batch) < 2:
        return batch
    columns = [batch[:, TX], *batch[:, VALUES:].T]
    # By whole columns: comparing rows as such takes several times as long.
    ordered = batch[
        np.lexsort([each for each in columns[::-1] if each.min() != each.max()] or columns)
    ]
    same = (ordered[1:, VALUES:] == ordered[:-1, VALUES:]).all(axis=1)
    starts = np.flatnonzero(np.insert(~(same & (ordered[1:, TX] == ordered[:-1, TX])), 0, True))
    sums = np.add.reduceat(ordered[:, DIFF], starts, dtype=np.int64)
    if max(sums.max(), -sums.min()) > MOST_COPIES:
        raise too_many_copies()
    net: Ints = ordered[starts]
    net[:, DIFF] = sums
    return net[sums != 0]
