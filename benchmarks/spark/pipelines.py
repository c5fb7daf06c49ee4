"""The pipelines of the Spark benchmark, and how their micro-batches are measured."""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming import stateful_processor as sp

from benchmarks.route_sensor import QUERY, RELATIONS, VOCABULARY, texts
from benchmarks.spark.benchmark import FILES, PARTITIONS, add_spare
from benchmarks.spark.processor_time import ProcessorTimes
from graphtide.spark import api
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.session import make_session
from graphtide.spark.stages import processor
from graphtide.spark.stages.processor import from_frames, to_frame
from graphtide.spark.state.frontier import START
from graphtide.spark.state.log import Head, StateLog, appended
from graphtide.spark.state.messages import ROWS_SQL, StageInput, StageRow, stage_rows, to_chunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from graphtide.spark.job import JobSpec
    from graphtide.spark.metrics import CacheCounts
    from graphtide.spark.state.cache import EngineKey
    from graphtide.spark.topology import StageName

SETTINGS: Final = {
    "spark.driver.memory": "2g",
    "spark.executor.memory": "2g",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    # Java's default compilers: the first stage of them alone doubles its work in bulk.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
}

CHANGES_SQL: Final = "time long, tx long, diff int, seq long, s string, p string, o string"

_CHAIN: Final = "?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor"
_BODIES: Final = (
    "?route :follows ?swP . ?swP :target ?sw",
    "?swP :target ?sw . ?sw :monitoredBy ?sensor",
    _CHAIN,
    "?route :requires ?sensor . ?sw :monitoredBy ?sensor",
    "?route :follows ?swP OPTIONAL { ?swP :target ?sw }",
    "?swP :target ?sw FILTER NOT EXISTS { ?sw :monitoredBy ?sensor }",
    "?sw :monitoredBy ?sensor MINUS { ?route :requires ?sensor }",
    "?route :requires ?sensor",
    f"{_CHAIN} . ?route :requires ?sensor",
)
TEN_QUERIES: Final = {
    "RouteSensor": QUERY,
    **{
        f"Q{number}": f"PREFIX : <{VOCABULARY}> SELECT * WHERE {{ {body} }}"
        for number, body in enumerate(_BODIES)
    },
}

ANSWER_SQL: Final = """
SELECT f.s AS route, m.o AS sensor, f.o AS swP, t.o AS sw
FROM follows f JOIN target t ON f.o = t.s JOIN monitoredBy m ON t.o = m.s
LEFT ANTI JOIN requires r ON r.s = f.s AND r.o = m.o
"""


def run_pipeline(name: str, folder: Path, master: str) -> dict[str, Any]:
    """The whole stream through one pipeline: milliseconds per micro-batch, matches, notes."""
    session = make_session(
        master=master,
        partitions=PARTITIONS,
        settings={**SETTINGS, "spark.local.dir": str(folder / f"{name}-scratch")},
    )
    try:
        match name:
            case "identity":
                return _measured(_identity(session, folder), folder, name)
            case "graphtide":
                deltas = _graphtide(session, folder, "notes")
                figures = _measured(deltas, folder, name)
                return figures | _rebuilds(session, folder)
            case "ten":
                changes = _changes(session, folder / "input")
                deltas = api.watch(changes, TEN_QUERIES, partitions=PARTITIONS)
                return _measured(deltas, folder, name)
            case "reevaluate":
                return _reevaluated(session, folder)
            case _:
                raise ValueError(name)
    finally:
        session.stop()


def _changes(session: SparkSession, files: Path) -> DataFrame:
    reader = session.readStream.schema(CHANGES_SQL).option("maxFilesPerTrigger", FILES)
    return reader.parquet(str(files))


def _start(deltas: DataFrame, folder: Path, name: str) -> StreamingQuery:
    from pyspark.sql import functions as f

    observed = deltas.observe("out", f.sum("diff").alias("matches"))
    writer = observed.writeStream.format("noop").trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).start()


def _measured(deltas: DataFrame, folder: Path, name: str) -> dict[str, Any]:
    with ProcessorTimes(folder / f"{name}-checkpoint") as times:
        query = _start(deltas, folder, name)
        query.awaitTermination()
    reports = [json.loads(report.json) for report in query.recentProgress]
    found = [(r.get("observedMetrics") or {}).get("out") or {} for r in reports]
    return {
        "batch_ms": _batch_ms(reports),
        "batch_cpu": times.by_batch(),
        "matches": sum(each.get("matches") or 0 for each in found),
    }


def _batch_ms(reports: list[dict[str, Any]]) -> dict[int, int]:
    return {r["batchId"]: r["durationMs"]["triggerExecution"] for r in reports if r["numInputRows"]}


# ---- graphtide -----------------------------------------------------------------------------------


