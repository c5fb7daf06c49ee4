"""Meet: the second keyed stage, in the plan only if some query's rows must be consolidated.

Adding up needs no memory beyond a micro-batch. Only DISTINCT counts for ever, and only then is the
stage stateful.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from graphtide.spark.cache import Cache
from graphtide.spark.chunk import from_chunks, to_chunk
from graphtide.spark.consolidate import consolidate, counted
from graphtide.spark.hashing import cell_keys
from graphtide.spark.log import DictLog
from graphtide.spark.match import CACHE, chunks_of, freeze_engines, matched_frame, run_id
from graphtide.spark.react_send import send_matched
from graphtide.spark.schemas import DELTAS, MATCHED_SQL
from graphtide.spark.state_log import StateLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from graphtide.spark.log import Log
    from graphtide.spark.matched import MatchedRow
    from graphtide.spark.task import Task


def meet(matched: DataFrame, task: Task) -> DataFrame:
    """The matched rows with equal rows of several cells as one."""
    if not any(query.meets for query in task.cell_queries):
        return matched
    if matched.isStreaming and counted(task):
        return matched.groupBy("cell").transformWithStateInPandas(
            statefulProcessor=Meet(task),
            outputStructType=MATCHED_SQL,
            outputMode="Append",
            timeMode="None",
        )

    def meet_partition(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        frame = pd.concat([matched_frame([]), *frames])
        yield met(frame, task, DictLog(), Cache(), "", 0)

    return matched.repartition(task.cells, "cell").mapInPandas(meet_partition, MATCHED_SQL)


class Meet(StatefulProcessor):
    """Adds up what several cells say of the same rows, and counts them for DISTINCT."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._log = StateLog(handle, self._task.mark)

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """What the cells of a micro-batch sent to this one."""
        cell = cell_keys(self._task.cells).index(key[0])
        yield met(pd.concat(list(rows)), self._task, self._log, CACHE, run_id(), cell)

    def close(self) -> None:
        """The task is done (called by Spark)."""
        freeze_engines()


def met(
    frame: pd.DataFrame, task: Task, log: Log, cache: Cache, run: str, cell: int
) -> pd.DataFrame:
    """Matched rows after the stage: one chunk of deltas, and the rejects as they came."""
    key = cell_keys(task.cells)[cell]
    deltas = consolidate(
        from_chunks(chunks_of(frame, "deltas"), DELTAS), task, log, cache, run, cell
    )
    out: list[MatchedRow] = [(key, to_chunk(deltas), None)] if len(deltas) else []
    if task.reaction is not None:
        keys = cell_keys(task.cells)
        sent = send_matched(deltas, task.reaction, cell)
        out = [(keys[target], to_chunk(part), None) for target, part in sent]
    return matched_frame([*out, *((key, None, chunk) for chunk in chunks_of(frame, "rejects"))])
