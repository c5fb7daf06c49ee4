"""Match: a micro-batch of changes through the in-process engine of one partition.

Complete transactions run, in the order of `(time, tx)` and inside one by `seq`. The changes of a
transaction that is still open are held in the log's head. Without `seq`, changes keep the order in
which they came, where that is known (`stages.order`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.engine.ingest import cut
from graphtide.engine.runtime import Runtime
from graphtide.errors import GraphtideError
from graphtide.kernel import Answer, DistinctKernel
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs
from graphtide.kernel.counts import DELTA_VALUES
from graphtide.rdf.dictionary import HIDDEN_GRAPHS
from graphtide.spark.partition.grids import owners
from graphtide.spark.partition.hashing import TermHashes
from graphtide.spark.stages import order
from graphtide.spark.stages.consolidate import send_rows
from graphtide.spark.stages.events import first_facts, graph_events, send_matched
from graphtide.spark.stages.joins import before_all, send_fragments
from graphtide.spark.stages.pack import late_rows
from graphtide.spark.stages.windows import PartitionResults, PartitionWindows, report
from graphtide.spark.state import messages as msg
from graphtide.spark.state.frontier import is_feedback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from graphtide.engine.results import TransactionTimes
    from graphtide.spark.job import JobSpec, PartitionQuery
    from graphtide.spark.partition.windows import Clock
    from graphtide.spark.state.cache import PartitionState
    from graphtide.spark.state.frontier import Frontier, Shards


class QueriesPartition:
    """A live graph with every query of a job, which emits the rows of one partition."""

    def __init__(self, job: JobSpec, partition: int) -> None:
        self.graph = Runtime(limits=job.limits)
        self._partition = partition
        self._hashes = TermHashes(self.graph.terms)
        self._watches = [
            (query, self.graph.watch(query.query, name=query.name))
            for query in job.partition_queries
        ]
        self._distinct = {q.name: DistinctKernel(q.shown) for q in job.partition_queries}
        self.log_rows = 0
        self._windows = PartitionWindows(self.graph, job) if job.windows else None
        self._reports: dict[int, PartitionResults] = {}
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
        """Apply complete transactions, in order, then close windows up to a time; the deltas.

        Deltas of queries over windows that no close has reported yet have the time `UNREPORTED`.
        """
        self._take(changes, time)
        return self._deltas()

    def replay(self, changes: pa.Table, time: int) -> None:
        """Apply transactions whose deltas were emitted before; DISTINCT counts them again."""
        self._take(changes, time)
        for number, (query, watch) in enumerate(self._watches):
            if number in self._reports:
                self._reports[number].taken()
                continue
            for net, _ in watch.drain():
                if counts_rows(query):
                    self._own(query, net)

    def _take(self, changes: pa.Table, time: int) -> None:
        self.log_rows += len(changes)
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
    def live_rows(self) -> int:
        """How many quads and events a snapshot would have."""
        live = len(self.graph.store)
        if self._windows is not None:
            live += len(self._windows) - self._windows.held()
        return live

    @property
    def terms(self) -> int:
        """How many terms it knows."""
        return len(self.graph.terms)

    def snapshot(self) -> pa.Table:
        """The current quads as inserts, and the events that windows need."""
        quads = self.graph.quad_ids()
        quads = quads[quads[:, 3] < HIDDEN_GRAPHS]
        n = len(quads)
        columns = [msg.term_column(self.graph.terms, quads[:, i]) for i in range(4)]
        zeros = np.zeros(n, np.int64)
        flags = [np.ones(n, np.int8), zeros, np.ones(n, np.bool_)]
        stamp = zeros + (self.graph.clock if self._windows is None else 0)  # events come after
        changes = msg.table_of(msg.CHANGES, [stamp, zeros, zeros, *flags, *columns])
        if self._windows is not None:
            changes = changes.append_column(
                msg.STREAM_CHANGES.field("stream"), pa.nulls(n, pa.string())
            )
            changes = pa.concat_tables([changes, self._windows.snapshot()])
        self.log_rows = len(changes)
        return changes

    def closes(self) -> dict[int, Longs]:
        """By query over windows, its closes in the last batch: time, and index within it."""
        return self._closes

    def answer(self, number: int) -> pa.Table:
        """The rows of a query over windows now, also those that no close has reported yet."""
        rows = self._answers[number].rows()
        zeros = np.zeros(len(rows), np.int64)
        return msg.delta_messages(
            number, (zeros, zeros), rows[:, -1], rows[:, :-1], self.graph.terms
        )

    def _deltas(self) -> pa.Table:
        parts: list[pa.Table] = []
        for number, (query, watch) in enumerate(self._watches):
            if number in self._reports:
                parts += self._reported(number)
            else:
                parts += [self._table(number, query, *part) for part in watch.drain()]
        return pa.concat_tables(parts) if parts else msg.empty(msg.MESSAGES)

    def _reported(self, number: int) -> Iterator[pa.Table]:
        """What changed in the answer of a query over windows, by the close that reports it."""
        self._closes[number], changed = self._reports[number].taken()
        for closes, rows in changed:
            stamps = closes[:, 0], closes[:, 1]
            yield msg.delta_messages(
                number, stamps, rows[:, DIFF], rows[:, VALUES:], self.graph.terms
            )

    def _table(
        self, number: int, query: PartitionQuery, net: Ints, stamps: TransactionTimes
    ) -> pa.Table:
        own = self._own(query, net)
        times, txs = (np.asarray(part, np.int64) for part in (stamps.times, stamps.txs))
        at = own[:, TX]
        return msg.delta_messages(
            number, (times[at], txs[at]), own[:, DIFF], own[:, VALUES:], self.graph.terms
        )

    def _own(self, query: PartitionQuery, net: Ints) -> Ints:
        """A query's delta without rows of other partitions and extra columns of the grid."""
        at = [DELTA_VALUES + query.query.variables.index(v) for v in query.grid.columns]
        mine = owners(net[:, at], self._hashes, query.grid) == self._partition
        columns = [TX, DIFF, *range(DELTA_VALUES, DELTA_VALUES + query.shown)]
        batch = np.take(net[mine], columns, axis=1)
        if counts_rows(query):
            return self._distinct[query.name].step(batch)
        return batch

    def _own_answer(self, number: int, query: PartitionQuery, net: Ints) -> Ints:
        own = self._own(query, net)
        if number in self._answers:
            self._answers[number].step(own)
        return own


