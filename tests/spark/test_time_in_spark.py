"""Time in Spark itself: its watermark, watermarks of the input, the clock of a silent source."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as f
from spark.stages.frames import SCHEMA

from graphtide.lang.tide.program import Program
from graphtide.spark import run, watch
from graphtide.spark.watermark import LAST_MS, lateness_of, with_watermark

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

TEXT = "SELECT ?a { ?a <ex:p> ?b }"
PATIENCE = 900


def insert(at, term="a"):
    return (at, 0, 1, f"<ex:{term}>", "<ex:p>", f"<ex:{at}>", None)


def write(folder, number, rows):
    """A file of changes, the next one."""
    folder.mkdir(exist_ok=True)
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    path = folder / f"{number:03}.json"
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.with_suffix(".tmp").write_text("\n".join(lines))
    os.utime(path.with_suffix(".tmp"), (10**9 + number,) * 2)
    path.with_suffix(".tmp").rename(path)


def read(spark, folder):
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.json(str(folder), pathGlobFilter="*.json")


def milliseconds(text):
    return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)


def finished(frame, name):
    """A stream that is read to its end: the query, and its rows."""
    writer = frame.writeStream.trigger(availableNow=True).format("memory").queryName(name)
    query = writer.start()
    query.awaitTermination()
    return query, frame.sparkSession.table(name).collect()


def watermarks(query):
    return [milliseconds(report["eventTime"]["watermark"]) for report in query.recentProgress]


def test_the_frontier_is_sparks_watermark(spark, tmp_path):
    """Also of a query with a second stage and nothing to say; no micro-batch is added for it."""
    for number in range(3):
        write(tmp_path / "in", number, [insert(100 * number), insert(100 * number + 7)])
    frame = read(spark, tmp_path / "in")
    deltas = watch(frame, "SELECT DISTINCT ?a { ?a <ex:p> ?b }", tick_ms=10, lateness=5)
    query, rows = finished(deltas, "frontier")
    assert watermarks(query) == [0, 20, 1020] and len(rows) == 1
    own = watch(frame, TEXT, watermark=False).withColumn("at", f.timestamp_seconds("time"))
    counted = own.withWatermark("at", "1 second").groupBy(f.window("at", "50 seconds")).count()
    _, windows = finished(counted, "windows_of_spark")
    # From 0 and from 100; the window from 200 on has not ended.
    assert [row["count"] for row in windows] == [2, 2]
    late = spark.createDataFrame([(2**63 - 1,), (-(2**63),)], "time long")
    assert late.isStreaming is False and with_watermark(late, 7).count() == 2
    assert with_watermark(late, LAST_MS * 2).count() == 2


def test_the_watermark_of_the_input_says_how_late_rows_may_be(spark, tmp_path):
    for number, times in enumerate([[100, 104], [97, 105], [94, 120]]):
        write(tmp_path / "in", number, [insert(at) for at in times])
    frame = read(spark, tmp_path / "in").withColumn("at", f.timestamp_seconds("time"))
    frame = frame.withWatermark("at", "8500 milliseconds").drop("at")
    assert lateness_of(frame, 1000) == 9
    query, rows = finished(watch(frame, TEXT, rejects=True), "of_input")
    assert watermarks(query)[:3] == [0, 95_500, 96_500]
    # Complete up to 104 - 9 and 105 - 9: of the third file, 94 is too late.
    assert [row.rejected.time for row in rows if row.rejected] == [94]
    assert sorted(row.time for row in rows if not row.rejected) == [97, 100, 104, 105]
    _, rows = finished(watch(frame, TEXT, lateness=20), "own")
    assert sorted(row.time for row in rows) == [94, 97]


def test_a_silent_source(spark, tmp_path):
    """Without any further input, the last transaction ends; after a restart it has ended."""
    write(tmp_path / "in", 0, [insert(5), insert(7)])

    def start():
        deltas = watch(read(spark, tmp_path / "in"), TEXT, idle_seconds=1.0, rejects=True)
        stream = deltas.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        return stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def await_rows(query, count):
        until = time.monotonic() + PATIENCE
        while len(found := out()) < count and time.monotonic() < until:
            assert query.exception() is None
            time.sleep(0.5)
        return found

    def out():
        if not list(tmp_path.glob("out/_spark_metadata/[0-9]*")):
            return []
        rows = spark.read.parquet(str(tmp_path / "out")).collect()
        return sorted(row.time if row.rejected is None else -row.rejected.time for row in rows)

    query = start()
    try:
        assert await_rows(query, 2) == [5, 7]
        assert max(report["numInputRows"] for report in query.recentProgress[1:]) == 0
    finally:
        query.stop()
    write(tmp_path / "in", 1, [insert(7), insert(10**6), insert(10**6 + 1)])
    query = start()
    try:
        assert await_rows(query, 5) == [-7, 5, 7, 10**6, 10**6 + 1]
    finally:
        query.stop()


def test_absences_of_a_silent_source(spark, tmp_path):
    """A rule waits for an event that does not come, nor anything else: it fires all the same."""
    program = """EVENT A(?x) AS { ?x <ex:a> ?y } EVENT B(?x) AS { ?x <ex:b> ?y }
    RULE Missing WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,2] a THEN CALL f(?x)"""
    write(tmp_path / "in", 0, [(5, 0, 1, "<ex:x>", "<ex:a>", "<ex:y>", "<ex:s>")])
    called, until = [], time.monotonic() + PATIENCE
    job = run(
        spark, Program.parse(program), changes=read(spark, tmp_path / "in"), trigger="100ms",
        out=tmp_path / "out", checkpoint=tmp_path / "checkpoint", partitions=2, idle_seconds=1.0,
        streams=("ex:s",), functions={"f": lambda x: called.append(str(x))},
    )  # fmt: skip
    for _ in job.statuses(lambda: bool(called) or time.monotonic() > until):
        pass
    assert called == ["<ex:x>"]
    assert job.sink.progress.fired == 1 and job.sink.progress.quarantined == 0
