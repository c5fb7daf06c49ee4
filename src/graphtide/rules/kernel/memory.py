"""Places of a memory: taking in an event, letting go the oldest, letting go one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import JIT, compiled, inlined
from graphtide.kernel.rowtable import mix
from graphtide.rules.kernel.layout import (
    CELLS,
    END,
    ENDS,
    FOREVER,
    FREE,
    HEADS,
    JOURNALED,
    LINKS,
    LIVE,
    NEWEST,
    NOT_RETAINED,
    ORDER,
    PEAK,
    TAILS,
    WHEN,
    MemoryArrays,
    PlanArrays,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs


# --- The journal of a memory: what its cells were before they changed, to come back to.
#
# Only links, ends, heads and tails are length as they change. What a free place holds means nothing,
# so an event's own cells are length when it is let go, not when it comes.


@inlined
def can_journal(plan: PlanArrays, memory: MemoryArrays, events: Int) -> bool:
    """Whether the journal has room for some events that come or go, or nothing is length."""
    length = memory.meta[JOURNALED]
    entries = 8 + plan.variables + 4 * memory.links.shape[1]
    return bool(length < 0 or length + entries * events <= len(memory.journal))


@inlined
def journal(memory: MemoryArrays, table: Int, row: Int, column: Int, old: Int) -> None:
    """Note what a cell was."""
    at = memory.meta[JOURNALED]
    if at >= 0:
        memory.journal[at, 0] = table
        memory.journal[at, 1] = row
        memory.journal[at, 2] = column
        memory.journal[at, 3] = old
        memory.meta[JOURNALED] = at + 1


@inlined
def set_link(memory: MemoryArrays, place: Int, column: Int, value: Int) -> None:
    """Change what comes after a place."""
    journal(memory, LINKS, place, column, memory.links[place, column])
    memory.links[place, column] = value


@inlined
def set_end(memory: MemoryArrays, condition: Int, column: Int, value: Int) -> None:
    """Change the first or the last place of a condition."""
    journal(memory, ENDS, condition, column, memory.ends[condition, column])
    memory.ends[condition, column] = value


@inlined
def set_head(memory: MemoryArrays, index: Int, bucket: Int, value: Int) -> None:
    """Change the first place of a bucket."""
    journal(memory, HEADS, index, bucket, memory.heads[index, bucket])
    memory.heads[index, bucket] = value


@inlined
def set_tail(memory: MemoryArrays, index: Int, bucket: Int, value: Int) -> None:
    """Change the last place of a bucket."""
    journal(memory, TAILS, index, bucket, memory.tails[index, bucket])
    memory.tails[index, bucket] = value


@inlined
def journal_event(plan: PlanArrays, memory: MemoryArrays, place: Int) -> None:
    """Note an event before its place is free for another."""
    if memory.meta[JOURNALED] < 0:
        return
    for v in range(plan.variables):
        journal(memory, CELLS, place, v, memory.cells[place, v])
    for column in range(4):
        journal(memory, WHEN, place, column, memory.when[place, column])
    for column in range(1, memory.links.shape[1]):
        journal(memory, LINKS, place, column, memory.links[place, column])


@compiled
def undo(memory: MemoryArrays, first: Int) -> None:
    """Take back all that was length, down to entry number `first`."""
    for at in range(memory.meta[JOURNALED] - 1, first - 1, -1):
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
    memory.meta[JOURNALED] = first


# --- Which bucket a key goes to: hashing for compiled loops, and without overflow in plain
# Python.

if JIT:

    @inlined
    def first_state(seed: Int) -> Any:  # noqa: ANN401 - a machine word
        """Where hashing a key begins."""
        return np.uint64(seed)

    @inlined
    def folded(state: Any, value: Int) -> Any:  # noqa: ANN401
        """The state after one more value."""
        return mix(state, value)

    @inlined
    def bucket_at(state: Any, buckets: Int) -> Int:  # noqa: ANN401
        """One of a number of buckets, a power of two."""
        return np.int64((state * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(33)) & (buckets - 1)

else:

    def first_state(seed: Int) -> Any:  # noqa: ANN401
        """Where hashing a key begins."""
        return int(seed)

    def folded(state: Any, value: Int) -> Any:  # noqa: ANN401
        """The state after one more value."""
        return (state * 31 + int(value)) & 0x7FFFFFFF

    def bucket_at(state: Any, buckets: Int) -> Int:  # noqa: ANN401
        """One of a number of buckets, a power of two."""
        return int(state & (buckets - 1))


@inlined
def bucket_of(keys: Ints, index: Int, values: Ints, buckets: Int) -> Int:
    """The bucket of a key: `keys[index]` lists the cells of `values` that it is made of."""
    state = first_state(index + 1)
    for k in range(keys[index, 0]):
        state = folded(state, values[keys[index, 1 + k]])
    return bucket_at(state, buckets)


@inlined
def add_event(
    plan: PlanArrays, memory: MemoryArrays, condition: Int, values: Ints, event: Longs
) -> None:
    """Take in an event at the end of its condition's list, and of its buckets."""
    place = memory.meta[FREE]
    memory.meta[FREE] = memory.links[place, 0]
    memory.meta[LIVE] += 1
    memory.meta[PEAK] = max(memory.meta[PEAK], memory.meta[LIVE])
    for v in range(plan.variables):
        memory.cells[place, v] = values[v]
    for column in range(4):
        memory.when[place, column] = event[column]
    set_link(memory, place, 0, -1)
    last = memory.ends[condition, 1]
    if last < 0:
        set_end(memory, condition, 0, place)
    else:
        set_link(memory, last, 0, place)
    set_end(memory, condition, 1, place)
    for k in range(plan.indexes[condition, 0]):
        index = plan.indexes[condition, 1 + k]
        bucket = bucket_of(plan.keys, index, values, memory.heads.shape[1])
        memory.links[place, 1 + index] = -1
        if memory.heads[index, bucket] < 0:
            set_head(memory, index, bucket, place)
        else:
            set_link(memory, memory.tails[index, bucket], 1 + index, place)
        set_tail(memory, index, bucket, place)


