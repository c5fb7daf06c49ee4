"""CellEngine: the in-process engine at work in one cell, on the quads that were routed to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.engine.ingest import cut
from graphtide.engine.live_graph import LiveGraph
from graphtide.kernel import Answer, DistinctKernel
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints
from graphtide.kernel.counts import DELTA_VALUES
from graphtide.rdf.dictionary import HIDDEN_GRAPHS
from graphtide.spark.cell_windows import CellReports, CellWindows
from graphtide.spark.delta_table import delta_table
from graphtide.spark.owner import owners
from graphtide.spark.schemas import CHANGES, DELTAS, EVENTS, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.engine.runtime import TransactionTimes
    from graphtide.kernel.batch import Longs
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
        self._distinct = {q.name: DistinctKernel(q.shown) for q in task.cell_queries}
        self._logged = 0
        self._windows = CellWindows(self.graph, task) if task.windows else None
        self._reports: dict[int, CellReports] = {}
        self._closes: dict[int, Longs] = {}
        self._answers: dict[int, Answer] = {}
        for number, (query, watch) in enumerate(self._watches):
            if self._windows is not None and query.windowed is not None:
                own = partial(self._own_answer, number, query)
                self._reports[number] = self._windows.add(query.windowed, watch, own)
                if query.windowed.output == "RSTREAM":
                    self._answers[number] = Answer(query.shown)

    def first(self) -> pa.Table:
        """The deltas before any change: rows that depend on no quad."""
        return self._deltas()

    def apply(self, changes: pa.Table, time: int) -> pa.Table:
        """Apply complete transactions, sorted by time, number and place; this cell's deltas.

        Windows close up to a time. What queries over windows tell of at no close yet has the time
        `PENDING`.
        """
        self._take(changes, time)
        return self._deltas()

    def replay(self, changes: pa.Table, time: int) -> None:
        """Apply transactions whose deltas are known: of them, only what is counted matters."""
        self._take(changes, time)
        for number, (query, watch) in enumerate(self._watches):
            if number in self._reports:
                self._reports[number].taken()
                continue
            for net, _ in watch.drain():
                if counts_rows(query):
                    self._own(query, net)

    def _take(self, changes: pa.Table, time: int) -> None:
        self._logged += len(changes)
        if self._windows is None:
            self._apply(changes, [slice(0, len(changes))])
            return
        of_graph: Any = changes["stream"].is_null()
        self._windows.take(changes.filter(pc.invert(of_graph)))
        rest = changes.filter(of_graph)
        self._apply(rest, self._windows.between_closes(rest["time"].to_numpy()))
        self._windows.advance(time)

    def _apply(self, changes: pa.Table, runs: Iterable[slice]) -> None:
        """Apply changes of the graph run by run, after the windows that close before each."""
        terms = self.graph.terms
        rows = np.empty((len(changes), 6), np.int32)
        rows[:, 1] = changes["diff"].to_numpy()
        for column, name in enumerate("spog", start=2):
            rows[:, column] = terms.encode_column(changes[name])
        time, tx = changes["time"].to_numpy(), changes["tx"].to_numpy()
        for run in runs:
            if self._windows is not None:
                self._windows.advance(int(time[run.start]))
            for piece in cut(rows[run], time[run], tx[run]):
                self.graph.apply_piece(piece)

    @property
    def overgrown(self) -> bool:
        """Whether the log of changes is worth replacing by what is left of it."""
        left = len(self.graph)
        if self._windows is not None:
            left += len(self._windows) - self._windows.held()
        return self._logged > SMALL_LOG + 2 * left

    def snapshot(self) -> pa.Table:
        """The current quads as inserts, and events; the log that leads to them can be forgotten."""
        quads = self.graph.quad_ids()
        quads = quads[quads[:, 3] < HIDDEN_GRAPHS]
        n = len(quads)
        columns = [self.graph.terms.decode_column(quads[:, i]) for i in range(4)]
        zeros, flags = np.zeros(n, np.int64), [np.ones(n, np.int8), np.ones(n, np.bool_)]
        stamp = zeros + (self.graph.clock if self._windows is None else 0)  # events come after
        changes = table_of(CHANGES, [stamp, zeros, zeros, *flags, *columns])
        if self._windows is not None:
            changes = changes.append_column(EVENTS.field("stream"), pa.nulls(n, pa.string()))
            changes = pa.concat_tables([changes, self._windows.snapshot()])
        self._logged = len(changes)
        return changes

    def closes(self) -> dict[int, Longs]:
        """By query over windows, the times at which it reports in the last batch."""
        return self._closes

    def answer(self, number: int) -> pa.Table:
        """The rows of a query over windows now, also of what no close has told of yet."""
        rows = self._answers[number].rows()
        zeros = np.zeros(len(rows), np.int64)
        return delta_table(number, zeros, zeros, rows[:, -1], rows[:, :-1], self.graph.terms)

    def _deltas(self) -> pa.Table:
        parts: list[pa.Table] = []
        for number, (query, watch) in enumerate(self._watches):
            if number in self._reports:
                parts += self._reported(number)
            else:
                parts += [self._table(number, query, *part) for part in watch.drain()]
        return pa.concat_tables(parts) if parts else DELTAS.empty_table()

    def _reported(self, number: int) -> Iterator[pa.Table]:
        """What changed in the answer of a query over windows, by the close that tells of it."""
        self._closes[number], changed = self._reports[number].taken()
        for closes, rows in changed:
            values, times, numbers = rows[:, VALUES:], closes[:, 0], closes[:, 1]
            yield delta_table(number, times, numbers, rows[:, DIFF], values, self.graph.terms)

    def _table(
        self, number: int, query: CellQuery, net: Ints, stamps: TransactionTimes
    ) -> pa.Table:
        own = self._own(query, net)
        times, txs = (np.asarray(part, np.int64) for part in (stamps.times, stamps.txs))
        at = own[:, TX]
        return delta_table(
            number, times[at], txs[at], own[:, DIFF], own[:, VALUES:], self.graph.terms
        )

    def _own(self, query: CellQuery, net: Ints) -> Ints:
        """A query's delta without the rows of other cells and the columns of the grid alone."""
        at = [DELTA_VALUES + query.query.variables.index(v) for v in query.grid.variables]
        mine = owners(net[:, at], self.graph.terms, query.grid) == self._cell
        keep = [TX, DIFF, *range(DELTA_VALUES, DELTA_VALUES + query.shown)]
        batch = np.take(net[mine], keep, axis=1)
        if counts_rows(query):
            return self._distinct[query.name].step(batch)
        return batch

    def _own_answer(self, number: int, query: CellQuery, net: Ints) -> Ints:
        own = self._own(query, net)
        if number in self._answers:
            self._answers[number].step(own)
        return own


def counts_rows(query: CellQuery) -> bool:
    """Whether a cell decides alone which rows of a query are there for the first time."""
    return query.distinct and not query.meets
