"""Transitions of tokens: whether an event lets a token take an edge, and what that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import inlined
from graphtide.kernel.tokens import tables as col
from graphtide.kernel.tokens.lists import chain_in, expose, free_token, set_timer, use_event

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.kernel.tokens.tables import KernelAutomaton, TokenArrays


@inlined
def agrees(
    a: KernelAutomaton, z: TokenArrays, token: Int, first: Int, last: Int, values: Ints, i: Int
) -> bool:
    """Whether an event's values satisfy ops; token -1 is a new one with empty slots."""
    slots = col.FIELDS + a.zones
    for op in range(first, last):
        value = values[i, a.ops[op, col.VALUE_INDEX]]
        slot = a.ops[op, col.SLOT]
        if slot < 0:
            if value != a.ops[op, col.CONSTANT]:
                return False
            continue
        known = z.data[token, slots + slot] if token >= 0 else 0
        if known == 0:
            # The same variable may occur twice in one event.
            for earlier in range(first, op):
                if (
                    a.ops[earlier, col.SLOT] == slot
                    and values[i, a.ops[earlier, col.VALUE_INDEX]] != value
                ):
                    return False
        elif known != value:
            return False
    return True


@inlined
def in_time(a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, time: Int) -> bool:
    """Whether no zone that an edge stays in has lasted too long."""
    for g in range(a.guards_from[edge], a.guards_from[edge + 1]):
        if time - z.data[token, col.FIELDS + a.guards[g, col.ZONE]] > a.guards[g, col.DURATION]:
            return False
    return True


@inlined
def can_take(
    a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, values: Ints, i: Int, time: Int
) -> bool:
    """Whether a token can take an edge with an event."""
    if z.data[token, col.BLOCKED] >> a.edges[edge, col.BIT] & 1:
        return False
    if not in_time(a, z, token, edge, time):
        return False
    return agrees(a, z, token, a.ops_from[edge], a.ops_from[edge + 1], values, i)


@inlined
def set_deadline(a: KernelAutomaton, z: TokenArrays, token: Int) -> bool:
    """Set the last time at which a token can move; False if it never can."""
    state = z.data[token, col.STATE]
    latest = -col.NO_END
    for k in range(a.edges_out_from[state], a.edges_out_from[state + 1]):
        edge = a.edges_out[k]
        if z.data[token, col.BLOCKED] >> a.edges[edge, col.BIT] & 1:
            continue
        end = col.NO_END
        for g in range(a.guards_from[edge], a.guards_from[edge + 1]):
            end = min(
                end, z.data[token, col.FIELDS + a.guards[g, col.ZONE]] + a.guards[g, col.DURATION]
            )
        timer = a.edges[edge, col.TIMER]
        if timer >= 0:
            due = (
                z.data[token, col.FIELDS + a.timers[timer, col.TIMER_ZONE]]
                + a.timers[timer, col.TIMER_LENGTH]
            )
            if due > end:
                continue
            end = due
        latest = max(latest, end)
    z.data[token, col.DEADLINE] = latest
    return bool(latest > -col.NO_END)


@inlined
def enter(a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, time: Int) -> bool:
    """Move a token along an edge; whether the pattern is complete.

    A zone that ended too early blocks the edges after it.
    """
    final = a.edges[edge, col.FINAL] != 0
    blocked = 0
    for b in range(a.zones):
        if a.edges[edge, col.ENTERS] >> b & 1:
            z.data[token, col.FIELDS + b] = time
    for h in range(a.leasts_from[edge], a.leasts_from[edge + 1]):
        if time - z.data[token, col.FIELDS + a.leasts[h, col.ZONE]] < a.leasts[h, col.DURATION]:
            blocked |= a.leasts[h, col.BLOCKS]
            final = final and a.leasts[h, col.PREVENTS_END] == 0
    for h in range(a.orders_from[edge], a.orders_from[edge + 1]):
        begun = z.data[token, col.FIELDS + a.orders[h, col.ORDER_FIRST]]
        later = z.data[token, col.FIELDS + a.orders[h, col.ORDER_LATER]]
        if begun + a.orders[h, col.ORDER_LEAST] > later:
            blocked |= a.orders[h, col.ORDER_BLOCKS]
    z.data[token, col.STATE] = a.edges[edge, col.TARGET]
    z.data[token, col.BLOCKED] = blocked
    z.data[token, col.LAST] = time
    z.data[token, col.VERSION] += 1
    return final


@inlined
def set_timers(a: KernelAutomaton, z: TokenArrays, token: Int) -> None:
    """Start the timers of a token's state."""
    state = z.data[token, col.STATE]
    for k in range(a.timers_from[state], a.timers_from[state + 1]):
        due = (
            z.data[token, col.FIELDS + a.timers[k, col.TIMER_ZONE]] + a.timers[k, col.TIMER_LENGTH]
        )
        if not z.data[token, col.BLOCKED] >> a.edges[a.timers[k, col.TIMER_EDGE], col.BIT] & 1:
            set_timer(z, due, token, k)


@inlined
def write_match(
    a: KernelAutomaton, z: TokenArrays, token: Int, time: Int, out: Longs, out_used: Longs
) -> None:
    """Write a complete match."""
    n, end = z.regs[col.WRITTEN], z.regs[col.USED_WRITTEN] + z.data[token, col.COUNT]
    out[n, col.OUT_TIME] = time
    out[n, col.OUT_STARTED] = z.data[token, col.STARTED]
    out[n, col.OUT_AT] = z.regs[col.AT]
    out[n, col.OUT_USED] = end
    for k in range(len(a.shown)):
        out[n, col.OUT_VALUES + k] = z.data[token, col.FIELDS + a.zones + a.shown[k]]
    link, at = z.data[token, col.USED], end
    while link != 0:
        at -= 1
        out_used[at] = z.links[link - 1, 0]
        link = z.links[link - 1, 1]
    z.regs[col.WRITTEN] = n + 1
    z.regs[col.USED_WRITTEN] = end


@inlined
def finish_move(
    a: KernelAutomaton,
    z: TokenArrays,
    token: Int,
    final: bool,
    time: Int,
    out: Longs,
    out_used: Longs,
) -> bool:
    """After an edge: write the match, or leave the token in its new state; whether it lives on."""
    if final:
        write_match(a, z, token, time, out, out_used)
    if final or not set_deadline(a, z, token):
        free_token(z, token)
        return False
    chain_in(z, token)
    set_timers(a, z, token)
    expose(a, z, token)
    return True


@inlined
def take_edge(
    a: KernelAutomaton, z: TokenArrays, token: Int, edge: Int, values: Ints, i: Int, time: Int,
    number: Int, out: Longs, out_used: Longs,
) -> bool:  # fmt: skip
    """Let a token, which is in no chain of a state, use an event; whether it lives on."""
    for op in range(a.ops_from[edge], a.ops_from[edge + 1]):
        if a.ops[op, col.SLOT] >= 0:
            z.data[token, col.FIELDS + a.zones + a.ops[op, col.SLOT]] = values[
                i, a.ops[op, col.VALUE_INDEX]
            ]
    use_event(z, token, number)
    z.regs[col.MAX_USED] = max(z.regs[col.MAX_USED], z.data[token, col.COUNT])
    final = enter(a, z, token, edge, time)
    return finish_move(a, z, token, final, time, out, out_used)
