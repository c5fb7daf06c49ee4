"""The state of a partition: a durable log, and an engine in the worker's memory that follows it.

The log is the truth. A cached engine is used if it has the version *and* the token of the log's
head. One that is behind catches up from the log. Any other (ahead after a failed attempt, of
another run, missing) is rebuilt. So it does not matter which worker runs which partition when, or
how often a task is tried.
"""

from __future__ import annotations

import gc
import time
import uuid
from dataclasses import dataclass, field, replace
from logging import getLogger
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast

import pyarrow as pa

from graphtide.spark.state.frontier import START
from graphtide.spark.state.log import Head, Log, appended
from graphtide.spark.state.messages import from_chunk, to_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from graphtide.spark.state.log import LogEntry

log = getLogger(__name__)

SMALL_LOG = 1000
"""A log of fewer rows than this is not compacted."""

REPLAY_ROWS = 100_000
"""About how many rows an engine that catches up takes in at a time."""

IDLE_SECONDS = 3600.0
"""An engine that no batch has asked for in this time is evicted; its log can rebuild it."""


MANY_TERMS = 100_000
TERMS_PER_ROW = 8
"""Of an engine with more terms than these, beside so many for each live row, most are of no use."""


class PartitionEngine(Protocol):
    """What is cached: something that takes rows in, and can be rebuilt from them."""

    @property
    def log_rows(self) -> int:
        """How many rows its log has."""

    @property
    def live_rows(self) -> int:
        """About how many rows a snapshot would have."""

    @property
    def terms(self) -> int:
        """How many terms it knows; it forgets none."""

    def first(self) -> pa.Table:
        """The output before any input."""

    def apply(self, rows: pa.Table, time: int) -> pa.Table:
        """Take rows in, then let time pass up to a watermark; the output."""

    def replay(self, rows: pa.Table, time: int) -> None:
        """Take rows in whose output was emitted when they first came."""

    def snapshot(self) -> pa.Table:
        """Rows that lead from nothing to the present state; from now on they are the log."""


class EngineKey(NamedTuple):
    """Whose engine it is: of a streaming query, a `watch` in it, a stage and a partition."""

    run: str
    stage: str
    partition: int
    operator: str = ""


@dataclass(slots=True)
class CachedEngine:
    """An engine, its version of the log, the size of that, and when it was last used.

    `first_terms` is how many terms it had when it was rebuilt.
    """

    engine: PartitionEngine
    version: int
    token: str
    used: float
    size: int = 0
    first_terms: int = 0


@dataclass(slots=True)
class EngineCache:
    """The engines of a worker, and how often they were right, behind, rebuilt or new."""

    engines: dict[EngineKey, CachedEngine] = field(default_factory=dict)
    hits: int = 0
    caught_up: int = 0
    rebuilt: int = 0
    started: int = 0
    _frozen: int = 0

    def freeze(self) -> None:
        """Keep engines out of Python's garbage collection, which runs after every task.

        Only after one was built: what is frozen as garbage is never freed.
        """
        built = self.rebuilt + self.started
        if built != self._frozen:
            self._frozen = built
            gc.collect()
            gc.freeze()

    def count(self, found: Mapping[str, int]) -> None:
        """Count how engines were found elsewhere, by the names of counters."""
        for name, count in found.items():
            setattr(self, name, getattr(self, name) + count)

    def take(self, key: EngineKey) -> CachedEngine | None:
        """Take an engine out, so that a failure half-way leaves none; and evict idle ones."""
        now = time.monotonic()
        for idle in [k for k, c in self.engines.items() if now - c.used > IDLE_SECONDS]:
            del self.engines[idle]
        return self.engines.pop(key, None)

    def put(
        self, key: EngineKey, engine: PartitionEngine, head: Head, first_terms: int = 0
    ) -> None:
        """Put an engine back that is at the head."""
        self.engines[key] = CachedEngine(
            engine, head.version, head.token, time.monotonic(), head.size, first_terms
        )


E = TypeVar("E", bound=PartitionEngine)


