"""Counting: aggregates over acyclic joins against the reference evaluator, pyoxigraph, by hand."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from engine.against_reference import PREFIX, check, iri, number, streams, total, unhurried
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, Quad, QueryBoolean, Store

from graphtide import LiveGraph
from graphtide.errors import UnsupportedError
from graphtide.kernel import JIT
from graphtide.plan import choose
from graphtide.plan.build import _Builder
from graphtide.plan.counting import ROOT

NODES = [iri(n) for n in "abcd"]
NUMBERS = [
    number("1"),
    number("2"),
    number("-3"),
    number("0.5", "decimal"),
    number("-0.125", "decimal"),
    number("1e300", "double"),
    number("0.1", "double"),
    number("INF", "double"),
    number("NaN", "double"),
    number("2.5", "float"),
    iri("x"),
]
edges = streams(NODES, [iri(p) for p in "pq"], NODES, (None, iri("g"), iri("h")))
valued = streams(NODES[:2], [iri(p) for p in "pv"], NODES[:2] + NUMBERS)

BODIES = (
    "?a :p ?x . ?b :p ?x",
    "?a :p ?b . ?b :q ?c",
    "?a :p ?b . ?b :q ?c . ?c :p ?d",
    "?a :p ?b . ?a :q ?c . ?a :p ?d",
    "?a :p ?b . ?c :q ?d",
    "?a :p ?b . :a :q :b",
    "?a :p ?a . ?a ?w ?b . ?b :q ?c",
    "?a :p ?b . VALUES (?b ?n) { (:a 1) (:b 2) (:a 1) }",
    "?a :p+ ?b . ?b :q ?c",
    "?a :p ?b . GRAPH ?g { ?b :q ?c }",
    "GRAPH ?g { ?a :p ?b . ?b :q ?c } ?c :p ?d",
    "?a :p ?b . ?b :q ?c FILTER (?a != :b && ?c != ?b)",
)


def check_counts(text, stream):
    """Counting gives the reference's answers, unless it is refused for the groups of the query."""
    try:
        check(text, stream, ("search", "counting"))
    except UnsupportedError as refused:
        assert re.search("close a cycle|every variable", str(refused))  # noqa: PT017


CALLS = (
    "(MIN(?b) AS ?x)",
    "(MAX(?b) AS ?x)",
    "(COUNT(DISTINCT ?b) AS ?x)",
    "(MAX(?b) AS ?x) (COUNT(DISTINCT ?b) AS ?y) (COUNT(*) AS ?n)",
)


@unhurried
@given(st.sampled_from(BODIES), st.sampled_from(("", "?a", "?b")), st.sampled_from(CALLS), edges)
def test_extremes_and_different_values(body, keys, calls, stream):
    """From the different values of each group; counts of rows come from elsewhere."""
    groups = f" GROUP BY {keys}" if keys else ""
    check_counts(f"SELECT {keys} {calls} {{ {body} }}{groups}", stream)


@unhurried
@given(st.sampled_from(("", "?a")), st.sampled_from(("MIN", "MAX", "SUM")), valued)
def test_extremes_of_every_type_of_value(keys, function, stream):
    groups = f" GROUP BY {keys}" if keys else ""
    distinct = "DISTINCT " * (function == "SUM")
    calls = f"({function}({distinct}?w) AS ?x) (AVG(?w) AS ?y)"
    check_counts(f"SELECT {keys} {calls} {{ ?a :p ?b . ?a :v ?w }}{groups}", stream)


@unhurried
@given(st.sampled_from(BODIES), st.sampled_from(("", "?a", "?b", "?a ?b")), edges)
def test_counts(body, keys, stream):
    by = f"GROUP BY {keys}" if keys else ""
    check_counts(f"SELECT {keys} (COUNT(*) AS ?n) (COUNT(?b) AS ?m) {{ {body} }} {by}", stream)


@unhurried
@given(
    st.sampled_from(BODIES),
    st.sampled_from(("(COUNT(*) AS ?n)", "(COUNT(?b) AS ?n) (SUM(?b) AS ?m)", "(MAX(?b) AS ?n)")),
    st.integers(0, 3),
    edges,
)
def test_every_input_may_be_the_root_of_the_join_tree(body, calls, root, stream):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Builder, "_cost_of_tree", lambda _, node: (*node.parents[root:], ROOT))
        patch.setattr(choose, "_plan_for_empty", choose._plan_for_empty.__wrapped__)
        check_counts(f"SELECT {calls} {{ {body} }}", stream)


@unhurried
@given(st.sampled_from(BODIES), st.sampled_from(("?a", "?b", "?a ?b")), edges)
def test_distinct(body, columns, stream):
    check_counts(f"SELECT DISTINCT {columns} {{ {body} }}", stream)


@unhurried
@given(st.sampled_from(BODIES), edges)
def test_not_exists(body, stream):
    check_counts(f"SELECT * {{ ?a :q ?z FILTER NOT EXISTS {{ {body} }} }}", stream)


