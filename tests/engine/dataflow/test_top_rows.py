"""ORDER BY with LIMIT and OFFSET: deltas of the visible rows, against the reference and by hand."""

from __future__ import annotations

import pytest
from engine.against_reference import PREFIX, check, iri, number, streams, unhurried
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Bgp, Slice
from graphtide.engine.dataflow.top_rows import TopRows
from graphtide.kernel.batch import make_batch
from graphtide.lang.sparql.parse import parse_any_query
from graphtide.plan import make
from graphtide.plan.physical import Constant
from graphtide.rdf.dictionary import TermDictionary

VALUES = [number("1"), number("2"), number("10"), number("1.0", "decimal"), Literal("b"), iri("x")]
changes = streams([iri(n) for n in "abc"], [iri(n) for n in "pq"], VALUES)

orders = st.sampled_from(
    (
        "",
        "ORDER BY ?v",
        "ORDER BY DESC(?v)",
        "ORDER BY ?w DESC(?v)",
        "ORDER BY STR(?v) ?s",
        "ORDER BY ?o",
    )
)
limits = st.sampled_from(
    ("LIMIT 1", "LIMIT 2", "LIMIT 0", "OFFSET 1", "LIMIT 2 OFFSET 1", "OFFSET 3")
)
selects = st.sampled_from(("?s ?v", "?s", "?v", "DISTINCT ?s", "DISTINCT ?v ?s", "?v ?w", "*"))
bodies = st.sampled_from(("?s :p ?v", "?s :p ?v OPTIONAL { ?s :q ?w }", "?s ?w ?v"))


@unhurried
@given(selects, bodies, orders, limits, changes)
def test_any_range_of_any_order(select, body, order, limit, stream):
    check(f"SELECT {select} {{ {body} }} {order} {limit}", stream)


@unhurried
@given(orders, limits, changes)
def test_in_a_subquery(order, limit, stream):
    inner = f"{{ SELECT ?s ?v {{ ?s :p ?v }} {order} {limit} }}"
    check(f"SELECT * {{ {inner} ?s :q ?w }}", stream)


@unhurried
@given(changes)
def test_of_groups(stream):
    check("SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?v } GROUP BY ?s ORDER BY DESC(?n) LIMIT 2", stream)


@pytest.fixture
def graph():
    graph = LiveGraph()
    for n in (10, 20, 30, 40):
        graph.insert(iri(f"s{n}"), iri("p"), n)
    return graph


def best_two(graph):
    text = "SELECT ?v { ?s :p ?v } ORDER BY DESC(?v) LIMIT 2"
    return graph.watch(parse_any_query(PREFIX + text))


def signed(watch):
    return sorted((row.diff, int(row.row["v"].value)) for row in watch.delta())


def test_a_deletion_inside_the_range_brings_in_the_next_row(graph):
    watch = best_two(graph)
    graph.delete(iri("s40"), iri("p"), 40)
    assert signed(watch) == [(-1, 40), (1, 20)]


def test_an_insertion_inside_the_range_pushes_the_last_row_out(graph):
    watch = best_two(graph)
    graph.insert(iri("s50"), iri("p"), 50)
    assert signed(watch) == [(-1, 30), (1, 50)]


def test_a_change_outside_the_range_is_none(graph):
    watch = best_two(graph)
    graph.insert(iri("s15"), iri("p"), 15)
    graph.delete(iri("s10"), iri("p"), 10)
    assert signed(watch) == []


def test_rows_that_go_before_they_come():
    # Within a transaction a join may take a row back before it passes it on.
    node = make.top(
        Constant((), (Var("v"),), frozenset()), Slice(Bgp(()), (Var("v"),), (), limit=1)
    )
    terms = TermDictionary()
    one, two = (terms.encode(number(text)) for text in "12")
    rows = TopRows(node, terms)
    rows.step(make_batch([(0, 1, two)], 1))
    assert rows.step(make_batch([(1, -1, one), (1, 1, one)], 1)).tolist() == []
    assert rows.in_order() == [(two,)]


@unhurried
@given(changes)
def test_nothing_of_a_range_of_nothing(stream):
    inner = "{ SELECT ?s ?v { ?s :p ?v } ORDER BY ?v LIMIT 0 OFFSET 1 }"
    check(f"SELECT * {{ {inner} ?s :q ?w }} ORDER BY ?w LIMIT 2", stream)
