"""CellState: one micro-batch taken into one cell, exactly, whatever happened to earlier attempts.

Complete transactions run, in the order of `(time, tx)` and inside one by `seq`. What belongs to a
transaction that may go on is held in the log's head. Without `seq`, changes keep the order in which
they came: micro-batch by micro-batch, in one by Spark's partition number, in that by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.spark.cache import Cache, advance, recover
from graphtide.spark.cell_engine import CellEngine
from graphtide.spark.chunk import from_chunk, from_chunks, to_chunk
from graphtide.spark.rejects import rejected_late
from graphtide.spark.schemas import CHANGES, DELTAS

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    arrived = from_chunks(chunks, CHANGES)
    late, timely = _divided(arrived, head.frontier)
    held = from_chunk(head.held) if head.held else CHANGES.empty_table()
    waiting = in_order(pa.concat_tables([held, timely]) if len(held) else timely)
    frontier = max(head.frontier, seen)
    closed, rest = _divided(waiting, frontier)
    # As a rule all of one chunk is taken in as it came, and is not packed anew.
    same = chunks[0] if closed is arrived and len(chunks) == 1 else None
    deltas = DELTAS.empty_table() if first is None else first
    after = replace(head, frontier=frontier, held=to_chunk(rest) if len(rest) else b"")
    if len(closed):
        more, after = advance(log, after, engine, closed, same)
        deltas = pa.concat_tables([deltas, more])
    if first is not None or after != head:
        log.put_head(after)
    cache.put(key, engine, after)
    return Outcome(deltas, rejected_late(late, head.frontier))


def in_order(changes: pa.Table) -> pa.Table:
    """Changes by transaction, inside one by `seq`, and with the same `seq` as they came."""
    keys = [changes[name].to_numpy() for name in ("seq", "tx", "time")]
    order = np.lexsort(keys)
    return changes if (order[1:] > order[:-1]).all() else changes.take(order)


def _divided(changes: pa.Table, frontier: Frontier) -> tuple[pa.Table, pa.Table]:
    """The changes of complete transactions, and the others; all of them are not copied."""
    done = frontier.complete(changes["time"].to_numpy(), changes["tx"].to_numpy())
    if done.all():
        return changes, changes.slice(0, 0)
    if not done.any():
        return changes.slice(0, 0), changes
    return changes.filter(pa.array(done)), changes.filter(pa.array(~done))
