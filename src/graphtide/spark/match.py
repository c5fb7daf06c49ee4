"""Match: the stateful operator. One call per cell and micro-batch, packed rows in and out."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from graphtide.spark.cache import Cache
from graphtide.spark.cell_state import take_batch
from graphtide.spark.frontier import START, Frontier
from graphtide.spark.hashing import cell_keys
from graphtide.spark.log import DictLog
from graphtide.spark.matched import MatchedRow, matched_rows
from graphtide.spark.metrics_cache import counted_in
from graphtide.spark.schemas import MATCHED
from graphtide.spark.state_log import StateLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.spark.metrics_cache import CacheCounts
    from graphtide.spark.task import Task

CACHE = Cache()
"""The engines of this Python worker."""

_frozen = 0


class Match(StatefulProcessor):
    """Takes a micro-batch into one cell after the other."""

    def __init__(self, task: Task, counts: CacheCounts | None = None) -> None:
        self._task = task
        self._counts = counts

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._log = StateLog(handle, self._task.mark, windows=bool(self._task.windows))
        self._before = counted_in(CACHE)

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """One cell's part of a micro-batch."""
        packed = pd.concat(list(rows)).sort_values("task")
        cell = cell_keys(self._task.cells).index(key[0])
        chunks = chunks_of(packed, "chunk")
        seen = latest_frontier(packed).delayed(self._task.clock.lateness)
        outcome = take_batch(self._log, CACHE, self._task, run_id(), cell, chunks, seen)
        yield matched_frame(matched_rows(outcome, self._task, cell, chunks_of(packed, "rejects")))

    def close(self) -> None:
        """The task is done (called by Spark)."""
        freeze_engines()
        if self._counts is not None:
            self._counts.report(CACHE, self._before)


def match_all(packed: pd.DataFrame, task: Task) -> pd.DataFrame:
    """A cell's whole bounded input at once: after it, every transaction is complete.

    Windows close up to the latest time that was seen.
    """
    packed = packed.sort_values("task")
    cell = cell_keys(task.cells).index(int(packed["cell"].iloc[0]))
    chunks, seen = chunks_of(packed, "chunk"), latest_frontier(packed).at_end()
    outcome = take_batch(DictLog(), Cache(), task, "", cell, chunks, seen)
    return matched_frame(matched_rows(outcome, task, cell, chunks_of(packed, "rejects")))


def chunks_of(frame: pd.DataFrame, column: str) -> list[bytes]:
    """The chunks of a column, in the order of its rows."""
    return [bytes(chunk) for chunk in frame[column] if chunk is not None]


def latest_frontier(packed: pd.DataFrame) -> Frontier:
    """The latest frontier that any task saw."""
    columns = (packed[name].tolist() for name in ("time", "tx", "ended"))
    return max((Frontier(*row) for row in zip(*columns, strict=True)), default=START)


def matched_frame(rows: list[MatchedRow]) -> pd.DataFrame:
    """Matched rows as pandas, which Spark's operators speak."""
    return pd.DataFrame(rows, columns=MATCHED.names)


def run_id() -> str:
    """The streaming query at work: two of them in one worker keep apart what they cache."""
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
