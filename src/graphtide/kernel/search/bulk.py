"""Loops that insert and link many quads at once, in parts that fit into the processor's caches.

Hash tables are filled in the order of their entries: quads are sorted by the first bits of their
hashes, and within a part by when they come. So what a part reads and writes of the table stays in
the caches, and chains are as if quads had been added one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.arrays import bundle
from graphtide.jit import JIT, compiled, inlined
from graphtide.kernel.batch import DIFF, VALUES
from graphtide.kernel.rowtable import (
    HASH,
    HEAD,
    HIGH,
    LIVE,
    Table,
    home_of,
    key_hash,
    link_hashed,
    row_hash,
)
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.ahead import find_dispatch

if JIT:
    from graphtide.prefetch import prefetch

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.kernel.rowtable import RowTable

PARTS = 256
SHIFT = 31 - 8
"""Parts of a hash table, and by how many bits a hash is shifted to tell its part."""

AHEAD = 16
"""How many rows ahead rows are prefetched."""


@bundle
class Sorting(NamedTuple):
    """Scratch space: a hash for each quad, and quads with their hashes by part."""

    hashes: Ints1
    order: Ints1
    ordered: Ints1
    ends: Longs1


def sorting(many: int) -> Sorting:
    """Scratch space for so many quads."""
    hashes, order, ordered = (np.empty(many, np.int32) for _ in range(3))
    return Sorting(hashes, order, ordered, np.zeros(PARTS + 1, np.int64))


@inlined
def sort_by_part(s: Sorting, many: Int) -> Int:
    """Sort those of the first quads that have a hash, none of which is negative; how many."""
    for part in range(PARTS + 1):
        s.ends[part] = 0
    for i in range(many):
        if s.hashes[i] >= 0:
            s.ends[(s.hashes[i] >> SHIFT) + 1] += 1
    for part in range(PARTS):
        s.ends[part + 1] += s.ends[part]
    for i in range(many):
        hash_ = s.hashes[i]
        if hash_ >= 0:
            at = s.ends[hash_ >> SHIFT]
            s.ends[hash_ >> SHIFT] = at + 1
            s.order[at] = i
            s.ordered[at] = hash_
    return s.ends[PARTS]


@inlined
def same_quad(changes: Ints, one: Int, other: Int) -> bool:
    """Whether two changes are of one quad."""
    for k in range(4):
        if changes[one, VALUES + k] != changes[other, VALUES + k]:
            return False
    return True


@inlined
def fill_slots(t: Table, s: Sorting, changes: Ints, effects: Ints) -> Int:
    """Give each quad of an empty table a slot, where it comes first; how many there are.

    A slot has the number of the change, which is that of its row if no quad comes twice.
    """
    size = t.slots.shape[0]
    live = 0
    for k in range(len(changes)):
        i, hash_ = np.int64(s.order[k]), s.ordered[k]
        slot = home_of(hash_, size)
        while t.slots[slot, HEAD] != 0:
            if t.slots[slot, HASH] == hash_:
                if same_quad(changes, t.slots[slot, HEAD] - 1, i):
                    break
            slot += 1
            if slot == size:
                slot = 0
        effects[i] = t.slots[slot, HEAD] == 0
        if effects[i]:
            t.slots[slot, HEAD] = i + 1
            t.slots[slot, HASH] = hash_
            live += 1
    return live


@inlined
def fill_rows(t: Table, s: Sorting, changes: Ints, effects: Ints) -> Int:
    """Write the rows of the quads that have a slot; how many there are."""
    row = 0
    for i in range(len(changes)):
        if effects[i]:
            for k in range(4):
                t.rows[row, k] = changes[i, VALUES + k]
            t.rows[row, 4] = 1
            s.hashes[i] = row
            row += 1
    if row < len(changes):
        for slot in range(t.slots.shape[0]):
            if t.slots[slot, HEAD] != 0:
                t.slots[slot, HEAD] = s.hashes[t.slots[slot, HEAD] - 1] + 1
    return row


@inlined
def link_sorted(t: Table, s: Sorting, dispatch: Ints, before: Ints, high: Int) -> None:
    """Add quads to the chains that their predicates need now but did not need before."""
    for index in range(t.indexes.shape[0]):
        for row in range(high):
            s.hashes[row] = -1
            if t.rows[row, 4] != 0:
                if new_links(dispatch, before, t.rows[row, 1]) >> index & 1:
                    s.hashes[row] = key_hash(t, index, t.rows, row)
        many = sort_by_part(s, high)
        for k in range(many):
            if k + AHEAD < many:
                prefetch(t.rows, np.int64(s.order[k + AHEAD]) * t.rows.shape[1])
            link_hashed(t, index, np.int64(s.order[k]), np.int64(s.ordered[k]))


@inlined
def new_links(dispatch: Ints, before: Ints, predicate: Int) -> Int:
    """The indexes that hold quads of a predicate now, and did not before."""
    held = before[find_dispatch(before, predicate), col.LINKS]
    return dispatch[find_dispatch(dispatch, predicate), col.LINKS] & ~held


@compiled
def count_links(
    quads: Ints2, column: Int, many: Int, now: Ints2, before: Ints2, out: Longs1
) -> None:
    """How many quads, whose predicates are in a column, each index gets that did not have them."""
    for i in range(many):
        links = new_links(now, before, quads[i, column])
        for index in range(len(out)):
            out[index] += links >> index & 1


@compiled
def link_rows(t: Table, s: Sorting, dispatch: Ints2, before: Ints2) -> None:
    """Add the quads of a table to indexes in which there is room for them."""
    link_sorted(t, s, dispatch, before, t.meta[HIGH])


@compiled
def load_quads(
    t: Table,
    s: Sorting,
    dispatch: Ints2,
    nothing: Ints2,
    changes: Ints2,
    effects: Ints1,
    counts: Longs1,
    call: Int,
) -> None:
    """Apply changes that insert into a table without rows, in which there is room for them.

    `nothing` is the dispatch of no programs. Counts as `apply_changes` does.
    """
    for k in range(col.COUNTS - col.BEFORE):
        counts[col.BEFORE + k] = counts[k]
    for i in range(len(changes)):
        s.hashes[i] = row_hash(4, changes, i, VALUES)
    sort_by_part(s, len(changes))
    live = fill_slots(t, s, changes, effects)
    fill_rows(t, s, changes, effects)
    t.meta[LIVE] = t.meta[HIGH] = live
    link_sorted(t, s, dispatch, nothing, live)
    counts[col.CALL], counts[col.APPLIED], counts[col.RESUME] = call, len(changes), 0
    counts[col.INSERTED] += live
    counts[col.REDUNDANT] += len(changes) - live


def load_table(
    table: RowTable,
    dispatch: Ints,
    nothing: Ints,
    changes: Ints,
    effects: Ints,
    counts: Longs,
    call: int,
) -> None:
    """Insert quads into a table without rows; `nothing` is the dispatch of no programs."""
    many = len(changes)
    _reserve_links(table, changes, VALUES + 1, many, dispatch, nothing)
    load_quads(table.arrays, sorting(many), dispatch, nothing, changes, effects, counts, call)
    table.trim_heads()


def link_table(table: RowTable, dispatch: Ints, before: Ints) -> None:
    """Add the quads of a table to the indexes that did not have them before."""
    high = int(table.arrays.meta[HIGH])
    if high:
        _reserve_links(table, table.arrays.rows, 1, high, dispatch, before)
        link_rows(table.arrays, sorting(high), dispatch, before)
        table.trim_heads()


def _reserve_links(
    table: RowTable, quads: Ints, column: int, many: int, dispatch: Ints, before: Ints
) -> None:
    """Make room for quads, whose predicates are in a column, in the indexes that get them."""
    extra = np.zeros(len(table.arrays.indexes), np.int64)
    count_links(quads, column, many, dispatch, before, extra)
    table.reserve_heads(extra.tolist())


def difference(after: Ints, before: Ints) -> Ints:
    """The rows that came, and with a negative diff those that went; the rows of each are distinct.

    >>> one, two = [0, 1, 7], [0, 1, 8]
    >>> difference(np.array([two], np.int32), np.array([one, two], np.int32)).tolist()
    [[0, -1, 7]]
    """
    rows = np.concatenate([before, after])
    _, place, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    rows[: len(before), DIFF] = -1
    return rows[counts[place.reshape(-1)] == 1]
