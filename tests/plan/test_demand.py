"""Demand: paths are followed only from where it matters, and give the same answers."""

from __future__ import annotations

import pytest
from engine.against_reference import PREFIX, check, iri, streams
from hypothesis import given, settings

from graphtide import LiveGraph
from graphtide.lang.sparql.parse import parse_any_query
from graphtide.plan.build import build_plan
from graphtide.plan.physical import Closure, nodes

some = settings(deadline=None, max_examples=20)

NODES = [iri(n) for n in "abcd"]
changes = streams(NODES, [iri(n) for n in "pq"], NODES)
in_graphs = streams(NODES, [iri(n) for n in "pq"], NODES, (None, iri("g"), iri("h")))

BOUND = {
    "join": "SELECT * { :a :q ?x . ?x :p+ ?y }",
    "backwards": "SELECT * { ?x :p* ?y . :a :q ?y }",
    "either end": "SELECT * { :a :q ?x . ?x :p+ ?y . ?y :q :b }",
    "values": "SELECT * { VALUES ?x { :a :n } ?x :p* ?y }",
    "values of two": "SELECT * { VALUES (?x ?y) { (:a :b) (:c :c) } ?x :p* ?y }",
    "bind": "SELECT * { BIND(:a AS ?x) ?x :p* ?y }",
    "filter": "SELECT * { ?x :p+ ?y FILTER(?x = :a) }",
    "filter in": "SELECT * { ?x :p* ?y FILTER(?y IN (:a, :b)) }",
    "sequence": "SELECT * { :a :p/:p* ?y }",
    "sequence of paths": "SELECT * { :a :p*/:q+/:p? ?y }",
    "alternative": "SELECT * { :a :q ?x . ?x (:p+|^:p*) ?y }",
    "sequence inside": "SELECT * { :a (:p+/:q)? ?y }",
    "optional": "SELECT * { :a :q ?x OPTIONAL { ?x :p+ ?y } }",
    "two optionals": "SELECT * { :a :q ?x OPTIONAL { ?x :p+ ?y OPTIONAL { ?y :p* ?z } } }",
    "exists": "SELECT * { :a :q ?x FILTER EXISTS { ?x :p+ :b } }",
    "not exists": "SELECT * { ?x :q ?y FILTER NOT EXISTS { ?x :p+ ?y } }",
    "minus": "SELECT * { :a :q ?x MINUS { ?x :p+ ?y . ?y :q :b } }",
    "union": "SELECT * { :a :q ?x { ?x :p+ ?y } UNION { ?y :p* ?x } }",
    "one path after another": "SELECT * { :a :q ?x . ?x :p+ ?y . ?y :p+ ?z }",
    "in a circle": "SELECT * { ?x :p+ ?y . ?y :q+ ?x . ?x :q :a }",
    "subselect": "SELECT * { :a :q ?x { SELECT DISTINCT ?x ?y { ?x :p+ ?y } } }",
    "groups": "SELECT * { :a :q ?x { SELECT ?x (COUNT(?y) AS ?n) { ?x :p+ ?y } GROUP BY ?x } }",
}
FREE = {
    "all pairs": "SELECT * { ?x :p+ ?y }",
    "a literal may be written otherwise": "SELECT * { ?x :p* ?y FILTER(?y = 1) }",
    "an end that may be unbound": "SELECT * { OPTIONAL { :a :q ?x } ?x :p+ ?y }",
    "a value that is computed": "SELECT * { BIND(IRI('ex:a') AS ?x) ?x :p+ ?y }",
    "a limit of all": "SELECT * { :a :q ?x { SELECT * { ?x :p+ ?y } ORDER BY ?y LIMIT 2 } }",
}


@pytest.mark.parametrize("name", [*BOUND, *FREE])
@pytest.mark.slow
def test_the_same_answers(name):
    @some
    @given(changes)
    def run(stream):
        check({**BOUND, **FREE}[name], stream)

    run()


@some
@given(in_graphs)
def test_the_same_answers_in_graphs(stream):
    check("SELECT * { GRAPH ?g { :a :q ?x . ?x :p* ?y } }", stream)
    check("SELECT * { :a :q ?x GRAPH ?g { ?x :p+ ?y } }", stream)
    check("SELECT * { GRAPH :g { :a :q ?x } ?x :p* ?y }", stream)


def closures(text):
    plan = build_plan(parse_any_query(PREFIX + text), "search")
    return [len(node.inputs) for node in nodes(plan.root) if isinstance(node, Closure)]


@pytest.mark.parametrize("text", BOUND.values(), ids=BOUND)
def test_bound_paths_have_sources(text):
    assert 1 not in closures(text)


@pytest.mark.parametrize("text", FREE.values(), ids=FREE)
def test_others_start_everywhere(text):
    assert 1 in closures(text)


def test_only_reached_nodes_have_state():
    """Ten of a thousand nodes: the pairs that are stored are those of the answer."""
    graph = LiveGraph()
    with graph.transaction() as tx:
        for n in range(1000):
            tx.insert(iri(n), iri("p"), iri(n + 1))
        tx.insert(iri("a"), iri("start"), iri(990))
    query = graph.watch(PREFIX + "SELECT ?y { :a :start ?x . ?x :p+ ?y }")
    assert query.count() == 10
    assert query.cache_size().entries == 1000 + 10 + 1 + 10  # edges, pairs, and both sides joined
    graph.delete(iri(995), iri("p"), iri(996))
    assert query.count() == 5
    graph.delete(iri("a"), iri("start"), iri(990))
    assert query.count() == 0
    assert query.cache_size().entries == 999
