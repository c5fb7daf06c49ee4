"""Groups of rows with counts, sums of whole numbers, and values in order: GROUP BY.

A row table has the keys, and `totals` the state of each group: how many rows it has, and for each
aggregate a sum (or a tree of values, `kernel.ordered`), the number of its values, and the number of
values that have none. For each transaction and each group that it touches there is one event: what
the group has then. Interning results is left to the caller, once for all events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, TX, Int, Ints, Longs
from graphtide.kernel.ordered import (
    ID,
    LEFT,
    RIGHT,
    TIMES,
    OrderedValues,
    Trees,
    change_times,
    outermost,
)
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    RowTable,
    Table,
    add_row,
    find_slot,
    remove_row,
    row_hash,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

ROWS, VALUES_OF, PARTS = 0, 1, 3
"""Columns of `totals`: the rows, then three for each aggregate."""

TOTAL, COUNT, BAD = 0, 1, 2
"""What is kept of each aggregate."""

ALL_ROWS, BOUND, NUMBERS, LEAST, GREATEST, DISTINCT = 0, 1, 2, 3, 4, 5
"""What an aggregate counts: rows, bound values, whole numbers, which it adds up too, ordered values
of which it has the first or the last, or different values."""

NO_NUMBER, WHOLE, UNKNOWN = 1, 2, 3
"""Classes of values; the sum of an unknown one cannot be taken here."""

MOST = float(1 << 62)
"""Sums that might be larger are not taken here."""

MANY_ROWS = 4096
"""Rows of a batch from which on its groups are counted before there is room made for them."""

EVENT_TX, GROUP, THERE = 0, 1, 2
"""Columns of an event; its totals are in another array."""


@inlined
def largest_change(
    batch: Ints, modes: Ints, arguments: Ints, classes: Ints, numbers: Numbers
) -> float:
    """The most that a batch can add to a sum; -1 if a value is unknown."""
    largest = 0.0
    for a in range(len(modes)):
        if modes[a] != NUMBERS or arguments[a] < 0:
            continue
        most = 0.0
        for i in range(len(batch)):
            id_ = batch[i, arguments[a]]
            if classes[id_] == UNKNOWN:
                return -1.0
            if classes[id_] == WHOLE:
                most += abs(numbers[id_]) * abs(batch[i, DIFF])
        largest = max(largest, most)
    return largest


@inlined
def change_tree(
    trees: Trees, totals: Longs, group: Int, at: Int, mode: Int, id_: Int, number: float, diff: Int
) -> None:
    """Add a value to the tree of a group, or remove it; different values are counted."""
    key = np.float64(id_) if mode == DISTINCT else number
    root, before = change_times(trees, totals[group, at + TOTAL], id_, key, diff)
    totals[group, at + TOTAL] = root
    totals[group, at + COUNT] += np.int64(before + diff > 0) - np.int64(before > 0)


@inlined
def drop_root(trees: Trees, totals: Longs, group: Int, at: Int) -> None:
    """Remove the value at the root of a tree."""
    node = totals[group, at] - 1
    times = np.int64(trees.nodes[node, TIMES])
    root, _ = change_times(
        trees, totals[group, at], trees.nodes[node, ID], trees.order[node], -times
    )
    totals[group, at] = root


@compiled
def group_step(
    t: Table,
    trees: Trees,
    totals: Longs,
    batch: Ints,
    keys: Ints,
    modes: Ints,
    arguments: Ints,
    owners: Ints,
    classes: Ints,
    numbers: Numbers,
    always: bool,
    key: Ints,
    touched: Ints,
    events: Ints,
    results: Longs,
    most: Numbers,
) -> Int:
    """Add a batch; write an event for each transaction and group, return how many.

    Groups that have become empty stay in the table: events name them. Returns -1, with nothing
    done, if a value is unknown, and -2 if a sum might be too large; none is larger than `most`.
    """
    change = largest_change(batch, modes, arguments, classes, numbers)
    if change < 0:
        return -1
    if most[0] + change > MOST:
        return -2
    most[0] += change
    note = t.width + 1  # a live row's unused cell holds its index in `touched`, plus 1
    n = 0
    i = 0
    while i < len(batch):
        tx = batch[i, TX]
        many = 0
        while i < len(batch) and batch[i, TX] == tx:
            for k in range(len(keys)):
                key[0, k] = batch[i, keys[k]]
            hash_ = row_hash(t.width, key, 0, 0)
            slot = find_slot(t, hash_, key, 0, 0)
            group = t.slots[slot, HEAD] - 1
            if group < 0:
                group = add_row(t, slot, hash_, key, 0, 0)
                t.rows[group, t.width] = 1
                t.rows[group, note] = 0
                for k in range(totals.shape[1]):
                    totals[group, k] = 0
            if t.rows[group, note] == 0:
                touched[many] = group
                many += 1
                t.rows[group, note] = many
            diff = np.int64(batch[i, DIFF])
            totals[group, ROWS] += diff
            for a in range(len(modes)):
                at = VALUES_OF + PARTS * a
                id_ = batch[i, arguments[a]] if arguments[a] >= 0 else np.int32(0)
                if modes[a] == NUMBERS and classes[id_] == WHOLE:
                    totals[group, at + TOTAL] += np.int64(numbers[id_]) * diff
                    totals[group, at + COUNT] += diff
                elif modes[a] >= LEAST and id_ != 0:
                    if owners[a] == a:
                        change_tree(trees, totals, group, at, modes[a], id_, numbers[id_], diff)
                elif modes[a] == NUMBERS or modes[a] >= LEAST:
                    totals[group, at + BAD] += diff
                elif modes[a] == ALL_ROWS or id_ != 0:
                    totals[group, at + COUNT] += diff
            i += 1
        for k in range(many):
            group = touched[k]
            t.rows[group, note] = 0
            there = totals[group, ROWS] > 0 or always
            events[n, EVENT_TX], events[n, GROUP], events[n, THERE] = tx, group, there
            for c in range(totals.shape[1]):
                results[n, c] = totals[group, c]
            for a in range(len(modes)):
                if modes[a] >= LEAST:
                    at = VALUES_OF + PARTS * a + TOTAL
                    side = LEFT if modes[a] == LEAST else RIGHT
                    root = totals[group, VALUES_OF + PARTS * owners[a] + TOTAL]
                    results[n, at] = outermost(trees, root, side)
                    while not there and totals[group, at] != 0:
                        drop_root(trees, totals, group, at)
            if not there:
                for c in range(totals.shape[1]):
                    totals[group, c] = 0
            n += 1
    return n


@compiled
def drop_groups(t: Table, totals: Longs, groups: Ints) -> None:
    """Remove groups, each named once or more, that have no rows."""
    for k in range(len(groups)):
        if t.rows[groups[k], t.width] != 0 and totals[groups[k], ROWS] == 0:
            remove_row(t, groups[k])


def shared_trees(modes: Ints, arguments: Ints) -> Ints:
    """For each aggregate the one that has its tree: the first and the last value share one.

    >>> shared_trees(np.array([LEAST, BOUND, GREATEST, DISTINCT]), np.array([2, 2, 2, 2])).tolist()
    [0, 1, 0, 3]
    """
    first: dict[tuple[bool, int], int] = {}
    found = [
        first.setdefault((mode == DISTINCT, argument), a) if mode >= LEAST else a
        for a, (mode, argument) in enumerate(zip(modes.tolist(), arguments.tolist(), strict=True))
    ]
    return np.array(found, np.int32)


class GroupTable:
    """The keys and totals of groups; `columns` are those of the keys in a batch."""

    def __init__(self, columns: Ints, modes: Ints, arguments: Ints, *, always: bool) -> None:
        self._columns, self._modes, self._arguments = columns, modes, arguments
        self._always = always
        self._most = np.zeros(1)
        self._room = 0
        self.owners = shared_trees(modes, arguments)
        self._ordered = int(((modes >= LEAST) & (self.owners == np.arange(len(modes)))).sum())
        self.values = OrderedValues()
        self._table = RowTable(max(1, len(columns)))
        self._key = np.zeros((1, self._table.width), np.int32)
        self.totals = np.zeros((0, VALUES_OF + PARTS * len(modes)), np.int64)
        if not len(columns):  # there is one group
            self._reserve(1)
            self._room = 1 << 62

    def step(self, batch: Ints, classes: Ints, numbers: Numbers) -> tuple[Ints, Longs] | None:
        """The events of a batch, and the totals of each; None if it has to be done otherwise."""
        most = len(batch)
        if self._room < most:
            most = self._most_groups(batch)
            self._reserve(most)
        self._room -= most
        if self._ordered:
            self.values.reserve(self._ordered * len(batch))
        events = np.empty((len(batch), 3), np.int32)
        results = np.empty((len(batch), self.totals.shape[1]), np.int64)
        touched = np.empty(len(batch), np.int32)
        for _ in range(2):
            n = group_step(
                self._table.arrays, self.values.arrays, self.totals, batch, self._columns,
                self._modes, self._arguments, self.owners, classes, numbers, self._always,
                self._key, touched, events, results, self._most,
            )  # fmt: skip
            if n >= 0:
                return events[:n], results[:n]
            sums = self.totals[:, VALUES_OF + TOTAL :: PARTS][:, self._modes == NUMBERS]
            self._most[0] = np.abs(sums).max(initial=0)
        return None

    def _most_groups(self, batch: Ints) -> int:
        """How many groups a batch may add: far fewer than rows, if it is a large one."""
        if len(batch) < MANY_ROWS or len(self._columns) > 2:
            return len(batch)
        first, last = (batch[:, at].astype(np.int64) for at in self._columns[[0, -1]])
        return len(np.unique((first << 32) + last))

    def _reserve(self, extra: int) -> None:
        self._room = self._table.reserve(extra)
        many = len(self._table.arrays.rows)
        if many > len(self.totals):
            totals = np.zeros((many, self.totals.shape[1]), np.int64)
            totals[: len(self.totals)] = self.totals
            self.totals = totals

    def drop(self, groups: Ints) -> None:
        """Remove those of some groups that have no rows."""
        drop_groups(self._table.arrays, self.totals, groups)

    def keys(self, groups: Ints) -> Ints:
        """The keys of some groups."""
        found: Ints = self._table.arrays.rows[groups, : len(self._columns)]
        return found

    def key(self, group: int) -> list[int]:
        """The key of a group."""
        found: list[int] = self._table.arrays.rows[group, : len(self._columns)].tolist()
        return found

    def groups(self) -> Ints:
        """All groups."""
        t = self._table.arrays
        found: Ints = np.flatnonzero(t.rows[: t.meta[HIGH], t.width]).astype(np.int32)
        return found

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all keys, and of values in order."""
        yield from self._table.held_ids()
        if self._ordered:
            yield self.values.ids()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes + self.totals.nbytes + self.values.nbytes
