"""Facts in a hash table by the variables that they share with events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, TX, Int, Ints
from graphtide.kernel.counts import COUNT_BEFORE
from graphtide.rules.kernel.layout import FREE, LIVE, PEAK, FactArrays
from graphtide.rules.kernel.memory import bucket_at, first_state, folded

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1

ABSENT: Final = -(1 << 62)
"""The number of a fact that is not there."""


@inlined
def fact_bucket(values: Ints, columns: Ints, many: Int, buckets: Int) -> Int:
    """The bucket of the first `many` of some columns."""
    state = first_state(1)
    for k in range(many):
        state = folded(state, values[columns[k]])
    return bucket_at(state, buckets)


@inlined
def _find(facts: FactArrays, bucket: Int, columns: Ints, values: Ints) -> Int:
    """The place of a fact whose values are some columns of a row; -1 if there is none."""
    place = facts.heads[bucket]
    while place >= 0:
        same = True
        for k in range(facts.rows.shape[1]):
            if facts.rows[place, k] != values[columns[k]]:
                same = False
                break
        if same:
            break
        place = facts.links[place]
    return np.int64(place)


@compiled
def change_facts(facts: FactArrays, columns: Ints1, many: Int, net: Ints2, first: Int) -> None:
    """Apply a net delta: `columns` of `net` have the values, the key first.

    There must be room for all rows.
    """
    for i in range(len(net)):
        before = net[i, COUNT_BEFORE]
        after = before + net[i, DIFF]
        if (before > 0) == (after > 0):
            continue
        bucket = fact_bucket(net[i], columns, many, len(facts.heads))
        if after > 0:
            place = facts.meta[FREE]
            facts.meta[FREE] = facts.links[place]
            facts.meta[LIVE] += 1
            facts.meta[PEAK] = max(facts.meta[PEAK], facts.meta[LIVE])
            for k in range(facts.rows.shape[1]):
                facts.rows[place, k] = net[i, columns[k]]
            facts.number[place] = first + net[i, TX]
            facts.links[place] = facts.heads[bucket]
            facts.heads[bucket] = place
        else:
            _remove(facts, bucket, _find(facts, bucket, columns, net[i]))


@inlined
def _remove(facts: FactArrays, bucket: Int, place: Int) -> None:
    if facts.heads[bucket] == place:
        facts.heads[bucket] = facts.links[place]
    else:
        left = facts.heads[bucket]
        while facts.links[left] != place:
            left = facts.links[left]
        facts.links[left] = facts.links[place]
    facts.links[place] = facts.meta[FREE]
    facts.meta[FREE] = place
    facts.meta[LIVE] -= 1


@compiled
def refill_facts(old: FactArrays, new: FactArrays, many: Int) -> None:
    """Copy the facts of one table into another, which is empty and large enough."""
    width = old.rows.shape[1]
    for bucket in range(len(old.heads)):
        place = old.heads[bucket]
        while place >= 0:
            free = new.meta[FREE]
            new.meta[FREE] = new.links[free]
            new.meta[LIVE] += 1
            for k in range(width):
                new.rows[free, k] = old.rows[place, k]
            new.number[free] = old.number[place]
            home = _own_bucket(new, free, many)
            new.links[free] = new.heads[home]
            new.heads[home] = free
            place = old.links[place]
    new.meta[PEAK] = max(old.meta[PEAK], new.meta[LIVE])


@inlined
def _own_bucket(facts: FactArrays, place: Int, many: Int) -> Int:
    return row_bucket(facts.rows[place], many, len(facts.heads))


@inlined
def row_bucket(values: Ints, many: Int, buckets: Int) -> Int:
    """The bucket of a row whose first `many` values are the key."""
    state = first_state(1)
    for k in range(many):
        state = folded(state, values[k])
    return bucket_at(state, buckets)


@compiled
def fact_number(facts: FactArrays, values: Ints1, many: Int) -> Int:
    """The number of the transaction since which a fact holds; ABSENT if it does not."""
    place = facts.heads[row_bucket(values, many, len(facts.heads))]
    while place >= 0:
        same = True
        for k in range(len(values)):
            if facts.rows[place, k] != values[k]:
                same = False
                break
        if same:
            return np.int64(facts.number[place])
        place = facts.links[place]
    return ABSENT


@compiled
def facts_hold(facts: FactArrays, rows: Ints2, many: Int, since: Longs1, out: Ints1) -> None:
    """For each row, 1 if the fact has held since before a transaction, else 0."""
    for i in range(len(rows)):
        out[i] = 1 if ABSENT < fact_number(facts, rows[i], many) < since[i] else 0
