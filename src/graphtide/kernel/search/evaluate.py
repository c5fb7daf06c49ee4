"""Loops over the rows of a quad store: they evaluate programs, link rows and find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled, inlined
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    LENGTH,
    LIVE,
    Table,
    find_head,
    find_row,
    key_hash,
    link,
)
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.ahead import ONLY_PARTNERS, find_dispatch, prefetch_block
from graphtide.kernel.search.next_match import next_match
from graphtide.kernel.search.react import begin as begin_search
from graphtide.kernel.search.react import emit, passes

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.kernel.search.arrays import SearchArrays


@inlined
def link_all(t: Table, links: Int, row: Int) -> None:
    """Add a row to the chains of a set of indexes."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            link(t, index, row)


@compiled
def evaluate_rows(
    t: Table, p: SearchArrays, tx: Int, counts: Longs, begin: Int, end: Int, out: Ints, n: Int
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
def count_quads(t: Table, dispatch: Ints, sizes: Longs) -> None:
    """The number of quads of each dispatch line."""
    for row in range(t.meta[HIGH]):
        if t.rows[row, 4] != 0:
            sizes[find_dispatch(dispatch, t.rows[row, 1])] += 1


@compiled
def find_rows(t: Table, quads: Ints, found: Ints) -> None:
    """The row of each quad, or -1."""
    for i in range(len(quads)):
        found[i] = find_row(t, quads, i, 0)


@compiled
def chain_rows(t: Table, index: Int, key: Ints, found: Ints) -> Int:
    """Write the rows of a chain, as many as there is room for; the length of the chain."""
    head = find_head(t, index, key_hash(t, index, key, 0), key, 0)
    row = t.heads[head, HEAD] - 1
    if row < 0:
        return 0
    for i in range(min(len(found), t.heads[head, LENGTH])):
        found[i] = row
        row = t.rows[row, t.width + 1 + 2 * index] - 1
    return t.heads[head, LENGTH]