class Recovered(NamedTuple, Generic[E]):
    """An engine at the head of its log; of a new partition, also its first output."""

    engine: E
    head: Head
    first: pa.Table | None
    first_terms: int = 0

    @property
    def outgrown(self) -> bool:
        """Whether most terms of the engine are those of rows that are gone.

        It is rebuilt from its log then. That is not worth it before they have doubled.
        """
        terms = self.engine.terms
        most = MANY_TERMS + TERMS_PER_ROW * self.engine.live_rows
        return terms > most and terms > 2 * self.first_terms


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition of a stage: its log, a cache, and the key of its engine there.

    A log of fewer rows than `small_log` is not compacted.
    """

    log: Log
    cache: EngineCache
    key: EngineKey
    small_log: int = field(default_factory=lambda: SMALL_LOG)

    @property
    def partition(self) -> int:
        """The index of the partition."""
        return self.key.partition

    def recover(self, make: Callable[[], E]) -> Recovered[E]:
        """The engine of the partition at the head of its log: cached, caught up, or rebuilt."""
        head, cached, cache = self.log.head(), self.cache.take(self.key), self.cache
        if head is None:
            cache.started += 1
            engine = make()
            return Recovered(engine, Head(), engine.first())
        if cached is not None:
            known = cast("E", cached.engine)  # the key names the stage, and so the type
            if (cached.version, cached.token) == (head.version, head.token):
                cache.hits += 1
                return Recovered(known, head, None, cached.first_terms)
            if self._is_behind(cached, head):
                cache.caught_up += 1
                self._replay(known, cached.version, head)
                return Recovered(known, head, None, cached.first_terms)
        log.info("%s, partition %d: rebuilt from its log", self.key.stage, self.partition)
        cache.rebuilt += 1
        engine = make()
        engine.first()
        self._replay(engine, 0, head)
        return Recovered(engine, head, None, engine.terms)

    def advance(
        self, engine: PartitionEngine, head: Head, rows: pa.Table, chunk: bytes | None = None
    ) -> tuple[pa.Table, Head]:
        """Take rows in and log them as a new version; the output, and the head to commit.

        `chunk` is the rows as a chunk, if there is one already.
        """
        output = engine.apply(rows, head.frontier.time)
        after = replace(head, version=head.version + 1, token=uuid.uuid4().hex)
        if engine.log_rows > self.small_log + 2 * engine.live_rows:
            log.debug("%s, partition %d: log is compacted", self.key.stage, self.partition)
            if head.stored:
                self.log.clear()
            after = replace(after, oldest=after.version, tail=(), stored=())
            chunk = to_chunk(engine.snapshot())
        return output, appended(self.log, after, chunk or to_chunk(rows))

    def commit(self, recovered: Recovered[E], after: Head) -> None:
        """Write the head if it is new or has changed, and cache the engine unless outgrown."""
        if recovered.first is not None or after != recovered.head:
            self.log.put_head(after)
        if recovered.outgrown:
            log.debug("%s, partition %d: has forgotten terms", self.key.stage, self.partition)
            return
        self.cache.put(self.key, recovered.engine, after, recovered.first_terms)

    def _is_behind(self, cached: CachedEngine, head: Head) -> bool:
        """Whether the engine is at a version that the log still has."""
        if not head.oldest <= cached.version < head.version:
            return False
        known = (entry for entry in head.tail if entry.version == cached.version)
        found = next(known, None) or self.log.chunk(cached.version)
        return found is not None and found.token == cached.token

    def _replay(self, engine: PartitionEngine, after: int, head: Head) -> None:
        """Apply what the log has after a version, many small chunks at a time."""
        waiting: list[pa.Table] = []
        for entry in self._entries(after, head):
            if sum(map(len, waiting)) > REPLAY_ROWS:
                engine.replay(pa.concat_tables(waiting), START.time)
                waiting.clear()
            waiting.append(from_chunk(entry.chunk))
        if waiting:
            engine.replay(pa.concat_tables(waiting), head.frontier.time)

    def _entries(self, after: int, head: Head) -> Iterator[LogEntry]:
        """The chunks of the log after a version, in order."""
        for stored in head.stored:
            found = self.log.chunk(stored.version) if stored.version > after else None
            if found is not None:
                yield found
        yield from (entry for entry in head.tail if entry.version > after)
