"""The pipeline in Spark itself: batch and streaming, sources and sinks, several queries, restart.

What is exact is shown without Spark, case by case; here it is shown that Spark runs just that.
"""

from __future__ import annotations

from random import Random

import pytest
from pyoxigraph import Literal
from spark.stages.frames import SCHEMA, net_columns, net_maps, read_files, write_files
from spark.stages.shapes import query, stream
from spark.stages.splits import END, in_process

from graphtide.errors import GraphtideError
from graphtide.spark import find_hubs, watch
from graphtide.spark.api import make_job, run_stages
from graphtide.spark.job import JobSpec
from graphtide.spark.stages.consolidate import counted
from graphtide.spark.stages.unpack import unpack_rejected
from graphtide.spark.state.messages import REJECTED_SQL

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

QUERIES = {
    shape: query(shape)
    for shape in ("chain", "optional, nested", "not exists", "hidden", "distinct, hidden", "graph",
                  "no quads", "union, other variables")
}  # fmt: skip
ROWS = stream(4, transactions=12)


@pytest.mark.parametrize("partitions", [1, 2, 4, 8])
def test_batch(spark, partitions):
    changes = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
    out = watch(changes, QUERIES, partitions=partitions)
    assert out.columns == ["query", "time", "tx", "diff", "row"]
    assert net_maps(out.collect(), QUERIES) == in_process(QUERIES, ROWS)


def test_batch_in_the_rete_layout(spark):
    changes = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
    out = watch(changes, {**QUERIES, "count": query("count")}, partitions=4, layout="rete")
    queries = {**QUERIES, "count": query("count")}
    assert net_maps(out.collect(), queries) == in_process(queries, ROWS)


def test_hubs_are_found_and_spread(spark):
    rows = [(1, n, 1, "<ex:hub>", f"<ex:{'pq'[n % 2]}>", f"<ex:{n}>", None) for n in range(40)]
    rows += [(1, n, 1, f"<ex:s{n}>", "<ex:p>", f"<ex:{n}>", None) for n in range(40, 60)]
    changes = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    hubs = find_hubs(changes, partitions=4)
    assert hubs == {"<ex:hub>": {"<ex:p> s": 20, "<ex:q> s": 20}}
    text = "SELECT ?a ?b ?c { ?a <ex:p> ?b . ?a <ex:q> ?c }"
    out = watch(changes, text, partitions=4, hubs=hubs).collect()
    assert len(out) == 400
    assert net_columns(out) == in_process({"query": text}, rows)


def test_batch_with_a_sequence_in_any_order(spark):
    numbered = [(*row, seq) for seq, row in enumerate(ROWS)]
    Random(7).shuffle(numbered)
    changes = spark.createDataFrame(numbered, f"{SCHEMA}, seq long").repartition(3)
    out = watch(changes, query("chain"), partitions=2)
    assert out.columns == ["query", "time", "tx", "diff", "a", "b", "c", "d", "e"]
    assert net_columns(out.collect()) == in_process({"query": query("chain")}, ROWS)


