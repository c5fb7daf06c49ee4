"""Events caused by changes of the graph: rows that appear, disappear or change, states that change.

Only the net effect of a transaction counts: what it adds and removes again is no event.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Project, SelectQuery
from graphtide.algebra.variables import merge
from graphtide.kernel.batch import DIFF, TX
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Longs
    from graphtide.lang.tide.ast import StateChange
    from graphtide.rdf.terms import Term
    from graphtide.rules.effects import GraphConnection

Row = tuple[int, ...]


class RowChange(NamedTuple):
    """An event: the number of the transaction that caused it, its time, its values."""

    transaction: int
    time: int
    values: Row


class RowChanges:
    """Rows of a query, projected to some variables, that appear (or disappear)."""

    def __init__(
        self,
        graph: GraphConnection,
        select: SelectQuery,
        variables: tuple[Var, ...],
        *,
        appears: bool,
    ) -> None:
        if variables != select.variables:
            root = Project(select.root, variables)
            select = replace(select, variables=variables, root=root)
        self.variables = variables
        self._appears = appears
        self.queries = (select,)
        self.watches: tuple[Query, ...] = (graph.watch(select),)

    def changes(self) -> Iterator[RowChange]:
        """The events since the last call."""
        for net, stamps in self.watches[0].drain():
            for line in net.tolist():
                before, after = line[COUNT_BEFORE], line[COUNT_BEFORE] + line[DIFF]
                if (before <= 0 < after) if self._appears else (after <= 0 < before):
                    time, _ = stamps.stamp(line[TX])
                    yield RowChange(stamps.first + line[TX], time, tuple(line[DELTA_VALUES:]))


class RowUpdates:
    """Rows of a query, projected to some variables, that stay while other columns change."""

    def __init__(
        self, graph: GraphConnection, select: SelectQuery, variables: tuple[Var, ...]
    ) -> None:
        others = tuple(v for v in select.variables if v not in variables)
        whole = replace(
            select, variables=(*variables, *others), root=Project(select.root, variables + others)
        )
        self._width = len(variables)
        self._projected = RowChanges(graph, select, variables, appears=True)
        self._whole: Query = graph.watch(whole)
        self.watches = (*self._projected.watches, self._whole)
        self.queries = (*self._projected.queries, whole)

    def changes(self) -> Iterator[RowChange]:
        """The events since the last call, one for each row and transaction."""
        crossed = set()
        for net, stamps in self._projected.watches[0].drain():
            for line in net.tolist():
                before, after = line[COUNT_BEFORE], line[COUNT_BEFORE] + line[DIFF]
                if (before <= 0) is not (after <= 0):
                    crossed.add((stamps.first + line[TX], tuple(line[DELTA_VALUES:])))
        seen: set[RowChange] = set()
        for net, stamps in self._whole.drain():
            for line in net.tolist():
                number, row = stamps.first + line[TX], tuple(line[DELTA_VALUES:][: self._width])
                time, _ = stamps.stamp(line[TX])
                found = RowChange(number, time, row)
                before, after = line[COUNT_BEFORE], line[COUNT_BEFORE] + line[DIFF]
                changed = (before <= 0) is not (after <= 0) and (number, row) not in crossed
                if changed and found not in seen:
                    seen.add(found)
                    yield found


class StateChanges:
    """Rows that leave one state (a query) and enter another in the same transaction."""

    def __init__(
        self, graph: GraphConnection, change: StateChange, parameters: tuple[Var, ...]
    ) -> None:
        states = change.before, change.after
        shared = tuple(v for v in change.before.variables if v in change.after.variables)
        columns = [
            merge(shared, tuple(v for v in parameters if v in state.variables)) for state in states
        ]
        self._removed = RowChanges(graph, change.before, columns[0], appears=False)
        self._added = RowChanges(graph, change.after, columns[1], appears=True)
        self._shared = len(shared)
        self._parameters = parameters
        self.watches = self._removed.watches + self._added.watches
        self.queries = self._removed.queries + self._added.queries

    def changes(self) -> Iterator[RowChange]:
        """The events since the last call."""
        removed: dict[tuple[int, Row], list[Row]] = defaultdict(list)
        for number, _, row in self._removed.changes():
            removed[number, row[: self._shared]].append(row)
        seen: set[RowChange] = set()
        for number, time, row in self._added.changes():
            for old in removed.get((number, row[: self._shared]), ()):
                found = RowChange(number, time, self._values(old, row))
                if found not in seen:
                    seen.add(found)
                    yield found

    def _values(self, old: Row, new: Row) -> Row:
        known = dict(zip(self._removed.variables, old, strict=True))
        known.update(zip(self._added.variables, new, strict=True))
        return tuple(known[v] for v in self._parameters)


class ChangeSource(NamedTuple):
    """The changes of the graph that cause events of a type."""

    type: int
    found: RowChanges | RowUpdates | StateChanges


class RowTracker:
    """The current rows of a query, projected to some variables."""

    def __init__(
        self, graph: GraphConnection, select: SelectQuery, variables: tuple[Var, ...]
    ) -> None:
        self.rows: set[tuple[int, ...]] = set()
        self._journal: list[tuple[tuple[int, ...], bool]] = []
        """Rows that have changed since the savepoint, and whether they were there before."""
        self._encode = graph.terms.encode
        whole = set(variables) == set(select.variables)
        self._updates = None if whole else RowUpdates(graph, select, variables)
        self._changes = RowChanges(graph, select, variables, appears=True)
        own = self._changes.watches
        self.watches: tuple[Query, ...] = own + (self._updates.watches if self._updates else ())

    def row(self, arguments: tuple[Var | Term, ...], binding: Mapping[Var, int]) -> Row:
        """The row that arguments stand for, given the values of variables."""
        return tuple(
            binding.get(each, 0) if isinstance(each, Var) else self._encode(each)
            for each in arguments
        )

    def held_ids(self) -> Iterator[Longs]:
        """The ids of the rows."""
        yield flat_ids(self.rows)

    def savepoint(self) -> None:
        """Journal the changes of rows from here on."""
        self._journal = []

    def roll_back(self) -> None:
        """Go back to the savepoint."""
        rows = set(self.rows)
        for row, present in reversed(self._journal):
            (rows.add if present else rows.discard)(row)
        self.rows, self._journal = rows, []

    def catch_up(self) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
        """Apply the changes since the last call; the rows removed and the rows updated by them."""
        removed: set[tuple[int, ...]] = set()
        for net, _ in self._changes.watches[0].drain():
            for line in net.tolist():
                row = tuple(line[DELTA_VALUES:])
                self._journal.append((row, row in self.rows))
                if line[COUNT_BEFORE] + line[DIFF] > 0:
                    self.rows.add(row)
                else:
                    self.rows.discard(row)
                    removed.add(row)
        updates = () if self._updates is None else self._updates.changes()
        return removed, {row for _, _, row in updates}
