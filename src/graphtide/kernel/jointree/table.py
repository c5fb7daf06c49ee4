"""`JoinTree`: allocation, growth and size of what the loops over a join tree work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.kernel.batch import VALUES, Ints, Longs, as_long
from graphtide.kernel.jointree import state as cells
from graphtide.kernel.jointree.groups import drop_groups, write_rows
from graphtide.kernel.jointree.step import tree_step
from graphtide.kernel.rowtable import HIGH, RowTable
from graphtide.limits import allowance
from graphtide.views import make_block, not_copied

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.kernel.groups import Numbers
    from graphtide.kernel.jointree.layout import TreeLayout
    from graphtide.views import Block

BUDGET = 1 << 22
"""Rows that are joined before the time is checked: some tens of milliseconds."""

FEW, LARGE = 64, 1 << 14
"""Room for changes and events at first, and beyond which it is given back after a batch."""


class WeightTable:
    """A row table, and the weights of its rows."""

    def __init__(self, width: int, keys: Sequence[Sequence[int]], parts: int) -> None:
        self.table = RowTable(width, keys)
        self.weights = np.zeros((len(self.table.arrays.rows), parts), np.int64)

    def entries(self) -> tuple[Ints, Longs]:
        """All rows, and their weights."""
        t = self.table.arrays
        live = np.flatnonzero(t.rows[: t.meta[HIGH], t.width])
        return t.rows[live, : t.width], self.weights[live]

    def arrays(self) -> tuple[Any, ...]:
        """The arrays, as loops take them, with a weight for each row for which there is room."""
        arrays = self.table.arrays
        self.weights = as_long(self.weights, len(arrays.rows))
        return (*arrays[:-1], self.weights)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.table.nbytes + self.weights.nbytes


class JoinTree:
    """The weights of a join tree, the totals of its groups, and their rows.

    `picked` has for each key column of a row the one of a group's key, or -1; `aggregates` and
    `arguments` have a line for each (`cells.MODE`, `cells.OF_INPUT`).
    """

    __reduce_ex__ = not_copied

    def __init__(
        self,
        layout: TreeLayout,
        indexes: Sequence[Sequence[int]],
        picked: Ints,
        aggregates: Ints,
        arguments: Ints,
        parts: int,
        *,
        always: bool,
    ) -> None:
        self._layout = layout
        self._picked, self._aggregates, self._arguments = picked, aggregates, arguments
        group_width = int(layout.tables[-1, 0])
        self._width = 1 + max(1, int(layout.tables[:, 0].max()))
        self._parts = parts
        self.keys = WeightTable(self._width, indexes, parts)
        self.groups = WeightTable(max(1, group_width), (), parts)
        self._shown = np.zeros((len(self.groups.weights), 1 + len(aggregates)), np.int32)
        steps = int(layout.tables[:, 2].max())
        self._lists = np.zeros((len(layout.tables), 2), np.int64)
        self._places = np.zeros(len(layout.inputs), np.int64)
        self._work = (
            self._lists,
            np.zeros(layout.columns.max(initial=0) + 1, np.int32),  # bound
            np.zeros(1 + steps, np.int32),  # cursors
            np.zeros((1 + steps, parts), np.int64),  # products
            np.zeros((1, self._width), np.int32),  # key
            self._places,
        )
        self._state = np.zeros(12, np.int64)
        self._state[cells.ALWAYS] = cells.NEW * always
        self._block: Block = None
        self._few()

    def _few(self) -> None:
        """Begin with little room for changes and events."""
        self._block = None
        self._changes = WeightTable(self._width, (), self._parts)
        self._changes.table.reserve(FEW)
        self._events = np.zeros((FEW, 3), np.int32)
        self._results = np.zeros((FEW, len(self._aggregates)), np.int32)
        self._pending = np.zeros((FEW * len(self._aggregates), 2), np.int64)

    def step(
        self, which: Ints, batches: Sequence[Ints], classes: Ints, numbers: Numbers
    ) -> Longs | int:
        """Take in batches of some inputs: the numbers whose ids `rows` needs.

        Or, if nothing is done, why: `cells.UNKNOWN_IDS` or `cells.NOT_WHOLE`.
        """
        state = self._state
        state[: cells.TOO_LARGE] = 0
        state[cells.DEPTH], state[cells.BUDGET] = -1, BUDGET
        self._places[:] = 0
        given = make_block(batches)
        key_width = self.groups.table.width
        while True:
            if self._block is None:
                self._block = self._laid_out()
            why = tree_step(self._block, self._width, key_width, which, given, classes, numbers)
            if why == cells.DONE:
                return self._pending[: state[cells.WAITING]]
            if why in (cells.UNKNOWN_IDS, cells.NOT_WHOLE):
                return int(why)
            self._go_on(int(why))

    @property
    def too_large(self) -> bool:
        """Whether some weight would need more than 58 bits: the tables are not usable then."""
        return bool(self._state[cells.TOO_LARGE])

    def _go_on(self, why: int) -> None:
        """Make the room that a loop needs, or look whether there is time left."""
        if why == cells.TIME:
            allowance().check_time()
            self._state[cells.BUDGET] = BUDGET
            return
        self._block = None
        need = int(self._state[cells.NEED])
        if why == cells.CHANGES:
            allowance().allow(2 * self._changes.nbytes)
            self._changes.table.reserve(len(self._changes.table))
        elif why == cells.KEYS:
            self.keys.table.reserve(need)
        else:
            self.groups.table.reserve(need)
            used = int(self._state[cells.EVENTS] + self._lists[-1, cells.MANY])
            if used > len(self._events):
                self._events = as_long(self._events, 2 * used)

    def _laid_out(self) -> Block:
        """Lay out all arrays; those that belong together are as long as each other."""
        tables = (*self.keys.arrays(), *self.groups.arrays(), *self._changes.arrays())
        events = len(self._events)
        self._shown = as_long(self._shown, len(self.groups.weights))
        self._results = as_long(self._results, events)
        self._pending = as_long(self._pending, events * len(self._aggregates))
        given = (*self._layout, self._aggregates, self._arguments)
        own = (*self._work, self._state, self._events, self._results, self._pending)
        return make_block((*tables, *given, *own))

    def rows(self, literals: Ints) -> Ints:
        """The changed rows of the last batch, given the ids of its numbers."""
        many = int(self._state[cells.EVENTS])
        events, results = self._events[:many], self._results[:many]
        width = VALUES + len(self._picked) + len(self._aggregates)
        out = np.empty((2 * many, width), np.int32)
        table = self.groups.table.arrays
        n, every = write_rows(table.rows, self._shown, self._picked, events, results, literals, out)
        if not every:
            drop_groups(table, self.groups.weights, events)
        if max(len(self._events), len(self._changes.weights)) > LARGE:
            self._few()
        return out if n == len(out) else out[:n]

    def weights_of(self, number: int) -> tuple[Ints, Longs]:
        """The keys that an input has sent so far, and their weights."""
        table, width = self._layout.inputs[number, :2].tolist()
        keys, weights = self.keys.entries()
        own = keys[:, 0] == table
        return keys[own, 1 : 1 + width], weights[own]

    def shown(self) -> tuple[Ints, Ints]:
        """The keys of all groups that have rows, and the results in these."""
        live = np.flatnonzero(self._shown[:, 0])
        width = int(self._layout.tables[-1, 0])
        return self.groups.table.arrays.rows[live, :width], self._shown[live, 1:]

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all keys, and of all rows."""
        yield from self.keys.table.held_ids(1)
        yield from self.groups.table.held_ids()
        yield self._shown[self._shown[:, 0] != 0, 1:]

    def sizes(self) -> dict[str, int]:
        """Keys with counts, and groups."""
        return {
            "keys": len(self.keys.table),
            "groups": int(np.count_nonzero(self._shown[:, 0])),
        }

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        tables = self.keys.nbytes + self.groups.nbytes + self._changes.nbytes
        arrays = (self._shown, self._events, self._results, self._pending, *self._work)
        return tables + sum(array.nbytes for array in arrays)
