"""The state of instances: bits, counts, and whether an instance holds; walks over instances.

The table has an instance's values and whether it holds; `state` has, at the same row, the words of
its mask and then its counts. The query itself is the one row of `root`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import inlined
from graphtide.kernel.instances import plan as col
from graphtide.kernel.rowtable import (
    HEAD,
    LENGTH,
    Table,
    add_row,
    find_head,
    find_row,
    find_slot,
    key_hash,
    link,
    remove_row,
    row_hash,
    unlink,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.kernel.instances.plan import Layout


PRESENT, HOLDS = 1, 2
"""Values of the multiplicity of an instance's row."""

WALK_DEPTH, WALK_CURSORS = 1, 2
"""Cells of a line of frames: the number of steps taken, then the cursor of each step."""


@inlined
def load_instance(layout: Layout, group: Int, bind: Ints, key: Ints) -> None:
    """Load the bound values of a group's variables into the key of one of its rows."""
    key[0, 0] = group
    wide = layout.groups[group, col.WIDTH]
    for k in range(key.shape[1] - 1):
        key[0, 1 + k] = bind[layout.groups[group, col.VARIABLES + k]] if k < wide else 0


@inlined
def bind_instance(t: Table, layout: Layout, group: Int, row: Int, bind: Ints) -> None:
    """Give a group's variables the values of an instance."""
    for k in range(layout.groups[group, col.WIDTH]):
        bind[layout.groups[group, col.VARIABLES + k]] = t.rows[row, 1 + k]


@inlined
def open_step(t: Table, layout: Layout, step: Int, bind: Ints, key: Ints) -> Int:
    """The first instance that a step may take, plus 1; 0 if there is none."""
    group, index = layout.steps[step, col.STEP_GROUP], layout.steps[step, col.STEP_INDEX]
    load_instance(layout, group, bind, key)
    if index < 0:
        row = find_row(t, key, 0, 0)
        if row >= 0 and t.rows[row, t.width] == HOLDS:
            return row + 1
        return 0
    return t.heads[find_head(t, index, key_hash(t, index, key, 0), key, 0), HEAD]


@inlined
def walk_next(
    t: Table, layout: Layout, walk: Int, frames: Longs, level: Int, bind: Ints, key: Ints
) -> bool:
    """Find the next combination of a walk and bind its values; False at the end.

    A walk whose depth is -1 starts.
    """
    first, many = layout.walks[walk, 0], layout.walks[walk, 1]
    deeper = frames[level, WALK_DEPTH] < 0
    frames[level, WALK_DEPTH] = many
    if many == 0:
        return deeper
    d = 0 if deeper else many - 1
    while d >= 0:
        if deeper:
            frames[level, WALK_CURSORS + d] = open_step(t, layout, first + d, bind, key)
        cursor = frames[level, WALK_CURSORS + d]
        if cursor == 0:
            d -= 1
            deeper = False
            continue
        row = cursor - 1
        index = layout.steps[first + d, col.STEP_INDEX]
        frames[level, WALK_CURSORS + d] = 0
        if index >= 0:
            frames[level, WALK_CURSORS + d] = t.rows[row, t.width + 1 + 2 * index]
            bind_instance(t, layout, layout.steps[first + d, col.STEP_GROUP], row, bind)
        if d == many - 1:
            return True
        d += 1
        deeper = True
    return False


AT, WRITTEN, PHASE, LEVEL, ROOM, ALL_HOLDS, ROW = 0, 1, 2, 3, 4, 5, 6
"""Cells of `regs`: current event, rows written, phase and level of the event, room left in the
table, whether the query holds, and the row of the current instance."""


@inlined
def is_full(layout: Layout, group: Int, state: Ints, row: Int) -> bool:
    """Whether all bits of an instance are set."""
    for w in range(layout.groups[group, col.WORDS]):
        if state[row, w] != layout.full[group, w]:
            return False
    return True


@inlined
def is_empty(layout: Layout, group: Int, state: Ints, row: Int) -> bool:
    """Whether all bits of an instance or, if it has no bits, all counts are 0."""
    words = layout.groups[group, col.WORDS]
    for k in range(words if words > 0 else layout.groups[group, col.KIDS]):
        if state[row, k] != 0:
            return False
    return True


