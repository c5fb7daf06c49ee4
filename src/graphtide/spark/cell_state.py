"""CellState: one micro-batch taken into one cell, exactly, whatever happened to earlier attempts.

Complete transactions run, in the order of `(time, tx)` and inside one by `seq`. What belongs to a
transaction that may go on is held in the log's head. Without `seq`, changes keep the order in which
they came: micro-batch by micro-batch, in one by Spark's partition number, in that by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from graphtide.spark.cache import Cache, advance, recover
from graphtide.spark.cell_engine import CellEngine
from graphtide.spark.chunk import from_chunk, from_chunks, to_chunk
from graphtide.spark.event_rows import frontier_row, of_start, typed_events
from graphtide.spark.pack_reactions import divided_events, of_reactions
from graphtide.spark.reaction import is_feedback
from graphtide.spark.rejects import rejected_late
from graphtide.spark.reports import report
from graphtide.spark.schemas import CHANGES, DELTAS, EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from graphtide.spark.frontier import Frontier
    from graphtide.spark.log import Log
    from graphtide.spark.task import Task


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch did in a cell: deltas out, input set aside as too late."""

    deltas: pa.Table
    late: pa.Table


def take_batch(
    log: Log, cache: Cache, task: Task, run: str, cell: int, chunks: Iterable[bytes], seen: Frontier
) -> Outcome:
    """Take one micro-batch's chunks into a cell: complete transactions run, the rest is held."""
    key = (run, "match", cell)
    engine, head, first = recover(log, cache, key, lambda: CellEngine(task, cell))
    chunks = list(chunks)
    arrived = from_chunks(chunks, task.changes_schema)
    late, timely = _divided(arrived, _too_late(arrived, head.frontier))
    held = from_chunk(head.held) if head.held else task.changes_schema.empty_table()
    waiting = in_order(pa.concat_tables([held, timely]) if len(held) else timely)
    frontier = max(head.frontier, seen)
    closed, rest = _divided(waiting, _complete(waiting, frontier))
    events, closed = divided_events(closed, EVENTS if task.windows else CHANGES)
    # As a rule all of one chunk is taken in as it came, and is not packed anew.
    same = chunks[0] if closed is arrived and len(chunks) == 1 else None
    before = DELTAS.empty_table() if first is None else first
    if task.reaction is not None:
        before = of_start(before, task.reaction)
    deltas = DELTAS.empty_table()
    after = replace(head, frontier=frontier, held=to_chunk(rest) if len(rest) else b"")
    # With windows, an engine stands somewhere else as soon as time has gone on.
    moves = len(closed) > 0 or (bool(task.windows) and frontier.time > head.frontier.time)
    if moves:
        deltas, after = advance(log, after, engine, closed, same)
    if task.windows and (moves or first is not None):
        before = from_chunk(head.pending) if head.pending else before
        deltas, pending = report(before, deltas, cast("CellEngine", engine), task)
        after = replace(after, pending=to_chunk(pending) if len(pending) else b"")
    elif first is not None:
        deltas = pa.concat_tables([first, deltas])
    if task.reaction is not None:
        told = typed_events(events, task.reaction), frontier_row(frontier)
        deltas = pa.concat_tables([deltas, *told])
    if first is not None or after != head:
        log.put_head(after)
    cache.put(key, engine, after)
    return Outcome(deltas, rejected_late(late, head.frontier))


def in_order(changes: pa.Table) -> pa.Table:
    """Changes by transaction, inside one by `seq`, and with the same `seq` as they came."""
    keys = [changes[name].to_numpy() for name in ("seq", "tx", "time")]
    order = np.lexsort(keys)
    return changes if (order[1:] > order[:-1]).all() else changes.take(order)


def _complete(changes: pa.Table, frontier: Frontier) -> NDArray[np.bool_]:
    """Which changes belong to complete transactions."""
    tx = changes["tx"].to_numpy()
    return np.asarray(frontier.complete(changes["time"].to_numpy(), tx) | is_feedback(tx))


def _too_late(changes: pa.Table, frontier: Frontier) -> NDArray[np.bool_]:
    """Which changes come after their transaction was complete; in windows, after their time was.

    What actions have changed is never too late.
    """
    late = _complete(changes, frontier)
    if "stream" in changes.column_names:
        before = changes["time"].to_numpy() < frontier.time
        late &= changes["stream"].is_null().to_numpy() | before | of_reactions(changes)
    return np.asarray(late & ~is_feedback(changes["tx"].to_numpy()))


def _divided(changes: pa.Table, done: NDArray[np.bool_]) -> tuple[pa.Table, pa.Table]:
    """The changes that are done with, and the others; all of them are not copied."""
    if done.all():
        return changes, changes.slice(0, 0)
    if not done.any():
        return changes.slice(0, 0), changes
    return changes.filter(pa.array(done)), changes.filter(pa.array(~done))
