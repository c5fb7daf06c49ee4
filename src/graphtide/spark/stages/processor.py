"""Stages on Spark: one stateful operator for all of them, one engine cache per Python worker."""

from __future__ import annotations

import gc
import uuid
from typing import TYPE_CHECKING

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from graphtide.spark.metrics import CacheCounts, Sizes, counted_in
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.state.cache import EngineCache, EngineKey, PartitionState
from graphtide.spark.state.log import StateLog
from graphtide.spark.state.messages import ROWS, StageRow
from graphtide.spark.state.saved import RestoredLog, saved_log
from graphtide.spark.topology import StageName, StageSpec, run_partition, stages_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.spark.job import JobSpec
    from graphtide.spark.state.log import Log

CACHE = EngineCache()
"""The engines of this Python worker."""

_frozen = 0


class PartitionProcessor(StatefulProcessor):
    """Runs a stage of a job: one call per partition and micro-batch."""

    def __init__(self, job: JobSpec, stage: StageName, counts: CacheCounts | None = None) -> None:
        self._job = job
        self._name = stage
        self._counts = counts
        # Made once, on the driver: two of them in one query have separate engines.
        self._operator = uuid.uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._stage = stage_named(self._job, self._name)
        self._log = StateLog(handle, self._job.fingerprint)
        self._before = counted_in(CACHE)
        self._sizes: Sizes = {}

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """One partition's part of a micro-batch."""
        engine_key = self.engine_key(key[0])
        log: Log = self._log
        if (restored := self._job.restored) is not None:
            log = RestoredLog(log, saved_log(restored, self._name, engine_key.partition))
        state = PartitionState(log, CACHE, engine_key)
        sent = run_partition(self._stage, state, from_frames(rows), self._job.partitions)
        cached = CACHE.engines.get(state.key)
        if cached is not None:
            of = self._operator, self._name, state.partition
            self._sizes[of] = cached.version, cached.size
        yield to_frame(sent)

    def engine_key(self, key: int) -> EngineKey:
        """The cache's key for the partition that Spark knows by a key."""
        partition = partition_keys(self._job.partitions).index(key)
        return EngineKey(run_id(), self._name, partition, self._operator)

    def close(self) -> None:
        """The task is done (called by Spark)."""
        freeze_engines()
        if self._counts is not None:
            self._counts.report(CACHE, self._before, self._sizes)


def stage_named(job: JobSpec, name: StageName) -> StageSpec:
    """A stage of a job."""
    return next(stage for stage in stages_of(job) if stage.name == name)


def from_frames(frames: Iterator[pd.DataFrame]) -> list[StageRow]:
    """StageSpec rows from pandas, which Spark's operators speak."""
    return [
        _stage_row(*row) for frame in frames for row in frame[ROWS.names].itertuples(index=False)
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


def freeze_engines() -> None:
    """Keep engines out of Python's garbage collection, which runs after every task.

    Only after one was built: what is frozen as garbage is never freed.
    """
    global _frozen  # noqa: PLW0603 - one per worker process, as the collector is
    if CACHE.built != _frozen:
        _frozen = CACHE.built
        gc.collect()
        gc.freeze()