def counts_rows(query: PartitionQuery) -> bool:
    """Whether a partition counts the rows of a DISTINCT query by itself."""
    return query.distinct and not query.needs_consolidation


def match_batch(job: JobSpec, state: PartitionState, batch: msg.StageInput) -> msg.StageOutput:
    """Take a micro-batch into a partition: complete transactions run, the rest is held."""
    recovered = state.recover(lambda: QueriesPartition(job, state.partition))
    engine, head, first, _ = recovered
    arrived = batch.table(job.changes_schema)
    late, timely = msg.divided(arrived, _late(arrived, head.frontier))
    if len(late) and not job.clock.rejects_late:
        raise _too_late(late, head.frontier)
    held = msg.from_chunk(head.held) if head.held else msg.empty(job.changes_schema)
    waiting = in_order(pa.concat_tables([held, timely]) if len(held) else timely)
    order.check_order(waiting, job)
    shards = head.shards.joined([batch.shards], batch.now)
    frontier = max(head.frontier, _complete_up_to(shards, batch, job.clock))
    closed, rest = msg.divided(waiting, _complete(waiting, frontier))
    events, closed = _split_events(closed, job)
    # If all is complete and in order, it is logged as it came.
    chunk = b"".join(batch.chunks) if closed is arrived else None
    before = msg.empty(msg.MESSAGES) if first is None else before_all(first, job)
    if job.program is not None:
        before = first_facts(before, job.program)
    messages = msg.empty(msg.MESSAGES)
    still = msg.to_chunk(order.held(rest)) if len(rest) else b""
    after = replace(head, frontier=frontier, shards=shards, held=still)
    # With windows, an engine has another state as soon as time has passed.
    moves = len(closed) > 0 or (bool(job.windows) and frontier.time > head.frontier.time)
    if moves:
        messages, after = state.advance(engine, after, closed, chunk)
    if job.windows and (moves or first is not None):
        before = msg.from_chunk(head.unreported) if head.unreported else before
        messages, unreported = report(before, messages, engine, job)
        after = replace(after, unreported=msg.to_chunk(unreported) if len(unreported) else b"")
    elif first is not None:
        messages = pa.concat_tables([before, messages])
    if job.program is not None:
        messages = pa.concat_tables([messages, graph_events(events, job.program)])
    state.commit(recovered, after)
    return msg.StageOutput(
        send_messages(messages, job, state.partition), frontier, late_rows(late, head.frontier)
    )


