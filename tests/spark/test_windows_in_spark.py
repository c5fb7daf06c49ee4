"""Windows in Spark itself: bounded and streaming, late rows, a restart, files and a program."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark.stages.window_streams import (
    change,
    event,
    in_process,
    iri,
    random_rows,
    watermark,
    windowed,
)

from graphtide.spark import run as run_job
from graphtide.spark import watch
from graphtide.spark.job import JobSpec

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

NAMES = ["time", "tx", "diff", "s", "p", "o", "g", "stream"]
KINDS = ["long", "long", "int", *["string"] * 5]
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in zip(NAMES, KINDS, strict=True))
JOINED = "WINDOW :w { ?a :p ?b } ?b :r ?c"
TWO = "WINDOW :w { ?a :p ?b } WINDOW :v { ?b :q ?c }"
QUERIES = {
    "came": windowed("ISTREAM", JOINED),
    "went": windowed("DSTREAM", TWO, "?a", second="RANGE 7"),
    "all": windowed("RSTREAM", JOINED, "DISTINCT ?c"),
    "count": windowed("ISTREAM", "{ SELECT (COUNT(*) AS ?n) { WINDOW :w { ?a :p ?b } } }"),
    "plain": "PREFIX : <http://e/> SELECT ?a ?b { ?a :r ?b }",
}
WINDOWED = {name: text for name, text in QUERIES.items() if name != "plain"}


def net(rows, queries):
    """Collected rows, without those of the plain query."""
    order = {
        each.name: [v.name for v in each.query.variables[: each.shown]]
        for each in JobSpec(tuple(queries.items()), 2).partition_queries
    }
    found = Counter()
    for row in rows:
        key = row.query, row.time, row.tx, tuple(row.row.get(name) for name in order[row.query])
        assert key not in found
        found[key] = row.diff
    plain = {key for key in found if key[0] == "plain"}
    assert len(plain) > 3 or "plain" not in queries
    return Counter({key: diff for key, diff in found.items() if key not in plain})


def write(folder, rows, size, first=0):
    """The rows in files of some rows each, whose times tell their order."""
    folder.mkdir(exist_ok=True)
    kinds = [pa.int64(), pa.int64(), pa.int32(), *[pa.string()] * 5]
    for number, at in enumerate(range(0, len(rows), size), first):
        columns = zip(zip(*rows[at : at + size], strict=True), kinds, strict=True)
        path = folder / f"{number:05d}.parquet"
        pq.write_table(pa.table([pa.array(list(c), k) for c, k in columns], names=NAMES), path)
        os.utime(path, (10**9 + number,) * 2)


def test_a_stream_that_is_stopped_and_goes_on(spark, tmp_path):
    rows, last = random_rows(Random(5), 40)
    expected = in_process(WINDOWED, rows, last + 20)
    assert {key[0] for key in expected} == set(WINDOWED)
    rows = [*rows, watermark(last + 20)]
    bounded = watch(spark.createDataFrame(rows, SCHEMA).coalesce(1), QUERIES, partitions=2)
    assert net(bounded.collect(), QUERIES) == expected
    for part, size in ((rows[:50], 20), (rows[50:], 11)):
        write(tmp_path / "in", part, size, first=len(list(tmp_path.glob("in/*"))))
        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        out = watch(files.parquet(str(tmp_path / "in")), QUERIES, partitions=2)
        stream = out.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.trigger(availableNow=True).start().awaitTermination()
    found = net(spark.read.parquet(str(tmp_path / "out")).collect(), QUERIES)
    assert found == expected


def test_a_program_over_change_logs(spark, tmp_path):
    """Streams are graphs here; what is more than two ticks late goes to quarantine."""
    program = tmp_path / "hot.tide"
    text = windowed("ISTREAM", JOINED, "?a ?c").removeprefix("PREFIX : <http://e/> ")
    program.write_text(f"PREFIX : <http://e/>\nQUERY Hot AS {text}", encoding="utf-8")
    rows = [
        change(0, 0, 1, "b", "r", "c"),
        event(3, 1, "x", "p", "b"),
        event(9, 2, "y", "p", "b"),
        event(8, 3, "z", "p", "b"),
        change(13, 0, 1, "not", "asked", "for"),
        event(10, 4, "late", "p", "b"),
        event(11, 5, "last", "p", "b"),
        watermark(17),
    ]
    # Without a column `stream`, the name of the graph is that of the stream.
    in_graphs = [(*row[:6], row[7] and f"<{row[7]}>", None) for row in rows]
    write(tmp_path / "in", in_graphs, 5)
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    changes = files.parquet(str(tmp_path / "in")).drop("stream")
    run = run_job(
        spark, program, changes=changes, out=tmp_path / "out", checkpoint=tmp_path / "checkpoint",
        once=True, partitions=2, lateness=2,
    )  # fmt: skip
    assert sum(status.rows for status in run.statuses()) == len(rows)
    found = pq.read_table(tmp_path / "out" / "Hot").to_pylist()
    # By hand: at 10 the window [0, 10) has x, y and z; at 15 [5, 15) has gained `last` only.
    assert [(row["time"], row["diff"], row["a"], row["c"]) for row in found] == [
        (10, 1, iri("x"), iri("c")),
        (10, 1, iri("y"), iri("c")),
        (10, 1, iri("z"), iri("c")),
        (15, 1, iri("last"), iri("c")),
    ]
    (late,) = pq.read_table(tmp_path / "out" / "quarantine").to_pylist()
    assert late["time"] == 10 and late["reason"].startswith("too late: ")
    assert iri("late") in late["text"] and "http://e/s" in late["text"]


def test_streams_are_columns_or_graphs(spark):
    rows = [event(1, 0, "a", "p", "b"), change(2, 0, 1, "e", "r", "f"), watermark(10)]
    plain = watch(spark.createDataFrame(rows, SCHEMA), "SELECT ?s { ?s ?p ?o }", partitions=2)
    assert [row.s for row in plain.collect()] == [iri("e")], "an event is no change of the graph"
    bracketed = [(*row[:7], row[7] and f"<{row[7]}>") for row in rows]
    out = watch(
        spark.createDataFrame(bracketed, SCHEMA), windowed("ISTREAM", "WINDOW :w { ?a :p ?b }")
    )
    assert [(row.time, row.diff, row.a, row.b) for row in out.collect()] == [
        (10, 1, iri("a"), iri("b"))
    ]  # fmt: skip
    # An event that no pattern matches is blanked out, but the window reports from then on.
    other = [event(6, 0, "a", "other", "b"), watermark(11)]
    out = watch(spark.createDataFrame(other, SCHEMA), QUERIES["count"], partitions=2)
    zero = '"0"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert [(row.time, row.n) for row in out.collect()] == [(10, zero)]