@inlined
def drop_oldest(plan: PlanArrays, memory: MemoryArrays, condition: Int) -> None:
    """Let go the first event of a condition: it is the first in its buckets, too."""
    place = memory.ends[condition, 0]
    journal_event(plan, memory, place)
    set_end(memory, condition, 0, memory.links[place, 0])
    if memory.links[place, 0] < 0:
        set_end(memory, condition, 1, -1)
    for k in range(plan.indexes[condition, 0]):
        index = plan.indexes[condition, 1 + k]
        buckets = memory.heads.shape[1]
        bucket = bucket_of(plan.keys, index, memory.cells[place], buckets)
        set_head(memory, index, bucket, memory.links[place, 1 + index])
    set_link(memory, place, 0, memory.meta[FREE])
    memory.meta[FREE] = place
    memory.meta[LIVE] -= 1


@inlined
def expire(plan: PlanArrays, memory: MemoryArrays, now: Int) -> bool:
    """Let go what no event at or after a time can need; False if the journal is full before."""
    if now <= memory.meta[NEWEST]:
        return True
    for condition in range(len(plan.retention)):
        retention = plan.retention[condition]
        if retention in (NOT_RETAINED, FOREVER):
            continue
        place = memory.ends[condition, 0]
        while place >= 0 and memory.when[place, END] + retention < now:
            if not can_journal(plan, memory, 1):
                return False
            drop_oldest(plan, memory, condition)
            place = memory.ends[condition, 0]
    memory.meta[NEWEST] = now
    return True


@compiled
def expire_events(plan: PlanArrays, memory: MemoryArrays, now: Int) -> bool:
    """As `expire`, for when time goes on without an event."""
    return expire(plan, memory, now)


@compiled
def remove_event(plan: PlanArrays, memory: MemoryArrays, order: Int) -> bool:
    """Let go an event before its time, wherever it waits; False if the journal is full before."""
    for condition in range(len(plan.retention)):
        before = -1
        place = memory.ends[condition, 0]
        while place >= 0 and memory.when[place, ORDER] <= order:
            following = memory.links[place, 0]
            if memory.when[place, ORDER] == order:
                if not can_journal(plan, memory, 1):
                    return False
                _unlink(plan, memory, condition, before, place)
            else:
                before = place
            place = following
    return True


@inlined
def _unlink(
    plan: PlanArrays, memory: MemoryArrays, condition: Int, before: Int, place: Int
) -> None:
    journal_event(plan, memory, place)
    following = memory.links[place, 0]
    if before < 0:
        set_end(memory, condition, 0, following)
    else:
        set_link(memory, before, 0, following)
    if following < 0:
        set_end(memory, condition, 1, before)
    for k in range(plan.indexes[condition, 0]):
        index = plan.indexes[condition, 1 + k]
        buckets = memory.heads.shape[1]
        bucket = bucket_of(plan.keys, index, memory.cells[place], buckets)
        left = -1
        each = memory.heads[index, bucket]
        while each != place:
            left = each
            each = memory.links[each, 1 + index]
        right = memory.links[place, 1 + index]
        if left < 0:
            set_head(memory, index, bucket, right)
        else:
            set_link(memory, left, 1 + index, right)
        if right < 0:
            set_tail(memory, index, bucket, left)
    set_link(memory, place, 0, memory.meta[FREE])
    memory.meta[FREE] = place
    memory.meta[LIVE] -= 1


@compiled
def refill(plan: PlanArrays, old: MemoryArrays, new: MemoryArrays) -> None:
    """Put the events of one memory into another, which is empty and large enough."""
    for condition in range(len(plan.retention)):
        place = old.ends[condition, 0]
        while place >= 0:
            add_event(plan, new, condition, old.cells[place], old.when[place])
            place = old.links[place, 0]
    new.meta[NEWEST] = old.meta[NEWEST]
    new.meta[PEAK] = old.meta[PEAK]
