"""Groups of rows with counts, sums of whole numbers, and values in order: GROUP BY.

A row table has the keys, and `totals` the state of each group: how many rows it has, and for each
aggregate a sum (or a tree of values, `kernel.ordered`), the number of its values, and the number of
values that have none. For each transaction and each group that it touches there is one event: what
the group has then. Its results are ids, or numbers for which the caller has to find ids, once for
all events (`GroupTable.numbers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, TX, VALUES, Int, Ints, Longs, as_long
from graphtide.kernel.ordered import ID, TIMES, OrderedValues, Trees, change_times, outermost
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
from graphtide.views import floats1, ints1, ints2, longs1, longs2, make_block, not_copied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.arrays import Floats1, Ints1, Ints2, Longs2
    from graphtide.views import Block

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

CLASS, FIRST_ORDER = 3, 4
"""Bits of what is known of an id: its class, and in which columns it is known to be in order."""

NOT_HERE, TOO_LARGE, NOT_LEARNED = -1, -2, -3
"""Why a batch is not added: an unknown value, a sum that might be too large, or an id of which
nothing is known so far."""

MOST = float(1 << 62)
"""Sums that might be larger are not taken here."""

MANY_ROWS = 4096
"""Rows of a batch from which on its groups are counted before there is room made for them."""

SCRATCH = 64
"""Rows of a batch for which scratch space is at hand."""

MODE, ARGUMENT, NEEDS, OWNER, MEAN, STRICT = 0, 1, 2, 3, 4, 5
"""Columns of an aggregate: what it counts, the column of a batch that it reads, the bits of an id
that have to be known, which one has its tree, and whether it is a mean, and an error if one of its
values is none."""

EVENT_TX, GROUP, THERE = 0, 1, 2
"""Columns of an event; its results are in another array."""


@inlined
def largest_change(batch: Ints, aggregates: Ints, classes: Ints, numbers: Numbers) -> float:
    """The most that a batch can add to a sum; negative if it cannot be added."""
    largest = 0.0
    for a in range(len(aggregates)):
        argument, needs = aggregates[a, ARGUMENT], aggregates[a, NEEDS]
        if needs == 0 or argument < 0:
            continue
        most = 0.0
        for i in range(len(batch)):
            id_ = batch[i, argument]
            if id_ >= len(classes) or classes[id_] & needs == 0:
                return float(NOT_LEARNED)
            if aggregates[a, MODE] == NUMBERS:
                if classes[id_] & CLASS == UNKNOWN:
                    return float(NOT_HERE)
                if classes[id_] & CLASS == WHOLE:
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
def drop_first(trees: Trees, totals: Longs, group: Int, at: Int) -> None:
    """Remove the first value of a tree."""
    first = outermost(trees, totals[group, at], 0)
    id_, times = trees.cells[first, ID], np.int64(trees.cells[first, TIMES])
    root, _ = change_times(trees, totals[group, at], id_, trees.keys[first], -times)
    totals[group, at] = root


@inlined
def result(
    trees: Trees, totals: Longs, group: Int, aggregates: Ints, a: Int, pending: Longs, many: Int
) -> Int:
    """The id of an aggregate, 0 for an error; -1 if it is a number, which is written as pending.

    An integer has a second number 0, a mean the count.
    """
    at = VALUES_OF + PARTS * a
    if aggregates[a, STRICT] and totals[group, at + BAD] != 0:
        return np.int64(0)
    mode = aggregates[a, MODE]
    if mode == LEAST or mode == GREATEST:
        root = totals[group, VALUES_OF + PARTS * aggregates[a, OWNER] + TOTAL]
        last = np.int64(mode == GREATEST)
        return np.int64(trees.cells[outermost(trees, root, last), ID]) if root != 0 else root
    count = totals[group, at + COUNT]
    pending[many, 0] = totals[group, at + TOTAL] if mode == NUMBERS else max(count, np.int64(0))
    pending[many, 1] = count if aggregates[a, MEAN] else np.int64(0)
    if pending[many, 1] < 0:  # by redundant changes of a graph that stores no quads
        pending[many, 0], pending[many, 1] = -pending[many, 0], -count
    return np.int64(-1)


@compiled
def group_step(
    block: Block,
    width: int,
    batch: Ints2,
    classes: Ints1,
    numbers: Floats1,
) -> tuple[Int, Int]:
    """Add a batch; write an event for each transaction and group, return how many.

    Groups that have become empty stay in the table: events name them. Returns also how many results
    are pending. If the batch cannot be added, nothing is done, and the first number says why; no
    sum is larger than `most`. The block is that of `GroupTable`.
    """
    t = Table(
        ints2(block, 0), ints2(block, 1), ints2(block, 2), ints2(block, 3), longs1(block, 4), width
    )
    trees = Trees(floats1(block, 5), longs1(block, 6), ints2(block, 7), longs1(block, 8))
    totals, keys, aggregates = longs2(block, 9), ints1(block, 10), ints2(block, 11)
    key, most = ints2(block, 12), floats1(block, 13)
    touched, events, results = ints1(block, 15), ints2(block, 16), ints2(block, 17)
    pending = longs2(block, 18)
    change = largest_change(batch, aggregates, classes, numbers)
    if change < 0:
        return np.int64(change), np.int64(0)
    if most[0] + change > MOST:
        return np.int64(TOO_LARGE), np.int64(0)
    most[0] += change
    note = t.width + 1  # a live row's unused cell holds its index in `touched`, plus 1
    n = np.int64(0)
    waiting = np.int64(0)
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
            for a in range(len(aggregates)):
                at = VALUES_OF + PARTS * a
                mode, argument = aggregates[a, MODE], aggregates[a, ARGUMENT]
                id_ = batch[i, argument] if argument >= 0 else np.int32(0)
                if mode == NUMBERS and classes[id_] & CLASS == WHOLE:
                    totals[group, at + TOTAL] += np.int64(numbers[id_]) * diff
                    totals[group, at + COUNT] += diff
                elif mode >= LEAST and id_ != 0:
                    if aggregates[a, OWNER] == a:
                        change_tree(trees, totals, group, at, mode, id_, numbers[id_], diff)
                elif mode >= NUMBERS:
                    totals[group, at + BAD] += diff
                elif mode == ALL_ROWS or id_ != 0:
                    totals[group, at + COUNT] += diff
            i += 1
        for k in range(many):
            group = touched[k]
            t.rows[group, note] = 0
            there = totals[group, ROWS] > 0 or len(keys) == 0
            events[n, EVENT_TX], events[n, GROUP], events[n, THERE] = tx, group, there
            for a in range(len(aggregates) if there else 0):
                results[n, a] = result(trees, totals, group, aggregates, a, pending, waiting)
                if results[n, a] < 0:
                    waiting += 1
            if not there:
                for a in range(len(aggregates)):
                    at = VALUES_OF + PARTS * a + TOTAL
                    while aggregates[a, MODE] >= LEAST and totals[group, at] != 0:
                        drop_first(trees, totals, group, at)
                for c in range(totals.shape[1]):
                    totals[group, c] = 0
            n += 1
    return n, waiting


@compiled
def drop_groups(t: Table, totals: Longs2, events: Ints2) -> None:
    """Remove the groups of some events, each named once or more, that have no rows."""
    for e in range(len(events)):
        group = events[e, GROUP]
        if t.rows[group, t.width] != 0 and totals[group, ROWS] == 0:
            remove_row(t, group)


@inlined
def changed_rows(
    rows: Ints, shown: Ints, picked: Ints, events: Ints, many: int, results: Ints, literals: Ints,
    out: Ints,
) -> tuple[Int, bool]:  # fmt: skip
    """For each event, the row that a group had goes, and the one that it has comes; how many.

    `shown` has a line for each group: whether it has a row, and the results in it; `picked` has the
    columns of its key, -1 for one that is unbound. Returns also whether all groups have rows.
    """
    n = 0
    used = 0
    every = True
    keys = len(picked)
    for e in range(many):
        group, there = events[e, GROUP], events[e, THERE]
        every = every and there != 0
        was = shown[group, 0]
        same = was == there
        for a in range(results.shape[1] if there else 0):
            if results[e, a] < 0:
                results[e, a] = literals[used]
                used += 1
            same = same and results[e, a] == shown[group, 1 + a]
        for side in range(0 if same else 2):
            if (was if side == 0 else there) == 0:
                continue
            out[n, TX], out[n, DIFF] = events[e, EVENT_TX], 2 * side - 1
            for k in range(keys):
                out[n, VALUES + k] = rows[group, picked[k]] if picked[k] >= 0 else np.int32(0)
            for a in range(results.shape[1]):
                old, new = shown[group, 1 + a], results[e, a]
                out[n, VALUES + keys + a] = old if side == 0 else new
            n += 1
        shown[group, 0] = there
        for a in range(results.shape[1] if there else 0):
            shown[group, 1 + a] = results[e, a]
    return n, every


@compiled
def write_rows(block: Block, many: int, literals: Ints1, out: Ints2) -> tuple[Int, bool]:
    """`changed_rows` of the block of a `GroupTable`."""
    return changed_rows(
        ints2(block, 0), ints2(block, 14), ints1(block, 19), ints2(block, 16), many,
        ints2(block, 17), literals, out,
    )  # fmt: skip


def shared_trees(modes: list[int], arguments: list[int]) -> list[int]:
    """For each aggregate the one that has its tree: the first and the last value share one.

    >>> shared_trees([LEAST, BOUND, GREATEST, DISTINCT], [2, 2, 2, 2])
    [0, 1, 0, 3]
    """
    first: dict[tuple[bool, int], int] = {}
    return [
        first.setdefault((mode == DISTINCT, argument), a) if mode >= LEAST else a
        for a, (mode, argument) in enumerate(zip(modes, arguments, strict=True))
    ]


class GroupTable:
    """The keys, totals and rows of groups; `columns` are those of the keys in a batch.

    `aggregates` has a line for each; see `MODE`.
    """

    __reduce_ex__ = not_copied

    def __init__(self, columns: Ints, aggregates: Ints) -> None:
        self._columns, self._aggregates = columns, aggregates
        self._picked = np.arange(len(columns), dtype=np.int32)  # of a row, which has all keys
        self._most = np.zeros(1)
        self._room = 0
        self._summed = aggregates[:, MODE] == NUMBERS
        self._roots = [
            VALUES_OF + PARTS * a + TOTAL
            for a, (mode, owner) in enumerate(aggregates[:, [MODE, OWNER]].tolist())
            if mode >= LEAST and owner == a
        ]
        self._width = len(columns) + len(aggregates)
        self.values = OrderedValues()
        self._table = RowTable(max(1, len(columns)))
        self._key = np.zeros((1, self._table.width), np.int32)
        self._few = self._scratch = self._space(SCRATCH)
        self._viewed: tuple[Any, ...] = (None,) * 4  # the arrays in the block
        self._block: Block = None
        self._events = 0
        self.totals = np.zeros((0, VALUES_OF + PARTS * len(aggregates)), np.int64)
        self._shown = np.zeros((0, 1 + len(aggregates)), np.int32)
        if not len(columns):  # there is one group
            self._reserve(1)
            self._room = 1 << 62

    def _space(self, rows: int) -> tuple[Ints, Ints, Ints, Longs]:
        """Touched groups, events, results and pending numbers of so many rows at most."""
        many = len(self._aggregates)
        return (
            np.empty(rows, np.int32),
            np.empty((rows, 3), np.int32),
            np.empty((rows, many), np.int32),
            np.empty((rows * many, 2), np.int64),
        )

    def step(self, batch: Ints, classes: Ints, numbers: Numbers) -> Longs | int:
        """Add a batch: the numbers whose ids `rows` needs; or why it cannot be added."""
        most = len(batch)
        if self._room < most:
            most = self._most_groups(batch)
            self._reserve(most)
        if self._roots:
            self.values.reserve(len(self._roots) * len(batch))
        self._scratch = self._few if len(batch) <= SCRATCH else self._space(len(batch))
        self._lay_out()
        for _ in range(2):
            n, waiting = group_step(self._block, self._table.width, batch, classes, numbers)
            if n >= 0:
                self._room -= most
                self._events = int(n)
                return self._scratch[3][:waiting]
            if n != TOO_LARGE:
                break
            sums = self.totals[:, VALUES_OF + TOTAL :: PARTS][:, self._summed]
            self._most[0] = np.abs(sums).max(initial=0)
        return int(n)

    def _lay_out(self) -> None:
        """Lay out all arrays but the input, if they are others now."""
        table, trees, totals, space = self._viewed
        if (
            table is not self._table.arrays
            or trees is not self.values.arrays
            or totals is not self.totals
            or space is not self._scratch
        ):
            table, trees, totals = self._table.arrays, self.values.arrays, self.totals
            own = totals, self._columns, self._aggregates, self._key, self._most, self._shown
            block = make_block((*table[:-1], *trees, *own, *self._scratch, self._picked))
            self._block, self._viewed = block, (table, trees, totals, self._scratch)

    def rows(self, literals: Ints) -> Ints:
        """The changed rows of the last batch, given the ids of its numbers."""
        events = self._events
        out = np.empty((2 * events, VALUES + self._width), np.int32)
        n, every = write_rows(self._block, events, literals, out)
        if not every:
            drop_groups(self._table.arrays, self.totals, self._scratch[1][:events])
        if self._scratch is not self._few:
            self._viewed = (None,) * 4  # which keeps it alive
        return out if n == len(out) else out[:n]

    def _most_groups(self, batch: Ints) -> int:
        """How many groups a batch may add: far fewer than rows, if it is a large one."""
        if len(batch) < MANY_ROWS or len(self._columns) > 2:
            return len(batch)
        first, last = (batch[:, at].astype(np.int64) for at in self._columns[[0, -1]])
        return len(np.unique((first << 32) + last))

    def _reserve(self, extra: int) -> None:
        room = self._table.reserve(extra)
        many = len(self._table.arrays.rows)
        totals, shown = as_long(self.totals, many), as_long(self._shown, many)
        # One assignment, after all that can fail: loops rely on the room for all three.
        self.totals, self._shown, self._room = totals, shown, room

    def keys(self, groups: Ints) -> Ints:
        """The keys of some groups."""
        found: Ints = self._table.arrays.rows[groups, : len(self._columns)]
        return found

    def shown(self, group: int) -> tuple[int, ...] | None:
        """The row that a group has, if it has one."""
        there, *results = self._shown[group].tolist()
        key = self._table.arrays.rows[group, : len(self._columns)].tolist()
        return (*key, *results) if there else None

    def groups(self) -> Ints:
        """All groups."""
        t = self._table.arrays
        found: Ints = np.flatnonzero(t.rows[: t.meta[HIGH], t.width]).astype(np.int32)
        return found

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all keys and rows, and of values in order."""
        yield from self._table.held_ids()
        yield self._shown[self._shown[:, 0] != 0, 1:]
        if self._roots:
            yield self.ordered_ids()

    def ordered_ids(self) -> Ints:
        """The ids of all values in order."""
        return self.values.ids(self.totals[:, self._roots].reshape(-1))

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        own = (self.totals, self._shown)
        return self._table.nbytes + self.values.nbytes + sum(array.nbytes for array in own)
