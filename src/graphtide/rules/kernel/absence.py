"""Absence: matches that wait for a NO EVENT in arrays, with lists by key and a heap of ends.

Places are given out in order, and are used again only in other arrays. So a match that was removed
is still in its place, with its neighbours in every list: a journal of places undoes all changes,
last first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.rules.kernel import layout
from graphtide.rules.kernel.join import has_room, same_key, test_holds
from graphtide.rules.kernel.memory import add_event, bucket_of, can_journal, expire

if TYPE_CHECKING:
    from graphtide.arrays import Ints2, Longs1, Longs2
    from graphtide.kernel.batch import Int, Ints, Longs

HEAPED: Final = 2
"""The cell of `meta` with the size of the heap; FREE, LIVE and JOURNALED are as in memories."""

MATCHED: Final = 4
"""The cell of the state with the number of matches that are decided; the others are as in joins."""

ASKED, ANSWER, FORBIDDING = 5, 6, 7
"""More cells: where a test reads values, the place of the match or the event in question, plus 1;
whether the test holds, when a further call goes on; and the NO EVENT that a match is tested for."""

ASKING: Final = layout.FOREVER + 1
"""Instead of a time until which a match waits: values decide whether it does."""

UNTIL, TIME, PLACE = 0, 1, 2
"""Columns of the heap; `ends` has the first two."""


# --- The heap of ends: by time, then by the time of the match, then by place.
#
# Matches that are removed stay in it until their time has come.


@inlined
def _comes_first(heap: Longs, at: Int, until: Int, time: Int, place: Int) -> bool:
    """Whether an entry comes before given values."""
    if heap[at, UNTIL] != until:
        return bool(heap[at, UNTIL] < until)
    if heap[at, TIME] != time:
        return bool(heap[at, TIME] < time)
    return bool(heap[at, PLACE] < place)


@inlined
def _move(heap: Longs, source: Int, to: Int) -> None:
    for column in range(3):
        heap[to, column] = heap[source, column]


@inlined
def _push(pending: layout.PendingArrays, place: Int) -> None:
    heap, until, time = pending.heap, pending.ends[place, UNTIL], pending.ends[place, TIME]
    at = pending.meta[HEAPED]
    pending.meta[HEAPED] = at + 1
    while at > 0 and not _comes_first(heap, (at - 1) >> 1, until, time, place):
        _move(heap, (at - 1) >> 1, at)
        at = (at - 1) >> 1
    heap[at, UNTIL], heap[at, TIME], heap[at, PLACE] = until, time, place


@inlined
def _push_end(pending: layout.PendingArrays, place: Int) -> None:
    """Add the end of a match; a full heap is made again of the matches that wait."""
    if pending.meta[HEAPED] < len(pending.heap):
        _push(pending, place)
        return
    pending.meta[HEAPED] = 0
    for each in range(pending.meta[layout.FREE]):
        if pending.alive[each] != 0:
            _push(pending, each)


@inlined
def _pop_end(pending: layout.PendingArrays) -> None:
    heap, size = pending.heap, pending.meta[HEAPED] - 1
    pending.meta[HEAPED] = size
    until, time, place = heap[size, UNTIL], heap[size, TIME], heap[size, PLACE]
    at, child = 0, 1
    while child < size:
        right = child + 1
        if right < size and _comes_first(
            heap, right, heap[child, UNTIL], heap[child, TIME], heap[child, PLACE]
        ):
            child = right
        if not _comes_first(heap, child, until, time, place):
            break
        _move(heap, child, at)
        at, child = child, 2 * child + 1
    heap[at, UNTIL], heap[at, TIME], heap[at, PLACE] = until, time, place


@inlined
def _first_waits(pending: layout.PendingArrays) -> bool:
    """Whether the first entry of the heap is that of a match that waits."""
    place = pending.heap[0, PLACE]
    return bool(
        pending.alive[place] != 0
        and pending.ends[place, UNTIL] == pending.heap[0, UNTIL]
        and pending.ends[place, TIME] == pending.heap[0, TIME]
    )


@compiled
def next_end(pending: layout.PendingArrays) -> Int:
    """The first time with which a wait ends; FOREVER if none waits."""
    while pending.meta[HEAPED] > 0 and not _first_waits(pending):
        _pop_end(pending)
    return pending.heap[0, UNTIL] if pending.meta[HEAPED] > 0 else layout.FOREVER


# --- Matches, and the lists of those with the same key, one for each NO EVENT.


@inlined
def _bucket(plan: layout.PlanArrays, pending: layout.PendingArrays, index: Int, place: Int) -> Int:
    return bucket_of(plan.keys, index, pending.rows[place, 1:], pending.heads.shape[1])


@inlined
def _journal(pending: layout.PendingArrays, entry: Int) -> None:
    """Journal a place that was taken, or -1 - a place that was left."""
    at = pending.meta[layout.JOURNALED]
    if at >= 0:
        pending.journal[at] = entry
        pending.meta[layout.JOURNALED] = at + 1


@inlined
def add_match(
    plan: layout.PlanArrays, pending: layout.PendingArrays, row: Ints, spans: Longs, until: Int,
    time: Int,
) -> None:  # fmt: skip
    """Let a match wait until a time; there must be room for it."""
    place = pending.meta[layout.FREE]
    pending.meta[layout.FREE] = place + 1
    pending.meta[layout.LIVE] += 1
    for k in range(len(row)):
        pending.rows[place, k] = row[k]
    for k in range(len(spans)):
        pending.spans[place, k] = spans[k]
    pending.ends[place, UNTIL], pending.ends[place, TIME] = until, time
    for index in range(pending.heads.shape[0]):
        bucket = _bucket(plan, pending, index, place)
        first = pending.heads[index, bucket]
        pending.links[place, 2 * index], pending.links[place, 2 * index + 1] = first, -1
        if first >= 0:
            pending.links[first, 2 * index + 1] = place
        pending.heads[index, bucket] = place
    pending.alive[place] = 1
    _push_end(pending, place)
    _journal(pending, place)


@inlined
def _link_neighbours(
    plan: layout.PlanArrays,
    pending: layout.PendingArrays,
    index: Int,
    place: Int,
    right: Int,
    left: Int,
) -> None:
    """Let the left neighbour of a match lead to `right`, and the right one back to `left`."""
    next_, last = pending.links[place, 2 * index], pending.links[place, 2 * index + 1]
    if last < 0:
        pending.heads[index, _bucket(plan, pending, index, place)] = right
    else:
        pending.links[last, 2 * index] = right
    if next_ >= 0:
        pending.links[next_, 2 * index + 1] = left


@inlined
def _remove_match(plan: layout.PlanArrays, pending: layout.PendingArrays, place: Int) -> None:
    """Remove a match; its own links stay as they are."""
    for index in range(pending.heads.shape[0]):
        right, left = pending.links[place, 2 * index], pending.links[place, 2 * index + 1]
        _link_neighbours(plan, pending, index, place, right, left)
    pending.alive[place] = 0
    pending.meta[layout.LIVE] -= 1
    _journal(pending, -1 - place)


@inlined
def _restore_match(plan: layout.PlanArrays, pending: layout.PendingArrays, place: Int) -> None:
    """Undo the last removal."""
    for index in range(pending.heads.shape[0]):
        _link_neighbours(plan, pending, index, place, place, place)
    pending.alive[place] = 1
    pending.meta[layout.LIVE] += 1
    _push_end(pending, place)  # it may still be there: a second entry does no harm


@compiled
def undo_matches(plan: layout.PlanArrays, pending: layout.PendingArrays, first: Int) -> None:
    """Undo the journal, down to entry number `first`."""
    length = pending.meta[layout.JOURNALED]
    pending.meta[layout.JOURNALED] = -1
    for at in range(length - 1, first - 1, -1):
        entry = pending.journal[at]
        if entry < 0:
            _restore_match(plan, pending, -1 - entry)
        else:
            _remove_match(plan, pending, entry)
            pending.meta[layout.FREE] = entry
    pending.meta[layout.JOURNALED] = first


@compiled
def refill_matches(
    plan: layout.PlanArrays, old: layout.PendingArrays, new: layout.PendingArrays
) -> None:
    """Copy the matches that wait into other arrays, which are empty and large enough."""
    for place in range(old.meta[layout.FREE]):
        if old.alive[place] != 0:
            until, time = old.ends[place, UNTIL], old.ends[place, TIME]
            add_match(plan, new, old.rows[place], old.spans[place], until, time)


@compiled
def retract_matches(plan: layout.PlanArrays, pending: layout.PendingArrays, order: Int) -> None:
    """Remove the matches that an event is part of."""
    half = pending.spans.shape[1] // 2
    for place in range(pending.meta[layout.FREE]):
        for k in range(half, 2 * half, 2):
            if pending.alive[place] != 0 and pending.spans[place, k] == order:
                _remove_match(plan, pending, place)


# --- A batch of forbidden events, and of matches that other events complete.


@inlined
def _end_waits(
    plan: layout.PlanArrays, pending: layout.PendingArrays, now: Int, out: Longs, state: Longs
) -> bool:
    """Write and remove the matches whose wait is over before now; False if there is no room."""
    while pending.meta[HEAPED] > 0 and pending.heap[0, UNTIL] < now:
        if _first_waits(pending):
            if state[layout.WRITTEN] == len(out):
                return False
            out[state[layout.WRITTEN]] = pending.heap[0, PLACE]
            state[layout.WRITTEN] += 1
            _remove_match(plan, pending, pending.heap[0, PLACE])
        _pop_end(pending)
    return True


@inlined
def _cancel(
    plan: layout.PlanArrays, pending: layout.PendingArrays, work: layout.WorkArrays, hit: Ints,
    event: Longs, state: Longs,
) -> bool:  # fmt: skip
    """Remove the matches that an event forbids; False if it stops where values decide."""
    index, last = hit[layout.CONDITION], len(work.span) - 2
    work.span[last], work.span[last + 1] = event[layout.START], event[layout.END]
    bucket = bucket_of(plan.keys, index, hit[layout.HIT_VALUES :], pending.heads.shape[1])
    place = pending.heads[index, bucket]
    if state[ASKED] > 0:
        place = state[ASKED] - 1
    while place >= 0:
        state[layout.LEFT] -= 1
        following = pending.links[place, 2 * index]
        same = True
        for k in range(plan.keys[index, 0]):
            v = plan.keys[index, 1 + k]
            if pending.rows[place, 1 + v] != hit[layout.HIT_VALUES + v]:
                same = False
                break
        if same:
            if state[ASKED] > 0:
                holds = state[ANSWER]
                state[ASKED] = 0
            else:
                for k in range(last):
                    work.span[k] = pending.spans[place, k]
                holds = test_holds(plan, work, index)
            if holds == layout.UNKNOWN:
                state[ASKED] = place + 1
                return False
            if holds == 1:
                _remove_match(plan, pending, place)
        place = following
    return True


@inlined
def _is_forbidden(
    plan: layout.PlanArrays, memory: layout.MemoryArrays, work: layout.WorkArrays, row: Ints,
    index: Int, state: Longs,
) -> Int:  # fmt: skip
    """1 if an event that came before forbids the match whose times are in `work.span`, 0 if not.

    UNKNOWN if it stops where values decide.
    """
    last = len(work.span) - 2
    place = memory.heads[index, bucket_of(plan.keys, index, row[1:], memory.heads.shape[1])]
    if state[ASKED] > 0:
        place = state[ASKED] - 1
    while place >= 0:
        state[layout.LEFT] -= 1
        if same_key(plan, memory, index, place, row[1:]):
            if state[ASKED] > 0:
                holds = state[ANSWER]
                state[ASKED] = 0
            else:
                work.span[last] = memory.when[place, layout.START]
                work.span[last + 1] = memory.when[place, layout.END]
                holds = test_holds(plan, work, index)
            if holds == layout.UNKNOWN:
                state[ASKED] = place + 1
                return np.int64(layout.UNKNOWN)
            if holds == 1:
                return np.int64(1)
        place = memory.links[place, 1 + index]
    return np.int64(0)


@inlined
def _wait_of(
    plan: layout.PlanArrays, waits: Longs, memory: layout.MemoryArrays, work: layout.WorkArrays,
    row: Ints, spans: Longs, state: Longs,
) -> Int:  # fmt: skip
    """Until when a match has to wait; FOREVER if it is forbidden already, or ASKING."""
    for k in range(len(work.span) - 2):
        work.span[k] = spans[k]
    until = -layout.FOREVER
    for index in range(len(waits)):
        if index >= state[FORBIDDING]:  # those before it are decided
            forbidden = _is_forbidden(plan, memory, work, row, index, state)
            if forbidden == layout.UNKNOWN:
                state[FORBIDDING] = index
                return ASKING
            if forbidden == 1:
                state[FORBIDDING] = 0
                return layout.FOREVER
        latest = layout.FOREVER
        for event in range(waits.shape[1]):
            if waits[index, event] < layout.FOREVER:
                latest = min(latest, spans[2 * event + 1] + waits[index, event])
        if latest < layout.FOREVER:
            until = max(until, latest)
    state[FORBIDDING] = 0
    return until


@compiled
def take_batch(
    plan: layout.PlanArrays,
    waits: Longs2,
    memory: layout.MemoryArrays,
    pending: layout.PendingArrays,
    work: layout.WorkArrays,
    hits: Ints2,
    rows: Ints2,
    spans: Longs2,
    times: Longs1,
    events: Longs2,
    out: Longs1,
    state: Longs1,
) -> None:
    """Take in forbidden events and completed matches, both in order of events.

    What fires is written to `out`: the place of a match that has waited, or -1 - the index of a new
    one. Of an event, what it forbids comes before what it completes. `waits` has by NO EVENT and
    event the ticks after that event up to which the forbidden one may come. There must be room for
    all matches. Stops with ROOM in the state if something else has run out, or where a test reads
    values: then a further call goes on with its ANSWER.
    """
    while True:
        if state[layout.LEFT] <= 0:
            state[layout.ROOM] = layout.TIME
            return
        begin, event = state[layout.POSITION], len(events)
        if begin < len(hits):
            event = hits[begin, layout.EVENT]
        if state[MATCHED] < len(rows):
            event = min(event, rows[state[MATCHED], 0])
        at = min(event, len(events) - 1)
        now = events[at, layout.END]
        # What the end of a time causes happens at that time: events of it may still be forbidden.
        if not expire(
            plan, memory, now - 1 if events[at, layout.ORDER] == layout.END_OF_TIME else now
        ):
            state[layout.ROOM] = layout.JOURNAL_FULL
            return
        if not _end_waits(plan, pending, now, out, state):
            state[layout.ROOM] = layout.OUTPUT_FULL
            return
        if event == len(events):
            return
        end = begin
        while end < len(hits) and hits[end, layout.EVENT] == event:
            end += 1
        if end > begin and not has_room(memory, end - begin):
            state[layout.ROOM] = layout.MEMORY_FULL
            return
        if end > begin and not can_journal(plan, memory, end - begin):
            state[layout.ROOM] = layout.JOURNAL_FULL
            return
        for i in range(begin, end):
            if not _cancel(plan, pending, work, hits[i], events[event], state):
                state[layout.POSITION], state[layout.ROOM] = i, layout.WAITING
                return
            condition = hits[i, layout.CONDITION]
            if plan.retention[condition] != layout.NOT_RETAINED:
                add_event(plan, memory, condition, hits[i, layout.HIT_VALUES :], events[event])
        state[layout.POSITION] = end
        while state[MATCHED] < len(rows) and rows[state[MATCHED], 0] == event:
            if state[layout.WRITTEN] == len(out):
                state[layout.ROOM] = layout.OUTPUT_FULL
                return
            if state[layout.LEFT] <= 0:
                break  # the matches of the event that are left come next: its hits are through
            n = state[MATCHED]
            until = _wait_of(plan, waits, memory, work, rows[n], spans[n], state)
            if until == ASKING:
                state[layout.ROOM] = layout.RETAINED
                return
            if until < times[n]:
                out[state[layout.WRITTEN]] = -1 - n
                state[layout.WRITTEN] += 1
            elif until < layout.FOREVER:
                add_match(plan, pending, rows[n], spans[n], until, times[n])
            state[MATCHED] = n + 1
