"""Storage of tokens: free lists, chains by age, partitions, used events, the heap of timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import inlined
from graphtide.kernel.rowtable import HEAD, add_row, find_slot, remove_row, row_hash
from graphtide.kernel.tokens import tables as col

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints
    from graphtide.kernel.tokens.tables import KernelAutomaton, TokenArrays


@inlined
def partition_of(a: KernelAutomaton, z: TokenArrays, type_: Int, values: Ints, i: Int) -> Int:
    """The partition of an event's key; -1 if no token has it."""
    for k in range(a.key.shape[1]):
        z.source[0, k] = values[i, a.key[type_, k]] if a.key[type_, k] >= 0 else 0
    hash_ = row_hash(z.keys.width, z.source, 0, 0)
    return z.keys.slots[find_slot(z.keys, hash_, z.source, 0, 0), HEAD] - 1


@inlined
def new_partition(z: TokenArrays) -> Int:
    """A partition for the key in `source`."""
    hash_ = row_hash(z.keys.width, z.source, 0, 0)
    slot = find_slot(z.keys, hash_, z.source, 0, 0)
    row = add_row(z.keys, slot, hash_, z.source, 0, 0)
    for k in range(z.chains.shape[1]):
        z.chains[row, k] = 0
    return row


@inlined
def chain_in(z: TokenArrays, token: Int) -> None:
    """Add a token to the chain of its partition and state, by age."""
    partition, first = z.data[token, col.PARTITION], 2 * z.data[token, col.STATE]
    after = z.chains[partition, first + 1]
    while after != 0 and z.data[after - 1, col.ORDER] > z.data[token, col.ORDER]:
        after = z.data[after - 1, col.PREV]
    following = z.chains[partition, first] if after == 0 else z.data[after - 1, col.NEXT]
    z.data[token, col.PREV] = after
    z.data[token, col.NEXT] = following
    if after == 0:
        z.chains[partition, first] = token + 1
    else:
        z.data[after - 1, col.NEXT] = token + 1
    if following == 0:
        z.chains[partition, first + 1] = token + 1
    else:
        z.data[following - 1, col.PREV] = token + 1


@inlined
def expose(a: KernelAutomaton, z: TokenArrays, token: Int) -> None:
    """Chain a token that noise concerns; with PER, noise finds it by its partition."""
    if a.context == col.CHRONICLE or a.per_key:
        return
    if a.noise_stops[z.data[token, col.STATE]] & ~z.data[token, col.BLOCKED] == 0:
        return
    first = z.regs[col.EXPOSED]
    z.data[token, col.PREV_EXPOSED] = -1
    z.data[token, col.NEXT_EXPOSED] = first
    if first != 0:
        z.data[first - 1, col.PREV_EXPOSED] = token + 1
    z.regs[col.EXPOSED] = token + 1


@inlined
def hide(z: TokenArrays, token: Int) -> None:
    """Remove a token from the chain of those that noise concerns, if it is there."""
    if z.regs[col.EXPOSED] == 0 or z.data[token, col.PREV_EXPOSED] == 0:
        return
    before, following = z.data[token, col.PREV_EXPOSED], z.data[token, col.NEXT_EXPOSED]
    if before < 0:
        z.regs[col.EXPOSED] = following
    else:
        z.data[before - 1, col.NEXT_EXPOSED] = following
    if following != 0:
        z.data[following - 1, col.PREV_EXPOSED] = before
    z.data[token, col.PREV_EXPOSED] = 0


@inlined
def chain_out(z: TokenArrays, token: Int) -> None:
    """Remove a token from the chain of its partition and state."""
    hide(z, token)
    partition, first = z.data[token, col.PARTITION], 2 * z.data[token, col.STATE]
    before, following = z.data[token, col.PREV], z.data[token, col.NEXT]
    if before == 0:
        z.chains[partition, first] = following
    else:
        z.data[before - 1, col.NEXT] = following
    if following == 0:
        z.chains[partition, first + 1] = before
    else:
        z.data[following - 1, col.PREV] = before


