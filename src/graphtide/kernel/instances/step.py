"""The loop of the `decomposed` strategy: matched triples in, changed rows out.

An inserted triple sets a bit of one instance. If the instance holds now, it is counted by the
instances above it, which may begin to hold in turn, up to the query itself. Then, if the query
holds, the rows through the instance are written. A deleted triple undoes all of this in the
opposite order. The loop stops when output or table have no room left, and can be resumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, TX, VALUES, Int, Ints, Longs
from graphtide.kernel.instances.plan import NODE, Layout
from graphtide.kernel.instances.state import (
    ALL_HOLDS,
    AT,
    HOLDS,
    LEVEL,
    PHASE,
    ROOM,
    ROW,
    WRITTEN,
    begin_walk,
    bind_instance,
    count_parts,
    is_empty,
    is_full,
    new_instance,
    parts_hold,
    start_holding,
    stop_holding,
    update_count,
    walk_next,
)
from graphtide.kernel.rowtable import HEAD, Table, find_slot, remove_row, row_hash

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1, Longs2

FRESH, PROPAGATE, WRITE = 0, 1, 2
"""Phases of an event."""

DONE, FULL, NO_ROOM = 0, 1, 2
"""Why the loop stops."""

PATTERN, INSTANCE = 2, 3
"""Columns of an event after transaction and diff: the pattern, then an instance's row."""

MAX_ROWS = 2
"""Rows and chains that one step may add at most."""


@inlined
def propagate(
    t: Table,
    layout: Layout,
    sign: Int,
    state: Ints,
    root: Ints,
    regs: Longs,
    frames: Longs,
    bind: Ints,
    key: Ints,
) -> bool:
    """Propagate a change of holding instances upwards; False if there is no room."""
    while regs[LEVEL] >= 0:
        if regs[ROOM] < MAX_ROWS:
            return False
        level = regs[LEVEL]
        group = frames[level, 0]
        if not walk_next(t, layout, group, frames, level, bind, key):
            regs[LEVEL] -= 1
            continue
        node = layout.groups[group, NODE]
        turned = update_count(t, layout, node, sign, state, root, regs, bind, key)
        if turned >= 0:
            begin_walk(frames, level + 1, turned)
            regs[LEVEL] += 1
    return True


@inlined
def write_rows(
    t: Table,
    layout: Layout,
    tx: Int,
    sign: Int,
    out: Ints,
    regs: Longs,
    frames: Longs,
    bind: Ints,
    key: Ints,
) -> bool:
    """Write the rows through an instance; False if the output is full."""
    level = frames.shape[0] - 1
    walk = layout.groups.shape[0] + frames[level, 0]
    while True:
        n = regs[WRITTEN]
        if n == len(out):
            return False
        if not walk_next(t, layout, walk, frames, level, bind, key):
            return True
        out[n, TX] = tx
        out[n, DIFF] = sign
        for k in range(out.shape[1] - VALUES):
            out[n, VALUES + k] = bind[k]
        regs[WRITTEN] = n + 1


