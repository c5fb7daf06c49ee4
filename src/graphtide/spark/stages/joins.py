"""Joins: the stages of queries in the Rete layout (`partition.rete`).

The match emits the deltas of fragments. Each join stage has a share of the operators' memories: the
rows whose keys hash to a partition. It gets the deltas of its inputs, runs its operators on all
transactions of the micro-batch at once, and sends the deltas of their outputs on: to the stages
that join them, or as deltas of the query. What is for later stages passes through.

All partitions of the match emit a transaction in the same micro-batch, so there is nothing to wait
for here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.engine.dataflow.operators import Operator, make_operator
from graphtide.kernel import Answer
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, empty_batch
from graphtide.kernel.counts import DELTA_VALUES
from graphtide.limits import Allowance
from graphtide.plan.physical import GroupBy, Physical, children
from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.partition.grids import key_partitions
from graphtide.spark.partition.program import BEFORE_ALL
from graphtide.spark.stages.consolidate import send_rows
from graphtide.spark.stages.events import gathered
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.spark.job import JobSpec, ReteQuery
    from graphtide.spark.partition.rete import Exchange, Placed
    from graphtide.spark.state.cache import PartitionState

Stamps = tuple[Longs, Longs]
"""Time and tx of each transaction of a batch."""


def join_batch(
    job: JobSpec, stage: int, state: PartitionState, batch: msg.StageInput
) -> msg.StageOutput:
    """Take the deltas of a micro-batch into the operators of one partition of a join stage."""
    messages = batch.table()
    taken = [id_ for query in job.rete for id_ in _ids_of_inputs(query, stage)]
    mine, others = msg.divided(messages, _deltas_of(messages, taken))
    passed = [msg.Sent(state.partition, others)]
    if not len(mine) and not job.first_rows:
        return msg.StageOutput(gathered(passed), batch.frontier)
    recovered = state.recover(lambda: JoinsPartition(job, stage, state.partition))
    engine, head, first, _ = recovered
    made = [msg.empty(msg.MESSAGES) if first is None else first]
    if len(mine):
        changed, head = state.advance(engine, head, mine)
        made.append(changed)
    state.commit(recovered, head)
    sent = _send_made(pa.concat_tables(made), job, state.partition)
    return msg.StageOutput(gathered([*passed, *sent]), batch.frontier)


def _ids_of_inputs(query: ReteQuery, stage: int) -> list[int]:
    return [id_ for exchange, id_ in query.exchanges.items() if exchange.stage == stage]


def _deltas_of(messages: pa.Table, ids: Iterable[int]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    deltas = messages["kind"].to_numpy() == msg.MessageKind.DELTA
    return np.asarray(deltas & np.isin(messages["id"].to_numpy(), list(ids)))


# --- sending ---


def send_fragments(messages: pa.Table, job: JobSpec) -> tuple[list[msg.Sent], pa.Table]:
    """The deltas of fragments, sent to the stages that join them; and the other messages."""
    if not len(messages):
        return [], messages
    ids = {id_ for query in job.rete for id_ in query.fragments.values()}
    rows, others = msg.divided(messages, _deltas_of(messages, ids))
    sent = [
        part
        for query in job.rete
        for exchange in query.exchanges
        if exchange.source in query.fragments
        for part in _exchanged(
            msg.of_kind(rows, msg.MessageKind.DELTA, query.fragments[exchange.source]),
            query,
            exchange,
            job.partitions,
        )
    ]
    return gathered(sent), others


def before_all(first: pa.Table, job: JobSpec) -> pa.Table:
    """Deltas before any change; those of fragments come before all transactions."""
    time, ids = first["time"].to_numpy().copy(), first["id"].to_numpy()
    time[ids >= job.first_fragment] = BEFORE_ALL
    return msg.replaced(first, "time", time)


def _send_made(made: pa.Table, job: JobSpec, partition: int) -> Iterator[msg.Sent]:
    """What a stage has made: deltas for other stages by their keys, those of queries as rows."""
    for query in job.rete:
        for exchange, id_ in query.exchanges.items():
            rows = msg.of_kind(made, msg.MessageKind.DELTA, id_)
            yield from _exchanged(rows, query, exchange, job.partitions)
    ids = made["id"].to_numpy()
    answers = made.filter(pa.array(ids < job.first_fragment))
    if job.consolidates:
        yield from send_rows(answers, job, partition)
    else:
        yield msg.Sent(partition, answers)


def _exchanged(
    rows: pa.Table, query: ReteQuery, exchange: Exchange, partitions: int
) -> Iterator[msg.Sent]:
    """Rows of a node, each to the partition of its key."""
    if not len(rows):
        return
    schema = exchange.source.schema
    columns = [schema.index(var) for var in exchange.key]
    values = rows["values"].combine_chunks()
    where = key_partitions(values, len(schema), columns, query.home, partitions)
    addressed = msg.addressed(rows, msg.MessageKind.DELTA, query.exchanges[exchange])
    for partition in np.unique(where).tolist():
        yield msg.Sent(partition, addressed.take(np.flatnonzero(where == partition)))


# --- the operators of a partition ---


@dataclass(slots=True)
class QueryPart:
    """The part of a query that is in a stage: its inputs with their rows, and its operators."""

    query: ReteQuery
    inputs: dict[Exchange, Answer]
    operators: list[tuple[Placed, Operator]]

    def outputs(self) -> Iterator[tuple[Physical, int]]:
        """The nodes whose rows leave the stage, and the ids under which they do."""
        here = {placed.node for placed, _ in self.operators}
        for exchange, id_ in self.query.exchanges.items():
            if exchange.source in here:
                yield exchange.source, id_
        if self.query.plan.root in here:
            yield self.query.plan.root, self.query.id


class JoinsPartition:
    """The operators of one partition of a join stage.

    Its log is the deltas of its inputs. The rows of the inputs are stored with their counts: a
    snapshot consists of them.
    """

    def __init__(self, job: JobSpec, stage: int, partition: int) -> None:
        self._queries = [query for query in job.rete if query.plan.stages >= stage]
        self._stage = stage
        self._partition = partition
        self._limits = job.limits
        self.log_rows = 0
        self._begin()

    def _begin(self) -> None:
        """Operators without rows, and an empty dictionary."""
        self._terms = TermDictionary()
        self._parts = [
            QueryPart(
                query,
                {
                    e: Answer(len(e.source.schema))
                    for e in query.exchanges
                    if e.stage == self._stage
                },
                [
                    (placed, make_operator(placed.node, self._terms))
                    for placed in query.plan.placed
                    if placed.stage == self._stage
                ],
            )
            for query in self._queries
        ]

    @property
    def live_rows(self) -> int:
        """How many different rows the inputs have."""
        return sum(len(rows) for part in self._parts for rows in part.inputs.values())

    @property
    def terms(self) -> int:
        """How many terms it knows."""
        return len(self._terms)

    def first(self) -> pa.Table:
        """The deltas before any input: groups without a key have a row when they are empty."""
        stamps = np.array([BEFORE_ALL]), np.array([0])
        parts = [
            table
            for part in self._parts
            if part.query.home == self._partition
            for table in self._emitted(part, self._step(part, {}, begins=True), stamps)
        ]
        return pa.concat_tables([msg.empty(msg.MESSAGES), *parts])

    def apply(self, rows: pa.Table, time: int) -> pa.Table:  # noqa: ARG002 - operators know no time
        """Take deltas of the inputs in; the deltas of what leaves the stage."""
        self.log_rows += len(rows)
        time_, tx = rows["time"].to_numpy(), rows["tx"].to_numpy()
        order = np.lexsort((tx, time_))
        time_, tx, rows = time_[order], tx[order], rows.take(order)
        begins = np.ones(len(rows), np.bool_)
        begins[1:] = (time_[1:] != time_[:-1]) | (tx[1:] != tx[:-1])
        parts = self._take(rows, np.cumsum(begins) - 1)
        stamps = time_[begins], tx[begins]
        made = [table for part, found in parts for table in self._emitted(part, found, stamps)]
        return pa.concat_tables([msg.empty(msg.MESSAGES), *made])

    def replay(self, rows: pa.Table, time: int) -> None:  # noqa: ARG002 - operators know no time
        """Take deltas in whose output was emitted before, all of them as one transaction."""
        self.log_rows += len(rows)
        for _ in self._take(rows, np.zeros(len(rows), np.int64)):
            pass

    def snapshot(self) -> pa.Table:
        """The rows of the inputs with their counts.

        The operators begin again from them, with a dictionary of the terms that are still there.
        """
        tables = [msg.empty(msg.MESSAGES)]
        for part in self._parts:
            for exchange, answer in part.inputs.items():
                rows, id_ = answer.rows(), part.query.exchanges[exchange]
                zeros = np.zeros(len(rows), np.int64)
                tables.append(
                    msg.delta_messages(id_, (zeros, zeros), rows[:, -1], rows[:, :-1], self._terms)
                )
        table = pa.concat_tables(tables)
        self._begin()
        self.first()
        self.log_rows = 0
        self.replay(table, 0)
        return table

    def _take(
        self, rows: pa.Table, transactions: Longs
    ) -> Iterator[tuple[QueryPart, dict[Physical, Ints]]]:
        """Per query, the outputs of its nodes for deltas in the order of their transactions."""
        ids = rows["id"].to_numpy()
        for part in self._parts:
            arrived: dict[Exchange, Ints] = {}
            for exchange, answer in part.inputs.items():
                at = np.flatnonzero(ids == part.query.exchanges[exchange])
                if len(at):
                    batch = self._batch(rows.take(at), transactions[at], exchange)
                    arrived[exchange] = _without_count(answer.step(batch))
            if arrived:
                yield part, self._step(part, arrived)

    def _batch(self, rows: pa.Table, transactions: Longs, exchange: Exchange) -> Ints:
        width = len(exchange.source.schema)
        batch: Ints = np.empty((len(rows), VALUES + width), np.int32)
        batch[:, TX] = transactions
        batch[:, DIFF] = rows["diff"].to_numpy()
        batch[:, VALUES:] = msg.value_ids(rows, width, self._terms)
        return batch

    def _step(
        self, part: QueryPart, arrived: dict[Exchange, Ints], *, begins: bool = False
    ) -> dict[Physical, Ints]:
        """The outputs of a query's nodes; a group without a key has one when it `begins`."""
        outputs: dict[Physical, Ints] = {}
        with Allowance(self._limits, "flush") as left:
            for placed, operator in part.operators:
                node = placed.node
                batches = [
                    (outputs.get(child) if exchange is None else arrived.get(exchange))
                    for child, exchange in zip(children(node), placed.inputs, strict=True)
                ]
                empty = begins and isinstance(node, GroupBy) and not node.keys
                if not empty and not any(batch is not None and len(batch) for batch in batches):
                    continue
                known = zip(children(node), batches, strict=True)
                outputs[node] = operator.step(
                    *(empty_batch(len(n.schema)) if b is None else b for n, b in known)
                )
                left.spend(outputs[node].nbytes)
        return outputs

    def _emitted(
        self, part: QueryPart, outputs: dict[Physical, Ints], stamps: Stamps
    ) -> Iterator[pa.Table]:
        """The rows that leave the stage, per transaction each once; first answers at time 0."""
        times, txs = stamps
        for node, id_ in part.outputs():
            if not len(outputs.get(node, ())):
                continue
            net = _without_count(Answer(len(node.schema)).step(outputs[node]))
            time, tx = times[net[:, TX]], txs[net[:, TX]]
            if id_ == part.query.id:
                time = np.where(time == BEFORE_ALL, 0, time)
            yield msg.delta_messages(id_, (time, tx), net[:, DIFF], net[:, VALUES:], self._terms)


def _without_count(net: Ints) -> Ints:
    """Consolidated rows as a batch: without the counts before."""
    return np.concatenate([net[:, :VALUES], net[:, DELTA_VALUES:]], axis=1)
