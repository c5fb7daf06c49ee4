"""CellState: a cell's durable state, and the engine as a cache of it.

The truth is a log of chunks, each with a version and a token, and the changes held back. An engine in
a worker's memory is right only if it has the version *and* the token that the state names; if it is
behind it catches up from the log, and if it is anything else (ahead after a failed attempt, of another
run, not there) it is built again. So it does not matter which worker runs which cell when.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from graphtide.spark.cell_engine import DELTAS, CellEngine
from graphtide.spark.chunk import from_chunk, from_chunks, to_chunk
from graphtide.spark.frontier import START, Frontier
from graphtide.spark.pack import CHANGES, REJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.spark.task import Task


@dataclass(frozen=True, slots=True)
class Head:
    """What the state says of a cell: the log's versions, its token, the frontier, changes held."""

    version: int = 0
    oldest: int = 1
    token: str = ""
    frontier: Frontier = START
    held: bytes = b""


class Log(Protocol):
    """Where a cell's state is kept: Spark's state store, or a dict in tests."""

    def head(self) -> Head | None:
        """The head, or None before the first batch."""

    def put_head(self, head: Head) -> None:
        """Replace the head."""

    def chunk(self, version: int) -> tuple[str, bytes]:
        """A version's token and chunk."""

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""

    def drop_chunk(self, version: int) -> None:
        """Forget a version."""


@dataclass(slots=True)
class Cached:
    """An engine in a worker's memory, and what it corresponds to."""

    engine: CellEngine
    version: int
    token: str


@dataclass(slots=True)
class Cache:
    """The engines of a worker, and how often they were right, behind, or built again."""

    engines: dict[tuple[str, int], Cached] = field(default_factory=dict)
    hits: int = 0
    caught_up: int = 0
    rebuilt: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch did in a cell: deltas out, input set aside as too late."""

    deltas: pa.Table
    late: pa.Table


def take_batch(
    log: Log, cache: Cache, task: Task, run: str, cell: int, chunks: Iterable[bytes], seen: Frontier
) -> Outcome:
    """Take one micro-batch's chunks into a cell: complete transactions run, the rest is held."""
    head = log.head()
    engine, first = _engine(log, cache, task, run, cell, head)
    head = head or Head()
    arrived = from_chunks(chunks, CHANGES)
    late = head.frontier.complete(arrived["time"].to_numpy(), arrived["tx"].to_numpy())
    held = from_chunk(head.held) if head.held else CHANGES.empty_table()
    waiting = in_order(pa.concat_tables([held, arrived.filter(pa.array(~late))]))
    frontier = max(head.frontier, seen)
    done = frontier.complete(waiting["time"].to_numpy(), waiting["tx"].to_numpy())
    closed, rest = waiting.filter(pa.array(done)), waiting.filter(pa.array(~done))
    deltas = first if first is not None else DELTAS.empty_table()
    version, token, oldest = head.version, head.token, head.oldest
    if len(closed):
        deltas = pa.concat_tables([deltas, engine.apply(closed)])
        version, token = version + 1, uuid.uuid4().hex
        if engine.overgrown:
            for old in range(oldest, version):
                log.drop_chunk(old)
            oldest, closed = version, engine.snapshot()
        log.put_chunk(version, token, to_chunk(closed))
    log.put_head(Head(version, oldest, token, frontier, to_chunk(rest) if len(rest) else b""))
    cache.engines[run, cell] = Cached(engine, version, token)
    return Outcome(deltas, rejected_late(arrived.filter(pa.array(late)), head.frontier))


def _engine(
    log: Log, cache: Cache, task: Task, run: str, cell: int, head: Head | None
) -> tuple[CellEngine, pa.Table | None]:
    """An engine that stands exactly where the state stands; the first deltas of a new cell."""
    cached = cache.engines.pop((run, cell), None)
    if head is None:
        engine = CellEngine(task, cell)
        return engine, engine.first()
    if cached and (cached.version, cached.token) == (head.version, head.token):
        cache.hits += 1
        return cached.engine, None
    if cached and head.oldest <= cached.version < head.version:
        if log.chunk(cached.version)[0] == cached.token:
            cache.caught_up += 1
            return _replayed(cached.engine, log, cached.version + 1, head.version), None
    cache.rebuilt += 1
    engine = CellEngine(task, cell)
    return _replayed(engine, log, head.oldest, head.version), None


def _replayed(engine: CellEngine, log: Log, first: int, last: int) -> CellEngine:
    """Apply versions of the log; their deltas went out when they first came."""
    engine.first()
    for version in range(first, last + 1):
        engine.apply(from_chunk(log.chunk(version)[1]))
    return engine


def in_order(changes: pa.Table) -> pa.Table:
    """Changes by transaction, and inside one by their place in the input."""
    keys = [changes[name].to_numpy() for name in ("seq", "tx", "time")]
    return changes.take(pa.array(np.lexsort(keys)))


def rejected_late(changes: pa.Table, frontier: Frontier) -> pa.Table:
    """Changes that came after their transaction was complete, each once."""
    chosen = changes.filter(changes["home"])
    texts = [" ".join(row) for row in zip(*(chosen[n].to_pylist() for n in "spo"), strict=True)]
    reason = f"too late: the stream was complete up to time {frontier.time}, tx {frontier.tx}"
    return pa.table(
        [
            chosen["time"],
            chosen["tx"],
            chosen["diff"].cast(pa.int32()),
            texts,
            [reason] * len(texts),
        ],
        schema=REJECTS,
    )
