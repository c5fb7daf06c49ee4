"""The journal of a memory: what its cells were before they changed, to come back to.

Only links, ends, heads and tails are noted as they change. What a free place holds means nothing,
so an event's own cells are noted when it is let go, not when it comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled, inlined
from graphtide.rules.kernel.layout import (
    CELLS,
    ENDS,
    HEADS,
    LINKS,
    NOTED,
    TAILS,
    WHEN,
    Memory,
    Plan,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int


@inlined
def can_note(plan: Plan, memory: Memory, events: Int) -> bool:
    """Whether the journal has room for some events that come or go, or nothing is noted."""
    noted = memory.meta[NOTED]
    most = 8 + plan.variables + 4 * memory.links.shape[1]
    return bool(noted < 0 or noted + most * events <= len(memory.journal))


@inlined
def note(memory: Memory, table: Int, row: Int, column: Int, old: Int) -> None:
    """Note what a cell was."""
    at = memory.meta[NOTED]
    if at >= 0:
        memory.journal[at, 0] = table
        memory.journal[at, 1] = row
        memory.journal[at, 2] = column
        memory.journal[at, 3] = old
        memory.meta[NOTED] = at + 1


@inlined
def set_link(memory: Memory, place: Int, column: Int, value: Int) -> None:
    """Change what comes after a place."""
    note(memory, LINKS, place, column, memory.links[place, column])
    memory.links[place, column] = value


@inlined
def set_end(memory: Memory, condition: Int, column: Int, value: Int) -> None:
    """Change the first or the last place of a condition."""
    note(memory, ENDS, condition, column, memory.ends[condition, column])
    memory.ends[condition, column] = value


@inlined
def set_head(memory: Memory, index: Int, bucket: Int, value: Int) -> None:
    """Change the first place of a bucket."""
    note(memory, HEADS, index, bucket, memory.heads[index, bucket])
    memory.heads[index, bucket] = value


@inlined
def set_tail(memory: Memory, index: Int, bucket: Int, value: Int) -> None:
    """Change the last place of a bucket."""
    note(memory, TAILS, index, bucket, memory.tails[index, bucket])
    memory.tails[index, bucket] = value


@inlined
def note_event(plan: Plan, memory: Memory, place: Int) -> None:
    """Note an event before its place is free for another."""
    if memory.meta[NOTED] < 0:
        return
    for v in range(plan.variables):
        note(memory, CELLS, place, v, memory.cells[place, v])
    for column in range(4):
        note(memory, WHEN, place, column, memory.when[place, column])
    for column in range(1, memory.links.shape[1]):
        note(memory, LINKS, place, column, memory.links[place, column])


@compiled
def undo(memory: Memory, first: Int) -> None:
    """Take back all that was noted, down to entry number `first`."""
    for at in range(memory.meta[NOTED] - 1, first - 1, -1):
        table, row, column = memory.journal[at, 0], memory.journal[at, 1], memory.journal[at, 2]
        old = memory.journal[at, 3]
        if table == LINKS:
            memory.links[row, column] = old
        elif table == ENDS:
            memory.ends[row, column] = old
        elif table == HEADS:
            memory.heads[row, column] = old
        elif table == TAILS:
            memory.tails[row, column] = old
        elif table == CELLS:
            memory.cells[row, column] = old
        else:
            memory.when[row, column] = old
    memory.meta[NOTED] = first
