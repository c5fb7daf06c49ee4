"""FactMemory: the rows of a rule's fact conditions, and since when each has held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import DIFF
from graphtide.kernel.net import NET_BEFORE, NET_VALUES
from graphtide.rules.kernel.fact_rows import ABSENT, change_facts, fact_number, refill_facts
from graphtide.rules.kernel.layout import FREE, LIVE, Facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.engine.stamps import Stamps
    from graphtide.engine.watch import Watch
    from graphtide.kernel.batch import Ints

FEWEST = 16


class FactMemory:
    """Follows a standing query; rows are looked up by the variables that events share with it.

    `columns` are the variables of a row here: first the shared ones.
    """

    def __init__(self, watch: Watch, columns: Sequence[Var], shared: int) -> None:
        self._watch = watch
        order = [NET_VALUES + watch.variables.index(v.name) for v in columns]
        self._columns = np.array(order, np.int32)
        self._shared = shared
        self.facts = make_facts(FEWEST, len(columns))
        self._changes: list[tuple[Ints, Stamps]] = []
        self._noted: list[tuple[Ints, int]] = []
        self._tracking = False

    def catch_up(self) -> bool:
        """Take in what has changed since last time, and say whether anything has.

        A row that went and came back is a new one.
        """
        changed = self.looks_changed()
        for net, stamps in self._changes:
            self._make_room(len(net))
            if self._tracking:
                self._note(net)
            change_facts(self.facts, self._columns, self._shared, net, stamps.first)
        self._changes.clear()
        return changed

    def looks_changed(self) -> bool:
        """Whether there is anything to take in."""
        self._changes += self._watch.drain()
        return bool(self._changes)

    def begin(self) -> None:
        """Forget what was noted; what is taken in next belongs to the cause, and stays."""
        self._noted.clear()
        self._tracking = False

    def track(self) -> None:
        """From here on, note what is taken in."""
        self._tracking = True

    def _note(self, net: Ints) -> None:
        """Note the rows that change, and since when each has held before."""
        for row in net[:, self._columns]:
            self._noted.append((row.copy(), int(fact_number(self.facts, row, self._shared))))

    def take_back(self) -> None:
        """The graph is again as it was when tracking began: so are the facts, and since when."""
        self.looks_changed()
        self._changes.clear()
        for row, number in reversed(self._noted):
            there = int(fact_number(self.facts, row, self._shared)) != ABSENT
            if there:
                self._set(row, -1, 1, 0)
            if number != ABSENT:
                self._set(row, 1, 0, number)
        self._noted.clear()

    def _set(self, row: Ints, diff: int, before: int, number: int) -> None:
        net = np.zeros((1, NET_VALUES + len(row)), np.int32)
        net[0, DIFF], net[0, NET_BEFORE] = diff, before
        net[0, self._columns] = row
        self._make_room(1)
        change_facts(self.facts, self._columns, self._shared, net, number)

    def _make_room(self, more: int) -> None:
        needed = int(self.facts.meta[LIVE]) + more
        if needed > len(self.facts.rows):
            larger = make_facts(2 * needed, len(self._columns))
            refill_facts(self.facts, larger, self._shared)
            self.facts = larger

    def held_since(self, row: Sequence[int], since: int) -> bool:
        """Whether a row has held since before a number of transactions."""
        values = np.array(row, np.int32)
        number = fact_number(self.facts, values, self._shared)
        return bool(ABSENT < number < since)

    def __len__(self) -> int:
        return int(self.facts.meta[LIVE])


def make_facts(places: int, width: int) -> Facts:
    """Room for some facts.

    >>> len(make_facts(5, 2).rows)
    8
    """
    size = max(FEWEST // 2, 1 << (places - 1).bit_length())
    links = np.arange(1, size + 1, dtype=np.int32)
    links[-1] = -1
    meta = np.zeros(4, np.int64)
    meta[FREE] = 0
    rows = np.zeros((size, width), np.int32)
    heads = np.full(2 * size, -1, np.int32)
    return Facts(rows, np.zeros(size, np.int64), links, heads, meta)
