"""What `watch` adds to the stages, in Spark itself: shards, files, several of them in one query."""

from __future__ import annotations

import json
import os

import pytest
from spark.stages.frames import SCHEMA, net_columns
from spark.stages.splits import in_process, three_partitions

from graphtide.errors import GraphtideError
from graphtide.spark import watch
from graphtide.spark.driver.status import explained
from graphtide.spark.metrics import CacheCounts

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

TEXT = "SELECT ?a ?b { ?a <ex:p> ?b }"
SHARDED = f"{SCHEMA}, shard string"


def write_batches(folder, batches, schema=SCHEMA):
    """A file per micro-batch, in the order of their times."""
    folder.mkdir()
    names = [column.split()[0] for column in schema.split(", ")]
    for number, rows in enumerate(batches):
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        path = folder / f"{number:03}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (10**9 + number,) * 2)


def read(spark, folder, schema=SCHEMA, files=1):
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return reader.json(str(folder))


def run(deltas, name):
    """All rows of a stream, in memory."""
    writer = deltas.writeStream.trigger(availableNow=True).format("memory").queryName(name)
    query = writer.start()
    query.awaitTermination()
    return deltas.sparkSession.table(name).collect()


def test_shards_of_a_source(spark, tmp_path):
    rows, batches = three_partitions()
    files = [[(*row[:7], row[8]) for task in tasks for row in task] for tasks in batches]
    write_batches(tmp_path / "in", files, SHARDED)
    changes = read(spark, tmp_path / "in", SHARDED)
    deltas = watch(changes.withColumn("shard", changes.shard.cast("int")), TEXT, shards=3)
    assert net_columns(run(deltas, "shards")) == in_process({"query": TEXT}, rows)
    late = watch(changes.drop("shard"), TEXT)
    with pytest.raises(Exception, match="complete up to time 57") as error:
        run(late, "late")
    assert "name them in a column shard" in str(explained(str(error.value)))


def test_two_files_in_one_task_have_no_order(spark, tmp_path):
    quad = "<ex:a>", "<ex:p>", "<ex:b>", None
    filler = [(5, 1, 1, f"<ex:{n}>", "<ex:p>", "<ex:b>", None) for n in range(9)]
    write_batches(tmp_path / "in", [[(5, 1, 1, *quad)], [*filler, (5, 1, -1, *quad)]])
    changes = read(spark, tmp_path / "in", files=2).coalesce(1)
    with pytest.raises(Exception, match="inserts and deletes <ex:a> <ex:p> <ex:b> in rows of"):
        run(watch(changes, TEXT), "files")
    one_by_one = run(watch(read(spark, tmp_path / "in"), TEXT), "one_by_one")
    assert all(row.a != "<ex:a>" for row in one_by_one)
    numbered = changes.selectExpr("*", "if(diff > 0, 1, 2) as seq")
    run(watch(numbered, TEXT), "numbered")


def test_two_watches_in_one_query_find_their_engines(spark, tmp_path):
    batches = [[(t, 0, 1, f"<ex:{t}>", "<ex:p>", "<ex:b>", None)] for t in range(8)]
    write_batches(tmp_path / "in", batches)
    changes = read(spark, tmp_path / "in")
    counts = CacheCounts(spark.sparkContext)
    first, second = (watch(changes, TEXT, partitions=1, counts=counts) for _ in range(2))
    out = run(first.unionByName(second), "two")
    assert len(out) == 2 * 7
    values = counts.values()
    assert values["new"] == 2
    # A worker that gets a partition for the first time has to build its engine.
    assert values["hit"] + values["behind"] > 2 * (len(batches) - 1) / 2
    # Both have the same log, of a chunk of one row for each of the transactions that are complete.
    assert set(counts.state_bytes()) == {"match"}
    assert 7 * 2 * 100 < counts.state_bytes()["match"] < 8 * 2 * 5000
    ((stage, load),) = counts.loads().items()
    assert stage == ("match", 0)
    assert min(load) > 0


def test_a_hub_of_the_stream_is_reported(spark, tmp_path, caplog):
    star = "SELECT * { ?a <ex:p> ?b . ?a <ex:q> ?c }"
    hub = [(1, 0, 1, "<ex:hub>", "<ex:p>", f"<ex:b{n}>", None) for n in range(60)]
    others = [(1, 0, 1, f"<ex:{n}>", "<ex:q>", "<ex:c>", None) for n in range(40)]
    write_batches(tmp_path / "in", [[*hub, *others], [(2, 0, 0, *[None] * 4)]])
    counts = CacheCounts(spark.sparkContext)
    run(watch(read(spark, tmp_path / "in"), star, partitions=4, counts=counts), "hub")
    assert counts.hubs() == {"<ex:hub>": 0.6}
    assert "hubs={'<ex:hub>': {'<ex:p> s': 60}}" in caplog.text


BAD = [
    (1, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None),
    (1, 0, 1, "no term", "<ex:p>", "<ex:b>", None),
    (2, 0, 1, "<ex:c>", "<ex:p>", "<ex:d>", None),
]


def test_rejected_rows_are_counted_and_in_the_result_if_asked_for(spark, tmp_path):
    write_batches(tmp_path / "in", [BAD, [(3, 0, 0, *[None] * 4)]])
    changes = read(spark, tmp_path / "in")
    with_rejects = watch(changes, TEXT, rejects=True)
    assert with_rejects.columns == ["query", "time", "tx", "diff", "a", "b", "rejected"]
    out = run(with_rejects, "rejects")
    (bad,) = (row for row in out if row.rejected is not None)
    assert bad.rejected.text == "no term <ex:p> <ex:b>"
    assert bad.rejected.reason.startswith("column s: not an RDF term")
    assert (bad.rejected.time, bad.query, bad.time, bad.a) == (1, None, None, None)
    assert {row.a for row in out if row.rejected is None} == {"<ex:a>", "<ex:c>"}
    named = {"one": TEXT, "two": "SELECT ?rejected { ?rejected <ex:p> <ex:b> }"}
    both = watch(changes, named, rejects=True).unionByName(watch(changes, named, rejects=True))
    query = both.writeStream.trigger(availableNow=True).format("noop").start()
    query.awaitTermination()
    observed = [
        metrics
        for report in query.recentProgress
        for name, metrics in report["observedMetrics"].items()
        if name.startswith("graphtide-")
    ]
    assert sum(metrics["rejected"] for metrics in observed) == 2


def test_the_column_of_rejected_rows_may_be_a_variable(spark):
    text = "SELECT ?rejected { ?rejected <ex:p> <ex:b> }"
    changes = spark.createDataFrame(BAD, SCHEMA)
    assert [row.rejected for row in watch(changes, text).collect()] == ["<ex:a>"]
    with pytest.raises(GraphtideError, match=r"\?rejected cannot be a column"):
        watch(changes, text, rejects=True)
