"""The loop of the `decomposed` strategy: matched triples in, changed rows out.

A triple that comes sets a bit of one instance. If the instance holds now, it counts for those that
depend on it: they may begin to hold in turn, up to the query itself. Then, if the query holds, the
rows through the instance are written. For a triple that goes, all of this is undone in the opposite
order. The loop stops when output or table have no room left, and goes on where it was.
"""

from __future__ import annotations

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
    count_in,
    count_parts,
    hold,
    is_empty,
    is_full,
    is_met,
    let_go,
    new_instance,
    walk_next,
)
from graphtide.kernel.rowtable import HEAD, Table, find_slot, remove_row, row_mark

FRESH, SPREAD, WRITE = 0, 1, 2
"""Phases of an event."""

DONE, FULL, CROWDED = 0, 1, 2
"""Why the loop stops."""

PATTERN, INSTANCE = 2, 3
"""Columns of an event after transaction and diff: the pattern, then an instance's row."""

MOST_ROWS = 2
"""Rows and chain beginnings that one step may need."""


@inlined
def spread(
    t: Table,
    layout: Layout,
    sign: Int,
    state: Ints,
    root: Ints,
    marks: Longs,
    frames: Longs,
    bind: Ints,
    key: Ints,
) -> bool:
    """Tell what depends on an instance that it turned, and so on; False if there is no room."""
    while marks[LEVEL] >= 0:
        if marks[ROOM] < MOST_ROWS:
            return False
        level = marks[LEVEL]
        group = frames[level, 0]
        if not walk_next(t, layout, group, frames, level, bind, key):
            marks[LEVEL] -= 1
            continue
        node = layout.groups[group, NODE]
        turned = count_in(t, layout, node, sign, state, root, marks, bind, key)
        if turned >= 0:
            begin_walk(frames, level + 1, turned)
            marks[LEVEL] += 1
    return True


@inlined
def write_rows(
    t: Table,
    layout: Layout,
    tx: Int,
    sign: Int,
    out: Ints,
    marks: Longs,
    frames: Longs,
    bind: Ints,
    key: Ints,
) -> bool:
    """Write the rows through an instance; False if the output is full."""
    level = frames.shape[0] - 1
    walk = layout.groups.shape[0] + frames[level, 0]
    while True:
        n = marks[WRITTEN]
        if n == len(out):
            return False
        if not walk_next(t, layout, walk, frames, level, bind, key):
            return True
        out[n, TX] = tx
        out[n, DIFF] = sign
        for k in range(out.shape[1] - VALUES):
            out[n, VALUES + k] = bind[k]
        marks[WRITTEN] = n + 1


@inlined
def take_in(
    t: Table,
    layout: Layout,
    events: Ints,
    i: Int,
    state: Ints,
    root: Ints,
    marks: Longs,
    frames: Longs,
    bind: Ints,
    key: Ints,
) -> Int:
    """Set the bit of a triple that comes, or look at that of one that goes; the phase that follows.

    `marks[ROW]` is the instance's row, -1 for the query itself, -2 if the change is redundant.
    """
    pattern, insert = events[i, PATTERN], events[i, DIFF] > 0
    group, word, bit = (
        layout.patterns[pattern, 0],
        layout.patterns[pattern, 1],
        layout.patterns[pattern, 2],
    )
    marks[ROW] = -2
    marks[LEVEL] = -1
    begin_walk(frames, frames.shape[0] - 1, group)
    if group == 0:
        if (root[0, word] & bit != 0) == insert:
            return FRESH
        marks[ROW] = -1
        if insert:
            root[0, word] |= bit
            holds = is_full(layout, 0, root, 0) and is_met(layout, 0, root, 0)
            marks[ALL_HOLDS] = np.int64(holds)
        return WRITE
    mark = row_mark(t.width, events, i, INSTANCE)
    slot = find_slot(t, mark, events, i, INSTANCE)
    row: Int = np.int64(t.slots[slot, HEAD] - 1)
    if row < 0 and insert:
        row = new_instance(t, slot, mark, events, i, INSTANCE, state, marks)
    if row < 0 or (state[row, word] & bit != 0) == insert:
        return FRESH
    marks[ROW] = row
    if insert:
        state[row, word] |= bit
    if not is_full(layout, group, state, row):
        return FRESH
    bind_instance(t, layout, group, row, bind)
    if insert:
        count_parts(t, layout, group, state, row, frames, bind, key)
        begin_walk(frames, frames.shape[0] - 1, group)
        if is_met(layout, group, state, row):
            hold(t, layout, group, row, marks)
    if t.rows[row, t.width] != HOLDS:
        return FRESH
    return SPREAD if insert else WRITE


@inlined
def forget(
    t: Table, layout: Layout, events: Ints, i: Int, state: Ints, root: Ints, marks: Longs
) -> None:
    """Clear the bit of a triple that went, and with the last bit the instance."""
    pattern, row = events[i, PATTERN], marks[ROW]
    group, word, bit = (
        layout.patterns[pattern, 0],
        layout.patterns[pattern, 1],
        layout.patterns[pattern, 2],
    )
    if row == -1:
        root[0, word] &= ~bit
        marks[ALL_HOLDS] = 0
    elif row >= 0:
        state[row, word] &= ~bit
        if is_empty(layout, group, state, row):
            remove_row(t, row)


@compiled
def instances_step(
    t: Table,
    layout: Layout,
    state: Ints,
    root: Ints,
    marks: Longs,
    frames: Longs,
    bind: Ints,
    key: Ints,
    events: Ints,
    out: Ints,
) -> Int:
    """Take in events `[tx, diff, pattern, instance…]` one by one; why it stopped."""
    last = frames.shape[0] - 1
    while marks[AT] < len(events):
        i = marks[AT]
        insert = events[i, DIFF] > 0
        sign = 1 if insert else -1
        if marks[PHASE] == FRESH:
            if marks[ROOM] < MOST_ROWS:
                return CROWDED
            marks[PHASE] = take_in(t, layout, events, i, state, root, marks, frames, bind, key)
            if marks[PHASE] == SPREAD:
                marks[LEVEL] = 0
                begin_walk(frames, 0, frames[last, 0])
        # What comes is told first and written then, what goes the other way round.
        if insert and marks[PHASE] == SPREAD:
            if not spread(t, layout, 1, state, root, marks, frames, bind, key):
                return CROWDED
            marks[PHASE] = WRITE
        if marks[PHASE] == WRITE:
            if marks[ALL_HOLDS] != 0:
                if not write_rows(t, layout, events[i, TX], sign, out, marks, frames, bind, key):
                    return FULL
            marks[PHASE] = FRESH
            if not insert and marks[ROW] >= 0:
                bind_instance(t, layout, frames[last, 0], marks[ROW], bind)
                let_go(t, layout, frames[last, 0], marks[ROW])
                marks[PHASE] = SPREAD
                marks[LEVEL] = 0
                begin_walk(frames, 0, frames[last, 0])
        if not insert and marks[PHASE] == SPREAD:
            if not spread(t, layout, -1, state, root, marks, frames, bind, key):
                return CROWDED
            marks[PHASE] = FRESH
        if not insert:
            forget(t, layout, events, i, state, root, marks)
        marks[AT] = i + 1
    return DONE
