"""Restore on Spark: before a stream goes on from another one, the logs of its partitions are made.

It is one bounded job through all stages (`graphtide.spark.restore`). Partitions write files that
belong to this job alone; when all are there, a last one says so. If the driver is killed before,
the next start makes them again.
"""

from __future__ import annotations

from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from graphtide.spark.driver.continued import PROGRAM_NAME, Continued
from graphtide.spark.driver.status import explaining
from graphtide.spark.output import committed_files, read_table
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.restore import kept
from graphtide.spark.restore.stages import SAVED_STAGES, Restoration, beginning
from graphtide.spark.stages import parts, processor
from graphtide.spark.state import messages as msg
from graphtide.spark.state.frontier import START, Frontier
from graphtide.spark.state.saved import load_log, save_log, saved_log
from graphtide.spark.topology import stages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from graphtide.spark.driver.sink import Sink
    from graphtide.spark.files import Location
    from graphtide.spark.job import JobSpec

log = getLogger(__name__)

DONE: Final = "_done"
FIRST: Final = "first-answers"


def continue_job(
    spark: SparkSession,
    job: JobSpec,
    before: Continued,
    checkpoint: Location,
    sink: Sink,
) -> JobSpec:
    """The job with the state of the stream before it; first answers of new queries are written."""
    restoration = restoration_of(job, before)
    export = (checkpoint / before.export).absolute()
    folder = export / f"for-{job.fingerprint.replace(' ', '-')}"
    if not (folder / DONE).exists():
        log.info("restores %d partitions from %d", job.partitions, before.partitions)
        with explaining():
            restore_logs(spark, restoration, export, folder)
        (folder / DONE).write_text("")
    write_first_answers(restoration, before, folder, sink)
    output = None if job.output is None else replace(job.output, first_batch=before.first_batch)
    return replace(job, restored=folder, output=output)


def restoration_of(job: JobSpec, before: Continued) -> Restoration:
    """The job as one that goes on from another."""
    kept.check_kept(before.job, job)
    queries = tuple((name, text) for name, text in before.queries.items() if name != PROGRAM_NAME)
    return Restoration(job, before.partitions, queries, before.job)


def restore_logs(
    spark: SparkSession, restoration: Restoration, export: Location, folder: Location
) -> None:
    """Write the logs of all partitions of a job, and the first answers of its new queries."""
    job = restoration.job
    rows: DataFrame | None = None
    for stage in stages_of(job):
        (folder / stage.name.replace(" ", "-")).make_directory()
        if stage.name in SAVED_STAGES:
            old = spark.range(restoration.partitions, numPartitions=restoration.partitions)
            sent = old.mapInPandas(splitter(restoration, export, stage.name), msg.ROWS_SQL)
            rows = sent if rows is None else rows.union(sent)
        assert rows is not None  # noqa: S101 - the match comes first
        divided = rows.repartition(job.partitions, "partition")
        rows = divided.mapInPandas(restorer(restoration, folder, stage.name), msg.ROWS_SQL)
    (folder / FIRST).make_directory()
    assert rows is not None  # noqa: S101 - there is a match in every job
    rows.mapInPandas(answer_writer(restoration, folder), "partition int").collect()


