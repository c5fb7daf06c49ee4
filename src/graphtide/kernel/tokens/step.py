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
    expose,
    hide,
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
    from graphtide.arrays import Ints1, Ints2, Longs1, Longs2
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
def has_used(z: TokenArrays, token: Int, number: Int, time: Int) -> bool:
    """Whether an event of some time is the last one that a token has used; -1 is none."""
    if number < 0 or z.data[token, col.LAST] != time:
        return False
    return bool(z.links[z.data[token, col.USED] - 1, 0] == number)


@inlined
def has_loops(a: KernelAutomaton) -> bool:
    """Whether there are edges that only repeat a loop."""
    for edge in range(len(a.edges)):
        if a.edges[edge, col.SPARE] != 0:
            return True
    return False


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
    but: Int,
) -> Int:
    """The oldest token of a partition that can use a row (`spare`: in a loop); or -1.

    Not one that has used the event `but`.
    """
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
            if can_take(a, z, token, edge, values, i, time) and not has_used(z, token, but, time):
                best = token
                break
            if z.data[token, col.DEADLINE] < time:
                drop_token(z, token)
            token = following
    return best


@inlined
def begin(z: TokenArrays, partition: Int, time: Int) -> Int:
    """A new token, in the start state and in no chain of a state."""
    if partition < 0:
        partition = new_partition(z)
    token = new_token(z, partition)
    z.data[token, col.ORDER] = z.regs[col.NEXT_ORDER]
    z.data[token, col.STARTED] = time
    z.regs[col.NEXT_ORDER] += 1
    return token


@inlined
def stop_by_noise(a: KernelAutomaton, z: TokenArrays, token: Int) -> None:
    """Block the edges of a token to which no NOT applies; drop it if it has no others."""
    state = z.data[token, col.STATE]
    z.data[token, col.BLOCKED] |= a.noise_stops[state]
    edges = a.edges_out_from[state + 1] - a.edges_out_from[state]
    if z.data[token, col.BLOCKED] == (1 << edges) - 1 or not set_deadline(a, z, token):
        drop_token(z, token)


@inlined
def take_noise(a: KernelAutomaton, z: TokenArrays, partition: Int) -> None:
    """An event that no token uses: it may come only where a NOT applies."""
    if not a.per_key:
        token = z.regs[col.EXPOSED] - 1
        while token >= 0:
            following = z.data[token, col.NEXT_EXPOSED] - 1
            hide(z, token)
            stop_by_noise(a, z, token)
            token = following
    elif partition >= 0:
        for state in range(a.edge_of.shape[0]):
            token = z.chains[partition, 2 * state] - 1 if a.noise_stops[state] != 0 else -1
            while token >= 0:
                following = z.data[token, col.NEXT] - 1
                stop_by_noise(a, z, token)
                token = following


@inlined
def block_tokens(
    a: KernelAutomaton, z: TokenArrays, partition: Int, type_: Int, values: Ints, i: Int,
    time: Int, but: Int,
) -> None:  # fmt: skip
    """Block the edges of tokens for which an event must not occur between two others.

    Not of tokens that have used the event `but`.
    """
    for k in range(a.watched_from[type_], a.watched_from[type_ + 1]):
        state = a.watched[k]
        entry = state * a.edge_of.shape[1] + type_
        token = z.chains[partition, 2 * state] - 1
        while token >= 0:
            following = z.data[token, col.NEXT] - 1
            if not has_used(z, token, but, time):
                for w in range(a.watches_from[entry], a.watches_from[entry + 1]):
                    first, last = a.watches[w, col.OPS_FROM], a.watches[w, col.OPS_TO]
                    if agrees(a, z, token, first, last, values, i):
                        z.data[token, col.BLOCKED] |= a.watches[w, col.STOPS]
                if not set_deadline(a, z, token):
                    drop_token(z, token)
            token = following


