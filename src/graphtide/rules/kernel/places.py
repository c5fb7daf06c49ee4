"""Places of a memory: taking in an event, letting go the oldest, letting go one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled, inlined
from graphtide.rules.kernel.buckets import bucket_at, first_state, folded
from graphtide.rules.kernel.journal import (
    can_note,
    note_event,
    set_end,
    set_head,
    set_link,
    set_tail,
)
from graphtide.rules.kernel.layout import (
    END,
    FOREVER,
    FREE,
    LIVE,
    NEWEST,
    NOT_KEPT,
    ORDER,
    PEAK,
    Memory,
    Plan,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs


@inlined
def bucket_of(keys: Ints, index: Int, values: Ints, buckets: Int) -> Int:
    """The bucket of a key: `keys[index]` lists the cells of `values` that it is made of."""
    state = first_state(index + 1)
    for k in range(keys[index, 0]):
        state = folded(state, values[keys[index, 1 + k]])
    return bucket_at(state, buckets)


@inlined
def add_event(plan: Plan, memory: Memory, condition: Int, values: Ints, event: Longs) -> None:
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
def drop_oldest(plan: Plan, memory: Memory, condition: Int) -> None:
    """Let go the first event of a condition: it is the first in its buckets, too."""
    place = memory.ends[condition, 0]
    note_event(plan, memory, place)
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
def expire(plan: Plan, memory: Memory, now: Int) -> bool:
    """Let go what no event at or after a time can need; False if the journal is full before."""
    if now <= memory.meta[NEWEST]:
        return True
    for condition in range(len(plan.keeps)):
        keeps = plan.keeps[condition]
        if keeps in (NOT_KEPT, FOREVER):
            continue
        place = memory.ends[condition, 0]
        while place >= 0 and memory.when[place, END] + keeps < now:
            if not can_note(plan, memory, 1):
                return False
            drop_oldest(plan, memory, condition)
            place = memory.ends[condition, 0]
    memory.meta[NEWEST] = now
    return True


@compiled
def expire_events(plan: Plan, memory: Memory, now: Int) -> bool:
    """As `expire`, for when time goes on without an event."""
    return expire(plan, memory, now)


@compiled
def remove_event(plan: Plan, memory: Memory, order: Int) -> bool:
    """Let go an event before its time, wherever it waits; False if the journal is full before."""
    for condition in range(len(plan.keeps)):
        before = -1
        place = memory.ends[condition, 0]
        while place >= 0 and memory.when[place, ORDER] <= order:
            following = memory.links[place, 0]
            if memory.when[place, ORDER] == order:
                if not can_note(plan, memory, 1):
                    return False
                _unlink(plan, memory, condition, before, place)
            else:
                before = place
            place = following
    return True


@inlined
def _unlink(plan: Plan, memory: Memory, condition: Int, before: Int, place: Int) -> None:
    note_event(plan, memory, place)
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
def refill(plan: Plan, old: Memory, new: Memory) -> None:
    """Put the events of one memory into another, which is empty and large enough."""
    for condition in range(len(plan.keeps)):
        place = old.ends[condition, 0]
        while place >= 0:
            add_event(plan, new, condition, old.cells[place], old.when[place])
            place = old.links[place, 0]
    new.meta[NEWEST] = old.meta[NEWEST]
    new.meta[PEAK] = old.meta[PEAK]
