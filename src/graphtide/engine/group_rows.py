"""GroupRows: one row per group, and what a change of a group's rows does to it.

d(group): for each transaction and each group it touches, the old row goes and the new one comes.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.aggregate_state import State, make_state
from graphtide.errors import ExpressionError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, make_batch

if TYPE_CHECKING:
    from graphtide.plan.physical import GroupBy
    from graphtide.rdf.dictionary import TermDictionary

Key = tuple[int, ...]
Change = tuple[int, int, Key, Key]
"""Transaction, diff, the values of the keys, and the arguments of the aggregates."""


class Group:
    """The states of a group, and its row as it was last passed on."""

    __slots__ = ("row", "rows", "states")

    def __init__(self, states: list[State]) -> None:
        self.states = states
        self.rows = 0
        self.row: Key | None = None


class GroupRows:
    """All groups that have rows; without keys, the one group, even of no rows."""

    def __init__(self, node: GroupBy, terms: TermDictionary) -> None:
        schema = node.child.schema
        self._terms = terms
        self._aggregates = node.aggregates
        self._keys = [VALUES + schema.index(v) for v in node.keys]
        self._whole = [i for i, a in enumerate(node.aggregates) if a.argument is None]
        self._arguments = [
            VALUES + schema.index(a.argument) if a.argument in schema else -1
            for a in node.aggregates
        ]
        self._width = len(node.schema)
        self._row_ids: dict[Key, int] = {}
        self._groups: dict[Key, Group] = {}
        self._first = not node.keys

    def step(self, batch: Ints) -> Ints:
        """The changed rows of the groups."""
        out: list[tuple[int, ...]] = []
        if self._first:
            self._first = False
            self._pass_on(0, (), self._group(()), out)
        for tx, changes in groupby(self._changes(batch), itemgetter(0)):
            touched: dict[Key, Group] = {}
            for _, diff, key, values in changes:
                group = touched[key] = self._group(key)
                group.rows += diff
                for state, value in zip(group.states, values, strict=True):
                    state.add(value, diff)
            for key, group in touched.items():
                self._pass_on(tx, key, group, out)
        return make_batch(out, self._width)

    def _changes(self, batch: Ints) -> list[Change]:
        """Equal changes of a transaction as one, so that a bulk load costs little per row."""
        values = np.zeros((len(batch), len(self._arguments)), np.int32)
        for i, at in enumerate(self._arguments):
            if at >= 0:
                values[:, i] = batch[:, at]
        for i in self._whole:
            values[:, i] = self._numbered(batch) if self._aggregates[i].distinct else 0
        lines = np.column_stack([batch[:, TX], batch[:, self._keys], values])
        if len(lines) > 1:
            lines, places = np.unique(lines, axis=0, return_inverse=True)
            diffs = np.bincount(places.reshape(-1), batch[:, DIFF]).astype(np.int64)
        else:
            diffs = batch[:, DIFF].astype(np.int64)
        keys = 1 + len(self._keys)
        return [
            (line[0], diff, tuple(line[1:keys]), tuple(line[keys:]))
            for line, diff in zip(lines.tolist(), diffs.tolist(), strict=True)
            if diff
        ]

    def _numbered(self, batch: Ints) -> list[int]:
        """A number for each different whole row: what COUNT(DISTINCT *) counts."""
        known = self._row_ids
        return [known.setdefault(tuple(row), len(known) + 1) for row in batch[:, VALUES:].tolist()]

    def _group(self, key: Key) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = Group([make_state(a, self._terms) for a in self._aggregates])
            self._groups[key] = group
        return group

    def _pass_on(self, tx: int, key: Key, group: Group, out: list[tuple[int, ...]]) -> None:
        """Replace a group's row by what it is now; a group without rows has none."""
        there = group.rows > 0 or not self._keys
        row = (*key, *map(self._value, group.states)) if there else None
        if row != group.row:
            if group.row is not None:
                out.append((tx, -1, *group.row))
            if row is not None:
                out.append((tx, 1, *row))
            group.row = row
        if not there:
            del self._groups[key]

    def _value(self, state: State) -> int:
        try:
            return self._terms.encode(state.result())
        except ExpressionError:
            return 0

    def sizes(self) -> dict[str, int]:
        """Groups held."""
        return {"groups": len(self._groups)}

    @property
    def nbytes(self) -> int:
        """Bytes held, about: a group and its states are Python objects."""
        return len(self._groups) * 600 + len(self._row_ids) * 200
