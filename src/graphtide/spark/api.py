"""watch: standing queries over a DataFrame of changes. DataFrame in, DataFrame out."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import functions as f

from graphtide.errors import GraphtideError
from graphtide.limits import Limits
from graphtide.spark.job import SETS, JobSpec, is_set
from graphtide.spark.layouts import CHANGES_PER_BATCH, Layouts, choose_layouts
from graphtide.spark.metrics import OBSERVATION
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.partition.hubs import MAX_HUBS, Hubs, frequent, hub_counts
from graphtide.spark.partition.windows import Clock
from graphtide.spark.stages.late import LateProcessor
from graphtide.spark.stages.pack import pack_task
from graphtide.spark.stages.processor import PartitionProcessor, from_frames, stage_named, to_frame
from graphtide.spark.stages.prune import prune, term_text
from graphtide.spark.stages.unpack import REJECTS, columns_sql, unpack_all
from graphtide.spark.state.cache import EngineCache, EngineKey, PartitionState
from graphtide.spark.state.log import MemoryLog
from graphtide.spark.state.messages import ROWS_SQL, StageRow
from graphtide.spark.topology import StageSpec, run_partition, stages_of
from graphtide.spark.watermark import delay_of, lateness_of, with_watermark

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from graphtide.spark.metrics import CacheCounts
    from graphtide.spark.partition.program import ProgramSpec
    from graphtide.spark.partition.windows import Late
    from graphtide.streams.windows import Alignment

Queries = str | Mapping[str, str]


def watch(
    changes: DataFrame,
    query: Queries,
    *,
    partitions: int | None = None,
    sizes: Mapping[str, int] | None = None,
    counts: CacheCounts | None = None,
    lateness: int | None = None,
    tick_ms: int = 1000,
    window_origin: int = 0,
    window_alignment: Alignment = "close",
    shards: int | None = None,
    idle: int | None = None,
    late: Late | None = None,
    idle_seconds: float | None = None,
    layout: Layouts = None,
    changes_per_batch: int = CHANGES_PER_BATCH,
    rejects: bool = False,
    hubs: Hubs = (),
    watermark: bool = True,
    limits: Limits | None = None,
) -> DataFrame:
    """The deltas of standing queries over a DataFrame of changes, streaming or not.

    `changes` has the columns `time, tx, diff, s, p, o` and perhaps `g`, `seq` and `shard`, with
    terms as N-Triples texts or as structs of `kind, value, datatype, language`. `query` is one
    SELECT query, or several by name. `partitions` is the number of partitions, by default that of
    shuffles. `sizes` may give the number of quads per predicate, for a better division. `counts`
    counts how partitions of a stream find their engines.

    Transactions come in the order of `(time, tx)`. In a stream, one is complete when a later one or
    its end (a row with diff 0) has been seen; then its deltas are emitted, consolidated. If the
    source is in order only within parts of it, as within each partition of Kafka, a column `shard`
    names them: one is complete when that is so in every shard. `shards` is their number; without
    it, those count that were seen so far. A shard more than `idle` ticks behind the others does not
    hold them back. The changes of a transaction are ordered by `seq`, or else as they come; if one
    inserts and deletes a quad in rows of several tasks, files or shards, that is an error. Rows
    that depend on no quad are emitted once, at time 0, tx 0.

    Queries over windows (RSP-QL) emit when a window closes, at that time and with tx 0. Rows whose
    column `stream` names a stream are its events; without that column, inserts into a graph with a
    stream's name are. `window_origin` and `window_alignment` are those of `LiveGraph`.

    Rows may be late by `lateness` ticks of `tick_ms` milliseconds, by default by the delay of the
    DataFrame's watermark if it has one; later ones are rejected. With neither `lateness` nor
    `idle` a change of a complete transaction is an error, and the stream stops; `late="reject"`
    rejects it instead, `late="error"` makes it an error in any case.

    After `idle_seconds` without any input the clock goes on with processing time, that long behind
    it: transactions end, windows close. What comes later than that is rejected. Micro-batches then
    run without input, so that a query with the trigger `availableNow` would not end.

    The time up to which the stream is complete is Spark's watermark, in the progress of the query,
    unless the DataFrame has a watermark. Spark allows one: to give the result a watermark of its
    own, turn this one off (`watermark=False`).

    `layout` is "grid" (one stage, and copies of quads) or "rete" (a stage for each join, and none),
    for all queries or by name; by default the one that is expected to take less time for
    micro-batches of `changes_per_batch` changes (`explain` shows why). `hubs` are terms that very
    many quads have (`find_hubs`): what they are joined with is spread over partitions. `limits` are
    those of the engine of each partition; if a micro-batch exceeds one, the stream stops.

    Rejected rows are counted in the observed metrics of the query, as `rejected`. With `rejects`
    they are in the result: the column `rejected` is a struct that says what they were and why, and
    null in all other rows.
    """
    named = {"query": query} if isinstance(query, str) else dict(query)
    behind = lateness_of(changes, tick_ms) if lateness is None else lateness
    clock = Clock(
        behind, tick_ms, window_origin, window_alignment, shards, idle, late, idle_seconds
    )
    job = make_job(
        changes,
        named,
        partitions,
        sizes,
        clock,
        layout=layout,
        changes_per_batch=changes_per_batch,
        hubs=hubs,
        limits=limits,
    )
    rows = run_stages(changes, job, counts, watermark=watermark)
    return unpacked(rows, job, single=isinstance(query, str), rejects=rejects)


def unpacked(rows: DataFrame, job: JobSpec, *, single: bool, rejects: bool) -> DataFrame:
    """The output of the last stage as deltas; rejected rows are counted, and stay if `rejects`."""
    # A variable of the query can have the name of the column, but no minus in its own.
    column = REJECTS if rejects else f"-{REJECTS}"

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return unpack_all(batches, job, column, single=single)

    schema = columns_sql(job, single=single, rejected=column)
    # Two queries in one must not share the name.
    name = f"{OBSERVATION}-{uuid.uuid4().hex[:8]}"
    counted = f.count(f.col(f"`{column}`")).alias(REJECTS)
    found = rows.mapInArrow(unpack, schema).observe(name, counted)
    shown = found if rejects else found.where(f.col(f"`{column}`").isNull()).drop(column)
    if not all(is_set(text) for _, text in job.queries):
        return shown
    return shown.withMetadata("query", {SETS: True})


def make_job(
    changes: DataFrame,
    queries: Mapping[str, str],
    partitions: int | None,
    sizes: Mapping[str, int] | None = None,
    clock: Clock | None = None,
    program: ProgramSpec | None = None,
    layout: Layouts = None,
    changes_per_batch: int = CHANGES_PER_BATCH,
    hubs: Hubs = (),
    limits: Limits | None = None,
) -> JobSpec:
    """The queries and their layouts; every query is checked here, on the driver."""
    if partitions is None:
        partitions = int(changes.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    if partitions < 1:
        raise GraphtideError(f"partitions={partitions}: at least one partition is needed")
    if not queries and program is None:
        raise GraphtideError("there is no query to watch", hint="give one or more SELECT queries")
    known = tuple((sizes or {}).items())
    clock = clock or Clock()
    layouts = choose_layouts(
        queries, partitions, sizes=sizes, clock=clock, changes=changes_per_batch, layout=layout
    )
    named = tuple(queries.items())
    job = JobSpec(
        named,
        partitions,
        known,
        clock,
        program,
        layouts,
        hub_counts(hubs),
        limits=limits or Limits(),
    )
    _ = job.partition_queries
    return job


def find_hubs(changes: DataFrame, partitions: int) -> dict[str, Mapping[str, int]]:
    """The terms in more than an even share of a bounded DataFrame of changes, most frequent first.

    Each has the number of its quads by predicate and position, which says what to spread.
    """
    named = [
        f.struct(term_text(changes, name).alias("term"), f.lit(name).alias("place")).alias("each")
        for name in "so"
    ]
    predicate = f.concat_ws(" ", term_text(changes, "p"), f.col("each.place")).alias("where")
    pairs = changes.select("*", f.explode(f.array(*named)).alias("each"))
    counted = pairs.select(f.col("each.term").alias("term"), predicate).dropna()
    often = counted.groupBy("term").count().orderBy(f.desc("count"), "term").limit(MAX_HUBS)
    found: dict[str, dict[str, int]] = {}
    chosen = counted.join(often.select("term"), "term")
    for term, where, count in chosen.groupBy("term", "where").count().collect():
        found.setdefault(term, {})[where] = count
    return frequent(found, changes.count(), partitions)


def run_stages(
    changes: DataFrame, job: JobSpec, counts: CacheCounts | None = None, *, watermark: bool = True
) -> DataFrame:
    """The output of the last stage of a job, as stage rows."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        count = None if counts is None else counts.count
        return pack_task(batches, job, context.partitionId() if context else 0, count)

    if counts is not None:
        counts.watch_hubs(job)
    rows = prune(changes, job).mapInArrow(pack, ROWS_SQL)
    for stage in stages_of(job):
        rows = run_stage(rows, job, stage, counts)
    if watermark and rows.isStreaming and delay_of(changes) is None:
        return with_watermark(rows, job.clock.tick_ms)
    return rows


def run_stage(
    rows: DataFrame, job: JobSpec, stage: StageSpec, counts: CacheCounts | None = None
) -> DataFrame:
    """StageSpec rows after a stage; only streams and stages with state need Spark's state store."""
    if rows.isStreaming and stage.stateful:
        return rows.groupBy("partition").transformWithStateInPandas(
            statefulProcessor=LateProcessor(PartitionProcessor(job, stage.name, counts)),
            outputStructType=ROWS_SQL,
            outputMode="Append",
            timeMode="ProcessingTime" if stage.timed else "None",
        )
    name, bounded = stage.name, not rows.isStreaming

    def run_partitions(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        stage = stage_named(job, name)
        by_key: dict[int, list[StageRow]] = {}
        for row in from_frames(frames):
            by_key.setdefault(row.partition, []).append(row)
        for key, part in by_key.items():
            partition = partition_keys(job.partitions).index(key)
            state = PartitionState(MemoryLog(), EngineCache(), EngineKey("", name, partition))
            yield to_frame(run_partition(stage, state, part, job.partitions, bounded=bounded))

    return rows.repartition(job.partitions, "partition").mapInPandas(run_partitions, ROWS_SQL)
