"""Semijoin reduction: (NOT) EXISTS by joins from the rows in question has the same answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.estimate import PredicateStats, Statistics
from graphtide.plan.patterns import Choices
from graphtide.plan.physical import HashJoin, SemiJoin, Unique, nodes

PREFIX = "PREFIX : <http://example.org/>"
QUERIES = [
    "?a :p ?b FILTER NOT EXISTS { ?a :q ?x . ?x :q ?b }",
    "?a :p ?b FILTER EXISTS { ?a :q ?x . ?b :q ?x }",
    "?a :p ?b . ?b :r ?c FILTER NOT EXISTS { ?b :q ?u . ?v :q ?u . ?v :p ?a }",
    "?a :p ?b FILTER NOT EXISTS { ?a :q ?x . ?x :q ?b . ?b :r ?a } FILTER EXISTS { ?b :r ?y }",
    "?a :p ?b FILTER NOT EXISTS { ?x :q ?y . ?y :r ?x }",  # no variable in common
    "?a :p ?b OPTIONAL { ?b :r ?c } FILTER NOT EXISTS { ?c :q ?x . ?x :q ?a }",  # ?c may be unbound
    "?a :p ?b FILTER(?a = ?b || EXISTS { ?a :q ?x . ?x :r ?b })",
]


def iri(name):
    return NamedNode(f"http://example.org/{name}")


def parsed(pattern):
    return parse_query(f"{PREFIX} SELECT * {{ {pattern} }}")


KNOWN = Statistics(
    2100,
    {
        iri("p"): PredicateStats(100, 50, 50),
        iri("q"): PredicateStats(1000, 50, 50),
        iri("r"): PredicateStats(1000, 500, 500),
    },
)

changes = st.tuples(
    st.booleans(), st.sampled_from("abcd"), st.sampled_from("pqr"), st.sampled_from("abcd")
)


@pytest.mark.parametrize("pattern", QUERIES)
@pytest.mark.parametrize("strategy", ["search", "rete"])
@given(stream=st.lists(changes, min_size=1, max_size=40))
@pytest.mark.slow
def test_deltas_are_those_of_a_search(pattern, strategy, stream):
    """A plan that is swapped in, as re-planning would, while the other one is never changed."""
    graph = LiveGraph()
    search = graph.watch(parsed(pattern), strategy="search")
    reduced = graph.watch(parsed(pattern), strategy="rete")
    registry = graph._runtime.queries
    for at, (insert, s, p, o) in enumerate(stream):
        if at == len(stream) // 3:
            registry._detach(reduced)
            reduced.plan = build_plan(parsed(pattern), Choices(strategy, KNOWN, reduced=True))
            registry._attach(reduced)
        (graph.insert if insert else graph.delete)(iri(s), iri(p), iri(o))
        mine, other = (
            sorted((row.diff, str(row.row)) for row in query.delta()) for query in (reduced, search)
        )
        assert mine == other
    assert reduced.count() == search.count()


def test_columns_are_dropped_early():
    """Of posts with a tag, only the tags are read on: they are counted before the last join."""
    plan = build_plan(parsed(QUERIES[1]), Choices("search", KNOWN, reduced=True))
    (semijoin,) = [node for node in nodes(plan.root) if isinstance(node, SemiJoin)]
    inner = [node for node in nodes(semijoin.right) if isinstance(node, HashJoin)]
    assert len(inner) == 2
    assert any(isinstance(node, Unique) and len(node.schema) == 2 for node in nodes(semijoin.right))


def test_a_pattern_without_common_variables_is_not_reduced():
    plain = build_plan(parsed(QUERIES[4]), Choices("rete", KNOWN))
    assert build_plan(parsed(QUERIES[4]), Choices("rete", KNOWN, reduced=True)).root == plain.root
