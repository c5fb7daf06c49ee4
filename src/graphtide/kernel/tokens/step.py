"""The loop over events: each is used by one token at most, and may block others; timers between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled, inlined
from graphtide.kernel.rowtable import HEAD, find_slot, row_hash
from graphtide.kernel.tokens import tables as col
from graphtide.kernel.tokens.lists import (
    chain_in,
    chain_out,
    drop_token,
    new_partition,
    new_token,
    partition_of,
    pop_timer,
    sift_down,
    use_event,
)
from graphtide.kernel.tokens.moves import (
    agrees,
    can_take,
    enter,
    finish_move,
    in_time,
    set_deadline,
    set_timers,
    take_edge,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.kernel.tokens.tables import KernelAutomaton, TokenArrays

DONE, FULL, NO_ROOM = 0, 1, 2
"""Why a loop stops: it is done, the output is full, or there is no room for more tokens."""

MAX_TIMERS = 8
"""Timers that one step may start at most."""


@inlined
def is_full(z: TokenArrays, out: Longs, out_used: Longs) -> bool:
    """Whether the output might have no room for one more match."""
    if z.regs[col.WRITTEN] == len(out):
        return True
    return bool(z.regs[col.USED_WRITTEN] + z.regs[col.MAX_USED] + 1 > len(out_used))


@inlined
def has_no_room(z: TokenArrays) -> bool:
    """Whether there might be no room for one more token, used event, partition or timer."""
    regs = z.regs
    if regs[col.FREE_TOKEN] == 0 and regs[col.HIGH_TOKEN] == len(z.data):
        return True
    if regs[col.FREE_LINK] == 0 and regs[col.HIGH_LINK] == len(z.links):
        return True
    if regs[col.LIVE_TOKENS] + 1 >= len(z.chains):
        return True
    if regs[col.HEAP_SIZE] + MAX_TIMERS > len(z.heap):
        return True
    return bool(regs[col.LIVE_TOKENS] >= regs[col.SWEEP_AT])


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
    """The oldest token of a partition that can use an event (`spare`: in a loop); or -1."""
    best = -1
    for k in range(a.sources_from[type_], a.sources_from[type_ + 1]):
        state = a.sources[k]
        edge = a.edge_of[state, type_]
        if state == 0 or a.edges[edge, col.SPARE] != spare:
            continue
        token = z.chains[partition, 2 * state] - 1
        while token >= 0:
            if best >= 0 and z.data[best, col.ORDER] < z.data[token, col.ORDER]:
                break
            following = z.data[token, col.NEXT] - 1
            if can_take(a, z, token, edge, values, i, time):
                best = token
                break
            if z.data[token, col.DEADLINE] < time:
                drop_token(z, token)
            token = following
    return best


@inlined
def begin(
    a: KernelAutomaton, z: TokenArrays, partition: Int, edge: Int, values: Ints, i: Int, time: Int,
    number: Int, out: Longs, out_used: Longs,
) -> Int:  # fmt: skip
    """Let a new token use an event; the token, or -1 if it is not kept."""
    if partition < 0:
        partition = new_partition(z)
    token = new_token(z, partition)
    z.data[token, col.ORDER] = z.regs[col.NEXT_ORDER]
    z.data[token, col.STARTED] = time
    z.regs[col.NEXT_ORDER] += 1
    chain_in(z, token)
    lives = take_edge(a, z, token, edge, values, i, time, number, out, out_used)
    return token if lives else -1


@inlined
def drop_all(z: TokenArrays) -> None:
    """Drop every token."""
    token = z.regs[col.OLDEST] - 1
    while token >= 0:
        following = z.data[token, col.NEWER] - 1
        drop_token(z, token)
        token = following


@inlined
def drop_partition(a: KernelAutomaton, z: TokenArrays, partition: Int) -> None:
    """Drop every token of a partition."""
    left = z.keys.rows[partition, z.keys.width]
    for state in range(a.edge_of.shape[0]):
        while left > 0 and z.chains[partition, 2 * state] != 0:
            drop_token(z, z.chains[partition, 2 * state] - 1)
            left -= 1


@inlined
def block_tokens(
    a: KernelAutomaton, z: TokenArrays, partition: Int, type_: Int, values: Ints, i: Int, but: Int
) -> None:
    """Block the edges of tokens for which an event must not occur between two others."""
    for k in range(a.watched_from[type_], a.watched_from[type_ + 1]):
        state = a.watched[k]
        entry = state * a.edge_of.shape[1] + type_
        token = z.chains[partition, 2 * state] - 1
        while token >= 0:
            following = z.data[token, col.NEXT] - 1
            if token != but:
                for w in range(a.watches_from[entry], a.watches_from[entry + 1]):
                    first, last = a.watches[w, col.OPS_FROM], a.watches[w, col.OPS_TO]
                    if agrees(a, z, token, first, last, values, i):
                        z.data[token, col.BLOCKED] |= a.watches[w, col.STOPS]
                if not set_deadline(a, z, token):
                    drop_token(z, token)
            token = following


@inlined
def count_others(a: KernelAutomaton, z: TokenArrays, partition: Int, time: Int) -> Int:
    """Whether there is a token that STRICT considers (1 or 0); an expired one is dropped."""
    token = z.regs[col.OLDEST] - 1
    if a.per_key:
        token = -1
        if partition >= 0:
            for state in range(a.edge_of.shape[0]):
                if z.chains[partition, 2 * state] != 0:
                    token = z.chains[partition, 2 * state] - 1
    if token < 0:
        return 0
    if z.data[token, col.DEADLINE] < time:
        drop_token(z, token)
        return 0
    return 1


@inlined
def take_event(
    a: KernelAutomaton, z: TokenArrays, type_: Int, values: Ints, i: Int, time: Int, out: Longs,
    out_used: Longs,
) -> None:  # fmt: skip
    """Offer an event to the tokens."""
    number = z.regs[col.NUMBER]
    if type_ < 0:
        if a.context != col.CHRONICLE and not a.per_key:
            drop_all(z)
        return
    strict = (
        a.context == col.STRICT
        and count_others(a, z, partition_of(a, z, type_, values, i), time) > 0
    )
    partition = partition_of(a, z, type_, values, i)
    start = a.edge_of[0, type_]
    begins = start >= 0 and agrees(a, z, -1, a.ops_from[start], a.ops_from[start + 1], values, i)
    token: Int = -1
    edge: Int = start
    if partition >= 0:
        token = find_token(a, z, partition, type_, values, i, time, 0)
        if token < 0 and (strict or not begins):
            token = find_token(a, z, partition, type_, values, i, time, 1)
        if z.keys.rows[partition, z.keys.width] == 0:  # all its tokens had expired
            partition = -1
    used: Int = -1
    if token >= 0:
        edge = a.edge_of[z.data[token, col.STATE], type_]
        if take_edge(a, z, token, edge, values, i, time, number, out, out_used):
            used = token
    elif begins and not strict:
        used = begin(a, z, partition, edge, values, i, time, number, out, out_used)
    elif a.context != col.CHRONICLE:
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
            block_tokens(a, z, partition, type_, values, i, used)


@inlined
def run_timers(a: KernelAutomaton, z: TokenArrays, to: Int, out: Longs, out_used: Longs) -> Int:
    """Fire the timers that are due before a time."""
    while z.regs[col.HEAP_SIZE] > 0 and z.heap[0, 0] < to:
        if is_full(z, out, out_used):
            return FULL
        if z.regs[col.HEAP_SIZE] + MAX_TIMERS > len(z.heap):
            return NO_ROOM
        due, token, version, timer = z.heap[0, 0], z.heap[0, 2], z.heap[0, 3], z.heap[0, 4]
        pop_timer(z)
        edge = a.timers[timer, col.TIMER_EDGE]
        blocked = z.data[token, col.BLOCKED] >> a.edges[edge, col.BIT] & 1
        if z.data[token, col.VERSION] != version or blocked or not in_time(a, z, token, edge, due):
            continue
        chain_out(z, token)
        final = enter(a, z, token, edge, due)
        finish_move(a, z, token, final, due, out, out_used)
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
    """Process events one by one, from `regs[AT]` on; the reason for stopping."""
    while z.regs[col.AT] < len(types):
        i = z.regs[col.AT]
        time = times[i]
        stopped = run_timers(a, z, time, out, out_used)
        if stopped != DONE:
            return stopped
        if is_full(z, out, out_used):
            return FULL
        if has_no_room(z):
            return NO_ROOM
        z.regs[col.NOW] = time
        take_event(a, z, types[i], values, i, time, out, out_used)
        z.regs[col.NUMBER] += 1
        z.regs[col.AT] = i + 1
    return DONE


@compiled
def tokens_advance(a: KernelAutomaton, z: TokenArrays, to: Int, out: Longs, out_used: Longs) -> Int:
    """Advance the time; the reason for stopping."""
    stopped = run_timers(a, z, to, out, out_used)
    if stopped == DONE:
        z.regs[col.NOW] = max(z.regs[col.NOW], to)
    return stopped


@compiled
def tokens_sweep(z: TokenArrays) -> None:
    """Drop expired tokens, and the timers of dropped tokens."""
    token = z.regs[col.OLDEST] - 1
    while token >= 0:
        following = z.data[token, col.NEWER] - 1
        if z.data[token, col.DEADLINE] < z.regs[col.NOW]:
            drop_token(z, token)
        token = following
    kept = 0
    for at in range(z.regs[col.HEAP_SIZE]):
        if z.data[z.heap[at, 2], col.VERSION] == z.heap[at, 3]:
            for k in range(z.heap.shape[1]):
                z.heap[kept, k] = z.heap[at, k]
            kept += 1
    z.regs[col.HEAP_SIZE] = kept
    for at in range(kept // 2, -1, -1):
        sift_down(z, at)


@compiled
def tokens_put(
    a: KernelAutomaton, z: TokenArrays, saved: Longs, used_to: Longs, used: Longs
) -> None:
    """Restore saved tokens, the oldest first; there is room for them all."""
    first = 0
    for i in range(len(saved)):
        z.source[0, 0] = 0
        for k in range(a.key_slots.shape[0]):
            z.source[0, k] = saved[i, col.SAVED + a.zones + a.key_slots[k]]
        hash_ = row_hash(z.keys.width, z.source, 0, 0)
        partition = z.keys.slots[find_slot(z.keys, hash_, z.source, 0, 0), HEAD] - 1
        if partition < 0:
            partition = new_partition(z)
        token = new_token(z, partition)
        z.data[token, col.ORDER] = saved[i, 0]
        z.data[token, col.STARTED] = saved[i, 1]
        z.data[token, col.STATE] = saved[i, 2]
        z.data[token, col.BLOCKED] = saved[i, 3]
        for k in range(a.zones + a.slots):
            z.data[token, col.FIELDS + k] = saved[i, col.SAVED + k]
        for k in range(first, used_to[i]):
            use_event(z, token, used[k])
        first = used_to[i]
        z.regs[col.MAX_USED] = max(z.regs[col.MAX_USED], z.data[token, col.COUNT])
        chain_in(z, token)
        set_deadline(a, z, token)
        set_timers(a, z, token)
