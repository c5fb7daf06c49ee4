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
from graphtide.spark.owner import owners
from graphtide.spark.pack import CHANGES

if TYPE_CHECKING:
    from graphtide.engine.stamps import Stamps
    from graphtide.spark.task import CellQuery, Task

DELTAS = pa.schema(
    [
        ("query", pa.int32()),
        ("time", pa.int64()),
        ("tx", pa.int64()),
        ("diff", pa.int64()),
        ("row", pa.list_(pa.string())),
    ]
)
"""Deltas on their way out: the query's number and the row's values in its order of variables."""


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
        """Apply complete transactions, sorted by time, number and place; the deltas of this cell."""
        terms = self.graph.terms
        rows = np.empty((len(changes), 6), np.int32)
        rows[:, 1] = changes["diff"].to_numpy()
        for column, name in enumerate("spog", start=2):
            rows[:, column] = terms.encode_column(changes[name])
        time, tx = changes["time"].to_numpy(), changes["tx"].to_numpy()
        for piece in cut(rows, time, tx):
            self.graph.apply_piece(piece)
        self._logged += len(changes)
        return self._deltas()

    @property
    def overgrown(self) -> bool:
        """Whether the log of changes is worth replacing by the quads that are left of it."""
        return self._logged > 1000 + 2 * len(self.graph)

    def snapshot(self) -> pa.Table:
        """The current quads as inserts; the log that leads to them can be forgotten."""
        quads = self.graph.quad_ids()
        n = len(quads)
        self._logged = n
        columns = [self.graph.terms.decode_column(quads[:, i]) for i in range(4)]
        stamp = np.full(n, self.graph.clock, np.int64)
        flags = [pa.array(np.arange(n)), pa.array(np.ones(n, np.int8)), pa.array(np.ones(n, bool))]
        return pa.table([stamp, np.zeros(n, np.int64), *flags, *columns], schema=CHANGES)

    def _deltas(self) -> pa.Table:
        parts = [
            self._table(number, query, net, stamps)
            for number, (query, watch) in enumerate(self._watches)
            for net, stamps in watch.drain()
        ]
        return pa.concat_tables(parts) if parts else DELTAS.empty_table()

    def _table(self, number: int, query: CellQuery, net: Ints, stamps: Stamps) -> pa.Table:
        own = self._own(query, net)
        n, width = len(own), query.shown
        texts = self.graph.terms.decode_column(own[:, VALUES:].reshape(-1))
        offsets = pa.array(np.arange(n + 1, dtype=np.int32) * width)
        times, txs = (np.asarray(part, np.int64) for part in (stamps.times, stamps.txs))
        return pa.table(
            [
                pa.array(np.full(n, number, np.int32)),
                pa.array(times[own[:, TX]]),
                pa.array(txs[own[:, TX]]),
                pa.array(own[:, DIFF].astype(np.int64)),
                pa.ListArray.from_arrays(offsets, texts),
            ],
            schema=DELTAS,
        )

    def _own(self, query: CellQuery, net: Ints) -> Ints:
        """A query's delta without the rows of other cells and the columns of the grid alone."""
        at = [NET_VALUES + query.query.variables.index(v) for v in query.grid.variables]
        mine = owners(net[:, at], self.graph.terms, query.grid) == self._cell
        keep = [TX, DIFF, *range(NET_VALUES, NET_VALUES + query.shown)]
        batch = np.take(net[mine], keep, axis=1)
        if query.distinct and not query.meets:
            return self._distinct[query.name].step(batch)
        return batch
