"""What the loops over a join tree work on: weights by key, and the changes of a transaction.

A *weight* is a line of int64: the number of rows, then the sums of what is aggregated. Weights of
rows that are joined are multiplied. If a number is too large, this is noted, and the loop goes on
modulo 2^64: what the inputs have sent can be restored from that, and all else follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.jit import inlined
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    LIVE,
    SIZE,
    USED,
    Table,
    add_row,
    find_slot,
    home_of,
    row_hash,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints, Longs

ALL_ROWS, BOUND, NUMBERS = 0, 1, 2
"""What an aggregate counts: rows, bound values, or whole numbers, which it adds up too."""

MODE, PART, MEAN = 0, 1, 2
"""Columns of `aggregates`: what it counts, where its part of a weight begins, and whether it is a
mean. Of numbers, a weight has the sum, their count, and the count of values that are none."""

OF_INPUT, ARGUMENT, KIND, AT = 0, 1, 2, 3
"""Columns of `arguments`: input, column of a batch or -1, what is counted, and part of a weight."""

FIRST, MANY = 0, 1
"""Columns of `lists`: the first change of a table, plus 1, and how many there are."""

PHASE, NOW, NODE, SLOT, CHANGE, DEPTH, BUDGET, EVENTS, WAITING, NEED, TOO_LARGE, ALWAYS = range(12)
"""Cells of `state`: where a loop goes on, how many rows it looks at before it returns, what it has
written, how much room it needs, whether a number was too large, and whether the group without a key
is there even if it is empty."""

NEW = 1
"""`ALWAYS` as long as that group was not put out; then it is larger."""

BEGIN, READ, JOIN, GROUP = range(4)
"""Phases of a batch; but for the first, of each transaction."""

DONE, CHANGES, KEYS, GROUPS, TIME, UNKNOWN_IDS, NOT_WHOLE = range(7)
"""Why a loop returns: it is done; there is no room for changes, keys or groups; the budget is used
up; or, before anything is done, ids of which nothing is known, or values that are not added up."""

MOST = 1 << 58
"""Larger numbers are too large: for the digits of a mean, ten times its count is needed."""


class Weighted(NamedTuple):
    """A row table, and the weight of each row."""

    table: Table
    weights: Longs


class Changes(NamedTuple):
    """The changes of a transaction, with a list for each table, and the next key."""

    table: Table
    weights: Longs
    lists: Longs
    key: Ints


class GroupEvents(NamedTuple):
    """The groups, what they aggregate, and what they have after each transaction."""

    groups: Weighted
    aggregates: Ints
    events: Ints
    results: Ints
    pending: Longs


@inlined
def room_in(t: Table) -> Int:
    """How many more rows fit into a table, with a new key each."""
    room = min(np.int64(len(t.rows)), np.int64(len(t.slots)) * 7 // 10) - t.meta[LIVE]
    for index in range(len(t.indexes)):
        room = min(room, np.int64(t.indexes[index, SIZE]) * 7 // 10 - t.indexes[index, USED])
    return room


@inlined
def plus(one: Int, other: Int, state: Longs) -> Int:
    """A sum."""
    total = one + other
    if total > MOST or total < -MOST:
        state[TOO_LARGE] = 1
    return total


@inlined
def times(one: Int, other: Int, state: Longs) -> Int:
    """A product."""
    if abs(np.float64(one) * np.float64(other)) > MOST:
        state[TOO_LARGE] = 1
    return one * other


@inlined
def add_weight(weights: Longs, row: Int, others: Longs, at: Int, state: Longs) -> bool:
    """Add a weight to that of a row; whether it is not zero then."""
    some = False
    for part in range(weights.shape[1]):
        total = plus(weights[row, part], others[at, part], state)
        weights[row, part] = total
        some = some or total != 0
    return some


@inlined
def is_zero(weights: Longs, row: Int) -> bool:
    """Whether a weight is zero."""
    for part in range(weights.shape[1]):
        if weights[row, part] != 0:
            return False
    return True


@inlined
def add_change(changes: Changes, weights: Longs, at: Int, state: Longs) -> None:
    """Add a weight to the change of the key; there is room for one more."""
    c, key, lists = changes.table, changes.key, changes.lists
    hash_ = row_hash(c.width, key, 0, 0)
    slot = find_slot(c, hash_, key, 0, 0)
    row = c.slots[slot, HEAD] - 1
    if row < 0:
        row = add_row(c, slot, hash_, key, 0, 0)
        table = key[0, 0]
        c.rows[row, c.width + 1] = lists[table, FIRST]
        lists[table, FIRST] = row + 1
        lists[table, MANY] += 1
        for part in range(weights.shape[1]):
            changes.weights[row, part] = 0
    add_weight(changes.weights, row, weights, at, state)


@inlined
def clear_changes(changes: Changes) -> None:
    """Forget all changes."""
    c, lists = changes.table, changes.lists
    size = c.slots.shape[0]
    for row in range(c.meta[HIGH]):
        slot = home_of(row_hash(c.width, c.rows, row, 0), size)
        while c.slots[slot, HEAD] != row + 1:
            slot += 1
            if slot == size:
                slot = 0
        c.slots[slot, HEAD] = 0
    c.meta[HIGH], c.meta[LIVE] = 0, 0
    for table in range(len(lists)):
        lists[table, FIRST], lists[table, MANY] = 0, 0


@inlined
def set_key(key: Ints, table: Int, width: Int) -> None:
    """Let a key be of a table; behind its columns are zeros."""
    key[0, 0] = table
    for k in range(1 + width, key.shape[1]):
        key[0, k] = 0
