"""Joins, semijoins and antijoins with an indexed memory for each input.

d(L ⋈ R) = dL ⋈ R + L ⋈ dR + dL ⋈ dR. Rows of both inputs are processed in transaction order, each
joined with the current memory of the other side; so a result has the later transaction of its
parts. A semijoin (antijoin) passes a left row on if its key has (has no) partner on the right. When
a key's first partner is inserted or its last one deleted, every left row with that key changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, MOST_COPIES, TX, VALUES, Int, Ints, longer, too_many_copies
from graphtide.kernel.rowtable import (
    HEAD,
    LENGTH,
    LIVE,
    RowTable,
    Table,
    add_to_keyed_row,
    add_to_row,
    find_head,
    find_row,
    key_hash,
)
from graphtide.limits import allowance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.arrays import Ints1, Ints2, Longs1


PAIRS = 1 << 24
"""Pairs of rows that a join looks at before it checks the time: some tens of milliseconds."""


MOST_EXPECTED = 1 << 14
"""Rows of output for which room is made because the last one had as many."""


class TwoMemories:
    """A left and a right memory, and their sizes."""

    def __init__(self, left: RowTable, right: RowTable) -> None:
        self._left = left
        self._right = right

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        yield from self._left.held_ids()
        yield from self._right.held_ids()

    def sizes(self) -> dict[str, int]:
        """Rows held on each side."""
        return {"left": len(self._left), "right": len(self._right)}

    @property
    def nbytes(self) -> int:
        """Bytes held by both memories."""
        return self._left.nbytes + self._right.nbytes


@inlined
def compatible(rows: Ints, row: Int, batch: Ints, at: Int, pairs: Ints, mine: Int) -> bool:
    """Whether two rows agree on columns that may be unbound: equal, or one of them unbound."""
    for k in range(len(pairs)):
        a = batch[at, VALUES + pairs[k, mine]]
        b = rows[row, pairs[k, 1 - mine]]
        if a != b and a != 0 and b != 0:
            return False
    return True


@inlined
def overlapping(rows: Ints, row: Int, batch: Ints, at: Int, pairs: Ints, mine: Int) -> bool:
    """Whether two rows have a shared variable that is bound in both; true without pairs."""
    for k in range(len(pairs)):
        if batch[at, VALUES + pairs[k, mine]] != 0 and rows[row, pairs[k, 1 - mine]] != 0:
            return True
    return len(pairs) == 0


@inlined
def write_pair(
    out: Ints, n: Int, batch: Ints, at: Int, rows: Ints, row: Int, outputs: Ints, mine: Int
) -> None:
    """One output row: each column from its side, or from whichever side has it bound."""
    for k in range(len(outputs)):
        value = np.int32(0)
        if outputs[k, mine] >= 0:
            value = batch[at, VALUES + outputs[k, mine]]
        if value == 0 and outputs[k, 1 - mine] >= 0:
            value = rows[row, outputs[k, 1 - mine]]
        out[n, VALUES + k] = value


@inlined
def probe(
    own: Table,
    other: Table,
    batch: Ints,
    at: Int,
    mine: Int,
    keys: Ints,
    outputs: Ints,
    loose: Ints,
    overlap: Ints,
    key: Ints,
    out: Ints,
    n: Int,
) -> Int:
    """Join one changed row with the other side's memory, then add it to its own.

    Returns the number of rows written so far, or -1, with nothing done, if they might not fit; -2
    if the count of a row does not fit.
    """
    for k in range(len(keys)):
        key[0, keys[k, 1 - mine]] = batch[at, VALUES + keys[k, mine]]
    hash_ = key_hash(other, 0, key, 0)  # and that of the key on the own side
    head = find_head(other, 0, hash_, key, 0)
    cursor = other.heads[head, HEAD]
    if cursor != 0 and n + other.heads[head, LENGTH] > len(out):
        return -1
    while cursor != 0:
        row = cursor - 1
        cursor = other.rows[row, other.width + 1]
        if not compatible(other.rows, row, batch, at, loose, mine):
            continue
        if not overlapping(other.rows, row, batch, at, overlap, mine):
            continue
        copies = np.int64(batch[at, DIFF]) * np.int64(other.rows[row, other.width])
        if copies > MOST_COPIES or copies < -MOST_COPIES:
            return -2
        out[n, TX] = batch[at, TX]
        out[n, DIFF] = copies
        write_pair(out, n, batch, at, other.rows, row, outputs, mine)
        n += 1
    add_to_keyed_row(own, hash_, batch[at, DIFF], batch, at, VALUES)
    return n


@compiled
def join_step(
    lt: Table,
    rt: Table,
    left: Ints2,
    right: Ints2,
    keys: Ints2,
    outputs: Ints2,
    loose: Ints2,
    overlap: Ints2,
    key: Ints2,
    out: Ints2,
    state: Longs1,
    most: Int,
) -> bool:
    """Process both inputs in transaction order; True if the output has to grow first.

    Stops after about `most` pairs of rows, whether they agree or not: `state` says where, and
    whether a count does not fit.
    """
    i, j, n = state[0], state[1], state[2]
    full = False
    while most > 0 and (i < len(left) or j < len(right)):
        from_left = j == len(right) or (i < len(left) and left[i, TX] <= right[j, TX])
        if from_left:
            wrote = probe(lt, rt, left, i, 0, keys, outputs, loose, overlap, key, out, n)
        else:
            wrote = probe(rt, lt, right, j, 1, keys, outputs, loose, overlap, key, out, n)
        if wrote < 0:
            full = wrote == -1
            state[3] = wrote == -2
            break
        # Without a key every row of the other side is looked at.
        most -= 1 + (rt.meta[LIVE] if from_left else lt.meta[LIVE]) * (len(keys) == 0) + wrote - n
        n = wrote
        if from_left:
            i += 1
        else:
            j += 1
    state[0], state[1], state[2] = i, j, n
    return full


class JoinKernel(TwoMemories):
    """The natural join of two inputs, whose shared columns may be unbound.

    `keys` pairs the columns that must be equal; `loose` pairs shared columns that may be unbound
    on a side; `overlap`, if given, requires one of its pairs to be bound on both sides. `outputs`
    says for each output column where it comes from on the left and on the right (-1: nowhere).

    >>> from graphtide.kernel.batch import make_batch
    >>> join = JoinKernel(2, 2, keys=[(1, 0)], outputs=[(0, -1), (1, 0), (-1, 1)])
    >>> join.step(make_batch([(0, 1, 5, 6)], 2), make_batch([(1, 1, 6, 7)], 2)).tolist()
    [[1, 1, 5, 6, 7]]
    """

    def __init__(
        self,
        left_width: int,
        right_width: int,
        *,
        keys: Sequence[tuple[int, int]],
        outputs: Sequence[tuple[int, int]],
        loose: Sequence[tuple[int, int]] = (),
        overlap: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__(
            RowTable(left_width, [[pair[0] for pair in keys]]),
            RowTable(right_width, [[pair[1] for pair in keys]]),
        )
        self._keys, self._outputs = _pairs(keys), _pairs(outputs)
        self._loose, self._overlap = _pairs(loose), _pairs(overlap)
        self._width = len(outputs)
        self._written = 0  # rows of the last output: the next one may be as large
        self._key = np.zeros((1, max(left_width, right_width, 1)), np.int32)

    def step(self, left: Ints, right: Ints) -> Ints:
        """The change of the join for changes of its inputs."""
        self._left.reserve(len(left))
        self._right.reserve(len(right))
        least = len(left) + len(right) + 8
        out: Ints = np.empty((max(least, self._written), VALUES + self._width), np.int32)
        state = np.zeros(4, np.int64)
        tables = self._left.arrays, self._right.arrays
        while state[0] < len(left) or state[1] < len(right):
            if join_step(
                *tables, left, right,
                self._keys, self._outputs, self._loose, self._overlap, self._key, out, state, PAIRS,
            ):  # fmt: skip
                out = longer(out)
            elif state[3]:
                raise too_many_copies()
            elif state[0] < len(left) or state[1] < len(right):
                allowance().check_time()
        many = int(state[2])
        self._written = min(many, MOST_EXPECTED)
        # Who keeps the rows should not keep much room beside them.
        return out[:many].copy() if least < len(out) > 2 * many else out[:many]


def _pairs(pairs: Sequence[tuple[int, int]]) -> Ints:
    return np.array(pairs, np.int32).reshape(len(pairs), 2)


@inlined
def partners(rt: Table, batch: Ints, at: Int, columns: Ints, key: Ints) -> Int:
    """How many partners the key of a row has."""
    for k in range(len(columns)):
        key[0, k] = batch[at, VALUES + columns[k]]
    row = find_row(rt, key, 0, 0)
    return rt.rows[row, rt.width] if row >= 0 else np.int32(0)


@inlined
def write_row(out: Ints, n: Int, tx: Int, diff: Int, rows: Ints, row: Int, column: Int) -> None:
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
    return find_head(lt, 0, key_hash(lt, 0, key, 1), key, 1)


@inlined
def emit_chain(lt: Table, head: Int, tx: Int, sign: Int, out: Ints, n: Int) -> Int:
    """Write all left rows of a chain, whose key got its first partner or lost its last one."""
    cursor = lt.heads[head, HEAD]
    while cursor != 0:
        row = cursor - 1
        cursor = lt.rows[row, lt.width + 1]
        write_row(out, n, tx, sign * lt.rows[row, lt.width], lt.rows, row, 0)
        n += 1
    return n


@inlined
def process_left(
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
    """Write a left row if its key has (or, negated, has no) partners; add it to the memory."""
    if (partners(rt, left, i, columns, key) > 0) != negated:
        write_row(out, n, left[i, TX], left[i, DIFF], left, i, VALUES)
        n += 1
    add_to_row(lt, left[i, DIFF], left, i, VALUES)
    return n


@compiled
def semijoin_step(
    lt: Table,
    rt: Table,
    left: Ints2,
    right: Ints2,
    columns: Ints1,
    negated: bool,
    key: Ints2,
    out: Ints2,
    state: Longs1,
) -> bool:
    """Process both inputs in transaction order; False if the output has to grow first.

    In a transaction, left rows go before right ones and come after them: if a row comes or goes
    together with its partner, nothing is put out that cancels. Behind an OPTIONAL are others, and
    each would double it.
    """
    d, i, j, n = state[0], state[1], state[2], state[3]  # left rows that go, and that come
    while n < len(out):
        while d < len(left) and left[d, DIFF] >= 0:
            d += 1
        while i < len(left) and left[i, DIFF] < 0:
            i += 1
        last = j == len(right)
        if d < len(left) and (
            (last or left[d, TX] <= right[j, TX]) and (i == len(left) or left[d, TX] <= left[i, TX])
        ):
            n = process_left(lt, rt, left, d, columns, negated, key, out, n)
            d += 1
            continue
        if i < len(left) and (last or left[i, TX] < right[j, TX]):
            n = process_left(lt, rt, left, i, columns, negated, key, out, n)
            i += 1
            continue
        if last:
            break
        head = chain_of(lt, right, j, columns, key)
        if lt.heads[head, HEAD] != 0 and n + lt.heads[head, LENGTH] > len(out):
            break
        after = add_to_row(rt, right[j, DIFF], right, j, VALUES)
        turned = np.int64(after > 0) - np.int64(after - right[j, DIFF] > 0)
        if turned != 0:
            n = emit_chain(lt, head, right[j, TX], -turned if negated else turned, out, n)
        j += 1
    state[0], state[1], state[2], state[3] = d, i, j, n
    return bool(d == len(left) and i == len(left) and j == len(right))


class SemiJoinKernel(TwoMemories):
    """The left rows whose `columns` occur (or, negated, do not occur) among the right rows.

    >>> from graphtide.kernel.batch import make_batch
    >>> antijoin = SemiJoinKernel(2, columns=[1], negated=True)
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
        state = np.zeros(4, np.int64)
        tables = self._left.arrays, self._right.arrays
        while not semijoin_step(
            *tables, left, right, self._columns, self._negated, self._key, out, state
        ):
            out = longer(out)
        return out[: state[3]]
