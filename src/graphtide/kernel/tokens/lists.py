"""Where tokens are kept: places, chains by age, partitions, used events, and the heap of timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.jit import inlined
from graphtide.kernel.rowtable import HEAD, add_row, find_slot, remove_row, row_mark
from graphtide.kernel.tokens.tables import (
    BLOCKED,
    COUNT,
    FREE_LINK,
    FREE_TOKEN,
    HIGH_LINK,
    HIGH_TOKEN,
    LIVE_TOKENS,
    MOST_LIVE,
    NEWER,
    NEWEST,
    NEXT,
    OLDER,
    OLDEST,
    ORDER,
    PARTITION,
    PREV,
    STATE,
    USED,
    VERSION,
    WAITING,
    KernelAutomaton,
    TokenArrays,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints


@inlined
def partition_of(a: KernelAutomaton, z: TokenArrays, type_: Int, values: Ints, i: Int) -> Int:
    """The partition of an event's key; -1 if no token has it."""
    for k in range(a.key.shape[1]):
        z.source[0, k] = values[i, a.key[type_, k]] if a.key[type_, k] >= 0 else 0
    mark = row_mark(z.keys.width, z.source, 0, 0)
    return z.keys.slots[find_slot(z.keys, mark, z.source, 0, 0), HEAD] - 1


@inlined
def new_partition(z: TokenArrays) -> Int:
    """A partition for the key in `source`."""
    mark = row_mark(z.keys.width, z.source, 0, 0)
    slot = find_slot(z.keys, mark, z.source, 0, 0)
    row = add_row(z.keys, slot, mark, z.source, 0, 0)
    for k in range(z.chains.shape[1]):
        z.chains[row, k] = 0
    return row


@inlined
def chain_in(z: TokenArrays, token: Int) -> None:
    """Put a token among those of its partition and state, by age."""
    partition, first = z.data[token, PARTITION], 2 * z.data[token, STATE]
    after = z.chains[partition, first + 1]
    while after != 0 and z.data[after - 1, ORDER] > z.data[token, ORDER]:
        after = z.data[after - 1, PREV]
    following = z.chains[partition, first] if after == 0 else z.data[after - 1, NEXT]
    z.data[token, PREV] = after
    z.data[token, NEXT] = following
    if after == 0:
        z.chains[partition, first] = token + 1
    else:
        z.data[after - 1, NEXT] = token + 1
    if following == 0:
        z.chains[partition, first + 1] = token + 1
    else:
        z.data[following - 1, PREV] = token + 1


@inlined
def chain_out(z: TokenArrays, token: Int) -> None:
    """Take a token out of the chain of its partition and state."""
    partition, first = z.data[token, PARTITION], 2 * z.data[token, STATE]
    before, following = z.data[token, PREV], z.data[token, NEXT]
    if before == 0:
        z.chains[partition, first] = following
    else:
        z.data[before - 1, NEXT] = following
    if following == 0:
        z.chains[partition, first + 1] = before
    else:
        z.data[following - 1, PREV] = before


@inlined
def new_token(z: TokenArrays, partition: Int) -> Int:
    """A place for a token, the newest of all; it is in no state's chain yet."""
    marks = z.marks
    token = marks[FREE_TOKEN] - 1
    if token >= 0:
        marks[FREE_TOKEN] = z.data[token, NEXT]
    else:
        token = marks[HIGH_TOKEN]
        marks[HIGH_TOKEN] += 1
    version = z.data[token, VERSION]
    for k in range(z.data.shape[1]):
        z.data[token, k] = 0
    z.data[token, VERSION] = version
    z.data[token, PARTITION] = partition
    z.keys.rows[partition, z.keys.width] += 1
    newest = marks[NEWEST]
    z.data[token, OLDER] = newest
    if newest == 0:
        marks[OLDEST] = token + 1
    else:
        z.data[newest - 1, NEWER] = token + 1
    marks[NEWEST] = token + 1
    marks[LIVE_TOKENS] += 1
    marks[MOST_LIVE] = max(marks[MOST_LIVE], marks[LIVE_TOKENS])
    return token


@inlined
def drop_token(z: TokenArrays, token: Int) -> None:
    """Forget a token and the events it has used; with the last one its partition."""
    marks = z.marks
    chain_out(z, token)
    older, newer = z.data[token, OLDER], z.data[token, NEWER]
    if older == 0:
        marks[OLDEST] = newer
    else:
        z.data[older - 1, NEWER] = newer
    if newer == 0:
        marks[NEWEST] = older
    else:
        z.data[newer - 1, OLDER] = older
    link = z.data[token, USED]
    while link != 0:
        following = z.links[link - 1, 1]
        z.links[link - 1, 1] = marks[FREE_LINK]
        marks[FREE_LINK] = link
        link = following
    partition = z.data[token, PARTITION]
    z.keys.rows[partition, z.keys.width] -= 1
    if z.keys.rows[partition, z.keys.width] == 0:
        remove_row(z.keys, partition)
    z.data[token, VERSION] += 1
    z.data[token, BLOCKED] = 0
    z.data[token, NEXT] = marks[FREE_TOKEN]
    marks[FREE_TOKEN] = token + 1
    marks[LIVE_TOKENS] -= 1


@inlined
def use_event(z: TokenArrays, token: Int, number: Int) -> None:
    """Note that a token has used an event."""
    marks = z.marks
    link = marks[FREE_LINK] - 1
    if link >= 0:
        marks[FREE_LINK] = z.links[link, 1]
    else:
        link = marks[HIGH_LINK]
        marks[HIGH_LINK] += 1
    z.links[link, 0] = number
    z.links[link, 1] = z.data[token, USED]
    z.data[token, USED] = link + 1
    z.data[token, COUNT] += 1


@inlined
def sooner(z: TokenArrays, left: Int, right: Int) -> bool:
    """Whether an entry of the heap is due before another: by time, then by the token's age."""
    if z.heap[left, 0] != z.heap[right, 0]:
        return bool(z.heap[left, 0] < z.heap[right, 0])
    return bool(z.heap[left, 1] < z.heap[right, 1])


@inlined
def swap(z: TokenArrays, left: Int, right: Int) -> None:
    """Exchange two entries of the heap."""
    for k in range(z.heap.shape[1]):
        kept = z.heap[left, k]
        z.heap[left, k] = z.heap[right, k]
        z.heap[right, k] = kept


@inlined
def set_timer(z: TokenArrays, due: Int, token: Int, timer: Int) -> None:
    """Let a token's timer wait for its time."""
    at = z.marks[WAITING]
    z.heap[at, 0] = due
    z.heap[at, 1] = z.data[token, ORDER]
    z.heap[at, 2] = token
    z.heap[at, 3] = z.data[token, VERSION]
    z.heap[at, 4] = timer
    z.marks[WAITING] = at + 1
    while at > 0 and sooner(z, at, (at - 1) // 2):
        swap(z, at, (at - 1) // 2)
        at = (at - 1) // 2


@inlined
def sift_down(z: TokenArrays, at: Int) -> None:
    """Let an entry of the heap sink to its place."""
    last = z.marks[WAITING]
    while True:
        least = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < last and sooner(z, child, least):
                least = child
        if least == at:
            return
        swap(z, at, least)
        at = least


@inlined
def first_timer_gone(z: TokenArrays) -> None:
    """Take the first entry off the heap."""
    z.marks[WAITING] -= 1
    swap(z, 0, z.marks[WAITING])
    sift_down(z, 0)
