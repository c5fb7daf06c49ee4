"""Aggregates under inserts and deletes: against the reference evaluator, and by hand."""

from __future__ import annotations

from engine.against_reference import PREFIX, check, iri, number, streams, unhurried
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from graphtide import LiveGraph
from graphtide.lang.sparql.parse import parse_any_query

VALUES = [
    number("1"),
    number("2"),
    number("-3"),
    number("0.5", "decimal"),
    number("1.5", "decimal"),
    number("1e0", "double"),
    number("1e300", "double"),
    number("INF", "double"),
    number("NaN", "double"),
    number("2.5", "float"),
    Literal("text"),
    Literal("text", language="en"),
    iri("x"),
]
changes = streams([iri(n) for n in "ab"], [iri(n) for n in "pq"], VALUES)
few = streams([iri(n) for n in "ab"], [iri(n) for n in "pq"], VALUES[:5])

functions = st.sampled_from(("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"))
arguments = st.sampled_from(("?v", "?v + 1", "DISTINCT ?v", "STR(?v)", "DISTINCT STR(?v)", "?none"))
calls = st.one_of(
    st.builds(lambda f, a: f"{f}({a})", functions, arguments),
    st.sampled_from(
        (
            "COUNT(*)",
            "COUNT(DISTINCT *)",
            "GROUP_CONCAT(STR(?v); SEPARATOR='|')",
            "SUM(?v)/COUNT(?v)",
        )
    ),
)
bodies = st.sampled_from(
    (
        "{ ?s :p ?v }",
        "{ ?s ?w ?v }",
        "{ ?s :p ?v OPTIONAL { ?s :q ?w } }",
        "{ { ?s :p ?v } UNION { ?s :q ?v } }",
        "{ ?s :p ?v . ?s :q ?w }",
    )
)


@unhurried
@given(bodies, calls, calls, changes)
def test_with_keys(body, first, second, stream):
    check(f"SELECT ?s ({first} AS ?x) ({second} AS ?y) {body} GROUP BY ?s", stream)


@unhurried
@given(bodies, calls, few)
def test_without_keys_there_is_always_one_group(body, call, stream):
    check(f"SELECT ({call} AS ?x) {body}", stream)


@unhurried
@given(bodies, calls, few)
def test_having(body, call, stream):
    check(f"SELECT ?s {body} GROUP BY ?s HAVING ({call} > 1)", stream)


@unhurried
@given(bodies, few)
def test_keys_may_be_unbound_and_computed(body, stream):
    check(f"SELECT ?w ?k (COUNT(*) AS ?n) {body} GROUP BY ?w (STR(?v) AS ?k)", stream)


@unhurried
@given(calls, few)
def test_in_a_subquery(call, stream):
    inner = f"{{ SELECT ?s ({call} AS ?x) {{ ?s :p ?v }} GROUP BY ?s }}"
    check(f"SELECT * {{ ?s :q ?o {inner} }}", stream)
    check(f"SELECT * {{ ?s :q ?o OPTIONAL {inner} }}", stream)


def watch(graph, text):
    return graph.watch(parse_any_query(PREFIX + text))


def values(watched):
    return [
        tuple(row.row[name].value for name in row.row) for row in watched.delta() if row.diff > 0
    ]


def test_the_extreme_is_exact_after_it_is_deleted():
    graph = LiveGraph()
    watched = watch(graph, "SELECT (MIN(?v) AS ?low) (MAX(?v) AS ?high) { ?s :p ?v }")
    for n in (5, 1, 9, 7):
        graph.insert(iri("a"), iri("p"), n)
    assert values(watched) == []  # 7 is neither
    graph.delete(iri("a"), iri("p"), 9)
    assert values(watched) == [("1", "7")]
    graph.delete(iri("a"), iri("p"), 1)
    assert values(watched) == [("5", "7")]
    graph.insert(iri("a"), iri("p"), -2)
    assert values(watched) == [("-2", "7")]


def test_a_group_that_empties_goes_and_comes_back():
    graph = LiveGraph()
    watched = watch(graph, "SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s")
    graph.insert(iri("a"), iri("p"), 1)
    assert str(watched.delta()).startswith("+ s=<ex:a>")
    graph.delete(iri("a"), iri("p"), 1)
    assert str(watched.delta()).startswith("- s=<ex:a>")
    assert watched.count() == 0
    assert watched.cache_size().entries == 0
    graph.insert(iri("a"), iri("p"), 2)
    assert values(watched) == [("ex:a", "1")]


def test_a_sum_that_loses_its_largest_number_is_exact():
    """Floating-point sums forget small numbers beside large ones; ours do not."""
    graph = LiveGraph()
    watched = watch(graph, "SELECT (SUM(?v) AS ?x) { ?s :p ?v }")
    for text in ("1e100", "1e0"):
        graph.insert(iri("a"), iri("p"), number(text, "double"))
    graph.delete(iri("a"), iri("p"), number("1e100", "double"))
    assert watched.table(terms=True)["x"].to_pylist() == [
        '"1"^^<http://www.w3.org/2001/XMLSchema#double>'
    ]


def test_a_change_within_a_group_that_does_not_change_its_row_is_no_change():
    graph = LiveGraph()
    watched = watch(graph, "SELECT (MAX(?v) AS ?x) { ?s :p ?v }")
    graph.insert(iri("a"), iri("p"), 5)
    graph.insert(iri("b"), iri("p"), 3)
    assert len(watched.delta()) == 0
