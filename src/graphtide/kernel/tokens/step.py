"""The loop over events: each goes to one token at most, and may spoil others; timers in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled, inlined
from graphtide.kernel.rowtable import HEAD, find_slot, row_mark
from graphtide.kernel.tokens.lists import (
    chain_in,
    chain_out,
    drop_token,
    first_timer_gone,
    new_partition,
    new_token,
    partition_of,
    sift_down,
    use_event,
)
from graphtide.kernel.tokens.moves import (
    agrees,
    can_take,
    enter,
    in_time,
    set_deadline,
    set_timers,
    settle,
    take_edge,
)
from graphtide.kernel.tokens.tables import (
    AT,
    BIT,
    BLOCKED,
    CHRONICLE,
    COUNT,
    DEADLINE,
    FIELDS,
    FREE_LINK,
    FREE_TOKEN,
    HIGH_LINK,
    HIGH_TOKEN,
    LIVE_TOKENS,
    LONGEST,
    NEWER,
    NEXT,
    NEXT_ORDER,
    NOW,
    NUMBER,
    OLDEST,
    OPS_FROM,
    OPS_TO,
    ORDER,
    SAVED,
    SPARE,
    STARTED,
    STATE,
    STOPS,
    STRICT,
    SWEEP_AT,
    TIMER_EDGE,
    USED_WRITTEN,
    VERSION,
    WAITING,
    WRITTEN,
    KernelAutomaton,
    TokenArrays,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs

DONE, FULL, CROWDED = 0, 1, 2
"""Why a loop stops: all is done, the output is full, or there is no room for more tokens."""

MOST_TIMERS = 8
"""Timers that one step may start."""


@inlined
def is_full(z: TokenArrays, out: Longs, out_used: Longs) -> bool:
    """Whether the output might have no room for one more match."""
    if z.marks[WRITTEN] == len(out):
        return True
    return bool(z.marks[USED_WRITTEN] + z.marks[LONGEST] + 1 > len(out_used))


@inlined
def is_crowded(z: TokenArrays) -> bool:
    """Whether there might be no room for one more token, used event, partition or timer."""
    marks = z.marks
    if marks[FREE_TOKEN] == 0 and marks[HIGH_TOKEN] == len(z.data):
        return True
    if marks[FREE_LINK] == 0 and marks[HIGH_LINK] == len(z.links):
        return True
    if marks[LIVE_TOKENS] + 1 >= len(z.chains):
        return True
    if marks[WAITING] + MOST_TIMERS > len(z.heap):
        return True
    return bool(marks[LIVE_TOKENS] >= marks[SWEEP_AT])


@inlined
def find_token(
    a: KernelAutomaton,
    z: TokenArrays,
    partition: Int,
    type_: Int,
    values: Ints,
    i: Int,
    time: Int,
    spare: Int,
) -> Int:
    """The oldest token of a partition that an event takes forward, or round a loop; or -1."""
    best = -1
    for k in range(a.sources_from[type_], a.sources_from[type_ + 1]):
        state = a.sources[k]
        edge = a.edge_of[state, type_]
        if state == 0 or a.edges[edge, SPARE] != spare:
            continue
        token = z.chains[partition, 2 * state] - 1
        while token >= 0:
            if best >= 0 and z.data[best, ORDER] < z.data[token, ORDER]:
                break
            following = z.data[token, NEXT] - 1
            if can_take(a, z, token, edge, values, i, time):
                best = token
                break
            if z.data[token, DEADLINE] < time:
                drop_token(z, token)
            token = following
    return best


@inlined
def begin(
    a: KernelAutomaton, z: TokenArrays, partition: Int, edge: Int, values: Ints, i: Int, time: Int,
    number: Int, out: Longs, out_used: Longs,
) -> Int:  # fmt: skip
    """A new token uses an event; the token, or -1 if it is gone at once."""
    if partition < 0:
        partition = new_partition(z)
    token = new_token(z, partition)
    z.data[token, ORDER] = z.marks[NEXT_ORDER]
    z.data[token, STARTED] = time
    z.marks[NEXT_ORDER] += 1
    chain_in(z, token)
    lives = take_edge(a, z, token, edge, values, i, time, number, out, out_used)
    return token if lives else -1


@inlined
def drop_all(z: TokenArrays) -> None:
    """Forget every token."""
    token = z.marks[OLDEST] - 1
    while token >= 0:
        following = z.data[token, NEWER] - 1
        drop_token(z, token)
        token = following


@inlined
def drop_partition(a: KernelAutomaton, z: TokenArrays, partition: Int) -> None:
    """Forget every token of a partition."""
    left = z.keys.rows[partition, z.keys.width]
    for state in range(a.edge_of.shape[0]):
        while left > 0 and z.chains[partition, 2 * state] != 0:
            drop_token(z, z.chains[partition, 2 * state] - 1)
            left -= 1


@inlined
def spoil(
    a: KernelAutomaton, z: TokenArrays, partition: Int, type_: Int, values: Ints, i: Int, but: Int
) -> None:
    """Block the edges of tokens in whose gap an event must not come."""
    for k in range(a.watched_from[type_], a.watched_from[type_ + 1]):
        state = a.watched[k]
        entry = state * a.edge_of.shape[1] + type_
        token = z.chains[partition, 2 * state] - 1
        while token >= 0:
            following = z.data[token, NEXT] - 1
            if token != but:
                for w in range(a.watches_from[entry], a.watches_from[entry + 1]):
                    first, last = a.watches[w, OPS_FROM], a.watches[w, OPS_TO]
                    if agrees(a, z, token, first, last, values, i):
                        z.data[token, BLOCKED] |= a.watches[w, STOPS]
                if not set_deadline(a, z, token):
                    drop_token(z, token)
            token = following


@inlined
def others(a: KernelAutomaton, z: TokenArrays, partition: Int, time: Int) -> Int:
    """How many tokens there are that count for STRICT; one whose time is over is dropped."""
    token = z.marks[OLDEST] - 1
    if a.per_key:
        token = -1
        if partition >= 0:
            for state in range(a.edge_of.shape[0]):
                if z.chains[partition, 2 * state] != 0:
                    token = z.chains[partition, 2 * state] - 1
    if token < 0:
        return 0
    if z.data[token, DEADLINE] < time:
        drop_token(z, token)
        return 0
    return 1


@inlined
def take_event(
    a: KernelAutomaton, z: TokenArrays, type_: Int, values: Ints, i: Int, time: Int, out: Longs,
    out_used: Longs,
) -> None:  # fmt: skip
    """Offer an event to the tokens."""
    number = z.marks[NUMBER]
    if type_ < 0:
        if a.context != CHRONICLE and not a.per_key:
            drop_all(z)
        return
    strict = a.context == STRICT and others(a, z, partition_of(a, z, type_, values, i), time) > 0
    partition = partition_of(a, z, type_, values, i)
    start = a.edge_of[0, type_]
    begins = start >= 0 and agrees(a, z, -1, a.ops_from[start], a.ops_from[start + 1], values, i)
    token: Int = -1
    edge: Int = start
    if partition >= 0:
        token = find_token(a, z, partition, type_, values, i, time, 0)
        if token < 0 and (strict or not begins):
            token = find_token(a, z, partition, type_, values, i, time, 1)
        if z.keys.rows[partition, z.keys.width] == 0:  # all its tokens were overdue
            partition = -1
    used: Int = -1
    if token >= 0:
        edge = a.edge_of[z.data[token, STATE], type_]
        if take_edge(a, z, token, edge, values, i, time, number, out, out_used):
            used = token
    elif begins and not strict:
        used = begin(a, z, partition, edge, values, i, time, number, out, out_used)
    elif a.context != CHRONICLE:
        if a.per_key:
            if partition >= 0:
                drop_partition(a, z, partition)
        else:
            drop_all(z)
        if begins:
            partition = partition_of(a, z, type_, values, i)
            begin(a, z, partition, edge, values, i, time, number, out, out_used)
        return
    if a.watched_from[type_] < a.watched_from[type_ + 1]:
        partition = partition_of(a, z, type_, values, i)
        if partition >= 0:
            spoil(a, z, partition, type_, values, i, used)


@inlined
def run_timers(a: KernelAutomaton, z: TokenArrays, to: Int, out: Longs, out_used: Longs) -> Int:
    """Fire the timers that are due before a time."""
    while z.marks[WAITING] > 0 and z.heap[0, 0] < to:
        if is_full(z, out, out_used):
            return FULL
        if z.marks[WAITING] + MOST_TIMERS > len(z.heap):
            return CROWDED
        due, token, version, timer = z.heap[0, 0], z.heap[0, 2], z.heap[0, 3], z.heap[0, 4]
        first_timer_gone(z)
        edge = a.timers[timer, TIMER_EDGE]
        blocked = z.data[token, BLOCKED] >> a.edges[edge, BIT] & 1
        if z.data[token, VERSION] != version or blocked or not in_time(a, z, token, edge, due):
            continue
        chain_out(z, token)
        final = enter(a, z, token, edge, due)
        settle(a, z, token, final, due, out, out_used)
    return DONE


@compiled
def tokens_step(
    a: KernelAutomaton,
    z: TokenArrays,
    types: Ints,
    values: Ints,
    times: Longs,
    out: Longs,
    out_used: Longs,
) -> Int:
    """Take in events one by one, from `marks[AT]` on; why it stopped."""
    while z.marks[AT] < len(types):
        i = z.marks[AT]
        time = times[i]
        stopped = run_timers(a, z, time, out, out_used)
        if stopped != DONE:
            return stopped
        if is_full(z, out, out_used):
            return FULL
        if is_crowded(z):
            return CROWDED
        z.marks[NOW] = time
        take_event(a, z, types[i], values, i, time, out, out_used)
        z.marks[NUMBER] += 1
        z.marks[AT] = i + 1
    return DONE


@compiled
def tokens_advance(a: KernelAutomaton, z: TokenArrays, to: Int, out: Longs, out_used: Longs) -> Int:
    """Let time pass; why it stopped."""
    stopped = run_timers(a, z, to, out, out_used)
    if stopped == DONE:
        z.marks[NOW] = max(z.marks[NOW], to)
    return stopped


@compiled
def tokens_sweep(z: TokenArrays) -> None:
    """Drop the tokens whose time is over, and timers of tokens that are gone."""
    token = z.marks[OLDEST] - 1
    while token >= 0:
        following = z.data[token, NEWER] - 1
        if z.data[token, DEADLINE] < z.marks[NOW]:
            drop_token(z, token)
        token = following
    kept = 0
    for at in range(z.marks[WAITING]):
        if z.data[z.heap[at, 2], VERSION] == z.heap[at, 3]:
            for k in range(z.heap.shape[1]):
                z.heap[kept, k] = z.heap[at, k]
            kept += 1
    z.marks[WAITING] = kept
    for at in range(kept // 2, -1, -1):
        sift_down(z, at)


@compiled
def tokens_put(
    a: KernelAutomaton, z: TokenArrays, saved: Longs, used_to: Longs, used: Longs
) -> None:
    """Put saved tokens back, the oldest first; there is room for them all."""
    first = 0
    for i in range(len(saved)):
        z.source[0, 0] = 0
        for k in range(a.key_slots.shape[0]):
            z.source[0, k] = saved[i, SAVED + a.zones + a.key_slots[k]]
        mark = row_mark(z.keys.width, z.source, 0, 0)
        partition = z.keys.slots[find_slot(z.keys, mark, z.source, 0, 0), HEAD] - 1
        if partition < 0:
            partition = new_partition(z)
        token = new_token(z, partition)
        z.data[token, ORDER] = saved[i, 0]
        z.data[token, STARTED] = saved[i, 1]
        z.data[token, STATE] = saved[i, 2]
        z.data[token, BLOCKED] = saved[i, 3]
        for k in range(a.zones + a.slots):
            z.data[token, FIELDS + k] = saved[i, SAVED + k]
        for k in range(first, used_to[i]):
            use_event(z, token, used[k])
        first = used_to[i]
        z.marks[LONGEST] = max(z.marks[LONGEST], z.data[token, COUNT])
        chain_in(z, token)
        set_deadline(a, z, token)
        set_timers(a, z, token)