def _complete_up_to(shards: Shards, batch: msg.StageInput, clock: Clock) -> Frontier:
    """The frontier behind which all is complete; at the end of a bounded input that is all."""
    if batch.bounded:
        return batch.frontier.at_end()
    shards.check(clock.shards)
    complete = shards.complete(clock.shards, clock.idle)
    if batch.now is None or clock.idle_seconds is None:
        return complete
    until = batch.now - round(clock.idle_seconds * 1000)
    return max(complete, shards.gone_on(until, clock.tick_ms))


def _too_late(late: pa.Table, frontier: Frontier) -> GraphtideError:
    """The error for changes of transactions that were complete already."""
    time, tx = late["time"][0].as_py(), late["tx"][0].as_py()
    return GraphtideError(
        f"a change of time {time}, tx {tx} came after the stream was complete up to time "
        f"{frontier.time}, tx {frontier.tx}: the stream is not in order",
        hint="if its source has partitions that are each in order, name them in a column shard; "
        'or allow for lateness=…; or order the source; late="reject" leaves such rows out',
    )


def send_messages(messages: pa.Table, job: JobSpec, partition: int) -> list[msg.Sent]:
    """The messages by the partition of the next stage to which they go."""
    joined, messages = send_fragments(messages, job) if job.rete else ([], messages)
    return [*joined, *_sent_on(messages, job, partition)]


def _sent_on(messages: pa.Table, job: JobSpec, partition: int) -> list[msg.Sent]:
    """The messages of whole queries."""
    if job.consolidates:
        return send_rows(messages, job, partition)
    if job.program is not None:
        return send_matched(messages, job.program, partition)
    return [msg.Sent(partition, messages)] if len(messages) else []


def in_order(changes: pa.Table) -> pa.Table:
    """Changes by transaction, inside one by `seq`, and with the same `seq` as they came."""
    keys = [changes[name].to_numpy() for name in ("seq", "tx", "time")]
    places = np.lexsort(keys)
    return changes if (places[1:] > places[:-1]).all() else changes.take(places)


def _complete(changes: pa.Table, frontier: Frontier) -> NDArray[np.bool_]:
    """Which changes belong to complete transactions."""
    tx = changes["tx"].to_numpy()
    return np.asarray(frontier.completed(changes["time"].to_numpy(), tx) | is_feedback(tx))


def _late(changes: pa.Table, frontier: Frontier) -> NDArray[np.bool_]:
    """Which changes come after their transaction was complete; in windows, after their time was.

    What actions have changed is never late.
    """
    late = _complete(changes, frontier)
    if "stream" in changes.column_names:
        before = changes["time"].to_numpy() < frontier.time
        late &= changes["stream"].is_null().to_numpy() | before | _for_rules(changes)
    return np.asarray(late & ~is_feedback(changes["tx"].to_numpy()))


def _for_rules(changes: pa.Table) -> NDArray[np.bool_]:
    """Which rows are copies for rules and patterns."""
    if "for_rules" not in changes.column_names:
        return np.zeros(len(changes), np.bool_)
    return np.asarray(changes["for_rules"].to_numpy())


def _split_events(changes: pa.Table, job: JobSpec) -> tuple[pa.Table, pa.Table]:
    """The copies of events for rules and patterns; and the changes that the queries see."""
    if not job.reacts_to_graph_events:
        return msg.empty(msg.RULE_CHANGES), changes
    events, rest = msg.divided(changes, _for_rules(changes))
    return events, rest.select(job.log_schema.names)
