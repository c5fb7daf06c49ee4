"""Rows in the order of the numbers of one column: ORDER BY with LIMIT.

A row table has the rows, chained by that column, and a tree (`kernel.ordered`) the numbers. Rows up
to a bound are of interest to the caller, who is stopped at each of them; all others cost a probe
and a way down the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, VALUES, Int, Ints
from graphtide.kernel.groups import NOT_HERE, NOT_LEARNED
from graphtide.kernel.ordered import (
    BELOW,
    COUNT_BELOW,
    ID,
    OrderedValues,
    Trees,
    change_times,
    count_of,
    height_of,
    place_of,
    rank,
)
from graphtide.kernel.rowtable import HEAD, LENGTH, RowTable, Table, add_to_row, find_head, key_hash
from graphtide.views import floats1, ints2, longs1, make_block, not_copied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.arrays import Floats1, Ints1, Ints2
    from graphtide.kernel.values import Numbers
    from graphtide.views import Block

BEFORE_ALL = float("nan")
"""A bound that no number is before."""

FEW = 64
"""Rows for which there is room to be read."""


@compiled
def sorted_step(
    block: Block,
    width: int,
    batch: Ints2,
    begin: int,
    column: int,
    sign: float,
    known: int,
    classes: Ints1,
    numbers: Floats1,
    bound: float,
) -> Int:
    """Add rows of a batch, up to the first that is not after the bound; its index, or the length.

    If not all values have numbers that are `known`, nothing is done, and the result says why.
    """
    t = Table(
        ints2(block, 0), ints2(block, 1), ints2(block, 2), ints2(block, 3), longs1(block, 4), width
    )
    trees = Trees(floats1(block, 5), longs1(block, 6), ints2(block, 7), longs1(block, 8))
    root = longs1(block, 9)
    for i in range(0 if begin > 0 else len(batch)):
        id_ = batch[i, column]
        if id_ == 0:
            return np.int64(NOT_HERE)
        if id_ >= len(classes) or classes[id_] & known == 0:
            return np.int64(NOT_LEARNED)
    for i in range(begin, len(batch)):
        id_ = batch[i, column]
        number, diff = sign * numbers[id_], np.int64(batch[i, DIFF])
        add_to_row(t, diff, batch, i, VALUES)
        root[0], _ = change_times(trees, root[0], id_, number, diff)
        if number <= bound:
            return np.int64(i)
    return np.int64(len(batch))


@inlined
def entry_after(t: Trees, root: Int, key: float) -> Int:
    """The entry of the first value after a key, or -1; that of the first value after NaN."""
    if root == 0:
        return np.int64(-1)
    place, count, height = place_of(root), count_of(root), height_of(root)
    right: Int = np.int64(-1)  # where the next block is, should the leaf have no such value
    above: Int = np.int64(0)
    for level in range(height):
        entry = place + max(rank(t, place, count, key) - 1, 0)
        if entry + 1 < place + count:
            right, above = entry + 1, height - level
        place, count = np.int64(t.cells[entry, BELOW]), np.int64(t.cells[entry, COUNT_BELOW])
    at = place + rank(t, place, count, key)
    if at < place + count:
        return at
    if right >= 0:
        for _ in range(above):
            right = np.int64(t.cells[right, BELOW])
    return right


@compiled
def read_after(
    block: Block, width: int, column: int, bound: float, probe: Ints2, out: Ints2, reached: Floats1
) -> Int:
    """Write the rows of the next numbers after a bound, as many numbers as there is room for.

    Returns how many rows; minus as many as there have to be, if those of the first number are too
    many; 0 if there is none. `reached` is the last of these numbers.
    """
    t = Table(
        ints2(block, 0), ints2(block, 1), ints2(block, 2), ints2(block, 3), longs1(block, 4), width
    )
    trees = Trees(floats1(block, 5), longs1(block, 6), ints2(block, 7), longs1(block, 8))
    root = longs1(block, 9)
    after = width + 1
    n = np.int64(0)
    at = entry_after(trees, root[0], bound)
    while at >= 0:
        probe[0, column] = trees.cells[at, ID]
        head = find_head(t, 0, key_hash(t, 0, probe, 0), probe, 0)
        many = np.int64(t.heads[head, LENGTH]) if t.heads[head, HEAD] != 0 else np.int64(0)
        if n + many > len(out):
            return n if n > 0 else -many
        row = t.heads[head, HEAD] if many > 0 else np.int32(0)
        while row != 0:
            for k in range(after):
                out[n, k] = t.rows[row - 1, k]
            n += 1
            row = t.rows[row - 1, after]
        reached[0] = trees.keys[at]
        at = entry_after(trees, root[0], reached[0])
    return n


class SortedRows:
    """Rows of some width, in the order of the numbers of a column, or in the opposite order."""

    __reduce_ex__ = not_copied

    def __init__(self, width: int, column: int, *, descending: bool) -> None:
        self._width, self._column = width, column
        self._sign = -1.0 if descending else 1.0
        self._table = RowTable(width, [(column,)])
        self._values = OrderedValues()
        self._root = np.zeros(1, np.int64)
        self._probe = np.zeros((1, width), np.int32)
        self._viewed: tuple[Any, ...] = (None, None)
        self._block: Block = None

    def reserve(self, batch: Ints) -> None:
        """Make room for the rows of a batch."""
        self._table.reserve(len(batch))
        self._values.reserve(len(batch))
        table, trees = self._table.arrays, self._values.arrays
        if self._viewed[0] is not table or self._viewed[1] is not trees:
            # One assignment: the arrays of the block in use must stay alive.
            block = make_block((*table[:-1], *trees, self._root))
            self._block, self._viewed = block, (table, trees)

    def step(
        self, batch: Ints, begin: int, known: int, classes: Ints, numbers: Numbers, bound: float
    ) -> int:
        """Add rows from `begin` on, up to one that is not after the bound; see `sorted_step`."""
        return int(
            sorted_step(
                self._block, self._width, batch, begin, VALUES + self._column, self._sign, known,
                classes, numbers, bound,
            )
        )  # fmt: skip

    def after(self, bound: float, at_least: int) -> tuple[Ints, float]:
        """Rows after a bound and their counts, all of each number; and the last of these numbers.

        There are fewer than `at_least` only if there are no more; the number is infinite then.
        """
        parts: list[Ints] = []
        reached = np.array([bound])
        room, found = max(at_least, FEW), 0
        while found < at_least:
            out = np.empty((room, self._width + 1), np.int32)
            n = int(
                read_after(
                    self._block, self._width, self._column, reached[0], self._probe, out, reached
                )
            )
            if n == 0:
                reached[0] = np.inf
                break
            room = max(room, -n)
            found += max(n, 0)
            parts.append(out[: max(n, 0)])
        rows: Ints = np.concatenate([np.empty((0, self._width + 1), np.int32), *parts])
        return rows, float(reached[0])

    def number(self, id_: int, numbers: Numbers) -> float:
        """What a value is sorted by."""
        return self._sign * float(numbers[id_])

    def rows(self) -> Ints:
        """All rows and their counts, in no order."""
        return self._table.values()

    def ids(self) -> Ints:
        """The values of the column."""
        return self._values.ids(self._root)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        return self._table.held_ids()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes + self._values.nbytes
