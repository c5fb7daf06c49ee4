"""One pipeline over the stream, in a process of its own: `python -m … NAME FOLDER MASTER`.

Prints one JSON object: the milliseconds of each micro-batch, the matches at the end, the notes.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphtide.bench.route_sensor import QUERY
from graphtide.bench.spark import CELLS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTINGS: Final = {
    "spark.driver.memory": "2g",
    "spark.executor.memory": "2g",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}


def run(name: str, folder: Path, master: str) -> dict[str, Any]:
    """The whole stream through one pipeline."""
    from graphtide.spark.session import make_session

    session = make_session(
        master=master,
        cells=CELLS,
        settings={**SETTINGS, "spark.local.dir": str(folder / f"{name}-scratch")},
    )
    try:
        return _run(session, name, folder)
    finally:
        session.stop()


def _run(session: SparkSession, name: str, folder: Path) -> dict[str, Any]:
    match name:
        case "identity":
            return _measured(_start(_identity(session, folder), folder, name))
        case "graphtide":
            figures = _measured(_start(_ours(session, folder, "notes"), folder, name))
            return figures | _after_a_loss(session, folder)
        case "reevaluate":
            return _reevaluated(session, folder)
        case _:
            raise ValueError(name)


def _changes(session: SparkSession, files: Path) -> DataFrame:
    schema = "time long, tx long, diff int, seq long, s string, p string, o string"
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))


def _identity(session: SparkSession, folder: Path) -> DataFrame:
    from graphtide.bench.spark.identity import keep
    from graphtide.spark.pipeline import make_task

    changes = _changes(session, folder / "input")
    return keep(changes, make_task(changes, {"query": QUERY}, CELLS))


def _ours(session: SparkSession, folder: Path, notes: str, *, forget: bool = False) -> DataFrame:
    from graphtide.bench.spark.noted import NotedMatch
    from graphtide.spark import pipeline

    (folder / notes).mkdir()
    # The product's own pipeline; only its operator is replaced by one that takes notes.
    noted = partial(NotedMatch, notes=str(folder / notes), forget=forget)
    vars(pipeline)["Match"] = noted
    return pipeline.watch(_changes(session, folder / "input"), QUERY, cells=CELLS)


def _start(deltas: DataFrame, folder: Path, name: str) -> StreamingQuery:
    from pyspark.sql import functions as f

    observed = deltas.observe("out", f.sum("diff").alias("matches"))
    writer = observed.writeStream.format("noop").trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).start()


def _measured(query: StreamingQuery) -> dict[str, Any]:
    query.awaitTermination()
    reports = [json.loads(report.json) for report in query.recentProgress]
    found = [(r.get("observedMetrics") or {}).get("out") or {} for r in reports]
    return {
        "batch_ms": _batch_ms(reports),
        "matches": sum(each.get("matches") or 0 for each in found),
    }


def _batch_ms(reports: list[dict[str, Any]]) -> dict[int, int]:
    return {r["batchId"]: r["durationMs"]["triggerExecution"] for r in reports if r["numInputRows"]}


def _after_a_loss(session: SparkSession, folder: Path) -> dict[str, Any]:
    """The notes on the stream; and on some batches more whose engines were lost."""
    from graphtide.bench.spark.noted import read_notes
    from graphtide.bench.spark.stream import add_spare

    add_spare(folder / "input")
    _measured(_start(_ours(session, folder, "rebuilds", forget=True), folder, "graphtide"))
    return {
        "notes": read_notes(folder / "notes"),
        "rebuilds": read_notes(folder / "rebuilds"),
    }


def _reevaluated(session: SparkSession, folder: Path) -> dict[str, Any]:
    from graphtide.bench.spark.reevaluate import Reevaluation

    tables = Reevaluation(session, folder / "tables")
    writer = _changes(session, folder / "few").writeStream.foreachBatch(tables.take)
    checkpoint = str(folder / "reevaluate-checkpoint")
    query = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint).start()
    query.awaitTermination()
    reports = [json.loads(report.json) for report in query.recentProgress]
    return {"batch_ms": _batch_ms(reports), "matches": tables.matches}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3])))
