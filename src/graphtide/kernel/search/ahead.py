"""`prefetch_block`: fetches into the cache what the search from a block of quads will read.

A large store is not in the processor's caches, and a search reads one place after the other: the
head of a chain, its first row, the head of the chain that this row leads to, and so on. So before
the quads of a block are looked at one by one, the same lookups are made for all of them together, a
level at a time: all heads, then all rows, then all heads of the next level. What a level reads was
requested by the one before, and the waits overlap. Nothing depends on what is found here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import JIT, inlined
from graphtide.kernel.rowtable import HASH, HEAD, OFFSET, SIZE, Table, home_of, key_hash, row_hash
from graphtide.kernel.search import arrays as col

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints
    from graphtide.kernel.search.arrays import SearchArrays

if JIT:
    from graphtide.prefetch import prefetch

NOTHING, LINKS, PARTNERS, ONLY_PARTNERS = 0, 1, 2, 3
"""How far ahead: the first entries that are read, the rows before in the chains, or all; or for
quads that are in their chains already, all but that."""


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
def prefetch_row(t: Table, row: Int) -> None:
    """Fetch a row, given as its number + 1."""
    prefetch(t.rows, (row - 1) * t.rows.shape[1])


@inlined
def likely_row(entries: Ints, base: Int, size: Int, hash_: Int) -> Int:
    """The row + 1 of the first entry with a hash; 0 if there is none. The row is not looked at."""
    probe = home_of(hash_, size)
    while entries[base + probe, HEAD] != 0 and entries[base + probe, HASH] != hash_:
        probe += 1
        if probe == size:
            probe = 0
    return entries[base + probe, HEAD]


@inlined
def announce(t: Table, p: SearchArrays, index: Int, cell: Int) -> None:
    """Note the hash of the key in `p.key`, and fetch the entry where its lookup begins."""
    if index == col.UNIQUE:
        hash_ = row_hash(4, p.key, 0, 0)
        prefetch(t.slots, home_of(hash_, t.slots.shape[0]) * 2)
    else:
        hash_ = key_hash(t, index, p.key, 0)
        place = t.indexes[index, OFFSET] + home_of(hash_, np.int64(t.indexes[index, SIZE]))
        prefetch(t.heads, place * t.heads.shape[1])
    p.ahead[cell, col.AHEAD_HASH] = hash_
    p.ahead[cell, col.AHEAD_ROW] = 0


@inlined
def resolve(t: Table, p: SearchArrays, index: Int, cell: Int) -> None:
    """Read the entry of a lookup that was announced, and fetch its row."""
    hash_ = p.ahead[cell, col.AHEAD_HASH]
    if index == col.UNIQUE:
        row = likely_row(t.slots, 0, t.slots.shape[0], hash_)
    else:
        base, size = np.int64(t.indexes[index, OFFSET]), np.int64(t.indexes[index, SIZE])
        row = likely_row(t.heads, base, size, hash_)
    p.ahead[cell, col.AHEAD_ROW] = row
    if row != 0:
        prefetch_row(t, row)


@inlined
def load_probe(
    t: Table, p: SearchArrays, probe: Int, quads: Ints, at: Int, first: Int, cells: Int
) -> bool:
    """Load the key of a probe for a quad whose values begin at column `first`.

    Rows that earlier probes have found are in `cells`. False if one has found none.
    """
    for k in range(4):
        value = p.probes[probe, col.PROBE_KEY + k]
        if value < 0:
            column = -1 - value
            if column < 4:
                value = quads[at, first + column]
            else:
                row = p.ahead[cells + column // 4 - 1, col.AHEAD_ROW]
                if row == 0:
                    return False
                value = t.rows[row - 1, column % 4]
        p.key[0, k] = value
    return True


@inlined
def announce_quad(t: Table, p: SearchArrays, quads: Ints, at: Int, first: Int, cells: Int) -> None:
    """Fetch the first entries that are read for a quad: its own, and those of its chains."""
    line = find_dispatch(p.dispatch, quads[at, first + 1])
    for k in range(4):
        p.key[0, k] = quads[at, first + k]
    announce(t, p, col.UNIQUE, cells)
    p.ahead[cells + 1, col.AHEAD_HASH] = line
    cell, last = cells + 2, cells + col.AHEAD_LINKS
    for index in range(t.indexes.shape[0]):
        if p.dispatch[line, col.LINKS] >> index & 1 and cell < last:
            announce(t, p, index, cell)
            cell += 1


@inlined
def resolve_quad(t: Table, p: SearchArrays, cells: Int) -> None:
    """Fetch the rows of the entries that `announce_quad` has fetched."""
    line = p.ahead[cells + 1, col.AHEAD_HASH]
    resolve(t, p, col.UNIQUE, cells)
    cell, last = cells + 2, cells + col.AHEAD_LINKS
    for index in range(t.indexes.shape[0]):
        if p.dispatch[line, col.LINKS] >> index & 1 and cell < last:
            resolve(t, p, index, cell)
            cell += 1


@inlined
def announce_partners(
    t: Table, p: SearchArrays, quads: Ints, at: Int, first: Int, cells: Int, level: Int
) -> bool:
    """Fetch the entries where the probes of one level begin; whether there are any."""
    line = p.ahead[cells + 1, col.AHEAD_HASH]
    begin = p.dispatch[line, col.SEEDS_FROM]
    cell, last = cells + col.AHEAD_LINKS, cells + col.AHEAD_CELLS
    found = False
    for seed in range(begin, begin + p.dispatch[line, col.SEEDS]):
        own = cell
        for probe in range(p.probes_from[seed], p.probes_from[seed + 1]):
            if cell == last:
                return found
            if p.probes[probe, col.PROBE_LEVEL] == level:
                if load_probe(t, p, probe, quads, at, first, own):
                    announce(t, p, p.probes[probe, col.PROBE_INDEX], cell)
                    found = True
                else:
                    p.ahead[cell, col.AHEAD_HASH] = -1
                    p.ahead[cell, col.AHEAD_ROW] = 0
            cell += 1
    return found


@inlined
def resolve_partners(t: Table, p: SearchArrays, cells: Int, level: Int) -> None:
    """Fetch the rows of the entries that `announce_partners` has fetched."""
    line = p.ahead[cells + 1, col.AHEAD_HASH]
    begin = p.dispatch[line, col.SEEDS_FROM]
    cell, last = cells + col.AHEAD_LINKS, cells + col.AHEAD_CELLS
    for seed in range(begin, begin + p.dispatch[line, col.SEEDS]):
        for probe in range(p.probes_from[seed], p.probes_from[seed + 1]):
            if cell == last:
                return
            if p.probes[probe, col.PROBE_LEVEL] == level and p.ahead[cell, col.AHEAD_HASH] >= 0:
                resolve(t, p, p.probes[probe, col.PROBE_INDEX], cell)
            cell += 1


@inlined
def prefetch_block(
    t: Table, p: SearchArrays, quads: Ints, first: Int, begin: Int, end: Int, depth: Int
) -> None:
    """Fetch what the quads `begin` to `end` will read; their values begin at column `first`."""
    if depth == ONLY_PARTNERS:
        for at in range(begin, end):
            line = find_dispatch(p.dispatch, quads[at, first + 1])
            p.ahead[(at - begin) * col.AHEAD_CELLS + 1, col.AHEAD_HASH] = line
    else:
        for at in range(begin, end):
            announce_quad(t, p, quads, at, first, (at - begin) * col.AHEAD_CELLS)
        if depth == NOTHING:
            return
        for at in range(begin, end):
            resolve_quad(t, p, (at - begin) * col.AHEAD_CELLS)
    level, more = 0, depth >= PARTNERS
    while more:
        more = False
        for at in range(begin, end):
            cells = (at - begin) * col.AHEAD_CELLS
            more |= announce_partners(t, p, quads, at, first, cells, level)
        for at in range(begin, end):
            resolve_partners(t, p, (at - begin) * col.AHEAD_CELLS, level)
        level += 1
