"""The identity pipeline: everything that ours does to the data, except matching."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from graphtide.spark.chunk import from_chunks, to_chunk
from graphtide.spark.log import Head
from graphtide.spark.match import chunks_of, matched_frame
from graphtide.spark.pack import pack_task
from graphtide.spark.schemas import CHANGES, MATCHED_SQL, PACKED_SQL
from graphtide.spark.state_log import StateLog
from graphtide.spark.summarise import summarise
from graphtide.spark.unpack import columns_sql, unpack_deltas

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from graphtide.spark.task import Task


class Keep(StatefulProcessor):
    """Writes each batch to the log as a cell does, and says nothing."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._log = StateLog(handle, "identity")

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """One cell's part of a micro-batch."""
        packed = pd.concat(list(rows)).sort_values("task")
        head = self._log.head() or Head()
        changes = from_chunks(chunks_of(packed, "chunk"), CHANGES)
        after = replace(head, version=head.version + 1, token=uuid.uuid4().hex)
        self._log.put_chunk(after.version, after.token, to_chunk(changes))
        self._log.put_head(after)
        yield matched_frame([])

    def close(self) -> None:
        """The task is done (called by Spark)."""


def keep(changes: DataFrame, task: Task) -> DataFrame:
    """The stages of `graphtide.spark.watch` for one query, with `Keep` in the place of `Match`."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        return pack_task(batches, task, context.partitionId() if context else 0)

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return unpack_deltas(batches, task, single=True)

    packed = summarise(changes, task).mapInArrow(pack, PACKED_SQL)
    kept = packed.groupBy("cell").transformWithStateInPandas(
        statefulProcessor=Keep(),
        outputStructType=MATCHED_SQL,
        outputMode="Append",
        timeMode="None",
    )
    return kept.mapInArrow(unpack, columns_sql(task, single=True))
