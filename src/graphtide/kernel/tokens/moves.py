"""How a token takes an edge: what the event must be like, and what the token is like afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import inlined
from graphtide.kernel.tokens.lists import chain_in, chain_out, drop_token, set_timer, use_event
from graphtide.kernel.tokens.tables import (
    AT,
    BIT,
    BLOCKED,
    BLOCKS,
    CONSTANT,
    COUNT,
    DEADLINE,
    ENTERS,
    FIELDS,
    FINAL,
    LENGTH_,
    LONGEST,
    NO_END,
    ORDER_BLOCKS,
    ORDER_FIRST,
    ORDER_LATER,
    ORDER_LEAST,
    OUT_AT,
    OUT_STARTED,
    OUT_TIME,
    OUT_USED,
    OUT_VALUES,
    PLACE,
    SLOT,
    STARTED,
    STATE,
    TARGET,
    TIMER,
    TIMER_EDGE,
    TIMER_LENGTH,
    TIMER_ZONE,
    UNENDS,
    USED,
    USED_WRITTEN,
    VERSION,
    WRITTEN,
    ZONE,
    KernelAutomaton,
    TokenArrays,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs


@inlined
def agrees(
    a: KernelAutomaton, z: TokenArrays, token: Int, first: Int, last: Int, values: Ints, i: Int
) -> bool:
    """Whether an event's values are those that ops ask for; a token of -1 knows none yet."""
    slots = FIELDS + a.zones
    for op in range(first, last):
        value = values[i, a.ops[op, PLACE]]
        slot = a.ops[op, SLOT]
        if slot < 0:
            if value != a.ops[op, CONSTANT]:
                return False
            continue
        known = z.data[token, slots + slot] if token >= 0 else 0
        if known == 0:
            # The same variable may stand twice in one event.
            for earlier in range(first, op):
                if a.ops[earlier, SLOT] == slot and values[i, a.ops[earlier, PLACE]] != value:
                    return False
        elif known != value:
            return False
    return True


@inlined
def in_time(a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, time: Int) -> bool:
    """Whether the zones that an edge goes on with have not lasted too long."""
    for g in range(a.guards_from[edge], a.guards_from[edge + 1]):
        if time - z.data[token, FIELDS + a.guards[g, ZONE]] > a.guards[g, LENGTH_]:
            return False
    return True


@inlined
def can_take(
    a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, values: Ints, i: Int, time: Int
) -> bool:
    """Whether a token can take an edge with an event."""
    if z.data[token, BLOCKED] >> a.edges[edge, BIT] & 1:
        return False
    if not in_time(a, z, token, edge, time):
        return False
    return agrees(a, z, token, a.ops_from[edge], a.ops_from[edge + 1], values, i)


@inlined
def set_deadline(a: KernelAutomaton, z: TokenArrays, token: Int) -> bool:
    """Note until when a token may go on; False if it never can."""
    state = z.data[token, STATE]
    latest = -NO_END
    for k in range(a.edges_out_from[state], a.edges_out_from[state + 1]):
        edge = a.edges_out[k]
        if z.data[token, BLOCKED] >> a.edges[edge, BIT] & 1:
            continue
        end = NO_END
        for g in range(a.guards_from[edge], a.guards_from[edge + 1]):
            end = min(end, z.data[token, FIELDS + a.guards[g, ZONE]] + a.guards[g, LENGTH_])
        timer = a.edges[edge, TIMER]
        if timer >= 0:
            due = (
                z.data[token, FIELDS + a.timers[timer, TIMER_ZONE]] + a.timers[timer, TIMER_LENGTH]
            )
            if due > end:
                continue
            end = due
        latest = max(latest, end)
    z.data[token, DEADLINE] = latest
    return bool(latest > -NO_END)


@inlined
def enter(a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, time: Int) -> bool:
    """Follow an edge at a time, with what was known; whether the pattern is complete.

    A part that was complete too early blocks what comes after it.
    """
    final = a.edges[edge, FINAL] != 0
    blocked = 0
    for b in range(a.zones):
        if a.edges[edge, ENTERS] >> b & 1:
            z.data[token, FIELDS + b] = time
    for h in range(a.leasts_from[edge], a.leasts_from[edge + 1]):
        if time - z.data[token, FIELDS + a.leasts[h, ZONE]] < a.leasts[h, LENGTH_]:
            blocked |= a.leasts[h, BLOCKS]
            final = final and a.leasts[h, UNENDS] == 0
    for h in range(a.orders_from[edge], a.orders_from[edge + 1]):
        begun = z.data[token, FIELDS + a.orders[h, ORDER_FIRST]]
        later = z.data[token, FIELDS + a.orders[h, ORDER_LATER]]
        if begun + a.orders[h, ORDER_LEAST] > later:
            blocked |= a.orders[h, ORDER_BLOCKS]
    z.data[token, STATE] = a.edges[edge, TARGET]
    z.data[token, BLOCKED] = blocked
    z.data[token, VERSION] += 1
    return final


@inlined
def set_timers(a: KernelAutomaton, z: TokenArrays, token: Int) -> None:
    """Let the timers of a token's state wait."""
    state = z.data[token, STATE]
    for k in range(a.timers_from[state], a.timers_from[state + 1]):
        due = z.data[token, FIELDS + a.timers[k, TIMER_ZONE]] + a.timers[k, TIMER_LENGTH]
        if not z.data[token, BLOCKED] >> a.edges[a.timers[k, TIMER_EDGE], BIT] & 1:
            set_timer(z, due, token, k)


@inlined
def write_match(
    a: KernelAutomaton, z: TokenArrays, token: Int, time: Int, out: Longs, out_used: Longs
) -> None:
    """Write a complete match."""
    n, end = z.marks[WRITTEN], z.marks[USED_WRITTEN] + z.data[token, COUNT]
    out[n, OUT_TIME] = time
    out[n, OUT_STARTED] = z.data[token, STARTED]
    out[n, OUT_AT] = z.marks[AT]
    out[n, OUT_USED] = end
    for k in range(len(a.shown)):
        out[n, OUT_VALUES + k] = z.data[token, FIELDS + a.zones + a.shown[k]]
    link, at = z.data[token, USED], end
    while link != 0:
        at -= 1
        out_used[at] = z.links[link - 1, 0]
        link = z.links[link - 1, 1]
    z.marks[WRITTEN] = n + 1
    z.marks[USED_WRITTEN] = end


@inlined
def settle(
    a: KernelAutomaton,
    z: TokenArrays,
    token: Int,
    final: bool,
    time: Int,
    out: Longs,
    out_used: Longs,
) -> bool:
    """After an edge: write the match, or let the token wait in its new state; whether it lives."""
    chain_in(z, token)
    if final:
        write_match(a, z, token, time, out, out_used)
        drop_token(z, token)
        return False
    if not set_deadline(a, z, token):
        drop_token(z, token)
        return False
    set_timers(a, z, token)
    return True


@inlined
def take_edge(
    a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, values: Ints, i: Int, time: Int, number: Int,
    out: Longs, out_used: Longs,
) -> bool:  # fmt: skip
    """A token uses an event; whether it is still there afterwards."""
    chain_out(z, token)
    for op in range(a.ops_from[edge], a.ops_from[edge + 1]):
        if a.ops[op, SLOT] >= 0:
            z.data[token, FIELDS + a.zones + a.ops[op, SLOT]] = values[i, a.ops[op, PLACE]]
    use_event(z, token, number)
    z.marks[LONGEST] = max(z.marks[LONGEST], z.data[token, COUNT])
    final = enter(a, z, token, edge, time)
    return settle(a, z, token, final, time, out, out_used)