@inlined
def parts_hold(layout: Layout, group: Int, state: Ints, row: Int) -> bool:
    """Whether each dependent part of an instance has a value that holds."""
    words = layout.groups[group, col.WORDS]
    for k in range(layout.groups[group, col.KIDS]):
        if state[row, words + k] <= 0:
            return False
    return True


@inlined
def count_parts(
    t: Table,
    layout: Layout,
    group: Int,
    state: Ints,
    row: Int,
    frames: Longs,
    bind: Ints,
    key: Ints,
) -> None:
    """Decompose an instance: count the values that hold in each dependent part."""
    level = frames.shape[0] - 1
    words, first = layout.groups[group, col.WORDS], layout.groups[group, col.KIDS_FROM]
    for k in range(layout.groups[group, col.KIDS]):
        walk = 2 * layout.groups.shape[0] + layout.kids[first + k]
        count = 0
        step = layout.walks[walk, 0]
        index = layout.steps[step, col.STEP_INDEX]
        if layout.walks[walk, 1] == 1 and index >= 0:
            if open_step(t, layout, step, bind, key) != 0:
                head = find_head(t, index, key_hash(t, index, key, 0), key, 0)
                count = t.heads[head, LENGTH]
        else:
            frames[level, WALK_DEPTH] = -1
            while walk_next(t, layout, walk, frames, level, bind, key):
                count += 1
        state[row, words + k] = count


@inlined
def start_holding(t: Table, layout: Layout, group: Int, row: Int, regs: Longs) -> None:
    """Mark an instance as holding, and add it to its indexes."""
    t.rows[row, t.width] = HOLDS
    for index in range(t.indexes.shape[0]):
        if layout.groups[group, col.LINKS] >> index & 1:
            link(t, index, row)
    regs[ROOM] -= 1


@inlined
def stop_holding(t: Table, layout: Layout, group: Int, row: Int) -> None:
    """Mark an instance as not holding, and remove it from its indexes."""
    t.rows[row, t.width] = PRESENT
    for index in range(t.indexes.shape[0]):
        if layout.groups[group, col.LINKS] >> index & 1:
            unlink(t, index, row)


@inlined
def begin_walk(frames: Longs, level: Int, group: Int) -> None:
    """Start a walk from an instance of a group."""
    frames[level, 0] = group
    frames[level, WALK_DEPTH] = -1


@inlined
def update_count(
    t: Table,
    layout: Layout,
    node: Int,
    sign: Int,
    state: Ints,
    root: Ints,
    regs: Longs,
    bind: Ints,
    key: Ints,
) -> Int:
    """Add `sign` to the count of a node in the instance it depends on.

    Returns the group of that instance if it began or ceased to hold, or else -1. An instance with
    bits is counted only while all of them are set.
    """
    group, at = layout.nodes[node, col.DEPENDS_ON], layout.nodes[node, col.COUNT_AT]
    if group == 0:
        root[0, at] += sign
        all_there = is_full(layout, 0, root, 0) and parts_hold(layout, 0, root, 0)
        regs[ALL_HOLDS] = np.int64(all_there)
        return -1
    load_instance(layout, group, bind, key)
    hash_ = row_hash(t.width, key, 0, 0)
    slot = find_slot(t, hash_, key, 0, 0)
    row: Int = np.int64(t.slots[slot, HEAD] - 1)
    guarded = layout.groups[group, col.WORDS] > 0
    if row < 0:
        if guarded:
            return -1
        row = new_instance(t, slot, hash_, key, 0, 0, state, regs)
    elif guarded and not is_full(layout, group, state, row):
        return -1
    state[row, at] += sign
    held = t.rows[row, t.width] == HOLDS
    holds = parts_hold(layout, group, state, row)
    if holds and not held:
        start_holding(t, layout, group, row, regs)
    if held and not holds:
        stop_holding(t, layout, group, row)
    if not guarded and is_empty(layout, group, state, row):
        remove_row(t, row)
    return group if holds != held else -1


@inlined
def new_instance(
    t: Table, slot: Int, hash_: Int, source: Ints, at: Int, column: Int, state: Ints, regs: Longs
) -> Int:
    """Store a new instance without bits and counts."""
    row = np.int64(add_row(t, slot, hash_, source, at, column))
    t.rows[row, t.width] = PRESENT
    for k in range(state.shape[1]):
        state[row, k] = 0
    regs[ROOM] -= 1
    return row
