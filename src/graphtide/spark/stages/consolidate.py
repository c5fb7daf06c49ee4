"""Consolidate: equal rows of several partitions become one.

A query whose grid has a variable that the answer does not show can have one answer row in several
partitions: one gains it while another loses it, or two gain it. Such rows are sent on by a hash of
the row and added up per transaction; DISTINCT counts them over all transactions, and only then has
the stage state. All partitions emit a transaction in the same micro-batch, so there is nothing to
wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.kernel import Answer
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.spark.partition.hashing import mixed_hashes, text_hashes
from graphtide.spark.stages.events import send_matched
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.spark.job import JobSpec
    from graphtide.spark.state.cache import PartitionState


def consolidate_batch(
    job: JobSpec, state: PartitionState, batch: msg.StageInput
) -> msg.StageOutput:
    """The messages of a micro-batch with equal rows of a query as one."""
    messages = consolidate(batch.table(), job, state)
    if job.program is not None:
        return msg.StageOutput(send_matched(messages, job.program, state.partition), batch.frontier)
    return msg.StageOutput(
        [msg.Sent(state.partition, messages)] if len(messages) else [], batch.frontier
    )


def consolidate(messages: pa.Table, job: JobSpec, state: PartitionState) -> pa.Table:
    """Equal rows as one; the counts of DISTINCT are the state."""
    rows, others = msg.divided(messages, _of_queries(messages, counted(job)))
    out = consolidate_rows(others, job)
    if not len(rows):
        return out
    recovered = state.recover(lambda: RowCounts(job))
    changed, head = state.advance(recovered.engine, recovered.head, rows)
    state.commit(recovered, head)
    return pa.concat_tables([out, changed])


def counted(job: JobSpec) -> tuple[int, ...]:
    """The queries whose rows are counted across partitions and transactions."""
    queries = enumerate(job.partition_queries)
    return tuple(n for n, query in queries if query.needs_consolidation and query.counted)


def _of_queries(messages: pa.Table, queries: tuple[int, ...]) -> NDArray[np.bool_]:
    deltas = messages["kind"].to_numpy() == msg.MessageKind.DELTA
    return np.asarray(deltas & np.isin(messages["id"].to_numpy(), queries))


class RowCounts:
    """How often each row of the counted queries is there."""

    def __init__(self, job: JobSpec) -> None:
        self._terms = msg.TextIds()
        widths = {query: job.partition_queries[query].shown for query in counted(job)}
        self._nets = {query: (Answer(width), width) for query, width in widths.items()}
        self.log_rows = 0

    @property
    def live_rows(self) -> int:
        """How many different rows there are."""
        return sum(len(net) for net, _ in self._nets.values())

    @property
    def terms(self) -> int:
        """How many texts it knows."""
        return len(self._terms)

    def first(self) -> pa.Table:
        """Nothing: all rows come from other stages."""
        return msg.empty(msg.MESSAGES)

    def apply(self, rows: pa.Table, time: int) -> pa.Table:  # noqa: ARG002 - counts know no time
        """The rows whose count left 0 or reached it."""
        self.log_rows += len(rows)
        parts = [
            consolidated(rows, query, net, width, self._terms, distinct=True)
            for query, (net, width) in self._nets.items()
        ]
        return pa.concat_tables([msg.empty(msg.MESSAGES), *parts])

    def replay(self, rows: pa.Table, time: int) -> None:
        """Count rows again."""
        self.apply(rows, time)

    def snapshot(self) -> pa.Table:
        """The current rows with their counts."""
        parts = [msg.empty(msg.MESSAGES)]
        for query, (net, _) in self._nets.items():
            rows = net.rows()
            zeros = np.zeros(len(rows), np.int64)
            stamps = zeros, zeros
            parts.append(msg.delta_messages(query, stamps, rows[:, -1], rows[:, :-1], self._terms))
        table = pa.concat_tables(parts)
        self.log_rows = len(table)
        return table


def consolidate_rows(messages: pa.Table, job: JobSpec) -> pa.Table:
    """Per transaction one row for equal rows of a query, and none where they cancel."""
    queries = enumerate(job.partition_queries)
    widths = {n: query.shown for n, query in queries if query.needs_consolidation}
    rows, others = msg.divided(messages, _of_queries(messages, tuple(widths)))
    terms = msg.TextIds()
    parts = [
        consolidated(rows, query, Answer(width), width, terms, distinct=False)
        for query, width in (widths.items() if len(rows) else ())
    ]
    return pa.concat_tables([others, *parts])


def consolidated(
    messages: pa.Table, query: int, net: Answer, width: int, terms: msg.TextIds, *, distinct: bool
) -> pa.Table:
    """The net changes of one query's rows; for DISTINCT, where their counts leave or reach 0."""
    rows = msg.of_kind(messages, msg.MessageKind.DELTA, query)
    time, tx = rows["time"].to_numpy(), rows["tx"].to_numpy()
    order = np.lexsort((tx, time))
    time, tx, rows = time[order], tx[order], rows.take(order)
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (time[1:] != time[:-1]) | (tx[1:] != tx[:-1])
    batch = np.empty((len(rows), VALUES + width), np.int32)
    batch[:, TX] = np.cumsum(begins) - 1
    batch[:, DIFF] = rows["diff"].to_numpy()
    batch[:, VALUES:] = msg.value_ids(rows, width, terms)
    out = net.step(batch)
    if distinct:
        out = _crossings(out)
    at = np.flatnonzero(begins)[out[:, TX]]
    return msg.delta_messages(query, (time[at], tx[at]), out[:, DIFF], out[:, DELTA_VALUES:], terms)


def _crossings(net: Ints) -> Ints:
    """The rows whose count left 0 (+1) or reached it (-1)."""
    before, after = net[:, COUNT_BEFORE], net[:, COUNT_BEFORE] + net[:, DIFF]
    turned = (after > 0).astype(np.int32) - (before > 0)
    out: Ints = net[turned != 0].copy()
    out[:, DIFF] = turned[turned != 0]
    return out


def send_rows(messages: pa.Table, job: JobSpec, partition: int) -> list[msg.Sent]:
    """Messages by the partition where they are consolidated; others stay where they are."""
    if not len(messages):
        return []
    where = np.full(len(messages), partition, np.int64)
    for number, query in enumerate(job.partition_queries):
        if query.needs_consolidation:
            chosen = np.flatnonzero(_of_queries(messages, (number,)))
            hashes = row_hashes(messages.take(chosen), query.shown, query.consolidate_by)
            where[chosen] = hashes % job.partitions
    targets: list[int] = np.unique(where).tolist()
    return [msg.Sent(target, messages.take(np.flatnonzero(where == target))) for target in targets]


def row_hashes(messages: pa.Table, width: int, by: int | None = None) -> NDArray[np.int64]:
    """A non-negative hash per message of one query, from its values, or from the first of them."""
    if not width or not len(messages):
        return np.zeros(len(messages), np.int64)
    rows: Any = messages["values"].combine_chunks()
    values = text_hashes(rows.flatten()).reshape(len(messages), width)
    return mixed_hashes(list(values.T[:by]), len(messages))
