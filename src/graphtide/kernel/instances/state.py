"""What is known of instances: bits and counts, and how they turn.

Of an instance the table has its values and whether it holds; `state` has, at the same row, the
words of its mask and then its counts. The query itself is the one row of `root`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import inlined
from graphtide.kernel.instances.plan import (
    COUNT_AT,
    DEPENDS_ON,
    KIDS,
    KIDS_FROM,
    LINKS,
    STEP_GROUP,
    STEP_INDEX,
    VARIABLES,
    WIDTH,
    WORDS,
    Layout,
)
from graphtide.kernel.rowtable import (
    HEAD,
    LENGTH,
    Table,
    add_row,
    find_head,
    find_row,
    find_slot,
    key_mark,
    link,
    remove_row,
    row_mark,
    unlink,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs


# --- Walks: instances that hold together, found one combination at a time.

THERE, HOLDS = 1, 2
"""What the multiplicity of an instance's row says."""

WALK_DEPTH, WALK_CURSORS = 1, 2
"""Cells of a line of frames: how many steps are taken, then where each step goes on."""


@inlined
def load_instance(layout: Layout, group: Int, bind: Ints, key: Ints) -> None:
    """Put the values of a group's variables where a row of it would have them."""
    key[0, 0] = group
    wide = layout.groups[group, WIDTH]
    for k in range(key.shape[1] - 1):
        key[0, 1 + k] = bind[layout.groups[group, VARIABLES + k]] if k < wide else 0


@inlined
def bind_instance(t: Table, layout: Layout, group: Int, row: Int, bind: Ints) -> None:
    """Give a group's variables the values of an instance."""
    for k in range(layout.groups[group, WIDTH]):
        bind[layout.groups[group, VARIABLES + k]] = t.rows[row, 1 + k]


@inlined
def open_step(t: Table, layout: Layout, step: Int, bind: Ints, key: Ints) -> Int:
    """The first instance that a step may take, plus 1; 0 if there is none."""
    group, index = layout.steps[step, STEP_GROUP], layout.steps[step, STEP_INDEX]
    load_instance(layout, group, bind, key)
    if index < 0:
        row = find_row(t, key, 0, 0)
        if row >= 0 and t.rows[row, t.width] == HOLDS:
            return row + 1
        return 0
    return t.heads[find_head(t, index, key_mark(t, index, key, 0), key, 0), HEAD]


