"""SemiJoin and antijoin: the left rows that have, or have not, a partner on the right.

Left change: passed on if its key has (has not) a partner. Right change: when a key's first partner
comes or its last one goes, every left row with that key comes or goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, TX, VALUES, Int, Ints, Longs, longer
from graphtide.kernel.rowtable import (
    HEAD,
    LENGTH,
    RowTable,
    Table,
    add_to_row,
    find_head,
    find_row,
    key_mark,
)
from graphtide.kernel.two_memories import TwoMemories

if TYPE_CHECKING:
    from collections.abc import Sequence


@inlined
def partners(rt: Table, batch: Ints, at: Int, columns: Ints, key: Ints) -> Int:
    """How many partners the key of a row has."""
    for k in range(len(columns)):
        key[0, k] = batch[at, VALUES + columns[k]]
    row = find_row(rt, key, 0, 0)
    return rt.rows[row, rt.width] if row >= 0 else np.int32(0)


@inlined
def put(out: Ints, n: Int, tx: Int, diff: Int, rows: Ints, row: Int, column: Int) -> None:
    """Write a row to the output."""
    out[n, TX] = tx
    out[n, DIFF] = diff
    for k in range(out.shape[1] - VALUES):
        out[n, VALUES + k] = rows[row, column + k]


@inlined
def chain_of(lt: Table, right: Ints, at: Int, columns: Ints, key: Ints) -> Int:
    """The chain of left rows with the key of a right row."""
    for k in range(len(columns)):
        key[1, columns[k]] = right[at, VALUES + k]
    return find_head(lt, 0, key_mark(lt, 0, key, 1), key, 1)


@inlined
def turn_key(lt: Table, head: Int, tx: Int, sign: Int, out: Ints, n: Int) -> Int:
    """Pass on all left rows of a chain whose partners just began or ceased to exist."""
    cursor = lt.heads[head, HEAD]
    while cursor != 0:
        row = cursor - 1
        cursor = lt.rows[row, lt.width + 1]
        put(out, n, tx, sign * lt.rows[row, lt.width], lt.rows, row, 0)
        n += 1
    return n


@inlined
def take_left(
    lt: Table,
    rt: Table,
    left: Ints,
    i: Int,
    columns: Ints,
    negated: bool,
    key: Ints,
    out: Ints,
    n: Int,
) -> Int:
    """Pass a left row on if its key has, or has not, partners; remember it."""
    if (partners(rt, left, i, columns, key) > 0) != negated:
        put(out, n, left[i, TX], left[i, DIFF], left, i, VALUES)
        n += 1
    add_to_row(lt, left[i, DIFF], left, i, VALUES)
    return n


@compiled
def semijoin_step(
    lt: Table,
    rt: Table,
    left: Ints,
    right: Ints,
    columns: Ints,
    negated: bool,
    key: Ints,
    out: Ints,
    state: Longs,
) -> bool:
    """Walk both inputs in transaction order; False if the output has to grow first."""
    i, j, n = state[0], state[1], state[2]
    while i < len(left) or j < len(right):
        if n == len(out):
            break
        if j == len(right) or (i < len(left) and left[i, TX] <= right[j, TX]):
            n = take_left(lt, rt, left, i, columns, negated, key, out, n)
            i += 1
            continue
        head = chain_of(lt, right, j, columns, key)
        if lt.heads[head, HEAD] != 0 and n + lt.heads[head, LENGTH] > len(out):
            break
        after = add_to_row(rt, right[j, DIFF], right, j, VALUES)
        turned = np.int64(after > 0) - np.int64(after - right[j, DIFF] > 0)
        if turned != 0:
            n = turn_key(lt, head, right[j, TX], -turned if negated else turned, out, n)
        j += 1
    state[0], state[1], state[2] = i, j, n
    return bool(i == len(left) and j == len(right))


class SemiJoin(TwoMemories):
    """Left rows kept by whether their `columns` occur among the right rows.

    >>> from graphtide.kernel.batch import make_batch
    >>> antijoin = SemiJoin(2, columns=[1], negated=True)
    >>> left, right = make_batch([(0, 1, 5, 6)], 2), make_batch([(1, 1, 6), (2, -1, 6)], 1)
    >>> antijoin.step(left, right).tolist()
    [[0, 1, 5, 6], [1, -1, 5, 6], [2, 1, 5, 6]]
    """

    def __init__(self, width: int, *, columns: Sequence[int], negated: bool) -> None:
        super().__init__(RowTable(width, [columns]), RowTable(len(columns)))
        self._columns = np.array(columns, np.int32)
        self._negated = negated
        self._width = width
        self._key = np.zeros((2, max(width, 1)), np.int32)

    def step(self, left: Ints, right: Ints) -> Ints:
        """The change of the answer for changes of its inputs; right rows are keys."""
        self._left.reserve(len(left))
        self._right.reserve(len(right))
        out: Ints = np.empty((len(left) + len(right) + 8, VALUES + self._width), np.int32)
        state = np.zeros(3, np.int64)
        tables = self._left.arrays, self._right.arrays
        while not semijoin_step(
            *tables, left, right, self._columns, self._negated, self._key, out, state
        ):
            out = longer(out)
        return out[: state[2]]