class NotedProcessor(processor.PartitionProcessor):
    """The processor of a stage that notes cache hit, rebuild and duration of each call.

    With `forget`, no engine is found again.
    """

    def __init__(
        self,
        job: JobSpec,
        stage: StageName,
        counts: CacheCounts | None = None,
        *,
        notes: str,
        forget: bool = False,
    ) -> None:
        super().__init__(job, stage, counts)
        self._notes = notes
        self._forget = forget

    def engine_key(self, key: int) -> EngineKey:
        """The cache's key for a partition."""
        found = super().engine_key(key)
        return found._replace(run=uuid.uuid4().hex) if self._forget else found

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: sp.TimerValues,  # noqa: N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """One partition's part of a micro-batch."""
        hits, rebuilt, started = processor.CACHE.hits, processor.CACHE.rebuilt, time.perf_counter()
        frames = list(super().handleInputRows(key, rows, timerValues))
        note = {
            "partition": key[0],
            "hit": processor.CACHE.hits > hits,
            "rebuilt": processor.CACHE.rebuilt > rebuilt,
            "ms": 1000 * (time.perf_counter() - started),
        }
        with Path(self._notes, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        yield from frames


def _graphtide(
    session: SparkSession, folder: Path, notes: str, *, forget: bool = False
) -> DataFrame:
    (folder / notes).mkdir()
    # The product's own pipeline; only its operator is replaced by one that takes notes.
    noted = partial(NotedProcessor, notes=str(folder / notes), forget=forget)
    vars(api)["PartitionProcessor"] = noted
    return api.watch(_changes(session, folder / "input"), QUERY, partitions=PARTITIONS)


def _rebuilds(session: SparkSession, folder: Path) -> dict[str, Any]:
    """The notes on the stream, and on more batches for which engines had to be rebuilt."""
    add_spare(folder / "input")
    deltas = _graphtide(session, folder, "rebuilds", forget=True)
    _start(deltas, folder, "graphtide").awaitTermination()
    return {name: _read_notes(folder / name) for name in ("notes", "rebuilds")}


def _read_notes(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


# ---- identity ------------------------------------------------------------------------------------


class IdentityProcessor(sp.StatefulProcessor):
    """Writes each batch to the log as the engine's processor does, and outputs nothing."""

    def init(self, handle: sp.StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._log = StateLog(handle, "identity")

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """One partition's part of a micro-batch: its chunks are logged as they came."""
        head = self._log.head() or Head()
        batch = StageInput.of(from_frames(rows))
        if batch.chunks:
            head = replace(head, version=head.version + 1, token=uuid.uuid4().hex)
            head = appended(self._log, head, b"".join(batch.chunks))
        self._log.put_head(head)
        yield to_frame([])

    def close(self) -> None:
        """The task is done (called by Spark)."""


def _move(batches: Iterator[pa.RecordBatch], task: int) -> Iterator[pa.RecordBatch]:
    """The rows of a task as a chunk per partition, each row in one of them."""
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    rows = []
    for partition, key in enumerate(partition_keys(PARTITIONS)):
        parts = [
            table.slice(partition * len(table) // PARTITIONS, -(-len(table) // PARTITIONS))
            for table in tables
        ]
        chunk = to_chunk(pa.concat_tables(parts)) if parts else None
        rows.append(StageRow(key, task, *START, chunk))
    yield from stage_rows(rows).to_batches()


def _identity(session: SparkSession, folder: Path) -> DataFrame:
    """The same rows through the same operators of Spark, without a look at them."""
    changes = _changes(session, folder / "input")

    def move(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        return _move(batches, context.partitionId() if context else 0)

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from ()

    logged = (
        changes.mapInArrow(move, ROWS_SQL)
        .groupBy("partition")
        .transformWithStateInPandas(
            statefulProcessor=IdentityProcessor(),
            outputStructType=ROWS_SQL,
            outputMode="Append",
            timeMode="None",
        )
    )
    return logged.mapInArrow(nothing, "diff bigint")


# ---- re-evaluation -------------------------------------------------------------------------------


class TableReevaluation:
    """Tables of edges and of answers, both written anew by each micro-batch.

    This is what a Spark user would do otherwise: merge, evaluate the whole query, compare.
    """

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self.matches = 0

    def process(self, changes: DataFrame, batch: int) -> None:
        """One micro-batch (Spark's `foreachBatch`)."""
        answer = self._answer(self._merged(changes, batch))
        path = str(self._folder / f"answer-{batch}")
        answer.write.mode("overwrite").parquet(path)
        new = self._session.read.parquet(path)
        old = self._previous("answer", batch)
        appeared = new if old is None else new.exceptAll(old)
        disappeared = new.limit(0) if old is None else old.exceptAll(new)
        self.matches += appeared.count() - disappeared.count()

    def _merged(self, changes: DataFrame, batch: int) -> DataFrame:
        """The table of edges after a batch."""
        rows = changes.where("diff <> 0").select("s", "p", "o", "diff")
        old = self._previous("edges", batch)
        if old is not None:
            rows = rows.unionByName(old.selectExpr("s", "p", "o", "1 AS diff"))
        path = str(self._folder / f"edges-{batch}")
        merged = rows.groupBy("s", "p", "o").agg({"diff": "sum"}).where("`sum(diff)` > 0")
        merged.select("s", "p", "o").write.mode("overwrite").parquet(path)
        return self._session.read.parquet(path)

    def _answer(self, edges: DataFrame) -> DataFrame:
        for name, predicate in zip(RELATIONS, texts(RELATIONS), strict=True):
            edges.where(edges["p"] == predicate).createOrReplaceTempView(name)
        return self._session.sql(ANSWER_SQL)

    def _previous(self, name: str, batch: int) -> DataFrame | None:
        if not batch:
            return None
        return self._session.read.parquet(str(self._folder / f"{name}-{batch - 1}"))


def _reevaluated(session: SparkSession, folder: Path) -> dict[str, Any]:
    tables = TableReevaluation(session, folder / "tables")
    writer = _changes(session, folder / "input").writeStream.foreachBatch(tables.process)
    checkpoint = str(folder / "reevaluate-checkpoint")
    query = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint).start()
    query.awaitTermination()
    reports = [json.loads(report.json) for report in query.recentProgress]
    return {"batch_ms": _batch_ms(reports), "matches": tables.matches}