@inlined
def walk_next(
    t: Table, layout: Layout, walk: Int, frames: Longs, level: Int, bind: Ints, key: Ints
) -> bool:
    """Go on to the next combination of a walk, whose values are then bound; False at the end.

    A walk whose depth is -1 begins.
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
        index = layout.steps[first + d, STEP_INDEX]
        frames[level, WALK_CURSORS + d] = 0
        if index >= 0:
            frames[level, WALK_CURSORS + d] = t.rows[row, t.width + 1 + 2 * index]
            bind_instance(t, layout, layout.steps[first + d, STEP_GROUP], row, bind)
        if d == many - 1:
            return True
        d += 1
        deeper = True
    return False


AT, WRITTEN, PHASE, LEVEL, ROOM, ALL_HOLDS, ROW = 0, 1, 2, 3, 4, 5, 6
"""Cells of `marks`: event and rows written so far, where in the event, room left in the table,
whether the query holds, and the row of the instance at hand."""


@inlined
def is_full(layout: Layout, group: Int, state: Ints, row: Int) -> bool:
    """Whether all bits of an instance are set."""
    for w in range(layout.groups[group, WORDS]):
        if state[row, w] != layout.full[group, w]:
            return False
    return True


@inlined
def is_empty(layout: Layout, group: Int, state: Ints, row: Int) -> bool:
    """Whether nothing is known of an instance any more: bits if it has any, or else counts."""
    words = layout.groups[group, WORDS]
    for k in range(words if words > 0 else layout.groups[group, KIDS]):
        if state[row, k] != 0:
            return False
    return True


@inlined
def is_met(layout: Layout, group: Int, state: Ints, row: Int) -> bool:
    """Whether each part that depends on an instance has a value that holds."""
    words = layout.groups[group, WORDS]
    for k in range(layout.groups[group, KIDS]):
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
    """Decompose an instance: how many values hold in each part that depends on it."""
    level = frames.shape[0] - 1
    words, first = layout.groups[group, WORDS], layout.groups[group, KIDS_FROM]
    for k in range(layout.groups[group, KIDS]):
        walk = 2 * layout.groups.shape[0] + layout.kids[first + k]
        count = 0
        step = layout.walks[walk, 0]
        index = layout.steps[step, STEP_INDEX]
        if layout.walks[walk, 1] == 1 and index >= 0:
            if open_step(t, layout, step, bind, key) != 0:
                head = find_head(t, index, key_mark(t, index, key, 0), key, 0)
                count = t.heads[head, LENGTH]
        else:
            frames[level, WALK_DEPTH] = -1
            while walk_next(t, layout, walk, frames, level, bind, key):
                count += 1
        state[row, words + k] = count


@inlined
def hold(t: Table, layout: Layout, group: Int, row: Int, marks: Longs) -> None:
    """An instance begins to hold: others can find it."""
    t.rows[row, t.width] = HOLDS
    for index in range(t.indexes.shape[0]):
        if layout.groups[group, LINKS] >> index & 1:
            link(t, index, row)
    marks[ROOM] -= 1


@inlined
def let_go(t: Table, layout: Layout, group: Int, row: Int) -> None:
    """An instance no longer holds."""
    t.rows[row, t.width] = THERE
    for index in range(t.indexes.shape[0]):
        if layout.groups[group, LINKS] >> index & 1:
            unlink(t, index, row)


@inlined
def begin_walk(frames: Longs, level: Int, group: Int) -> None:
    """Let a line of frames begin a walk from an instance of a group."""
    frames[level, 0] = group
    frames[level, WALK_DEPTH] = -1


@inlined
def count_in(
    t: Table,
    layout: Layout,
    node: Int,
    sign: Int,
    state: Ints,
    root: Ints,
    marks: Longs,
    bind: Ints,
    key: Ints,
) -> Int:
    """One value of a node more or less holds for what it depends on; the group that turned, or -1.

    An instance with bits counts only while all of them are set.
    """
    group, at = layout.nodes[node, DEPENDS_ON], layout.nodes[node, COUNT_AT]
    if group == 0:
        root[0, at] += sign
        all_there = is_full(layout, 0, root, 0) and is_met(layout, 0, root, 0)
        marks[ALL_HOLDS] = np.int64(all_there)
        return -1
    load_instance(layout, group, bind, key)
    mark = row_mark(t.width, key, 0, 0)
    slot = find_slot(t, mark, key, 0, 0)
    row: Int = np.int64(t.slots[slot, HEAD] - 1)
    guarded = layout.groups[group, WORDS] > 0
    if row < 0:
        if guarded:
            return -1
        row = new_instance(t, slot, mark, key, 0, 0, state, marks)
    elif guarded and not is_full(layout, group, state, row):
        return -1
    state[row, at] += sign
    held = t.rows[row, t.width] == HOLDS
    holds = is_met(layout, group, state, row)
    if holds and not held:
        hold(t, layout, group, row, marks)
    if held and not holds:
        let_go(t, layout, group, row)
    if not guarded and is_empty(layout, group, state, row):
        remove_row(t, row)
    return group if holds != held else -1


@inlined
def new_instance(
    t: Table, slot: Int, mark: Int, source: Ints, at: Int, column: Int, state: Ints, marks: Longs
) -> Int:
    """Store an instance of which nothing is known yet."""
    row = np.int64(add_row(t, slot, mark, source, at, column))
    t.rows[row, t.width] = THERE
    for k in range(state.shape[1]):
        state[row, k] = 0
    marks[ROOM] -= 1
    return row
