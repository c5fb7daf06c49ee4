"""Cache: engines in a worker's memory, each right only if it stands where its log stands.

The log is the truth. An engine may be used if it has the version *and* the token that the log's
head names; if it is behind it catches up from the log; if it is anything else (ahead after a failed
attempt, of another run, not there) it is built again. So it does not matter which worker runs which
cell when, or how often a task is tried.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from graphtide.spark.chunk import from_chunk, to_chunk
from graphtide.spark.frontier import START
from graphtide.spark.log import Head, Log
from graphtide.spark.merge import merge_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

REPLAY_ROWS = 100_000
"""About how many changes an engine that catches up takes in at a time."""

IDLE_SECONDS = 3600.0
"""An engine that no batch has asked for in this time is forgotten; its log can build it again."""

Key = tuple[str, str, int]
"""The run of a streaming query, the stage, the cell."""


class Engine(Protocol):
    """What is cached: something that takes changes in, and can be rebuilt from them."""

    def first(self) -> pa.Table:
        """The deltas before any change."""

    def apply(self, changes: pa.Table, time: int) -> pa.Table:
        """Take in changes, and that nothing before a time comes any more; the deltas."""

    def replay(self, changes: pa.Table, time: int) -> None:
        """Take in changes whose deltas went out when they first came."""

    @property
    def overgrown(self) -> bool:
        """Whether the log of changes is worth replacing by a snapshot."""

    def snapshot(self) -> pa.Table:
        """Changes that lead from nothing to here."""


@dataclass(slots=True)
class Cached:
    """An engine, what it corresponds to, and when it was last of use."""

    engine: Engine
    version: int
    token: str
    used: float


@dataclass(slots=True)
class Cache:
    """The engines of a worker, and how often they were right, behind, or built again."""

    engines: dict[Key, Cached] = field(default_factory=dict)
    hits: int = 0
    caught_up: int = 0
    rebuilt: int = 0
    started: int = 0

    @property
    def built(self) -> int:
        """How many engines were made in all."""
        return self.rebuilt + self.started

    def take(self, key: Key) -> Cached | None:
        """Take an engine out, so that a failure half-way leaves none; and forget idle ones."""
        now = time.monotonic()
        for idle in [k for k, c in self.engines.items() if now - c.used > IDLE_SECONDS]:
            del self.engines[idle]
        return self.engines.pop(key, None)

    def put(self, key: Key, engine: Engine, head: Head) -> None:
        """Put an engine back that stands where the head says."""
        self.engines[key] = Cached(engine, head.version, head.token, time.monotonic())


def recover(
    log: Log, cache: Cache, key: Key, make: Callable[[], Engine]
) -> tuple[Engine, Head, pa.Table | None]:
    """An engine that stands where the log stands; the head; and a new cell's first deltas."""
    head = log.head()
    cached = cache.take(key)
    if head is None:
        cache.started += 1
        engine = make()
        return engine, Head(), engine.first()
    if cached and (cached.version, cached.token) == (head.version, head.token):
        cache.hits += 1
        return cached.engine, head, None
    if cached and _is_behind(log, cached, head):
        cache.caught_up += 1
        return _replayed(cached.engine, log, cached.version, head), head, None
    cache.rebuilt += 1
    engine = make()
    engine.first()
    return _replayed(engine, log, 0, head), head, None


def advance(
    log: Log, head: Head, engine: Engine, changes: pa.Table, chunk: bytes | None = None
) -> tuple[pa.Table, Head]:
    """Take changes in and write them down as a new version; the deltas, and the head to put.

    `chunk` is the changes as a chunk, if there is one already.
    """
    deltas = engine.apply(changes, head.frontier.time)
    version, token, oldest = head.version + 1, uuid.uuid4().hex, head.oldest
    if engine.overgrown:
        log.clear()
        oldest, chunk = version, to_chunk(engine.snapshot())
    log.put_chunk(version, token, chunk or to_chunk(changes))
    merge_chunks(log, version)
    return deltas, replace(head, version=version, token=token, oldest=oldest)


def _is_behind(log: Log, cached: Cached, head: Head) -> bool:
    """Whether the engine stands at a version that the log still has."""
    if not head.oldest <= cached.version < head.version:
        return False
    found = log.chunk(cached.version)
    return found is not None and found[0] == cached.token


def _replayed(engine: Engine, log: Log, after: int, head: Head) -> Engine:
    """Apply what the log has after a version, many small chunks at a time."""
    waiting: list[pa.Table] = []
    for version in log.versions():
        found = log.chunk(version) if version > after else None
        if found is None:
            continue
        if sum(map(len, waiting)) > REPLAY_ROWS:
            engine.replay(pa.concat_tables(waiting), START.time)
            waiting.clear()
        waiting.append(from_chunk(found[1]))
    if waiting:
        engine.replay(pa.concat_tables(waiting), head.frontier.time)
    return engine
