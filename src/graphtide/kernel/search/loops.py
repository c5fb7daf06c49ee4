"""The loops over the table of a quad store: they apply changes, evaluate programs, and find rows.

Changes are applied one by one, and the rows that each one changes are searched (`react`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled, inlined
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    LENGTH,
    LIVE,
    Table,
    add_row,
    find_head,
    find_row,
    find_slot,
    has_room,
    key_hash,
    link,
    remove_row_at,
    row_hash,
    unlink,
)
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.ahead import (
    LINKS,
    NOTHING,
    ONLY_PARTNERS,
    PARTNERS,
    find_dispatch,
    prefetch_block,
)
from graphtide.kernel.search.arrays import SearchArrays
from graphtide.kernel.search.next_match import next_match
from graphtide.kernel.search.react import begin as begin_search
from graphtide.kernel.search.react import emit, passes, react
from graphtide.views import ints1, ints2, longs1, longs2

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.views import Block

OUTPUT_FULL, TABLE_FULL = -1, -2
"""Why the loop stops: there is no room for a row of output, or for a quad."""

FEW_CHANGES = 8
"""Fewer changes are not prefetched: it takes as long as they do."""


@inlined
def store_arrays(block: Block) -> tuple[Table, SearchArrays, Longs]:
    """The arrays of a block: the table, the programs, and counts."""
    t = Table(
        ints2(block, 0), ints2(block, 1), ints2(block, 2), ints2(block, 3), longs1(block, 4), 4
    )
    p = SearchArrays(
        ints2(block, 5), ints2(block, 6), ints2(block, 7), ints2(block, 8), ints2(block, 9),
        longs1(block, 10), ints2(block, 11), ints1(block, 12), ints1(block, 13), ints1(block, 14),
        ints2(block, 15), longs2(block, 16), longs2(block, 17), longs2(block, 18),
        longs2(block, 19),
    )  # fmt: skip
    return t, p, longs1(block, 20)


@inlined
def begin_call(counts: Longs, call: Int) -> None:
    """Note what was counted before a call of `apply`, if it is another one."""
    if counts[col.CALL] != call:
        counts[col.CALL] = call
        counts[col.APPLIED] = counts[col.RESUME] = 0
        for k in range(col.COUNTS - col.BEFORE):
            counts[col.BEFORE + k] = counts[k]


@inlined
def link_all(t: Table, links: Int, row: Int) -> None:
    """Add a row to the chains of a set of indexes."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            link(t, index, row)


@inlined
def insert_quad(t: Table, links: Int, slot: Int, hash_: Int, changes: Ints, at: Int) -> Int:
    """Store a new quad and add it to its chains."""
    row = add_row(t, slot, hash_, changes, at, 2)
    t.rows[row, col.ALIVE] = 1
    link_all(t, links, row)
    return row


