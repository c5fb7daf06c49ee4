"""The loop over events for patterns that noise, NOT and timers do not concern.

These are patterns in the CHRONICLE context, such as sequences within a time. Where besides each row
is an event of its own, an event only moves a token or begins one, and this loop does the same as
`tokens_step` with fewer instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import compiled
from graphtide.kernel.tokens import tables as col
from graphtide.kernel.tokens.lists import chain_out, partition_of
from graphtide.kernel.tokens.moves import agrees, take_edge
from graphtide.kernel.tokens.step import (
    DONE,
    FULL,
    NO_ROOM,
    begin,
    find_token,
    has_loops,
    has_no_room,
    is_full,
)

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1, Longs2
    from graphtide.kernel.batch import Int
    from graphtide.kernel.tokens.tables import KernelAutomaton, TokenArrays


@compiled
def tokens_plain_step(
    a: KernelAutomaton,
    z: TokenArrays,
    types: Ints1,
    values: Ints2,
    times: Longs1,
    numbers: Longs1,
    out: Longs2,
    out_used: Longs1,
) -> Int:
    """Process events one by one, from row `regs[AT]` on; the reason for stopping."""
    no_event: Int = -1
    loops = has_loops(a)
    for i in range(z.regs[col.AT], len(types)):
        type_ = types[i]
        if type_ < 0:
            continue
        z.regs[col.AT] = i
        if is_full(z, out, out_used):
            return FULL
        if has_no_room(z):
            return NO_ROOM
        time = times[i]
        z.regs[col.NOW] = time
        partition = partition_of(a, z, type_, values, i)
        start = a.edge_of[0, type_]
        begins = start >= 0 and agrees(
            a, z, -1, a.ops_from[start], a.ops_from[start + 1], values, i
        )
        token = no_event
        if partition >= 0:
            token = find_token(a, z, partition, type_, values, i, time, 0, no_event)
            if loops and token < 0 and not begins:
                token = find_token(a, z, partition, type_, values, i, time, 1, no_event)
            if z.keys.rows[partition, z.keys.width] == 0:  # all its tokens had expired
                partition = -1
        if token >= 0:
            chain_out(z, token)
        elif begins:
            token = begin(z, partition, time)
        else:
            continue
        edge = a.edge_of[z.data[token, col.STATE], type_]
        take_edge(a, z, token, edge, values, i, time, numbers[i], out, out_used)
    many = len(types)
    if many > 0:
        z.regs[col.NOW] = times[many - 1]
        z.regs[col.NUMBER] = numbers[many - 1] + 1
        z.regs[col.AT] = many
    return DONE
