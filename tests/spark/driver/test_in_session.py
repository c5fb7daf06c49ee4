"""`run_program` in a session: DataFrames in, faults of the input, and checkpoints of others."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from support.object_store import BUCKET, object_store

from graphtide.datasets.railway import QUERIES, change_stream
from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.ast import NamedQuery
from graphtide.lang.tide.program import Program
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import read_output, watch
from graphtide.spark import run as run_job
from graphtide.spark.driver import run as run_module
from graphtide.spark.driver.options import claim_checkpoint, source_name
from graphtide.spark.driver.sink import Sink
from graphtide.spark.files import Location
from graphtide.spark.metrics import CacheCounts
from graphtide.spark.output import OutputSpec
from graphtide.spark.source.plan import GIVE_LATER_NAME

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

SCHEMA = "time long, tx long, diff int, s string, p string, o string, g string"
TEXT = QUERIES["RouteSensor"]
PROGRAM = Program((NamedQuery("Sensors", TEXT, 1),))
STREAM = list(change_stream(10, seed=16))


@pytest.fixture(scope="module")
def expected():
    graph = LiveGraph()
    deltas = graph.watch(TEXT)
    graph.apply(STREAM)
    found = Counter(
        (row.time, row.tx, row.diff, *map(str, row.row.values())) for row in deltas.rows()
    )
    assert len(found) > 5
    return found


@pytest.fixture
def changes(spark, tmp_path):
    """A stream of files, one for each transaction and micro-batch; the last says that it ended."""
    (tmp_path / "in").mkdir()
    for number, batch in enumerate(STREAM):
        rows = batch.to_arrow().to_pylist()
        if batch is STREAM[-1]:
            rows.append({"time": 10**6, "tx": 0, "diff": 0})
        kinds = [("time", pa.int64()), ("tx", pa.int64()), ("diff", pa.int32())]
        schema = pa.schema([*kinds, *((name, pa.string()) for name in "spog")])
        path = tmp_path / "in" / f"{number:03}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        os.utime(path, (10**9 + number,) * 2)
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return files.parquet(str(tmp_path / "in"))


def written(folder, name="Sensors"):
    return Counter(tuple(row.values()) for row in pq.read_table(folder / name).to_pylist())


@pytest.mark.parametrize("layout", [None, "rete"])
def test_a_dataframe_that_streams(spark, tmp_path, changes, expected, layout):
    places = {"out": str(tmp_path / "out"), "checkpoint": str(tmp_path / "c")}
    seen, statuses = [], []
    for _ in range(2):
        running = run_job(
            spark,
            PROGRAM,
            changes=changes,
            once=True,
            on_deltas=seen.append,
            layout=layout,
            **places,
        )
        statuses.append(list(running.statuses()))
        assert written(tmp_path / "out") == expected
    first, second = statuses
    assert second == [], "there is nothing left to read"
    assert first[-1].batch == len(STREAM) - 1
    assert first[-1].lag_bytes is None and "up to date" not in first[-1].line_of_text()
    assert sum(len(deltas["Sensors"]) for deltas in seen) == expected.total()
    with pytest.raises(GraphtideError, match="it reads a DataFrame that streams and not"):
        run_job(spark, PROGRAM, changes=tmp_path / "in", **places)


def test_a_text_is_no_program(spark, tmp_path, changes):
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "c"}
    for text in ("rail.tide", "QUERY A AS SELECT ?s { ?s ?p ?o }"):
        with pytest.raises(GraphtideError, match="a Program or the Path of its file") as caught:
            run_job(spark, text, changes=changes, **places)
        assert "Program.parse" in caught.value.hint


def test_a_rejected_row_can_end_the_run(spark, tmp_path):
    table = spark.createDataFrame([(0, 0, 1, "no term", "<ex:p>", "<ex:o>", None)], SCHEMA)
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "c"}
    query = Program((NamedQuery("All", "SELECT * { ?s ?p ?o }", 1),))
    with pytest.raises(GraphtideError, match="1 rows are rejected, more than the 0 allowed"):
        run_job(spark, query, changes=table, on_error="raise", **places)


def test_settings_of_a_run(spark, tmp_path, expected):
    """JSON files, small micro-batches, and as many rejected rows as are allowed."""
    (tmp_path / "in").mkdir()
    for number, batch in enumerate(STREAM):
        write_changes(batch, tmp_path / "in" / f"{number:03}.rdfp")
    (tmp_path / "in" / "003a.parquet").write_bytes(b"PAR1 and then nothing")
    settings = {
        "output_format": "json", "start": "earliest", "rows_per_batch": 20, "max_rounds": 5,
        "on_error": "skip", "once": True, "changes": tmp_path / "in",
    }  # fmt: skip
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "c"}
    running = run_job(spark, PROGRAM, max_quarantined=1, **settings, **places)
    assert list(running.statuses())[-1].quarantined == 1
    files = [path for path in (tmp_path / "out" / "Sensors").rglob("*.*") if path.is_file()]
    assert len(files) > 1 and {path.suffix for path in files} == {".json"}
    rows = read_output(tmp_path / "out", "Sensors").to_pylist()
    assert Counter(tuple(row.values()) for row in rows) == expected
    places = {"out": tmp_path / "out2", "checkpoint": tmp_path / "c2"}
    running = run_job(spark, PROGRAM, max_quarantined=0, **settings, **places)
    with pytest.raises(GraphtideError, match="1 rows are rejected, more than the 0 allowed"):
        list(running.statuses())
    places = {"out": tmp_path / "out3", "checkpoint": tmp_path / "c3"}
    running = run_job(spark, PROGRAM, **{**settings, "start": "latest"}, **places)
    list(running.statuses())
    assert read_output(tmp_path / "out3", "Sensors").num_rows == 0


def test_partitions_write_much_output_themselves(spark, tmp_path, changes, expected, monkeypatch):
    """The limit of what goes to the driver is set to nothing, so that all of it is much."""
    monkeypatch.setattr(run_module, "OutputSpec", partial(OutputSpec, inline_bytes=0))
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "c"}
    running = run_job(spark, PROGRAM, changes=changes, once=True, **places)
    list(running.statuses())
    folders = [path for path in (tmp_path / "out/Sensors").iterdir() if path.is_dir()]
    assert len(folders) > 3 and not list((tmp_path / "out/Sensors").glob("*.parquet"))
    rows = read_output(tmp_path / "out", "Sensors").to_pylist()
    assert Counter(tuple(row.values()) for row in rows) == written(tmp_path / "out") == expected
    (folders[0] / "part-0000-beef.parquet").write_bytes((next(folders[0].iterdir())).read_bytes())
    frame = read_output(tmp_path / "out", "Sensors", spark)
    assert Counter(map(tuple, frame.collect())) == expected, "what was not committed is not read"
    table = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    places = {"out": tmp_path / "out2", "checkpoint": tmp_path / "c2"}
    run_job(spark, PROGRAM, changes=table.coalesce(1), **places)
    assert written(tmp_path / "out2") == expected


def test_a_remote_checkpoint_without_its_library_is_explained(spark, tmp_path, changes):
    with object_store() as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with pytest.raises(GraphtideError, match="Spark cannot write its checkpoint") as caught:
            run_job(
                spark, PROGRAM, changes=changes, out=tmp_path / "out",
                checkpoint=f"s3a://{BUCKET}/checkpoint",
            )  # fmt: skip
    assert "spark.jars.packages=org.apache.hadoop:hadoop-aws:3" in caught.value.hint


def test_a_bounded_dataframe(spark, tmp_path, changes, expected):
    table = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "c"}
    running = run_job(spark, PROGRAM, changes=table.coalesce(1), **places)
    assert written(tmp_path / "out") == expected
    assert list(running.statuses()) == []
    assert running.sink.progress.queries["Sensors"].appeared > 0
    with pytest.raises(GraphtideError, match="has the output of a bounded DataFrame") as caught:
        run_job(spark, PROGRAM, changes=table, **places)
    assert "another checkpoint" in caught.value.hint


def test_a_directory_with_files_that_cannot_be_read(spark, tmp_path, expected):
    (tmp_path / "in").mkdir()
    for number, batch in enumerate(STREAM):
        write_changes(batch, tmp_path / "in" / f"{number:03}.rdfp")
    (tmp_path / "in" / "003a.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "in" / "003b.nt.gz").write_bytes(b"\x1f\x8b\x08\x00 torn")
    (tmp_path / "in" / "003c.rdfp").write_bytes(b"")
    (tmp_path / "in" / "003d.rdfp").write_bytes(b"\x00\x01\x02")
    running = run_job(
        spark, PROGRAM, changes=str(tmp_path / "in"), once=True,
        out=tmp_path / "out", checkpoint=tmp_path / "c",
    )  # fmt: skip
    assert list(running.statuses())[-1].quarantined == 3
    assert written(tmp_path / "out") == expected
    aside = pq.read_table(tmp_path / "out" / "quarantine").to_pylist()
    names = {Path(row["file"]).name for row in aside}
    assert names == {"003a.parquet", "003b.nt.gz", "003d.rdfp"}
    assert all(row["reason"].endswith(GIVE_LATER_NAME) for row in aside)


def test_a_disk_that_fills_up(spark, tmp_path, changes, expected):
    made = claim_checkpoint(Location.of(tmp_path / "c"), PROGRAM.texts, 2, source_name(changes))
    names = list(LiveGraph().watch(TEXT).variables)
    Sink(tmp_path / "out", made.run, {"Sensors": names})
    full = [tmp_path / "out/Sensors" / f"_batch-{n:08}.parquet.tmp" for n in range(4, len(STREAM))]
    for path in full:
        path.symlink_to("/dev/full")
    places = {"changes": changes, "out": tmp_path / "out", "checkpoint": tmp_path / "c"}
    running = run_job(spark, PROGRAM, once=True, **places)
    with pytest.raises(GraphtideError, match="No space left on device") as caught:
        list(running.statuses())
    assert "make room" in caught.value.hint
    assert written(tmp_path / "out") < expected
    for path in full:
        path.unlink(missing_ok=True)
    list(run_job(spark, PROGRAM, once=True, **places).statuses())
    assert written(tmp_path / "out") == expected


def stream_to(folder, deltas):
    query = (
        deltas.writeStream.format("parquet")
        .option("path", str(folder / "deltas"))
        .option("checkpointLocation", str(folder / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_watch_refuses_the_checkpoint_of_other_queries_and_partitions(spark, tmp_path, changes):
    last = max((tmp_path / "in").iterdir()).rename(tmp_path / "last")
    stream_to(tmp_path, watch(changes, TEXT, partitions=2))
    last.rename(tmp_path / "in" / "999.parquet")
    other = TEXT.replace("?sw a :Switch ;", "?sw")
    assert other != TEXT
    for deltas, said in [
        (watch(changes, TEXT, partitions=4), "made with 2 partitions and not 4"),
        (watch(changes, TEXT, partitions=3), "made with 2 partitions and not 3"),
        (watch(changes, other, partitions=2), "made with other queries, sizes or layouts"),
    ]:
        with pytest.raises(StreamingQueryException, match=said) as caught:
            stream_to(tmp_path, deltas)
        assert "start again with another checkpoint" in str(caught.value)
    stream_to(tmp_path, watch(changes, TEXT, partitions=2))


def test_how_engines_were_found_is_counted(spark, tmp_path, changes):
    counts = CacheCounts(spark.sparkContext)
    query = stream_to(tmp_path, watch(changes, TEXT, partitions=2, counts=counts))
    batches = len(query.recentProgress)
    assert batches >= len(STREAM)
    found = counts.values()
    assert found["new"] == 2
    assert sum(found.values()) == 2 * batches
