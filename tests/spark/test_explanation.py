"""explain: how a query is divided, what is copied, the stages, and the plan of a partition."""

from __future__ import annotations

from graphtide.spark import explain

TRIANGLE = "SELECT * { ?a <ex:p> ?b . ?b <ex:p> ?c . ?c <ex:p> ?a }"


def test_a_triangle_is_a_cube_and_each_quad_goes_along_one_edge():
    text = explain(TRIANGLE, partitions=8)
    assert text.startswith(
        "query: 8 of 8 partitions, ?a in 2 parts × ?b in 2 parts × ?c in 2 parts\n"
    )
    assert "a quad is sent to 2.00 partitions on average" in text
    assert "2 of 8 partitions  ?a <ex:p> ?b  by ?a, ?b" in text
    assert "one stage: every row comes out of one partition" in text
    assert "search ?a" in text


def test_one_partition():
    assert explain(TRIANGLE, partitions=1).startswith(
        "query: 1 of 1 partitions, cannot be divided\n"
    )


def test_what_must_be_seen_whole_is_sent_to_all():
    text = explain("SELECT * { ?a <ex:p> ?b OPTIONAL { ?c <ex:q> ?d } }", partitions=4)
    assert "4 of 4 partitions  ?c <ex:q> ?d  to all" in text


def test_hidden_variables_need_a_second_stage():
    text = "SELECT (STR(?c) AS ?n) { ?a <ex:p> ?b . ?b <ex:q> ?c }"
    assert (
        "two stages: the answer does not show ?b, so equal rows of several partitions are added up"
        in (explain(text, partitions=4))
    )
    assert "are added up and counted" in explain(
        text.replace("SELECT", "SELECT DISTINCT"), partitions=4
    )


def test_several_queries_by_name_and_sizes():
    chain = "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d }"
    text = explain({"one": chain, "two": TRIANGLE}, partitions=4, sizes={"<ex:r>": 1000})
    one, two = text.split("\n\n")
    assert one.startswith("one: 4 of 4 partitions, ?c in 4 parts\n")
    assert two.startswith("two: ")


def test_graphs_are_shown():
    text = explain("SELECT * { GRAPH ?g { ?a <ex:p> ?b } }", partitions=2)
    assert "GRAPH ?g { ?a <ex:p> ?b }" in text
