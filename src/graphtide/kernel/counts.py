"""Answer: the current answer of a query, and what each transaction changed in it *in the end*.

Inside one transaction a row may come and go several times; what a transaction did is the
difference between the answer before it and after it.
"""

from __future__ import annotations

import numpy as np

from graphtide.jit import compiled
from graphtide.kernel.batch import DIFF, TX, VALUES, Int, Ints, Longs
from graphtide.kernel.rowtable import (
    HEAD,
    RowTable,
    Table,
    add_row,
    add_to_row,
    find_slot,
    remove_row,
    row_mark,
)

NET_BEFORE, NET_VALUES = 2, 3
"""Columns of the output after transaction and diff: the count before, then the values."""


@compiled
def net_step(
    rows: Ints,
    slots: Ints,
    heads: Ints,
    indexes: Ints,
    meta: Longs,
    width: int,
    batch: Ints,
    touched: Ints,
    out: Ints,
) -> Int:
    """Add up each transaction's rows, then write those that changed; the number written.

    `touched` has two columns of space: a row that changed, and its count before.
    """
    t = Table(rows, slots, heads, indexes, meta, width)
    note = t.width + 1  # a live row's free cell: its place in `touched`, plus 1
    n = 0
    i = 0
    while i < len(batch):
        tx = batch[i, TX]
        many = 0
        while i < len(batch) and batch[i, TX] == tx:
            mark = row_mark(t.width, batch, i, VALUES)
            slot = find_slot(t, mark, batch, i, VALUES)
            row = t.slots[slot, HEAD] - 1
            if row < 0:
                row = add_row(t, slot, mark, batch, i, VALUES)
                t.rows[row, note] = 0
            if t.rows[row, note] == 0:
                touched[many, 0] = row
                touched[many, 1] = t.rows[row, t.width]
                many += 1
                t.rows[row, note] = many
            t.rows[row, t.width] += batch[i, DIFF]
            i += 1
        for k in range(many):
            row = touched[k, 0]
            before = touched[k, 1]
            t.rows[row, note] = 0
            after = t.rows[row, t.width]
            if after != before:
                out[n, TX] = tx
                out[n, DIFF] = after - before
                out[n, NET_BEFORE] = before
                for c in range(t.width):
                    out[n, NET_VALUES + c] = t.rows[row, c]
                n += 1
            if after == 0:
                remove_row(t, row)
    return n


class Answer:
    """The counts of a query's current rows.

    >>> from graphtide.kernel.batch import make_batch
    >>> net = Answer(1)
    >>> net.step(make_batch([(0, 1, 7), (0, -1, 7), (0, 2, 8), (1, -1, 8)], 1)).tolist()
    [[0, 2, 0, 8], [1, -1, 2, 8]]
    >>> net.rows().tolist()
    [[8, 1]]
    """

    def __init__(self, width: int) -> None:
        self._table = RowTable(width)
        self._room = 0

    def step(self, batch: Ints) -> Ints:
        """Rows `[transaction, net diff, count before, values…]` of a batch's transactions."""
        if self._room < len(batch):
            self._room = self._table.reserve(len(batch))
        self._room -= len(batch)
        out = np.empty((len(batch), NET_VALUES + self._table.width), np.int32)
        touched = np.empty((len(batch), 2), np.int32)
        n = int(net_step(*self._table.arrays, batch, touched, out))
        # Deltas are kept for a while: a short one must not hold on to a long array.
        return out[:n].copy() if 2 * n < len(out) else out[:n]

    def rows(self) -> Ints:
        """The current rows `[values…, count]`."""
        return self._table.values()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes


# --- DistinctKernel: +1 where a row's count rises above 0, -1 where it falls back to 0.


@compiled
def distinct_step(t: Table, batch: Ints, out: Ints) -> Int:
    """Count each row; pass on the crossings of zero; the number passed on."""
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
    """The counts of all rows seen.

    >>> from graphtide.kernel.batch import make_batch
    >>> DistinctKernel(1).step(
    ...     make_batch([(0, 1, 7), (0, 1, 7), (1, -1, 7), (2, -1, 7)], 1)
    ... ).tolist()
    [[0, 1, 7], [2, -1, 7]]
    """

    def __init__(self, width: int) -> None:
        self._table = RowTable(width)

    def step(self, batch: Ints) -> Ints:
        """The change of the set of rows for a change of their counts."""
        self._table.reserve(len(batch))
        out = np.empty_like(batch)
        return out[: distinct_step(self._table.arrays, batch, out)]

    def sizes(self) -> dict[str, int]:
        """Distinct rows held."""
        return {"rows": len(self._table)}

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes


# --- Netted: a batch with the copies of each row in a transaction added up.


def consolidate(batch: Ints) -> Ints:
    """Each row once per transaction, sorted by transaction; none whose diffs cancel.

    Within a transaction a node may take a row back before it passes it on. Whoever keeps rows one
    by one wants what is left of that.

    >>> from graphtide.kernel.batch import make_batch
    >>> netted(make_batch([(3, -1, 7), (3, 1, 7), (3, 1, 8)], 1)).tolist()
    [[3, 1, 8]]
    """
    if len(batch) < 2:
        return batch
    rows = np.column_stack([batch[:, TX], batch[:, VALUES:]])
    rows, places = np.unique(rows, axis=0, return_inverse=True)
    diffs = np.bincount(places.reshape(-1), batch[:, DIFF]).astype(np.int32)
    left = diffs != 0
    net: Ints = np.insert(rows[left], DIFF, diffs[left], axis=1)
    return net
