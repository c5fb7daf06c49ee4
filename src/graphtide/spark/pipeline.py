"""The pipeline: summarise, route and pack, match, unpack. DataFrame in, DataFrame out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from graphtide.errors import GraphtideError
from graphtide.spark.match import MATCHED_SQL, PACKED_SQL, Match, match_all
from graphtide.spark.pack import pack_task
from graphtide.spark.summarise import summarise
from graphtide.spark.task import Task
from graphtide.spark.unpack import columns_sql, unpack_deltas

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

Queries = str | Mapping[str, str]


def watch(
    changes: DataFrame,
    queries: Queries,
    *,
    cells: int | None = None,
    sizes: Mapping[str, int] | None = None,
) -> DataFrame:
    """The deltas of standing queries over a DataFrame of changes, streaming or not.

    `changes` has the columns `time, tx, diff, s, p, o` and perhaps `g` and `seq`, with terms in
    N-Triples syntax. `queries` is one SELECT query, or several by name. `cells` is the number of
    partitions of the match, by default the number of shuffle partitions. `sizes` may give the
    number of quads per predicate, for a better division.
    """
    single = isinstance(queries, str)
    named = {"query": queries} if isinstance(queries, str) else dict(queries)
    task = make_task(changes, named, cells, sizes)
    matched = match(changes, task)
    schema = columns_sql(task, single=single)

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return unpack_deltas(batches, task, single=single)

    return matched.mapInArrow(unpack, schema)


def make_task(
    changes: DataFrame,
    queries: Mapping[str, str],
    cells: int | None,
    sizes: Mapping[str, int] | None = None,
) -> Task:
    """The queries and their grids; every query is checked here, on the driver."""
    if cells is None:
        cells = int(changes.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    if cells < 1:
        raise GraphtideError(f"cells={cells}: at least one cell is needed")
    task = Task(tuple(queries.items()), cells, tuple((sizes or {}).items()))
    _ = task.cell_queries
    return task


def match(changes: DataFrame, task: Task) -> DataFrame:
    """Packed deltas and rejects, one row per cell and micro-batch."""
    run = hashlib.sha256(repr((task.queries, task.cells)).encode()).hexdigest()[:16]

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        return pack_task(batches, task, context.partitionId() if context else 0)

    packed = summarise(changes, task).mapInArrow(pack, PACKED_SQL)
    grouped = packed.repartition(task.cells, "cell").groupBy("cell")
    if changes.isStreaming:
        return grouped.transformWithStateInPandas(
            statefulProcessor=Match(task, run),
            outputStructType=MATCHED_SQL,
            outputMode="Append",
            timeMode="None",
        )

    def match_cell(rows: pd.DataFrame) -> pd.DataFrame:
        return match_all(rows, task)

    return grouped.applyInPandas(match_cell, MATCHED_SQL)
