"""The join of a rule: each event is joined with the retained events and the facts, then retained.

A match is found with its last event, so each is found once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.rules.kernel import layout
from graphtide.rules.kernel.facts import fact_bucket
from graphtide.rules.kernel.memory import add_event, bucket_of, can_journal, expire

if TYPE_CHECKING:
    from graphtide.arrays import Ints2, Longs1, Longs2
    from graphtide.kernel.batch import Int, Ints, Longs


@inlined
def test_holds(plan: layout.PlanArrays, work: layout.WorkArrays, number: Int) -> Int:
    """1 if a test holds for the times in `work.span`, 0 if not, UNKNOWN if values decide."""
    top = 0
    for i in range(plan.parts[number, 0], plan.parts[number, 1]):
        op = plan.code[i, 0]
        if op == layout.ATOM:
            difference = work.span[plan.code[i, 1]] - work.span[plan.code[i, 2]]
            fits = plan.code[i, 3] <= difference <= plan.code[i, 4]
            work.stack[top] = 1 if fits else 0
            top += 1
            continue
        if op == layout.EXPRESSION:
            work.stack[top] = layout.UNKNOWN
            top += 1
            continue
        many = plan.code[i, 1]
        true = unknown = 0
        for _ in range(many):
            top -= 1
            if work.stack[top] == layout.UNKNOWN:
                unknown += 1
            else:
                true += work.stack[top]
        decided = 0 if op == layout.ALL_OF else 1  # what one operand alone can decide
        one_decides = true + unknown < many if op == layout.ALL_OF else true > 0
        if not one_decides and unknown > 0:
            work.stack[top] = layout.UNKNOWN
        elif op == layout.NONE_OF:
            work.stack[top] = 0 if one_decides else 1
        else:
            work.stack[top] = decided if one_decides else 1 - decided
        top += 1
    return np.int64(work.stack[0])


@inlined
def all_hold(plan: layout.PlanArrays, work: layout.WorkArrays, condition: Int, joined: Int) -> bool:
    """Whether all tests hold that can be evaluated since the last join."""
    for i in range(plan.ready[condition, joined, 0], plan.ready[condition, joined, 1]):
        if test_holds(plan, work, plan.tests[i]) == 0:
            return False
    return True


@compiled
def take_hits(
    plan: layout.PlanArrays,
    memory: layout.MemoryArrays,
    facts: layout.FactArrays,
    work: layout.WorkArrays,
    hits: Ints2,
    events: Longs2,
    rows: Ints2,
    spans: Longs2,
    state: Longs1,
) -> None:
    """Join hits, from `state[POSITION]` on; matches go to `rows` and `spans`.

    All hits of one event at one condition are joined before they are retained: an event is never
    its own partner there. Stops before them if the output or the memory is too small, and anywhere
    to have the time checked: `state[ROOM]` says why, and a further call goes on.
    """
    begin = state[layout.POSITION]
    while begin < len(hits):
        event, condition = hits[begin, layout.EVENT], hits[begin, layout.CONDITION]
        end = begin + 1
        while (
            end < len(hits)
            and hits[end, layout.EVENT] == event
            and hits[end, layout.CONDITION] == condition
        ):
            end += 1
        if not expire(plan, memory, events[event, layout.END]):
            state[layout.POSITION], state[layout.ROOM] = begin, layout.JOURNAL_FULL
            return
        retained = plan.retention[condition] != layout.NOT_RETAINED
        if retained and not has_room(memory, end - begin):
            state[layout.POSITION], state[layout.ROOM] = begin, layout.MEMORY_FULL
            return
        if retained and not can_journal(plan, memory, end - begin):
            state[layout.POSITION], state[layout.ROOM] = begin, layout.JOURNAL_FULL
            return
        i, written = begin, state[layout.WRITTEN]
        if state[layout.HIT] > 0:
            i, written = state[layout.HIT] - 1, state[layout.REACHED]
            state[layout.HIT] = 0
        while i < end:
            if state[layout.LEFT] <= 0:
                state[layout.POSITION], state[layout.ROOM] = begin, layout.TIME
                state[layout.HIT], state[layout.REACHED] = i + 1, written
                return
            written = join_hit(
                plan, memory, facts, work, hits[i], events[event], rows, spans, written, state
            )
            if written < 0:
                state[layout.POSITION], state[layout.DEPTH] = begin, 0
                state[layout.ROOM] = layout.OUTPUT_FULL
                return
            if state[layout.DEPTH] == 0:
                i += 1
        if retained:
            for i in range(begin, end):
                add_event(plan, memory, condition, hits[i, layout.HIT_VALUES :], events[event])
        state[layout.WRITTEN] = written
        begin = end
    state[layout.POSITION] = begin


@inlined
def has_room(memory: layout.MemoryArrays, wanted: Int) -> bool:
    """Whether a number of places is free."""
    place = memory.meta[layout.FREE]
    while wanted > 0 and place >= 0:
        place = memory.links[place, 0]
        wanted -= 1
    return wanted == 0


@inlined
def bind_event(work: layout.WorkArrays, condition: Int, event: Longs) -> None:
    """Set the event of a condition."""
    work.span[2 * condition] = event[layout.START]
    work.span[2 * condition + 1] = event[layout.END]
    work.who[2 * condition] = event[layout.ORDER]
    work.who[2 * condition + 1] = event[layout.SINCE]


@inlined
def same_key(
    plan: layout.PlanArrays, memory: layout.MemoryArrays, index: Int, place: Int, binding: Ints
) -> bool:
    """Whether a retained event agrees with a partial match on the key of an index."""
    for k in range(plan.keys[index, 0]):
        v = plan.keys[index, 1 + k]
        if memory.cells[place, v] != binding[v]:
            return False
    return True


@inlined
def join_hit(
    plan: layout.PlanArrays,
    memory: layout.MemoryArrays,
    facts: layout.FactArrays,
    work: layout.WorkArrays,
    hit: Ints,
    event: Longs,
    rows: Ints,
    spans: Longs,
    written: Int,
    state: Longs,
) -> Int:
    """Write the matches that an event completes; rows written so far, -1 if there is no room.

    If no steps are left, `state[DEPTH]` and `work` have the place where a further call goes on.
    """
    first = hit[layout.CONDITION]
    joins = len(plan.retention) - 1
    buckets = memory.heads.shape[1]
    depth = state[layout.DEPTH] - 1
    state[layout.DEPTH] = 0
    if depth < 0:
        for v in range(plan.variables):
            work.binding[v] = hit[layout.HIT_VALUES + v]
        bind_event(work, first, event)
        if not all_hold(plan, work, first, 0):
            return written
        if joins == 0:
            return write_match(plan, facts, work, hit[layout.EVENT], rows, spans, written, state)
        depth = np.int64(0)
        index = plan.lookups[first, 0]
        work.at[0] = memory.heads[index, bucket_of(plan.keys, index, work.binding, buckets)]
    while depth >= 0:
        if state[layout.LEFT] <= 0:
            state[layout.DEPTH] = depth + 1
            return written
        state[layout.LEFT] -= 1
        place = work.at[depth]
        if place < 0:
            depth -= 1
            continue
        index = plan.lookups[first, depth]
        work.at[depth] = memory.links[place, 1 + index]
        if not same_key(plan, memory, index, place, work.binding):
            continue
        condition = plan.steps[first, depth]
        for k in range(plan.bound[condition, 0]):
            v = plan.bound[condition, 1 + k]
            work.binding[v] = memory.cells[place, v]
        bind_event(work, condition, memory.when[place])
        if not all_hold(plan, work, first, depth + 1):
            continue
        if depth + 1 < joins:
            depth += 1
            index = plan.lookups[first, depth]
            bucket = bucket_of(plan.keys, index, work.binding, buckets)
            work.at[depth] = memory.heads[index, bucket]
        else:
            written = write_match(plan, facts, work, hit[layout.EVENT], rows, spans, written, state)
            if written < 0:
                return written
    return written


@inlined
def write_match(
    plan: layout.PlanArrays,
    facts: layout.FactArrays,
    work: layout.WorkArrays,
    event: Int,
    rows: Ints,
    spans: Longs,
    written: Int,
    state: Longs,
) -> Int:
    """Write a match once for each fact that is older than all its events."""
    if len(plan.fact_columns) == 0:
        if written >= len(rows) or written >= len(spans):
            return -1
        _write(work, event, rows, spans, written)
        return written + 1
    since = work.who[1]
    for condition in range(1, len(plan.retention)):
        since = min(since, work.who[2 * condition + 1])
    many = len(plan.fact_key)
    place = facts.heads[fact_bucket(work.binding, plan.fact_key, many, len(facts.heads))]
    while place >= 0:
        state[layout.LEFT] -= 1
        fits = facts.number[place] < since
        k = 0
        while fits and k < many:
            fits = facts.rows[place, k] == work.binding[plan.fact_key[k]]
            k += 1
        if fits:
            if written >= len(rows) or written >= len(spans):
                return -1
            for k in range(many, len(plan.fact_columns)):
                work.binding[plan.fact_columns[k]] = facts.rows[place, k]
            _write(work, event, rows, spans, written)
            written += 1
        place = facts.links[place]
    return written


@inlined
def _write(work: layout.WorkArrays, event: Int, rows: Ints, spans: Longs, written: Int) -> None:
    rows[written, 0] = event
    for v in range(len(work.binding)):
        rows[written, 1 + v] = work.binding[v]
    for k in range(len(work.span)):
        spans[written, k] = work.span[k]
        spans[written, len(work.span) + k] = work.who[k]
