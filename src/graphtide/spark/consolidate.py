"""Consolidate: where equal rows of several cells meet and become one.

A query whose grid has a variable that the answer does not show can have one answer row in several
cells: one cell gains it while another loses it, or two cells gain it. Such rows are sent on by a
hash of the row, and added up per transaction; DISTINCT counts them over all transactions. All cells
emit a transaction in the same micro-batch, so there is nothing to wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.kernel import Answer
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.spark.cache import Cache, advance, recover
from graphtide.spark.cell_engine import SMALL_LOG
from graphtide.spark.delta_table import delta_table, value_ids
from graphtide.spark.hashing import text_hashes
from graphtide.spark.schemas import DELTAS
from graphtide.spark.text_ids import TextIds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.spark.log import Log
    from graphtide.spark.task import Task


class Counts:
    """How often each row of the DISTINCT queries that meet is there; what is cached and logged."""

    def __init__(self, task: Task) -> None:
        self._terms = TextIds()
        widths = {number: task.cell_queries[number].shown for number in counted(task)}
        self._nets = {number: (Answer(width), width) for number, width in widths.items()}
        self._logged = 0

    def first(self) -> pa.Table:
        """Nothing: all rows come from cells."""
        return DELTAS.empty_table()

    def apply(self, changes: pa.Table, time: int) -> pa.Table:  # noqa: ARG002 - counts know no time
        """Rows that were nowhere and now are somewhere, or the other way round."""
        self._logged += len(changes)
        parts = [
            summed(changes, number, net, width, self._terms, distinct=True)
            for number, (net, width) in self._nets.items()
        ]
        return pa.concat_tables([DELTAS.empty_table(), *parts])

    def replay(self, changes: pa.Table, time: int) -> None:
        """Rows that went out before."""
        self.apply(changes, time)

    @property
    def overgrown(self) -> bool:
        """Whether the log of changes is worth replacing by the counts that are left of it."""
        return self._logged > SMALL_LOG + 2 * sum(len(net) for net, _ in self._nets.values())

    def snapshot(self) -> pa.Table:
        """The current rows with their counts."""
        parts = [DELTAS.empty_table()]
        for number, (net, _) in self._nets.items():
            rows = net.rows()
            zeros = np.zeros(len(rows), np.int64)
            parts.append(delta_table(number, zeros, zeros, rows[:, -1], rows[:, :-1], self._terms))
        table = pa.concat_tables(parts)
        self._logged = len(table)
        return table


def consolidate(
    deltas: pa.Table, task: Task, log: Log, cache: Cache, run: str, cell: int
) -> pa.Table:
    """The deltas of a micro-batch with equal rows as one; DISTINCT counts live in the log."""
    numbers = counted(task)
    if not numbers:
        return add_up(deltas, task)
    key = (run, "consolidate", cell)
    engine, head, _ = recover(log, cache, key, lambda: Counts(task))
    mine = np.isin(deltas["query"].to_numpy(), list(numbers))
    rows = deltas.filter(pa.array(mine))
    out = add_up(deltas.filter(pa.array(~mine)), task)
    if len(rows):
        appeared, head = advance(log, head, engine, rows)
        log.put_head(head)
        out = pa.concat_tables([out, appeared])
    cache.put(key, engine, head)
    return out


def add_up(deltas: pa.Table, task: Task) -> pa.Table:
    """Per transaction one row for equal rows, and none where they cancel."""
    query = deltas["query"].to_numpy()
    meeting = [number for number, each in enumerate(task.cell_queries) if each.meets]
    terms = TextIds()
    parts = [deltas.filter(pa.array(~np.isin(query, meeting)))]
    for number in meeting:
        width = task.cell_queries[number].shown
        parts.append(summed(deltas, number, Answer(width), width, terms, distinct=False))
    return pa.concat_tables(parts)


def summed(
    deltas: pa.Table, number: int, net: Answer, width: int, terms: TextIds, *, distinct: bool
) -> pa.Table:
    """The net changes of one query's rows; for DISTINCT, where their counts leave or reach 0."""
    rows = deltas.filter(pa.array(deltas["query"].to_numpy() == number))
    time, tx = rows["time"].to_numpy(), rows["tx"].to_numpy()
    order = np.lexsort((tx, time))
    time, tx, rows = time[order], tx[order], rows.take(order)
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (time[1:] != time[:-1]) | (tx[1:] != tx[:-1])
    batch = np.empty((len(rows), VALUES + width), np.int32)
    batch[:, TX] = np.cumsum(begins) - 1
    batch[:, DIFF] = rows["diff"].to_numpy()
    batch[:, VALUES:] = value_ids(rows, width, terms)
    out = net.step(batch)
    if distinct:
        out = crossings(out)
    starts = np.flatnonzero(begins)[out[:, TX]]
    return delta_table(number, time[starts], tx[starts], out[:, DIFF], out[:, DELTA_VALUES:], terms)


def crossings(net: Ints) -> Ints:
    """The rows whose count left 0 (+1) or reached it (-1)."""
    before, after = net[:, COUNT_BEFORE], net[:, COUNT_BEFORE] + net[:, DIFF]
    turned = (after > 0).astype(np.int32) - (before > 0)
    out: Ints = net[turned != 0].copy()
    out[:, DIFF] = turned[turned != 0]
    return out


def counted(task: Task) -> tuple[int, ...]:
    """The numbers of the queries whose rows have to be counted across cells for ever."""
    return tuple(n for n, q in enumerate(task.cell_queries) if q.meets and q.counted)


def meeting_cells(deltas: pa.Table, task: Task, cell: int) -> NDArray[np.int64]:
    """The cell to which each row is sent on: by its hash if it has to meet others, else its own."""
    query = deltas["query"].to_numpy()
    where = np.full(len(deltas), cell, np.int64)
    for number, each in enumerate(task.cell_queries):
        chosen = np.flatnonzero(query == number)
        if each.meets and len(chosen):
            rows = deltas.take(chosen)
            where[chosen] = row_hashes(rows, each.shown, each.meet_by) % task.cells
    return where


def row_hashes(deltas: pa.Table, width: int, by: int | None = None) -> NDArray[np.int64]:
    """A non-negative hash per row of one query, from its values, or from the first of them."""
    rows: Any = deltas["row"].combine_chunks()
    mixed = np.zeros(len(deltas), np.uint64)
    if width:
        values = text_hashes(rows.flatten()).reshape(len(deltas), width).astype(np.uint64)
        for column in values.T[:by]:
            mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(1)).astype(np.int64)