def test_struct_terms(spark):
    term = "struct<kind:string,value:string,datatype:string,language:string>"
    rows = [
        (1, 0, 1, ("uri", "http://e/a", None, None), ("iri", "http://e/p", None, None),
         ("literal", 'x"\\\n\r\ty', None, None)),
        (1, 0, 1, ("bnode", "b0", None, None), ("iri", "http://e/p", None, None),
         ("literal", "1", "http://www.w3.org/2001/XMLSchema#integer", None)),
        (1, 0, 1, ("iri", "http://e/a", None, None), ("iri", "http://e/p", None, None),
         ("literal", "hi", "", "en")),
        (1, 0, 1, ("iri", "http://e/a", None, None), ("iri", "http://e/q", None, None),
         ("literal", "not asked for", None, None)),
        (1, 0, 1, ("nonsense", "http://e/a", None, None), ("iri", "http://e/p", None, None),
         ("iri", "http://e/b", None, None)),
    ]  # fmt: skip
    schema = f"time long, tx long, diff int, s {term}, p {term}, o {term}"
    changes = spark.createDataFrame(rows, schema)
    text = "SELECT ?a ?b { ?a <http://e/p> ?b }"
    found = {tuple(row[4:]) for row in watch(changes, text, partitions=2).collect()}
    assert found == {
        ("<http://e/a>", str(Literal('x"\\\n\r\ty'))),
        ("_:b0", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("<http://e/a>", '"hi"@en'),
    }
    (reject,) = rejected_of(changes, text)
    assert reject.reason == "column s: a subject is an IRI or a blank node"


def rejected_of(changes, text):
    output = run_stages(changes, make_job(changes, {"q": text}, 2))
    return output.mapInArrow(unpack_rejected, REJECTED_SQL).collect()


def test_texts_that_are_no_numbers_and_spelled_iris(spark):
    rows = [
        ("1", "0", "1", "<http://e/a>", "<http://e/p>", "<http://e/b>"),
        ("1", "0", "+1", "<http://e/c>", "<http://e/\\u0070>", "<http://e/d>"),
        ("soon", "0", "1", "<http://e/a>", "<http://e/other>", "<http://e/b>"),
        ("1", "0", "one", "<http://e/a>", "<http://e/p>", "<http://e/b>"),
    ]
    changes = spark.createDataFrame(
        rows, "time string, tx string, diff string, s string, p string, o string"
    )
    text = "SELECT ?a ?b { ?a <http://e/p> ?b }"
    found = {tuple(row[4:]) for row in watch(changes, text, partitions=2).collect()}
    assert found == {("<http://e/a>", "<http://e/b>"), ("<http://e/c>", "<http://e/d>")}
    reasons = sorted((row.reason, row.text) for row in rejected_of(changes, text))
    assert reasons == [
        ("diff is missing or no whole number", "<http://e/a> <http://e/p> <http://e/b>"),
        ("time is missing or no whole number", "<http://e/a> <http://e/other> <http://e/b>"),
    ]


@pytest.mark.parametrize(
    ("schema", "text", "message"),
    [
        (
            "time long, tx long",
            "SELECT ?a { ?a ?p ?o }",
            "the changes have no column diff, s, p, o",
        ),
        (
            SCHEMA.replace("diff int", "diff double"),
            "SELECT ?a { ?a ?p ?o }",
            "column diff is double, not whole numbers",
        ),
        (
            SCHEMA.replace("s string", "s int"),
            "SELECT ?a { ?a ?p ?o }",
            "column s is int, not terms",
        ),
        (f"{SCHEMA}, shard double", "SELECT ?a { ?a ?p ?o }", "column shard is double"),
        (SCHEMA, "SELECT ?time { ?time ?p ?o }", r"\?time cannot be a column beside"),
        (SCHEMA, "SELECT ?a ?A { ?a ?p ?A }", r"\?A cannot be a column beside a"),
        (SCHEMA, {}, "there is no query to watch"),
    ],
)
def test_what_cannot_be_watched_is_said_at_once(spark, schema, text, message):
    with pytest.raises(GraphtideError, match=message):
        watch(spark.createDataFrame([], schema), text, partitions=2)


@pytest.mark.parametrize("layout", [None, "rete"])
def test_streaming_from_files_with_a_restart_in_the_middle(spark, tmp_path, layout):
    half = len(ROWS) // 2
    write_files(tmp_path / "in", ROWS[:half])
    assert counted(JobSpec(tuple(QUERIES.items()), 2)), "both stages shall have state"
    deltas = watch(read_files(spark, tmp_path / "in"), QUERIES, partitions=2, layout=layout)

    def run():
        (
            deltas.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
        return spark.read.parquet(str(tmp_path / "out")).collect()

    first = run()
    assert net_maps(first, QUERIES) != in_process(QUERIES, ROWS)
    write_files(tmp_path / "in", [*ROWS[half:], END], seed=2)
    out = run()
    assert len(out) > len(first)
    assert net_maps(out, QUERIES) == in_process(QUERIES, ROWS)
    keys = [
        (r.query, r.time, r.tx, tuple(sorted(r.row.items())))
        for r in out
        if (r.time, r.tx) != (0, 0)
    ]
    assert len(keys) == len(set(keys))


def test_streaming_to_memory_and_to_foreach_batch(spark, tmp_path):
    write_files(tmp_path / "in", [*ROWS, END])
    deltas = watch(read_files(spark, tmp_path / "in"), query("optional, nested"), partitions=4)
    expected = in_process({"query": query("optional, nested")}, ROWS)
    writer = deltas.writeStream.trigger(availableNow=True)
    writer.format("memory").queryName("deltas").start().awaitTermination()
    assert net_columns(spark.table("deltas").collect()) == expected
    seen = {}
    (
        deltas.writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda frame, number: seen.update({number: frame.collect()}))
        .start()
        .awaitTermination()
    )
    assert len(seen) > 2
    assert net_columns([row for rows in seen.values() for row in rows]) == expected


def test_streaming_from_the_rate_source(spark, tmp_path):
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    iri = "concat('<http://e/n', {}, '>')"
    changes = rate.selectExpr(
        "value div 4 as time", "0L as tx", "if(value % 7 = 6, -1, 1) as diff",
        f"{iri.format('value % 5')} as s", "'<http://e/p>' as p", f"{iri.format('value % 3')} as o",
    )  # fmt: skip
    text = "PREFIX : <http://e/> SELECT ?a ?c { ?a :p ?b . ?b :p ?c }"
    deltas = watch(changes, text, partitions=2)
    running = (
        deltas.writeStream.format("memory").queryName("rates")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )  # fmt: skip
    try:
        while not running.lastProgress or running.lastProgress["batchId"] < 2:
            running.awaitTermination(0.3)
    finally:
        running.stop()
    found = net_columns(spark.table("rates").collect())
    last = max(time for _, time, _, _ in found)
    rows = [
        (v // 4, 0, -1 if v % 7 == 6 else 1, iri_of(v % 5), "<http://e/p>", iri_of(v % 3), None)
        for v in range((last + 1) * 4)
    ]
    assert last >= 5
    assert found == in_process({"query": text}, rows)


def iri_of(number):
    return f"<http://e/n{number}>"
