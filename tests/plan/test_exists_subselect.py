"""Sub-SELECTs inside EXISTS: evaluated once, or for each outer row where that differs."""

from __future__ import annotations

import pytest
from engine.against_reference import PREFIX, check, iri, streams, unhurried
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sampling import quick_sample

from graphtide import LiveGraph

NODES = [iri(name) for name in "abc"]
changes = streams(NODES, [iri(name) for name in "pqr"], NODES, (None, None, iri("g")))

MAINTAINED = {
    "projection": "SELECT ?x { ?x :q ?z }",
    "projection of the rest": "SELECT ?z { ?x :q ?z }",
    "distinct": "SELECT DISTINCT ?x ?z { ?x :q ?z }",
    "group by what is shared": "SELECT ?x { ?x :q ?z } GROUP BY ?x HAVING(COUNT(*) > 1)",
    "group by what may be shared": "SELECT ?z (COUNT(*) AS ?n) { ?w :q ?z } GROUP BY ?z",
    "group of all": "SELECT (COUNT(*) AS ?n) { ?w :q ?z } HAVING(COUNT(*) > 1)",
    "a count that is compared": "SELECT ?x (COUNT(*) AS ?n) { ?x :q ?z } GROUP BY ?x",
    "range of its own": "SELECT ?u { ?w :q ?u } ORDER BY ?u LIMIT 1 OFFSET 1",
    "optional": "SELECT ?x { ?w :q ?z OPTIONAL { ?z :r ?x } }",
}
PER_ROW = {
    "range of what is shared": "SELECT ?x { ?x :q ?z } ORDER BY ?z LIMIT 1 OFFSET 1",
    "range with what it skips": "SELECT ?x ?z { ?x :q ?z } ORDER BY DESC(?z) OFFSET 1",
    "no rows": "SELECT * { ?x :q ?z { SELECT ?x { ?x :r ?u } } } LIMIT 0",
    "range over a union": "SELECT ?x ?z { { ?x :q ?z } UNION { ?z :r ?w } } ORDER BY ?x ?z LIMIT 1",
    "range over an optional": "SELECT ?y { ?w :q ?z OPTIONAL { ?z :r ?y } } ORDER BY ?y OFFSET 1",
    "range of distinct rows": "SELECT DISTINCT ?x { ?x :q ?z . ?z :r ?w } OFFSET 1",
    "copies before distinct rows": (
        "SELECT ?x { ?x :q ?w { SELECT DISTINCT ?x { ?x :r ?u } } } OFFSET 1"
    ),
    "range that is joined": "SELECT ?x ?z { ?x :q ?z } ORDER BY ?z LIMIT 1 } { ?z :r ?w",
    "range in a range": "SELECT ?x { ?x :q ?z { SELECT ?x { ?x :r ?u } LIMIT 1 } } OFFSET 1",
    "group over an optional": "SELECT ?x { ?w :q ?z OPTIONAL { ?z :r ?x } } GROUP BY ?x",
    "group by what is not shared": (
        "SELECT ?u { ?u :q ?v FILTER EXISTS { SELECT ?v { ?v :r ?s } LIMIT 1 } }"
        " GROUP BY ?u HAVING(COUNT(*) > 1)"
    ),
    "group of an outer value": "SELECT (COUNT(*) AS ?y) { ?w :q ?z FILTER(BOUND(?y)) }",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", quick_sample({**MAINTAINED, **PER_ROW}, 3))
@pytest.mark.parametrize("negation", ["", "NOT "])
def test_maintained(name, negation):
    inner = {**MAINTAINED, **PER_ROW}[name]

    @settings(unhurried, max_examples=40)
    @given(st.sampled_from(("?x :p ?y", "?x :p ?y OPTIONAL { ?y :r ?z }")), changes)
    def against_the_reference(outer, stream):
        check(f"SELECT * {{ {outer} FILTER {negation}EXISTS {{ {{ {inner} }} }} }}", stream)

    against_the_reference()


@unhurried
@given(changes)
def test_a_range_in_each_graph(stream):
    inner = "{ SELECT ?z { ?w :q ?z } ORDER BY ?z LIMIT 1 }"
    check(f"SELECT * {{ GRAPH ?g {{ ?x :p ?y FILTER EXISTS {{ {inner} }} }} }}", stream)


def test_the_first_of_each_outer_row():
    graph = LiveGraph()
    first = graph.watch(
        f"""{PREFIX} SELECT ?x ?y {{ ?x :p ?y
            FILTER EXISTS {{ ?y :q ?z {{ SELECT ?x ?z {{ ?x :r ?z }} ORDER BY ?z LIMIT 1 }} }} }}"""
    )
    with graph.transaction() as tx:
        tx.insert(iri("a"), iri("p"), iri("b"))
        tx.insert(iri("c"), iri("p"), iri("b"))
        tx.insert(iri("b"), iri("q"), iri("m"))
        tx.insert(iri("a"), iri("r"), iri("m"))
        tx.insert(iri("a"), iri("r"), iri("n"))
        tx.insert(iri("c"), iri("r"), iri("k"))
        tx.insert(iri("c"), iri("r"), iri("m"))
    assert [row.row["x"] for row in first.delta()] == [iri("a")]  # the first of c is k
    graph.delete(iri("c"), iri("r"), iri("k"))
    assert [(row.row["x"], row.diff) for row in first.delta()] == [(iri("c"), 1)]
    graph.insert(iri("a"), iri("r"), iri("b"))
    assert [(row.row["x"], row.diff) for row in first.delta()] == [(iri("a"), -1)]
