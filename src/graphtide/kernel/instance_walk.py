"""Walks: instances that hold together, found one combination at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import inlined
from graphtide.kernel.instance_plan import STEP_GROUP, STEP_INDEX, VARIABLES, WIDTH, Layout
from graphtide.kernel.rowtable import HEAD, Table, find_head, find_row, key_mark

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs

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