@inlined
def start_event(
    t: Table,
    layout: Layout,
    events: Ints,
    i: Int,
    state: Ints,
    root: Ints,
    regs: Longs,
    frames: Longs,
    bind: Ints,
    key: Ints,
) -> Int:
    """Set the bit of an inserted triple, or look up that of a deleted one; the phase that follows.

    `regs[ROW]` is the instance's row, -1 for the query itself, -2 if the change is redundant.
    """
    pattern, insert = events[i, PATTERN], events[i, DIFF] > 0
    group, word, bit = (
        layout.patterns[pattern, 0],
        layout.patterns[pattern, 1],
        layout.patterns[pattern, 2],
    )
    regs[ROW] = -2
    regs[LEVEL] = -1
    begin_walk(frames, frames.shape[0] - 1, group)
    if group == 0:
        if (root[0, word] & bit != 0) == insert:
            return FRESH
        regs[ROW] = -1
        if insert:
            root[0, word] |= bit
            holds = is_full(layout, 0, root, 0) and parts_hold(layout, 0, root, 0)
            regs[ALL_HOLDS] = np.int64(holds)
        return WRITE
    hash_ = row_hash(t.width, events, i, INSTANCE)
    slot = find_slot(t, hash_, events, i, INSTANCE)
    row: Int = np.int64(t.slots[slot, HEAD] - 1)
    if row < 0 and insert:
        row = new_instance(t, slot, hash_, events, i, INSTANCE, state, regs)
    if row < 0 or (state[row, word] & bit != 0) == insert:
        return FRESH
    regs[ROW] = row
    if insert:
        state[row, word] |= bit
    if not is_full(layout, group, state, row):
        return FRESH
    bind_instance(t, layout, group, row, bind)
    if insert:
        count_parts(t, layout, group, state, row, frames, bind, key)
        begin_walk(frames, frames.shape[0] - 1, group)
        if parts_hold(layout, group, state, row):
            start_holding(t, layout, group, row, regs)
    if t.rows[row, t.width] != HOLDS:
        return FRESH
    return PROPAGATE if insert else WRITE


@inlined
def clear_bit(
    t: Table, layout: Layout, events: Ints, i: Int, state: Ints, root: Ints, regs: Longs
) -> None:
    """Clear the bit of a deleted triple, and remove the instance with its last bit."""
    pattern, row = events[i, PATTERN], regs[ROW]
    group, word, bit = (
        layout.patterns[pattern, 0],
        layout.patterns[pattern, 1],
        layout.patterns[pattern, 2],
    )
    if row == -1:
        root[0, word] &= ~bit
        regs[ALL_HOLDS] = 0
    elif row >= 0:
        state[row, word] &= ~bit
        if is_empty(layout, group, state, row):
            remove_row(t, row)


@compiled
def instances_step(
    t: Table,
    layout: Layout,
    state: Ints2,
    root: Ints2,
    regs: Longs1,
    frames: Longs2,
    bind: Ints1,
    key: Ints2,
    events: Ints2,
    out: Ints2,
) -> Int:
    """Process events `[tx, diff, pattern, instance…]` one by one; the reason for stopping."""
    last = frames.shape[0] - 1
    while regs[AT] < len(events):
        i = regs[AT]
        insert = events[i, DIFF] > 0
        sign = 1 if insert else -1
        if regs[PHASE] == FRESH:
            if regs[ROOM] < MAX_ROWS:
                return NO_ROOM
            regs[PHASE] = start_event(t, layout, events, i, state, root, regs, frames, bind, key)
            if regs[PHASE] == PROPAGATE:
                regs[LEVEL] = 0
                begin_walk(frames, 0, frames[last, 0])
        # Inserts are propagated before their rows are written, deletes after.
        if insert and regs[PHASE] == PROPAGATE:
            if not propagate(t, layout, 1, state, root, regs, frames, bind, key):
                return NO_ROOM
            regs[PHASE] = WRITE
        if regs[PHASE] == WRITE:
            if regs[ALL_HOLDS] != 0:
                if not write_rows(t, layout, events[i, TX], sign, out, regs, frames, bind, key):
                    return FULL
            regs[PHASE] = FRESH
            if not insert and regs[ROW] >= 0:
                bind_instance(t, layout, frames[last, 0], regs[ROW], bind)
                stop_holding(t, layout, frames[last, 0], regs[ROW])
                regs[PHASE] = PROPAGATE
                regs[LEVEL] = 0
                begin_walk(frames, 0, frames[last, 0])
        if not insert and regs[PHASE] == PROPAGATE:
            if not propagate(t, layout, -1, state, root, regs, frames, bind, key):
                return NO_ROOM
            regs[PHASE] = FRESH
        if not insert:
            clear_bit(t, layout, events, i, state, root, regs)
        regs[AT] = i + 1
    return DONE
