"""The search strategy: changes applied one by one, and the rows that each of them moves.

For a quad that comes or goes and each pattern it can take the place of, the other patterns are
joined outwards from it (`react`, `next_match`). Nothing but the quads themselves is stored.
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
    key_mark,
    link,
    remove_row,
    row_mark,
    unlink,
)
from graphtide.kernel.search.next_match import next_match
from graphtide.kernel.search.program import (
    AHEAD,
    ASKED,
    DELETED,
    DROPPED,
    FIRST,
    INSERTED,
    KEY,
    LARGE,
    LINKS,
    PROBE_INDEX,
    REDUNDANT,
    RESUME,
    SEED_PROGRAM,
    SEEDS,
    SEEDS_FROM,
    STOPPED,
    WRITTEN,
    SearchArrays,
)
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
    while dispatch[slot, KEY] != 0:
        if dispatch[slot, KEY] == predicate + 1:
            return slot
        slot = (slot + 1) & mask
    return len(dispatch) - 1


@inlined
def link_all(t: Table, links: Int, row: Int) -> None:
    """Put a row into the chains of a set of indexes."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            link(t, index, row)


@inlined
def put_in(t: Table, links: Int, slot: Int, mark: Int, changes: Ints, at: Int) -> Int:
    """Store a new quad and put it into its chains."""
    row = add_row(t, slot, mark, changes, at, 2)
    t.rows[row, 4] = 1
    link_all(t, links, row)
    return row


@inlined
def take_out(t: Table, links: Int, row: Int) -> None:
    """Take a quad out of its chains and forget it."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            unlink(t, index, row)
    remove_row(t, row)


@inlined
def ask_for_head(t: Table, index: Int, key: Ints) -> None:
    """Have the beginning of a chain fetched."""
    home = key_mark(t, index, key, 0) & (t.indexes[index, SIZE] - 1)
    prefetch(t.heads, (t.indexes[index, OFFSET] + home) * 4)


@inlined
def ask_for_partners(t: Table, p: SearchArrays, seed: Int, changes: Ints, at: Int) -> None:
    """Have the chains fetched that a change will be joined with first, if it matches a seed."""
    for probe in range(p.probes_from[seed], p.probes_from[seed + 1]):
        load_probe(p, probe, changes, at, 2)
        ask_for_head(t, p.probes[probe, PROBE_INDEX], p.key)


@inlined
def ask_ahead(t: Table, p: SearchArrays, changes: Ints, at: Int) -> None:
    """Have fetched what a change that comes soon will read first."""
    mark = row_mark(4, changes, at, 2)
    prefetch(t.slots, (mark & (t.slots.shape[0] - 1)) * 2)
    line = find_dispatch(p.dispatch, changes[at, 3])
    for k in range(4):
        p.key[0, k] = changes[at, 2 + k]
    for index in range(t.indexes.shape[0]):
        if p.dispatch[line, LINKS] >> index & 1:
            ask_for_head(t, index, p.key)
    if t.meta[LIVE] > LARGE:
        first = p.dispatch[line, SEEDS_FROM]
        for seed in range(first, first + min(p.dispatch[line, SEEDS], ASKED)):
            ask_for_partners(t, p, seed, changes, at)


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
    """Apply changes `[tx, diff, s, p, o, g]` one by one; append the rows that come or go.

    Returns the number of rows written, or -1 if the output has no room for all rows of a change;
    `counts` then says which, and how many rows were written.
    """
    t = Table(rows, slots, heads, indexes, meta, 4)
    p = SearchArrays(
        patterns, programs, checks, seeds, dispatch, walks,
        probes, probes_from, bind, walk_bind, key, frames, inner, walk,
    )  # fmt: skip
    for i in range(begin, end):
        # A search to be resumed still is in the scratch space that asking ahead uses.
        if i + AHEAD < end and counts[RESUME] == 0:
            ask_ahead(t, p, changes, i + AHEAD)
        mark = row_mark(4, changes, i, 2)
        slot = find_slot(t, mark, changes, i, 2)
        row = t.slots[slot, HEAD] - 1
        insert = changes[i, 1] > 0
        line = find_dispatch(dispatch, changes[i, 3])
        if counts[RESUME] == 0:
            if (row >= 0) == insert:
                counts[REDUNDANT] += 1
                continue
            if insert:
                if not store_all and dispatch[line, SEEDS] == 0:
                    counts[DROPPED] += 1
                    continue
                row = put_in(t, dispatch[line, LINKS], slot, mark, changes, i)
        n = react(t, p, line, row, changes[i, 0], 1 if insert else -1, out, n, counts)
        if n < 0:
            counts[STOPPED] = i
            return -1
        if insert:
            counts[INSERTED] += 1
        else:
            counts[DELETED] += 1
            take_out(t, dispatch[line, LINKS], row)
    return n


@compiled
def evaluate_seed(
    t: Table, p: SearchArrays, seed: Int, counts: Longs, begin_at: Int, out: Ints, n: Int
) -> Int:
    """Every match of a seed's program, from scratch: those through each quad at its pattern.

    Returns what `apply_changes` does, with a quad's row in the place of a change.
    """
    program = p.seeds[seed, SEED_PROGRAM]
    first = p.programs[program, FIRST]
    for row in range(begin_at, t.meta[HIGH]):
        resume = counts[RESUME] > 0
        counts[RESUME] = 0
        if not resume and (t.rows[row, 4] == 0 or not begin(t, p, seed, row)):
            continue
        while resume or next_match(t, p, first, p.frames, -1, 0):
            resume = False
            if passes(t, p, program, -1):
                n = emit(out, n, p, program, 0, 1)
                if n < 0:
                    counts[RESUME] = 1
                    counts[WRITTEN] = len(out)
                    counts[STOPPED] = row
                    return -1
    return n


@compiled
def relink(t: Table, dispatch: Ints, before: Ints, begin: Int, end: Int) -> None:
    """Put quads into the chains that their predicates call for, but did not call for before."""
    for row in range(begin, end):
        if t.rows[row, 4] != 0:
            wanted = dispatch[find_dispatch(dispatch, t.rows[row, 1]), LINKS]
            link_all(t, wanted & ~before[find_dispatch(before, t.rows[row, 1]), LINKS], row)


@compiled
def find_rows(t: Table, quads: Ints, found: Ints) -> None:
    """The row of each quad, or -1."""
    for i in range(len(quads)):
        found[i] = find_row(t, quads, i, 0)