@inlined
def new_token(z: TokenArrays, partition: Int) -> Int:
    """Allocate a token, the newest of all; it is in no state's chain yet."""
    regs = z.regs
    token = regs[col.FREE_TOKEN] - 1
    if token >= 0:
        regs[col.FREE_TOKEN] = z.data[token, col.NEXT]
    else:
        token = regs[col.HIGH_TOKEN]
        regs[col.HIGH_TOKEN] += 1
    version = z.data[token, col.VERSION]
    for k in range(z.data.shape[1]):
        z.data[token, k] = 0
    z.data[token, col.VERSION] = version
    z.data[token, col.PARTITION] = partition
    z.keys.rows[partition, z.keys.width] += 1
    regs[col.NEWEST] = token + 1
    regs[col.LIVE_TOKENS] += 1
    regs[col.PEAK_LIVE] = max(regs[col.PEAK_LIVE], regs[col.LIVE_TOKENS])
    return token


@inlined
def drop_token(z: TokenArrays, token: Int) -> None:
    """Remove a token from its chain, and free it."""
    chain_out(z, token)
    free_token(z, token)


@inlined
def free_token(z: TokenArrays, token: Int) -> None:
    """Free a token and its used events, and with its last token the partition."""
    regs = z.regs
    if z.data[token, col.USED] != 0:
        z.links[z.data[token, col.FIRST_USED] - 1, 1] = regs[col.FREE_LINK]
        regs[col.FREE_LINK] = z.data[token, col.USED]
    partition = z.data[token, col.PARTITION]
    z.keys.rows[partition, z.keys.width] -= 1
    if z.keys.rows[partition, z.keys.width] == 0:
        remove_row(z.keys, partition)
    z.data[token, col.PARTITION] = -1
    z.data[token, col.VERSION] += 1
    z.data[token, col.BLOCKED] = 0
    z.data[token, col.NEXT] = regs[col.FREE_TOKEN]
    regs[col.FREE_TOKEN] = token + 1
    regs[col.LIVE_TOKENS] -= 1


@inlined
def use_event(z: TokenArrays, token: Int, number: Int) -> None:
    """Add an event to those that a token has used."""
    regs = z.regs
    link = regs[col.FREE_LINK] - 1
    if link >= 0:
        regs[col.FREE_LINK] = z.links[link, 1]
    else:
        link = regs[col.HIGH_LINK]
        regs[col.HIGH_LINK] += 1
    z.links[link, 0] = number
    z.links[link, 1] = z.data[token, col.USED]
    if z.data[token, col.USED] == 0:
        z.data[token, col.FIRST_USED] = link + 1
    z.data[token, col.USED] = link + 1
    z.data[token, col.COUNT] += 1


@inlined
def due_before(z: TokenArrays, left: Int, right: Int) -> bool:
    """Whether an entry of the heap is due before another: by time, then by the token's age."""
    if z.heap[left, 0] != z.heap[right, 0]:
        return bool(z.heap[left, 0] < z.heap[right, 0])
    return bool(z.heap[left, 1] < z.heap[right, 1])


@inlined
def swap(z: TokenArrays, left: Int, right: Int) -> None:
    """Exchange two entries of the heap."""
    for k in range(z.heap.shape[1]):
        other = z.heap[left, k]
        z.heap[left, k] = z.heap[right, k]
        z.heap[right, k] = other


@inlined
def set_timer(z: TokenArrays, due: Int, token: Int, timer: Int) -> None:
    """Push a timer of a token onto the heap."""
    at = z.regs[col.HEAP_SIZE]
    z.heap[at, 0] = due
    z.heap[at, 1] = z.data[token, col.ORDER]
    z.heap[at, 2] = token
    z.heap[at, 3] = z.data[token, col.VERSION]
    z.heap[at, 4] = timer
    z.regs[col.HEAP_SIZE] = at + 1
    while at > 0 and due_before(z, at, (at - 1) // 2):
        swap(z, at, (at - 1) // 2)
        at = (at - 1) // 2


@inlined
def sift_down(z: TokenArrays, at: Int) -> None:
    """Restore the heap below an entry."""
    last = z.regs[col.HEAP_SIZE]
    while True:
        least = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < last and due_before(z, child, least):
                least = child
        if least == at:
            return
        swap(z, at, least)
        at = least


@inlined
def pop_timer(z: TokenArrays) -> None:
    """Remove the first entry of the heap."""
    z.regs[col.HEAP_SIZE] -= 1
    swap(z, 0, z.regs[col.HEAP_SIZE])
    sift_down(z, 0)