def splitter(restoration: Restoration, export: Location, stage: str) -> Callable[[Any], Any]:
    """Reads the logs of old partitions and divides them among new ones."""

    def split(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            for old in frame["id"].tolist():
                saved = saved_log(export, stage, old)
                if saved.exists():
                    found = load_log(_bytes(saved))
                else:
                    found = beginning(load_log(_bytes(saved_log(export, "match", old))))
                yield processor.to_frame(restoration.split(stage, old, found))

    return split


def restorer(restoration: Restoration, folder: Location, name: str) -> Callable[[Any], Any]:
    """Writes the logs of new partitions, and sends their answers on."""

    def restore(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        job = restoration.job
        stage, by_key = processor.stage_named(job, name), dict[int, list[msg.StageRow]]()
        for row in processor.from_frames(frames):
            by_key.setdefault(row.partition, []).append(row)
        for key, rows in by_key.items():
            partition = partition_keys(job.partitions).index(key)
            made, sent = restoration.restore(stage, partition, rows)
            if made.current is not None:
                saved_log(folder, name, partition).write_bytes(save_log(made))
            yield processor.to_frame(sent)

    return restore


def answer_writer(restoration: Restoration, folder: Location) -> Callable[[Any], Any]:
    """Writes the whole answers of new queries, a file per task."""

    def write(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        found = restoration.first_answers(processor.from_frames(frames))
        context = TaskContext.get()
        if len(found) and context is not None:
            name = f"{context.partitionId():05}.chunk"
            (folder / FIRST / name).write_bytes(msg.to_chunk(found))
        return iter(())

    return write


def write_first_answers(
    restoration: Restoration, before: Continued, folder: Location, sink: Sink
) -> None:
    """Commit the first answers of new queries, as a micro-batch before the stream's first one.

    A query that had another text begins with the difference from what it has put out so far.
    """
    job, batch = restoration.job, before.first_batch - 1
    names = [job.queries[number][0] for number in restoration.new_queries]
    if not names or sink.progress.batch >= batch:
        return
    files = [folder / FIRST / entry.name for entry in (folder / FIRST).entries()]
    answers = parts.output_tables(msg.from_chunks(map(_bytes, files), msg.MESSAGES), job)
    head = load_log(_bytes(saved_log(folder, "match", 0))).current
    time, tx = last_complete(START if head is None else head.frontier)
    tables = {}
    for name in names:
        rows = answers[name]
        so_far = (read_table(sink.out / f, rows.schema) for f in committed_files(sink.out, name))
        tables[name] = summed(pa.concat_tables([rows, *map(undone, so_far)]), time, tx)
    sink.write(batch, tables, msg.REJECTED.empty_table())


def _bytes(file: Location) -> bytes:
    with file.open() as stream:
        return stream.read()


def last_complete(frontier: Frontier) -> tuple[int, int]:
    """A time and a transaction before all that come after a frontier.

    >>> last_complete(Frontier(17, 3, 1)), last_complete(Frontier(17, 3, 0))
    ((17, 3), (17, 2))
    >>> last_complete(Frontier(17, START.tx, 0)), last_complete(START)
    ((16, 0), (0, 0))
    """
    if frontier.tx == START.tx:
        return max(frontier.time - 1, 0), 0
    return max(frontier.time, 0), frontier.tx if frontier.ended else frontier.tx - 1


def undone(deltas: pa.Table) -> pa.Table:
    """Deltas that undo these."""
    minus: Any = pa.array(-deltas["diff"].to_numpy())
    return deltas.set_column(deltas.schema.get_field_index("diff"), "diff", minus)


def summed(deltas: pa.Table, time: int, tx: int) -> pa.Table:
    """What deltas add up to, as those of one transaction.

    >>> rows = pa.table({"time": [1, 2, 3], "tx": [0, 0, 0], "diff": [1, 1, -1], "x": list("aba")})
    >>> summed(rows, 7, 5).to_pylist()
    [{'time': 7, 'tx': 5, 'diff': 1, 'x': 'b'}]
    """
    names = deltas.column_names[3:]
    groups: Any = deltas.group_by(names)
    found = groups.aggregate([("diff", "sum")]).rename_columns([*names, "diff"])
    found = found.filter(pa.array(found["diff"].to_numpy() != 0))
    stamps = {name: np.full(len(found), at) for name, at in (("time", time), ("tx", tx))}
    columns: dict[str, Any] = {**stamps, **{name: found[name] for name in ("diff", *names)}}
    return pa.table(columns).cast(deltas.schema).sort_by([(n, "ascending") for n in names])