@unhurried
@given(
    st.sampled_from(("?s :p ?t . ?t :v ?v", "?s :v ?v . ?s :p ?t . ?r :p ?s")),
    st.sampled_from(("", "?s", "?t", "?s ?t")),
    st.sampled_from(("?v", "?v * 2", "?none", "STRLEN(?v)")),
    valued,
)
def test_sums_of_every_type_of_number(body, keys, value, stream):
    columns = f"(SUM({value}) AS ?sum) (AVG({value}) AS ?mean) (COUNT({value}) AS ?n)"
    by = f"GROUP BY {keys}" if keys else ""
    check_counts(f"SELECT {keys} {columns} {{ {body} }} {by}", stream)


@unhurried
@given(edges)
def test_groups_of_groups(stream):
    inner = "SELECT ?b (COUNT(*) AS ?n) { ?a :p ?b . ?b :q ?c } GROUP BY ?b HAVING (COUNT(*) > 1)"
    check_counts(f"SELECT * {{ ?b :p ?d {{ {inner} }} }}", stream)
    check_counts(f"SELECT (SUM(?n) AS ?all) (COUNT(*) AS ?groups) {{ {{ {inner} }} }}", stream)


@st.composite
def acyclic_queries(draw):
    """A tree of patterns, counted by some of their variables."""
    variables, patterns = ["?v0"], []
    for _ in range(draw(st.integers(2, 4))):
        ends = [draw(st.sampled_from(variables)), f"?v{len(variables)}"]
        variables.append(ends[1])
        s, o = draw(st.permutations(ends))
        text = f"{s} {draw(st.sampled_from((':p', ':q')))} {o} ."
        patterns.append(draw(st.sampled_from((text, text, f"GRAPH :g {{ {text} }}"))))
    keys = " ".join(draw(st.lists(st.sampled_from(variables), max_size=2, unique=True)))
    body = " ".join(patterns)
    by = f"GROUP BY {keys}" if keys else ""
    kind = draw(st.sampled_from(("count", "distinct", "sum", "ask")))
    if kind == "distinct" and keys:
        return f"SELECT DISTINCT {keys} {{ {body} }}"
    if kind == "ask":
        return f"ASK {{ {body} }}"
    if kind == "sum":
        last = variables[-1]
        return f"SELECT {keys} (SUM(STRLEN(STR({last}))) AS ?n) {{ {body} }} {by}"
    return f"SELECT {keys} (COUNT(*) AS ?n) {{ {body} }} {by}"


@settings(deadline=None, max_examples=100 if JIT else 30)
@given(acyclic_queries(), edges)
def test_random_acyclic_queries_on_pyoxigraph(text, stream):
    graph, store = LiveGraph(), Store()
    try:
        query = graph.watch(PREFIX + text, strategy="counting")
    except UnsupportedError as refused:
        assume(False)
        raise AssertionError from refused
    answer = total(query.delta())
    for body in stream:
        with graph.transaction() as tx:
            for diff, (s, p, o, g) in body:
                (tx.insert if diff > 0 else tx.delete)(s, p, o, g)
                quad = Quad(s, p, o, g or DefaultGraph())
                (store.add if diff > 0 else store.remove)(quad)
        answer.update(total(query.delta()))
        assert +answer == asked(store, PREFIX + text)
        assert not -answer


def asked(store, text):
    """The answer of pyoxigraph; of ASK, as one row."""
    found = store.query(text)
    if isinstance(found, QueryBoolean):
        return Counter([(Literal(bool(found)),)])
    names = [v.value for v in found.variables]
    return Counter(tuple(row[name] for name in names) for row in found)


def loaded(quads, **options):
    graph = LiveGraph()
    query = graph.watch(PREFIX + "SELECT (COUNT(*) AS ?n) { ?a :p ?x . ?b :p ?x }", **options)
    with graph.transaction() as tx:
        for s, o in quads:
            tx.insert(iri(f"s{s}"), iri("p"), iri(f"o{o}"))
    return graph, query


def test_counts_beyond_64_bits_are_exact():
    graph = LiveGraph()
    body = " . ".join(f"?s{i} :p ?x" for i in range(12))
    query = graph.watch(f"{PREFIX}SELECT (COUNT(*) AS ?n) {{ {body} }}", strategy="counting")
    with graph.transaction() as tx:
        for i in range(1000):
            tx.insert(iri(f"s{i}"), iri("p"), iri("o"))
    ((term,),) = +total(query.rows())
    assert int(term.value) == 1000**12
    graph.delete(iri("s0"), iri("p"), iri("o"))
    ((term,),) = +total(query.rows())
    assert int(term.value) == 999**12


def test_what_is_stored_is_a_count_per_key_and_not_the_pairs():
    _, query = loaded(((s, s % 5) for s in range(500)), strategy="counting")
    assert query.count() == 1
    entries = sum(sum(held.values()) for held in query.facts().sizes.values())
    assert entries < 25


@pytest.mark.slow
def test_a_query_is_planned_again_to_count_and_goes_on():
    graph, query = loaded((s, s % 40) for s in range(11_000))
    graph.insert(iri("s0"), iri("p"), iri("o7"))
    graph.insert(iri("s0"), iri("p"), iri("o8"))
    assert query.count() == 1
    assert query.strategy == "counting"
    fan = [275 + (o in (7, 8)) for o in range(40)]
    ((term,),) = +total(query.rows())
    assert int(term.value) == sum(n * n for n in fan)
    graph.delete(iri("s0"), iri("p"), iri("o0"))
    ((term,),) = +total(query.rows())
    assert int(term.value) == sum(n * n for n in fan) - 275**2 + 274**2