@inlined
def count_others(a: KernelAutomaton, z: TokenArrays, partition: Int, time: Int) -> Int:
    """Whether there is a token that STRICT considers (1 or 0); an expired one is dropped.

    STRICT has one token at a time, so the one that was made last is it.
    """
    token = z.regs[col.NEWEST] - 1 if z.regs[col.LIVE_TOKENS] > 0 else -1
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
def beginning(
    a: KernelAutomaton, z: TokenArrays, types: Ints, values: Ints, first: Int, last: Int
) -> Int:
    """The first of some rows with which a token can begin; or -1."""
    for i in range(first, last):
        if types[i] >= 0:
            edge = a.edge_of[0, types[i]]
            if edge >= 0 and agrees(a, z, -1, a.ops_from[edge], a.ops_from[edge + 1], values, i):
                return i
    return -1


@inlined
def take_occurrence(
    a: KernelAutomaton, z: TokenArrays, types: Ints, values: Ints, first: Int, last: Int,
    time: Int, number: Int, but: Int, loops: bool, out: Longs, out_used: Longs,
) -> bool:  # fmt: skip
    """Offer an occurrence of an event, given by its rows, to the tokens; whether one uses it.

    At most one row can move a given token: other occurrences are not given to the kernel. The event
    `but` has other occurrences too, and does not move a token twice.
    """
    if types[first] < 0:
        return False
    partition = partition_of(a, z, types[first], values, first)
    strict = False
    if a.context == col.STRICT:
        strict = bool(count_others(a, z, partition, time) > 0)
        partition = partition_of(a, z, types[first], values, first)
    begins = beginning(a, z, types, values, first, last)
    token: Int = -1
    row: Int = begins
    if partition >= 0:
        for spare in range(2 if loops else 1):
            if token >= 0 or (spare == 1 and begins >= 0 and not strict):
                break
            for i in range(first, last):
                found = find_token(a, z, partition, types[i], values, i, time, spare, but)
                if found >= 0 and (
                    token < 0 or z.data[found, col.ORDER] < z.data[token, col.ORDER]
                ):
                    token = found
                    row = i
        if z.keys.rows[partition, z.keys.width] == 0:  # all its tokens had expired
            partition = -1
    if token >= 0:
        chain_out(z, token)
    elif begins >= 0 and not strict:
        token = begin(z, partition, time)
    else:
        return False
    edge = a.edge_of[z.data[token, col.STATE], types[row]]
    take_edge(a, z, token, edge, values, row, time, number, out, out_used)
    return True


@inlined
def end_event(
    a: KernelAutomaton, z: TokenArrays, types: Ints, values: Ints, first: Int, last: Int,
    time: Int, number: Int, out: Longs, out_used: Longs,
) -> None:  # fmt: skip
    """After all occurrences of an event (with PER, of one key): noise, NOT; STRICT begins anew."""
    noise = z.regs[col.CONSUMED] == 0 and a.context != col.CHRONICLE
    if noise:
        partition: Int = -1
        if a.per_key and types[first] >= 0:
            partition = partition_of(a, z, types[first], values, first)
        take_noise(a, z, partition)
    for i in range(first, last):
        type_ = types[i]
        if type_ >= 0 and a.watched_from[type_] < a.watched_from[type_ + 1]:
            partition = partition_of(a, z, type_, values, i)
            if partition >= 0:
                block_tokens(a, z, partition, type_, values, i, time, number)
    if noise and a.context == col.STRICT:
        row = beginning(a, z, types, values, first, last)
        if row >= 0:
            partition = partition_of(a, z, types[row], values, row)
            if count_others(a, z, partition, time) == 0:
                partition = partition_of(a, z, types[row], values, row)
                edge = a.edge_of[0, types[row]]
                token = begin(z, partition, time)
                take_edge(a, z, token, edge, values, row, time, number, out, out_used)


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
    types: Ints1,
    values: Ints2,
    times: Longs1,
    numbers: Longs1,
    begins: Ints1,
    out: Longs2,
    out_used: Longs1,
) -> Int:
    """Process events one by one, from row `regs[AT]` on; the reason for stopping."""
    many, loops = len(types), has_loops(a)
    new_group = col.NEW_KEY if a.per_key else col.NEW_EVENT
    while z.regs[col.AT] < many:
        first = z.regs[col.AT]
        time = times[first]
        if begins[first] == col.NEW_EVENT:
            stopped = run_timers(a, z, time, out, out_used)
            if stopped != DONE:
                return stopped
        if is_full(z, out, out_used):
            return FULL
        if has_no_room(z):
            return NO_ROOM
        z.regs[col.NOW] = time
        last = first + 1
        while last < many and begins[last] == col.SAME_OCCURRENCE:
            last += 1
        if begins[first] <= new_group:
            z.regs[col.GROUP] = first
            z.regs[col.CONSUMED] = 0
        number = numbers[first]
        alone = begins[first] == col.NEW_EVENT and (last == many or begins[last] == col.NEW_EVENT)
        but: Int = -1 if alone else number
        if take_occurrence(
            a, z, types, values, first, last, time, number, but, loops, out, out_used
        ):
            z.regs[col.CONSUMED] = 1
        if last == many or begins[last] <= new_group:
            group = z.regs[col.GROUP]
            end_event(a, z, types, values, group, last, time, number, out, out_used)
        z.regs[col.NUMBER] = number + 1
        z.regs[col.AT] = last
    return DONE


