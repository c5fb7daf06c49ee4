"""Stages on Spark: one stateful operator for all of them.

Engines are in the Python worker, or in processes of their own (`stages.engine_processes`).
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Final

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming import stateful_processor as sp

from graphtide.spark.load import Loads, PartitionLoad
from graphtide.spark.metrics import CacheCounts, counted_in
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.stages import engine_processes as apart
from graphtide.spark.state import cache
from graphtide.spark.state.cache import EngineCache, EngineKey, PartitionState
from graphtide.spark.state.log import StateLog
from graphtide.spark.state.messages import ROWS, StageRow
from graphtide.spark.state.saved import RestoredLog, saved_log
from graphtide.spark.topology import StageName, StageSpec, run_partition, stages_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.spark.job import JobSpec
    from graphtide.spark.state.log import Log

TIMER_MS: Final = 1000
"""How often the clock of a silent source goes on, if its ticks are not longer."""

CACHE = EngineCache()
"""The engines of this Python worker."""


class PartitionProcessor(sp.StatefulProcessor):
    """Runs a stage of a job: one call per partition and micro-batch."""

    def __init__(self, job: JobSpec, stage: StageName, counts: CacheCounts | None = None) -> None:
        self._job = job
        self._name = stage
        self._counts = counts
        # Made once, on the driver: two of them in one query have separate engines.
        self._operator = uuid.uuid4().hex

    def init(self, handle: sp.StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._stage = stage_named(self._job, self._name)
        self._log = StateLog(handle, self._job.fingerprint)
        self._handle, self._ran = handle, set[int]()
        self._before = counted_in(CACHE)
        self._loads: Loads = {}

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: sp.TimerValues,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """One partition's part of a micro-batch."""
        self._ran.add(key[0])
        yield self._run(key[0], from_frames(rows), timerValues)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: tuple[int],
        timerValues: sp.TimerValues,  # noqa: N803 - Spark's name
        expiredTimerInfo: object,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Time has passed; nothing is left to do if the micro-batch had input."""
        if key[0] not in self._ran:
            yield self._run(key[0], [], timerValues)

    def _run(self, key: int, rows: list[StageRow], times: sp.TimerValues) -> pd.DataFrame:
        engine_key = self.engine_key(key)
        log: Log = self._log
        if (restored := self._job.restored) is not None:
            log = RestoredLog(log, saved_log(restored, self._name, engine_key.partition))
        state = PartitionState(log, CACHE, engine_key)
        now = None
        if self._stage.timed:
            now = times.getCurrentProcessingTimeInMs()
            period = max(TIMER_MS, self._job.clock.tick_ms)
            self._handle.registerTimer((now // period + 1) * period)
        began = time.perf_counter()
        sent, size = self._sent(state, rows, now)
        self._loads[self._operator, self._name, state.partition] = PartitionLoad(
            time.time(),
            sum(len(row.chunk or b"") for row in rows),
            time.perf_counter() - began,
            size,
        )
        return to_frame(sent)

    def _sent(
        self, state: PartitionState, rows: list[StageRow], now: int | None
    ) -> tuple[list[StageRow], int]:
        """What a partition sends, and the bytes of its state; its engine is here or apart."""
        there = apart.reached(state.partition)
        if there is None:
            sent = run_partition(self._stage, state, rows, self._job.partitions, now=now)
            cached = CACHE.engines.get(state.key)
            return sent, 0 if cached is None else cached.size
        work = apart.Work(state.key, rows, now, cache.SMALL_LOG)
        done = apart.ask(there, work, state.log, self._job)
        CACHE.count(done.counts)
        emit = self._stage.emit
        return done.rows if emit is None else emit(state.partition, done.rows), done.size

    def engine_key(self, key: int) -> EngineKey:
        """The cache's key for the partition that Spark knows by a key."""
        partition = partition_keys(self._job.partitions).index(key)
        return EngineKey(run_id(), self._name, partition, self._operator)

    def close(self) -> None:
        """The task is done (called by Spark)."""
        CACHE.freeze()
        if self._counts is not None:
            self._counts.report(CACHE, self._before, self._loads)


def stage_named(job: JobSpec, name: StageName) -> StageSpec:
    """A stage of a job."""
    return next(stage for stage in stages_of(job) if stage.name == name)


def from_frames(frames: Iterator[pd.DataFrame]) -> list[StageRow]:
    """StageSpec rows from pandas, which Spark's operators speak."""
    return [
        _stage_row(*row)
        for frame in frames
        for row in zip(*(frame[name].tolist() for name in ROWS.names), strict=True)
    ]


def _stage_row(
    partition: int,
    task: int,
    time: int,
    tx: int,
    ended: int,
    chunk: bytes | None,
    rejected: bytes | None,
    shards: str | None,
) -> StageRow:
    sent, aside = (None if part is None else bytes(part) for part in (chunk, rejected))
    seen = shards if isinstance(shards, str) else None  # pandas may write NaN for null
    return StageRow(int(partition), int(task), int(time), int(tx), int(ended), sent, aside, seen)


def to_frame(rows: list[StageRow]) -> pd.DataFrame:
    """StageSpec rows as pandas."""
    return pd.DataFrame(rows, columns=ROWS.names)


def run_id() -> str:
    """The id of the streaming query: two of them in one worker have separate engines."""
    context = TaskContext.get()
    return (context.getLocalProperty("sql.streaming.queryId") if context else None) or ""
