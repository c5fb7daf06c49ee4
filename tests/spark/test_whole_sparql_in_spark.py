"""Groups, paths, ranges, sub-selects, other query forms and datasets: on Spark as in process.

Without Spark, `test_shapes` and `test_random_queries` divide such queries in many more ways.
"""

from __future__ import annotations

from random import Random

import pytest
from spark.stages.frames import SCHEMA, net_columns, net_maps, read_files, write_files
from spark.stages.shapes import stream
from spark.stages.splits import END, in_process

from graphtide.spark import explain, watch

slow = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"

BODIES = {
    "counts": "SELECT ?a (COUNT(?b) AS ?n) { ?a :p ?b } GROUP BY ?a",
    "total": "SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?sum) (MAX(?v) AS ?most) { ?a :v ?v }",
    "average, having": (
        "SELECT ?b (AVG(?v) AS ?mean) (COUNT(DISTINCT ?v) AS ?n) { ?a :p ?b . ?a :v ?v } "
        "GROUP BY ?b HAVING (COUNT(*) > 1)"
    ),
    "one or more": "SELECT ?a ?b { ?a :p+ ?b }",
    "path, joined": "SELECT ?a ?b { ?a :q ?x . ?x (:p|^:r)* ?b }",
    "sequence": "SELECT DISTINCT ?a ?c { ?a :p/:q ?c }",
    "negated set": "SELECT * { ?a !(:p|:r) ?b }",
    "first rows": "SELECT ?a ?b { ?a :p ?b } ORDER BY DESC(?b) ?a LIMIT 3",
    "later rows": "SELECT DISTINCT ?b { ?a :p ?b } ORDER BY ?b OFFSET 1",
    "sub-select, group": (
        "SELECT ?a ?c ?n { ?a :q ?c { SELECT ?a (COUNT(?b) AS ?n) { ?a :p ?b } GROUP BY ?a } }"
    ),
    "sub-select, range": (
        "SELECT ?a ?c { ?a :q ?c { SELECT ?a { ?a :v ?v } ORDER BY DESC(?v) ?a LIMIT 2 } }"
    ),
    "ask": "ASK { ?a :p ?b . ?b :q ?c . ?c :r ?a }",
    "construct": "CONSTRUCT { ?a :near ?c } WHERE { ?a :p ?b . ?b :q ?c }",
    "from": "SELECT ?a ?b FROM :g1 FROM :g2 { ?a :p ?b FILTER NOT EXISTS { ?b :q ?a } }",
    "from named": "SELECT ?g ?a FROM NAMED :g1 { GRAPH ?g { ?a :p ?b OPTIONAL { ?b :q ?c } } }",
}
QUERIES = {name: f"PREFIX : <http://e/> {body}" for name, body in BODIES.items()}


def changes_with_numbers():
    """A stream in which nodes have numbers, too, which are replaced; in the end all is deleted."""
    rng, rows = Random(5), []
    for row in stream(9, transactions=16):
        rows.append(row)
        if rng.random() < 0.3:
            node, number = f"<http://e/n{rng.randrange(3)}>", rng.randrange(5)
            rows.append((*row[:2], 1, node, "<http://e/v>", f'"{number}"{INTEGER}', None))
    quads = sorted({row[3:] for row in rows}, key=str)
    rng.shuffle(quads)
    ends = [(rows[-1][0] + 1 + at // 3, 0, -1, *quad) for at, quad in enumerate(quads)]
    return [*rows, *ends]


ROWS = changes_with_numbers()


def test_every_query_has_rows_that_come_and_go():
    expected = in_process(QUERIES, ROWS)
    for name in QUERIES:
        signs = {count > 0 for (query, *_), count in expected.items() if query == name}
        assert signs == {True, False}, name


class TestInSpark:
    pytestmark = slow

    @pytest.mark.parametrize("partitions", [1, 2, 4, 8])
    def test_bounded(self, spark, partitions):
        changes = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
        out = watch(changes, QUERIES, partitions=partitions).collect()
        assert net_maps(out, QUERIES) == in_process(QUERIES, ROWS)

    @pytest.mark.parametrize("partitions", [1, 2, 4, 8])
    def test_streaming(self, spark, tmp_path, partitions):
        write_files(tmp_path / "in", [*ROWS, END], seed=partitions, sizes=(15, 60))
        deltas = watch(read_files(spark, tmp_path / "in"), QUERIES, partitions=partitions)
        writer = deltas.writeStream.format("memory").queryName(f"whole{partitions}")
        writer.trigger(availableNow=True).start().awaitTermination()
        out = spark.table(f"whole{partitions}").collect()
        assert net_maps(out, QUERIES) == in_process(QUERIES, ROWS)

    def test_a_count_by_hand(self, spark):
        a, b, c = (f"<ex:{name}>" for name in "abc")
        changes = [
            (1, 0, 1, a, "<ex:p>", b, None),
            (2, 0, 1, a, "<ex:p>", c, None),
            (2, 0, 1, c, "<ex:p>", b, None),
            (3, 0, -1, a, "<ex:p>", b, None),
            (3, 0, -1, a, "<ex:p>", c, None),
        ]
        text = "SELECT ?x (COUNT(*) AS ?n) { ?x <ex:p> ?y } GROUP BY ?x"
        frame = spark.createDataFrame(changes, SCHEMA).coalesce(1)
        found = net_columns(watch(frame, text, partitions=4).collect())
        one, two = (f'"{n}"{INTEGER}' for n in (1, 2))
        assert found == {
            ("query", 1, 0, (a, one)): 1,
            ("query", 2, 0, (a, one)): -1,
            ("query", 2, 0, (a, two)): 1,
            ("query", 2, 0, (c, one)): 1,
            ("query", 3, 0, (a, two)): -1,
        }


def first_lines(name, partitions=4):
    return explain(QUERIES[name], partitions).splitlines()


def test_groups_are_divided_by_their_keys():
    assert first_lines("counts")[0] == "query: 4 of 4 partitions, ?a in 4 parts"
    assert "group by ?a: COUNT(?b)" in explain(QUERIES["counts"], 4)
    assert first_lines("average, having")[0] == "query: 4 of 4 partitions, ?b in 4 parts"
    assert first_lines("sub-select, group")[0] == "query: 4 of 4 partitions, ?a in 4 parts"


@pytest.mark.parametrize("name", ["total", "first rows", "later rows", "one or more", "ask"])
def test_what_needs_all_rows_is_in_one_partition(name):
    assert first_lines(name)[0] == "query: 1 of 4 partitions, cannot be divided"


def test_what_a_sub_select_needs_whole_is_sent_to_all():
    text = explain(QUERIES["sub-select, range"], 4)
    assert "4 of 4 partitions  ?a <http://e/v> ?_:v.1  to all" in text
    assert "1 of 4 partitions  ?a <http://e/q> ?c      by ?a" in text


def test_the_edges_of_a_path_are_sent_to_all():
    text = explain(QUERIES["path, joined"].replace("*", "+"), 4)
    assert "4 of 4 partitions  ?.s <http://e/p> ?.o  to all" in text
    assert "4 of 4 partitions  ?.s <http://e/r> ?.o  to all" in text


def test_each_graph_of_a_dataset_is_shown():
    text = explain(QUERIES["from"], 4)
    for graph in ("g1", "g2"):
        assert f"GRAPH <http://e/{graph}> {{ ?a <http://e/p> ?b }}" in text


def test_a_triple_that_two_partitions_construct_is_one():
    text = explain(QUERIES["construct"], 4)
    assert "are added up and counted" in text
    assert "answer ?subject ?predicate ?object" in text