@inlined
def delete_quad(t: Table, links: Int, slot: Int, row: Int) -> None:
    """Remove a quad, whose slot is known, from its chains and from the table."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            unlink(t, index, row)
    remove_row_at(t, slot, row)


@compiled
def apply_changes(
    block: Block,
    store_all: bool,
    reacts: bool,
    call: Int,
    changes: Ints2,
    begin: Int,
    end: Int,
    effects: Ints1,
    out: Ints2,
    n: Int,
) -> Int:
    """Apply changes `[tx, diff, s, p, o, g]` one by one; if `reacts`, append the rows they change.

    Returns the number of rows written, or `OUTPUT_FULL` or `TABLE_FULL`; `counts` then has the
    change to resume with, and the number of rows written. `effects` says which changes had an
    effect, so that they can be undone; `counts` how many have been applied of which `call`.
    """
    t, p, counts = store_arrays(block)
    dispatch = p.dispatch
    begin_call(counts, call)
    fetched = begin if end - begin >= FEW_CHANGES else end
    for i in range(begin, end):
        # Prefetching uses the scratch space in which an interrupted search is kept.
        if i >= fetched and counts[col.RESUME] == 0:
            fetched = min(i + col.BLOCK, end)
            depth = LINKS
            if t.meta[LIVE] <= col.LARGE:
                depth = NOTHING
            elif reacts:
                depth = PARTNERS
            prefetch_block(t, p, changes, 2, i, fetched, depth)
        hash_ = row_hash(4, changes, i, 2)
        slot = find_slot(t, hash_, changes, i, 2)
        row = t.slots[slot, HEAD] - 1
        insert = changes[i, 1] > 0
        line = find_dispatch(dispatch, changes[i, 3])
        if counts[col.RESUME] == 0:
            if (row >= 0) == insert:
                counts[col.REDUNDANT] += 1
                effects[i] = 0
                counts[col.APPLIED] = i + 1
                continue
            if insert:
                if not store_all and dispatch[line, col.SEEDS] == 0:
                    counts[col.DROPPED] += 1
                    effects[i] = 0
                    counts[col.APPLIED] = i + 1
                    continue
                links = dispatch[line, col.LINKS]
                if not has_room(t, links):
                    counts[col.STOPPED], counts[col.WRITTEN] = i, n
                    return TABLE_FULL
                row = insert_quad(t, links, slot, hash_, changes, i)
                effects[i] = 1
                counts[col.APPLIED] = i + 1
        if reacts:
            n = react(t, p, line, row, changes[i, 0], 1 if insert else -1, out, n, counts)
            if n < 0:
                counts[col.STOPPED] = i
                return OUTPUT_FULL
        if insert:
            counts[col.INSERTED] += 1
        else:
            counts[col.DELETED] += 1
            delete_quad(t, dispatch[line, col.LINKS], slot, row)
            effects[i] = 1
            counts[col.APPLIED] = i + 1
    return n


@compiled
def evaluate_rows(
    t: Table, p: SearchArrays, tx: Int, counts: Longs1, begin: Int, end: Int, out: Ints2, n: Int
) -> Int:
    """All matches, from scratch, that the seeds of a plan find from the rows `begin` to `end`.

    Returns the same as `apply_changes`, with a row of the table in place of a change.
    """
    fetched = begin
    for row in range(begin, end):
        if row >= fetched and counts[col.RESUME] == 0:
            fetched = min(row + col.BLOCK, end)
            if t.meta[LIVE] > col.LARGE:
                prefetch_block(t, p, t.rows, 0, row, fetched, ONLY_PARTNERS)
        if t.rows[row, 4] == 0:
            continue
        line = find_dispatch(p.dispatch, t.rows[row, 1])
        first = p.dispatch[line, col.SEEDS_FROM]
        at = first
        resume = counts[col.RESUME] > 0
        if resume:
            at = counts[col.RESUME] - 1
            counts[col.RESUME] = 0
        for seed in range(at, first + p.dispatch[line, col.SEEDS]):
            if not resume and not begin_search(t, p, seed, row):
                continue
            program = p.seeds[seed, col.SEED_PROGRAM]
            patterns = p.programs[program, col.FIRST]
            while resume or next_match(t, p, patterns, p.frames, -1, 0):
                resume = False
                if passes(t, p, program, -1, -1):
                    n = emit(out, n, p, program, tx, 1)
                    if n < 0:
                        counts[col.RESUME] = seed + 1
                        counts[col.WRITTEN] = len(out)
                        counts[col.STOPPED] = row
                        return -1
    return n


@compiled
def count_quads(t: Table, dispatch: Ints2, sizes: Longs1) -> None:
    """The number of quads of each dispatch line."""
    for row in range(t.meta[HIGH]):
        if t.rows[row, 4] != 0:
            sizes[find_dispatch(dispatch, t.rows[row, 1])] += 1


@compiled
def find_rows(t: Table, quads: Ints2, found: Ints1) -> None:
    """The row of each quad, or -1."""
    for i in range(len(quads)):
        found[i] = find_row(t, quads, i, 0)


@compiled
def chain_rows(t: Table, index: Int, key: Ints2, found: Ints1) -> Int:
    """Write the rows of a chain, as many as there is room for; the length of the chain."""
    head = find_head(t, index, key_hash(t, index, key, 0), key, 0)
    row = t.heads[head, HEAD] - 1
    if row < 0:
        return 0
    for i in range(min(len(found), t.heads[head, LENGTH])):
        found[i] = row
        row = t.rows[row, t.width + 1 + 2 * index] - 1
    return t.heads[head, LENGTH]
