"""The event memory of a rule: lists and hash buckets in arrays, with an undo log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import JIT, compiled, inlined
from graphtide.kernel.rowtable import mix
from graphtide.rules.kernel import layout

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs


# --- The undo log of a memory.
#
# Links, ends, heads and tails are journaled as they change. The content of a free place means
# nothing, so an event's own cells are journaled when it is removed, not when it is added.


@inlined
def can_journal(plan: layout.PlanArrays, memory: layout.MemoryArrays, events: Int) -> bool:
    """Whether the journal has room for some events to be added or removed, or is not in use."""
    length = memory.meta[layout.JOURNALED]
    entries = 8 + plan.variables + 4 * memory.links.shape[1]
    return bool(length < 0 or length + entries * events <= len(memory.journal))


@inlined
def journal(memory: layout.MemoryArrays, table: Int, row: Int, column: Int, old: Int) -> None:
    """Journal the old value of a cell."""
    at = memory.meta[layout.JOURNALED]
    if at >= 0:
        memory.journal[at, 0] = table
        memory.journal[at, 1] = row
        memory.journal[at, 2] = column
        memory.journal[at, 3] = old
        memory.meta[layout.JOURNALED] = at + 1


@inlined
def set_link(memory: layout.MemoryArrays, place: Int, column: Int, value: Int) -> None:
    """Change what comes after a place."""
    journal(memory, layout.LINKS, place, column, memory.links[place, column])
    memory.links[place, column] = value


@inlined
def set_end(memory: layout.MemoryArrays, condition: Int, column: Int, value: Int) -> None:
    """Change the first or the last place of a condition."""
    journal(memory, layout.ENDS, condition, column, memory.ends[condition, column])
    memory.ends[condition, column] = value


@inlined
def set_head(memory: layout.MemoryArrays, index: Int, bucket: Int, value: Int) -> None:
    """Change the first place of a bucket."""
    journal(memory, layout.HEADS, index, bucket, memory.heads[index, bucket])
    memory.heads[index, bucket] = value


@inlined
def set_tail(memory: layout.MemoryArrays, index: Int, bucket: Int, value: Int) -> None:
    """Change the last place of a bucket."""
    journal(memory, layout.TAILS, index, bucket, memory.tails[index, bucket])
    memory.tails[index, bucket] = value


@inlined
def journal_event(plan: layout.PlanArrays, memory: layout.MemoryArrays, place: Int) -> None:
    """Journal an event before its place becomes free."""
    if memory.meta[layout.JOURNALED] < 0:
        return
    for v in range(plan.variables):
        journal(memory, layout.CELLS, place, v, memory.cells[place, v])
    for column in range(4):
        journal(memory, layout.WHEN, place, column, memory.when[place, column])
    for column in range(1, memory.links.shape[1]):
        journal(memory, layout.LINKS, place, column, memory.links[place, column])


@compiled
def undo(memory: layout.MemoryArrays, first: Int) -> None:
    """Undo the journal, down to entry number `first`."""
    for at in range(memory.meta[layout.JOURNALED] - 1, first - 1, -1):
        table, row, column = memory.journal[at, 0], memory.journal[at, 1], memory.journal[at, 2]
        old = memory.journal[at, 3]
        if table == layout.LINKS:
            memory.links[row, column] = old
        elif table == layout.ENDS:
            memory.ends[row, column] = old
        elif table == layout.HEADS:
            memory.heads[row, column] = old
        elif table == layout.TAILS:
            memory.tails[row, column] = old
        elif table == layout.CELLS:
            memory.cells[row, column] = old
        else:
            memory.when[row, column] = old
    memory.meta[layout.JOURNALED] = first


# --- Hashing of keys to buckets, for compiled loops and for plain Python.

if JIT:

    @inlined
    def first_state(seed: Int) -> Any:  # noqa: ANN401 - a machine word
        """The initial state of a hash."""
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
        """The initial state of a hash."""
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
    plan: layout.PlanArrays, memory: layout.MemoryArrays, condition: Int, values: Ints, event: Longs
) -> None:
    """Append an event to its condition's list and to its buckets."""
    place = memory.meta[layout.FREE]
    memory.meta[layout.FREE] = memory.links[place, 0]
    memory.meta[layout.LIVE] += 1
    memory.meta[layout.PEAK] = max(memory.meta[layout.PEAK], memory.meta[layout.LIVE])
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
def drop_oldest(plan: layout.PlanArrays, memory: layout.MemoryArrays, condition: Int) -> None:
    """Remove the first event of a condition, which is the first in its buckets, too."""
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
    set_link(memory, place, 0, memory.meta[layout.FREE])
    memory.meta[layout.FREE] = place
    memory.meta[layout.LIVE] -= 1


@inlined
def expire(plan: layout.PlanArrays, memory: layout.MemoryArrays, now: Int) -> bool:
    """Evict what no event at or after a time can match; False if the journal is full."""
    if now <= memory.meta[layout.NEWEST]:
        return True
    for condition in range(len(plan.retention)):
        retention = plan.retention[condition]
        if retention in (layout.NOT_RETAINED, layout.FOREVER):
            continue
        place = memory.ends[condition, 0]
        while place >= 0 and memory.when[place, layout.END] + retention < now:
            if not can_journal(plan, memory, 1):
                return False
            drop_oldest(plan, memory, condition)
            place = memory.ends[condition, 0]
    memory.meta[layout.NEWEST] = now
    return True


@compiled
def expire_events(plan: layout.PlanArrays, memory: layout.MemoryArrays, now: Int) -> bool:
    """`expire`, called from Python."""
    return expire(plan, memory, now)


@compiled
def remove_event(plan: layout.PlanArrays, memory: layout.MemoryArrays, order: Int) -> bool:
    """Remove an event from all conditions; False if the journal is full."""
    for condition in range(len(plan.retention)):
        before = -1
        place = memory.ends[condition, 0]
        while place >= 0 and memory.when[place, layout.ORDER] <= order:
            following = memory.links[place, 0]
            if memory.when[place, layout.ORDER] == order:
                if not can_journal(plan, memory, 1):
                    return False
                _unlink(plan, memory, condition, before, place)
            else:
                before = place
            place = following
    return True


@inlined
def _unlink(
    plan: layout.PlanArrays, memory: layout.MemoryArrays, condition: Int, before: Int, place: Int
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
    set_link(memory, place, 0, memory.meta[layout.FREE])
    memory.meta[layout.FREE] = place
    memory.meta[layout.LIVE] -= 1


@compiled
def refill(plan: layout.PlanArrays, old: layout.MemoryArrays, new: layout.MemoryArrays) -> None:
    """Copy the events of one memory into another, which is empty and large enough."""
    for condition in range(len(plan.retention)):
        place = old.ends[condition, 0]
        while place >= 0:
            add_event(plan, new, condition, old.cells[place], old.when[place])
            place = old.links[place, 0]
    new.meta[layout.NEWEST] = old.meta[layout.NEWEST]
    new.meta[layout.PEAK] = old.meta[layout.PEAK]
