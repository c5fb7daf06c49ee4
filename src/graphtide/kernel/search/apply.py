"""The search strategy: apply changes one by one, and find the rows that each inserts or deletes.

For a changed quad and each pattern that it matches, the other patterns are joined outwards from it
(`react`, `next_match`). Nothing but the quads themselves is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import JIT, compiled, inlined
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    LIVE,
    OFFSET,
    SIZE,
    Table,
    add_row,
    find_row,
    find_slot,
    key_hash,
    link,
    remove_row,
    row_hash,
    unlink,
)
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.arrays import SearchArrays
from graphtide.kernel.search.next_match import next_match
from graphtide.kernel.search.react import begin, emit, load_probe, passes, react

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs

if JIT:
    from graphtide.prefetch import prefetch


@inlined
def find_dispatch(dispatch: Ints, predicate: Int) -> Int:
    """The dispatch line of a predicate; the last line is for predicates no pattern names."""
    mask = len(dispatch) - 2
    slot = (predicate * 40503) & mask
    while dispatch[slot, col.KEY] != 0:
        if dispatch[slot, col.KEY] == predicate + 1:
            return slot
        slot = (slot + 1) & mask
    return len(dispatch) - 1


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
    t.rows[row, 4] = 1
    link_all(t, links, row)
    return row


@inlined
def delete_quad(t: Table, links: Int, row: Int) -> None:
    """Remove a quad from its chains and from the table."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            unlink(t, index, row)
    remove_row(t, row)


@inlined
def prefetch_chain(t: Table, index: Int, key: Ints) -> None:
    """Prefetch the head of a chain."""
    home = key_hash(t, index, key, 0) & (t.indexes[index, SIZE] - 1)
    prefetch(t.heads, (t.indexes[index, OFFSET] + home) * 4)


@inlined
def prefetch_partners(t: Table, p: SearchArrays, seed: Int, changes: Ints, at: Int) -> None:
    """Prefetch the chains that a change will be joined with first, if it matches a seed."""
    for probe in range(p.probes_from[seed], p.probes_from[seed + 1]):
        load_probe(p, probe, changes, at, 2)
        prefetch_chain(t, p.probes[probe, col.PROBE_INDEX], p.key)


@inlined
def prefetch_change(t: Table, p: SearchArrays, changes: Ints, at: Int) -> None:
    """Prefetch what a later change will read first."""
    hash_ = row_hash(4, changes, at, 2)
    prefetch(t.slots, (hash_ & (t.slots.shape[0] - 1)) * 2)
    line = find_dispatch(p.dispatch, changes[at, 3])
    for k in range(4):
        p.key[0, k] = changes[at, 2 + k]
    for index in range(t.indexes.shape[0]):
        if p.dispatch[line, col.LINKS] >> index & 1:
            prefetch_chain(t, index, p.key)
    if t.meta[LIVE] > col.LARGE:
        first = p.dispatch[line, col.SEEDS_FROM]
        for seed in range(first, first + min(p.dispatch[line, col.SEEDS], col.PREFETCH_SEEDS)):
            prefetch_partners(t, p, seed, changes, at)


@compiled
def apply_changes(
    rows: Ints,
    slots: Ints,
    heads: Ints,
    indexes: Ints,
    meta: Longs,
    patterns: Ints,
    programs: Ints,
    checks: Ints,
    seeds: Ints,
    dispatch: Ints,
    walks: Longs,
    probes: Ints,
    probes_from: Ints,
    bind: Ints,
    walk_bind: Ints,
    key: Ints,
    frames: Longs,
    inner: Longs,
    walk: Longs,
    counts: Longs,
    store_all: bool,
    changes: Ints,
    begin: Int,
    end: Int,
    out: Ints,
    n: Int,
) -> Int:
    """Apply changes `[tx, diff, s, p, o, g]` one by one; append the rows that they change.

    Returns the number of rows written, or -1 if the output is full; `counts` then has the change to
    resume with, and the number of rows written.
    """
    t = Table(rows, slots, heads, indexes, meta, 4)
    p = SearchArrays(
        patterns, programs, checks, seeds, dispatch, walks,
        probes, probes_from, bind, walk_bind, key, frames, inner, walk,
    )  # fmt: skip
    for i in range(begin, end):
        # Prefetching uses the scratch space in which an interrupted search is kept.
        if i + col.PREFETCH_DISTANCE < end and counts[col.RESUME] == 0:
            prefetch_change(t, p, changes, i + col.PREFETCH_DISTANCE)
        hash_ = row_hash(4, changes, i, 2)
        slot = find_slot(t, hash_, changes, i, 2)
        row = t.slots[slot, HEAD] - 1
        insert = changes[i, 1] > 0
        line = find_dispatch(dispatch, changes[i, 3])
        if counts[col.RESUME] == 0:
            if (row >= 0) == insert:
                counts[col.REDUNDANT] += 1
                continue
            if insert:
                if not store_all and dispatch[line, col.SEEDS] == 0:
                    counts[col.DROPPED] += 1
                    continue
                row = insert_quad(t, dispatch[line, col.LINKS], slot, hash_, changes, i)
        n = react(t, p, line, row, changes[i, 0], 1 if insert else -1, out, n, counts)
        if n < 0:
            counts[col.STOPPED] = i
            return -1
        if insert:
            counts[col.INSERTED] += 1
        else:
            counts[col.DELETED] += 1
            delete_quad(t, dispatch[line, col.LINKS], row)
    return n


@compiled
def evaluate_seed(
    t: Table, p: SearchArrays, seed: Int, counts: Longs, begin_at: Int, out: Ints, n: Int
) -> Int:
    """All matches of a seed's program, from scratch: those through each quad at its pattern.

    Returns the same as `apply_changes`, with a row of the table in place of a change.
    """
    program = p.seeds[seed, col.SEED_PROGRAM]
    first = p.programs[program, col.FIRST]
    for row in range(begin_at, t.meta[HIGH]):
        resume = counts[col.RESUME] > 0
        counts[col.RESUME] = 0
        if not resume and (t.rows[row, 4] == 0 or not begin(t, p, seed, row)):
            continue
        while resume or next_match(t, p, first, p.frames, -1, 0):
            resume = False
            if passes(t, p, program, -1):
                n = emit(out, n, p, program, 0, 1)
                if n < 0:
                    counts[col.RESUME] = 1
                    counts[col.WRITTEN] = len(out)
                    counts[col.STOPPED] = row
                    return -1
    return n


@compiled
def relink(t: Table, dispatch: Ints, before: Ints, begin: Int, end: Int) -> None:
    """Add quads to the chains that their predicates need now but did not need before."""
    for row in range(begin, end):
        if t.rows[row, 4] != 0:
            wanted = dispatch[find_dispatch(dispatch, t.rows[row, 1]), col.LINKS]
            link_all(t, wanted & ~before[find_dispatch(before, t.rows[row, 1]), col.LINKS], row)


@compiled
def find_rows(t: Table, quads: Ints, found: Ints) -> None:
    """The row of each quad, or -1."""
    for i in range(len(quads)):
        found[i] = find_row(t, quads, i, 0)
