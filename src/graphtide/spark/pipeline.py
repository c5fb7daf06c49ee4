"""The pipeline: summarise, route and pack, match, meet, unpack. DataFrame in, DataFrame out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark import TaskContext

from graphtide.errors import GraphtideError
from graphtide.spark.match import Match, match_all
from graphtide.spark.meet import meet
from graphtide.spark.pack import pack_task
from graphtide.spark.react import react
from graphtide.spark.schemas import MATCHED_SQL, PACKED_SQL
from graphtide.spark.summarise import summarise
from graphtide.spark.task import Task
from graphtide.spark.unpack import columns_sql, unpack_deltas
from graphtide.spark.windows import Clock

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from graphtide.spark.metrics_cache import CacheCounts
    from graphtide.spark.reaction import Reaction

Queries = str | Mapping[str, str]


def watch(
    changes: DataFrame,
    queries: Queries,
    *,
    cells: int | None = None,
    sizes: Mapping[str, int] | None = None,
    counts: CacheCounts | None = None,
    clock: Clock | None = None,
) -> DataFrame:
    """The deltas of standing queries over a DataFrame of changes, streaming or not.

    `changes` has the columns `time, tx, diff, s, p, o` and perhaps `g` and `seq`, with terms as
    N-Triples texts or as structs of `kind, value, datatype, language`. `queries` is one SELECT
    query, or several by name. `cells` is the number of partitions of the match, by default the
    number of shuffle partitions. `sizes` may give the number of quads per predicate, for a better
    division. `counts` is told how cells of a stream find their engines.

    Transactions come in the order of `(time, tx)`. In a stream, one is complete when a later one or
    its end (a row with diff 0) has been seen; then its deltas come out, whole and net. The changes
    of a transaction are ordered by `seq`, or else as they come: by micro-batch, partition and row.
    Rows that depend on no quad come out once, at time 0, tx 0.

    Queries over windows (RSP-QL) are put out when a window closes, at that time and with tx 0. Rows
    whose column `stream` names a stream are its events; without that column, inserts into a graph
    with a stream's name are. `clock` tells of ticks, of where windows begin, and of how late rows
    may come.
    """
    single = isinstance(queries, str)
    named = {"query": queries} if isinstance(queries, str) else dict(queries)
    task = make_task(changes, named, cells, sizes, clock)
    schema = columns_sql(task, single=single)

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return unpack_deltas(batches, task, single=single)

    return match(changes, task, counts).mapInArrow(unpack, schema)


def make_task(
    changes: DataFrame,
    queries: Mapping[str, str],
    cells: int | None,
    sizes: Mapping[str, int] | None = None,
    clock: Clock | None = None,
    reaction: Reaction | None = None,
) -> Task:
    """The queries and their grids; every query is checked here, on the driver."""
    if cells is None:
        cells = int(changes.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    if cells < 1:
        raise GraphtideError(f"cells={cells}: at least one cell is needed")
    if not queries and reaction is None:
        raise GraphtideError("there is no query to watch", hint="give one or more SELECT queries")
    known = tuple((sizes or {}).items())
    task = Task(tuple(queries.items()), cells, known, clock or Clock(), reaction)
    _ = task.cell_queries
    return task


def match(changes: DataFrame, task: Task, counts: CacheCounts | None = None) -> DataFrame:
    """Chunks of deltas and of rejects (`MATCHED_SQL`), per cell and micro-batch."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        return pack_task(batches, task, context.partitionId() if context else 0)

    packed = summarise(changes, task).mapInArrow(pack, PACKED_SQL)
    if changes.isStreaming:
        matched = packed.groupBy("cell").transformWithStateInPandas(
            statefulProcessor=Match(task, counts),
            outputStructType=MATCHED_SQL,
            outputMode="Append",
            timeMode="None",
        )
        return react(meet(matched, task), task)

    def match_cell(rows: pd.DataFrame) -> pd.DataFrame:
        return match_all(rows, task)

    cells = packed.repartition(task.cells, "cell").groupBy("cell")
    return meet(cells.applyInPandas(match_cell, MATCHED_SQL), task)