@compiled
def tokens_advance(
    a: KernelAutomaton, z: TokenArrays, to: Int, out: Longs2, out_used: Longs1
) -> Int:
    """Advance the time; the reason for stopping."""
    stopped = run_timers(a, z, to, out, out_used)
    if stopped == DONE:
        z.regs[col.NOW] = max(z.regs[col.NOW], to)
    return stopped


@compiled
def tokens_sweep(z: TokenArrays) -> None:
    """Drop expired tokens, and the timers of dropped tokens."""
    for token in range(z.regs[col.HIGH_TOKEN]):
        if z.data[token, col.PARTITION] >= 0 and z.data[token, col.DEADLINE] < z.regs[col.NOW]:
            drop_token(z, token)
    left = 0
    for at in range(z.regs[col.HEAP_SIZE]):
        if z.data[z.heap[at, 2], col.VERSION] == z.heap[at, 3]:
            for k in range(z.heap.shape[1]):
                z.heap[left, k] = z.heap[at, k]
            left += 1
    z.regs[col.HEAP_SIZE] = left
    for at in range(left // 2, -1, -1):
        sift_down(z, at)


@compiled
def tokens_put(
    a: KernelAutomaton, z: TokenArrays, saved: Longs2, used_to: Longs1, used: Longs1
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
        z.data[token, col.LAST] = saved[i, 4]
        for k in range(a.zones + a.slots):
            z.data[token, col.FIELDS + k] = saved[i, col.SAVED + k]
        for k in range(first, used_to[i]):
            use_event(z, token, used[k])
        first = used_to[i]
        z.regs[col.MAX_USED] = max(z.regs[col.MAX_USED], z.data[token, col.COUNT])
        chain_in(z, token)
        set_deadline(a, z, token)
        set_timers(a, z, token)
        expose(a, z, token)


@compiled
def tokens_listed(z: TokenArrays, rows: Longs2) -> None:
    """Copy the live tokens, in any order; `rows` has room for them all."""
    at = 0
    for token in range(z.regs[col.HIGH_TOKEN]):
        if z.data[token, col.PARTITION] >= 0:
            for k in range(rows.shape[1]):
                rows[at, k] = z.data[token, k]
            at += 1


@compiled
def tokens_used(rows: Longs2, links: Longs2, ends: Longs1, used: Longs1) -> Int:
    """List the events that each token has used, the oldest first; how many there are."""
    many = 0
    for at in range(len(rows)):
        first, link = many, rows[at, col.USED]
        while link:
            used[many] = links[link - 1, 0]
            many += 1
            link = links[link - 1, 1]
        for back in range((many - first) // 2):  # a token's links lead from its last event back
            one, other = first + back, many - 1 - back
            used[one], used[other] = used[other], used[one]
        ends[at] = many
    return many
