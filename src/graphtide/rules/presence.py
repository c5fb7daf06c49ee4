"""Presence: which rows a query has now, cut down to some variables, and which were updated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.batch import DIFF
from graphtide.kernel.net import NET_BEFORE, NET_VALUES
from graphtide.rules.change_events import RowChanges, RowUpdates

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.watch import Watch


class Presence:
    """The rows of a query, kept up to date when asked."""

    def __init__(self, graph: LiveGraph, select: SelectQuery, variables: tuple[Var, ...]) -> None:
        self.rows: set[tuple[int, ...]] = set()
        whole = set(variables) == set(select.variables)
        self._updates = None if whole else RowUpdates(graph, select, variables)
        self._changes = RowChanges(graph, select, variables, appears=True)
        own = self._changes.watches
        self.watches: tuple[Watch, ...] = own + (self._updates.watches if self._updates else ())

    def catch_up(self) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
        """Take in all changes; the rows that went since last asked, and those that were updated."""
        gone: set[tuple[int, ...]] = set()
        for net, _ in self._changes.watches[0].drain():
            for line in net.tolist():
                row = tuple(line[NET_VALUES:])
                if line[NET_BEFORE] + line[DIFF] > 0:
                    self.rows.add(row)
                else:
                    self.rows.discard(row)
                    gone.add(row)
        updates = () if self._updates is None else self._updates.changes()
        return gone, {row for _, _, row in updates}
