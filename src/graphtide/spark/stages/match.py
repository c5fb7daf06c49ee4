"""Match: a micro-batch of changes through the in-process engine of one partition.

Complete transactions run, in the order of `(time, tx)` and inside one by `seq`. The changes of a
transaction that is still open are held in the log's head. Without `seq`, changes keep the order in
which they came: micro-batch by micro-batch, in one by Spark's task, in that by row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.spark.partition.program import is_feedback
from graphtide.spark.stages.consolidate import send_rows
from graphtide.spark.stages.events import first_facts, graph_events, send_matched
from graphtide.spark.stages.pack import late_rows
from graphtide.spark.stages.partition import QueriesPartition
from graphtide.spark.stages.windows import report
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.spark.job import JobSpec
    from graphtide.spark.state.cache import PartitionState
    from graphtide.spark.state.frontier import Frontier


def match_batch(job: JobSpec, state: PartitionState, batch: msg.StageInput) -> msg.StageOutput:
    """Take a micro-batch into a partition: complete transactions run, the rest is held."""
    recovered = state.recover(lambda: QueriesPartition(job, state.partition))
    engine, head, first = recovered
    arrived = batch.table(job.changes_schema)
    late, timely = msg.divided(arrived, _late(arrived, head.frontier))
    held = msg.from_chunk(head.held) if head.held else job.changes_schema.empty_table()
    waiting = in_order(pa.concat_tables([held, timely]) if len(held) else timely)
    frontier = max(head.frontier, _watermark(job, batch))
    closed, rest = msg.divided(waiting, _complete(waiting, frontier))
    events, closed = _split_events(closed, job)
    # Mostly all of one chunk is complete, and is logged as it came.
    chunk = batch.chunks[0] if closed is arrived and len(batch.chunks) == 1 else None
    before = msg.MESSAGES.empty_table() if first is None else first
    if job.program is not None:
        before = first_facts(before, job.program)
    messages = msg.MESSAGES.empty_table()
    after = replace(head, frontier=frontier, held=msg.to_chunk(rest) if len(rest) else b"")
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
        _sent(messages, job, state.partition), frontier, late_rows(late, head.frontier)
    )


def _watermark(job: JobSpec, batch: msg.StageInput) -> Frontier:
    """The frontier behind which all is complete; at the end of a bounded input that is all."""
    return (
        batch.frontier.at_end() if batch.bounded else batch.frontier.watermark(job.clock.lateness)
    )


def _sent(messages: pa.Table, job: JobSpec, partition: int) -> list[msg.Sent]:
    """The messages by the partition of the next stage to which they go."""
    if job.consolidates:
        return send_rows(messages, job, partition)
    if job.program is not None:
        return send_matched(messages, job.program, partition)
    return [msg.Sent(partition, messages)] if len(messages) else []


def in_order(changes: pa.Table) -> pa.Table:
    """Changes by transaction, inside one by `seq`, and with the same `seq` as they came."""
    keys = [changes[name].to_numpy() for name in ("seq", "tx", "time")]
    order = np.lexsort(keys)
    return changes if (order[1:] > order[:-1]).all() else changes.take(order)


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
        return msg.RULE_CHANGES.empty_table(), changes
    events, rest = msg.divided(changes, _for_rules(changes))
    return events, rest.select(job.log_schema.names)
