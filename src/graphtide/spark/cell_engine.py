"""CellEngine: the in-process engine at work in one cell, on the quads that were routed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.engine import LiveGraph
from graphtide.engine.feed import cut
from graphtide.kernel import Distinct
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints
from graphtide.kernel.net import NET_VALUES
from graphtide.spark.delta_table import delta_table
from graphtide.spark.owner import owners
from graphtide.spark.schemas import CHANGES, DELTAS, table_of

if TYPE_CHECKING:
    from graphtide.engine.stamps import Stamps
    from graphtide.spark.task import CellQuery, Task

SMALL_LOG = 1000
"""A log of fewer changes than this is never worth compacting."""


class CellEngine:
    """A live graph with every query of a task, of which one cell shows its own rows."""

    def __init__(self, task: Task, cell: int) -> None:
        self.graph = LiveGraph()
        self._cell = cell
        self._watches = [
            (query, self.graph.watch(query.query, name=query.name, history=2**62))
            for query in task.cell_queries
        ]
        self._distinct = {q.name: Distinct(q.shown) for q in task.cell_queries}
        self._logged = 0

    def first(self) -> pa.Table:
        """The deltas before any change: rows that depend on no quad."""
        return self._deltas()

    def apply(self, changes: pa.Table) -> pa.Table:
        """Apply complete transactions, sorted by time, number and place; this cell's deltas."""
        self._take(changes)
        return self._deltas()

    def replay(self, changes: pa.Table) -> None:
        """Apply transactions whose deltas are known: of them, only what DISTINCT counts matters."""
        self._take(changes)
        for query, watch in self._watches:
            for net, _ in watch.drain():
                if counts_rows(query):
                    self._own(query, net)

    def _take(self, changes: pa.Table) -> None:
        terms = self.graph.terms
        rows = np.empty((len(changes), 6), np.int32)
        rows[:, 1] = changes["diff"].to_numpy()
        for column, name in enumerate("spog", start=2):
            rows[:, column] = terms.encode_column(changes[name])
        time, tx = changes["time"].to_numpy(), changes["tx"].to_numpy()
        for piece in cut(rows, time, tx):
            self.graph.apply_piece(piece)
        self._logged += len(changes)

    @property
    def overgrown(self) -> bool:
        """Whether the log of changes is worth replacing by the quads that are left of it."""
        return self._logged > SMALL_LOG + 2 * len(self.graph)

    def snapshot(self) -> pa.Table:
        """The current quads as inserts; the log that leads to them can be forgotten."""
        quads = self.graph.quad_ids()
        n = len(quads)
        self._logged = n
        stamp, zeros = np.full(n, self.graph.clock, np.int64), np.zeros(n, np.int64)
        columns = [self.graph.terms.decode_column(quads[:, i]) for i in range(4)]
        flags = [np.ones(n, np.int8), np.ones(n, np.bool_)]
        return table_of(CHANGES, [stamp, zeros, zeros, *flags, *columns])

    def _deltas(self) -> pa.Table:
        parts = [
            self._table(number, query, net, stamps)
            for number, (query, watch) in enumerate(self._watches)
            for net, stamps in watch.drain()
        ]
        return pa.concat_tables(parts) if parts else DELTAS.empty_table()

    def _table(self, number: int, query: CellQuery, net: Ints, stamps: Stamps) -> pa.Table:
        own = self._own(query, net)
        times, txs = (np.asarray(part, np.int64) for part in (stamps.times, stamps.txs))
        at = own[:, TX]
        return delta_table(
            number, times[at], txs[at], own[:, DIFF], own[:, VALUES:], self.graph.terms
        )

    def _own(self, query: CellQuery, net: Ints) -> Ints:
        """A query's delta without the rows of other cells and the columns of the grid alone."""
        at = [NET_VALUES + query.query.variables.index(v) for v in query.grid.variables]
        mine = owners(net[:, at], self.graph.terms, query.grid) == self._cell
        keep = [TX, DIFF, *range(NET_VALUES, NET_VALUES + query.shown)]
        batch = np.take(net[mine], keep, axis=1)
        if counts_rows(query):
            return self._distinct[query.name].step(batch)
        return batch


def counts_rows(query: CellQuery) -> bool:
    """Whether a cell decides alone which rows of a query are there for the first time."""
    return query.distinct and not query.meets
