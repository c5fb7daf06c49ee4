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
from graphtide.plan.physical import Search, SemiJoin, Unique, nodes

PREFIX = "PREFIX : <http://example.org/>"
QUERIES = [
    "?a :p ?b FILTER NOT EXISTS { ?a :q ?x . ?x :q ?b }",
    "?a :p ?b FILTER EXISTS { ?a :q ?x . ?b :q ?x }",
    "?a :p ?b . ?b :r ?c FILTER NOT EXISTS { ?b :q ?u . ?v :q ?u . ?v :p ?a }",
    "?a :p ?b FILTER NOT EXISTS { ?a :q ?x . ?x :q ?b . ?b :r ?a } FILTER EXISTS { ?b :r ?y }",
    "?a :p ?b FILTER NOT EXISTS { ?x :q ?y . ?y :r ?x }",  # no variable in common
    "?a :p ?b OPTIONAL { ?b :r ?c } FILTER NOT EXISTS { ?c :q ?x . ?x :q ?a }",  # ?c may be unbound
    "?a :p ?b FILTER(?a = ?b || EXISTS { ?a :q ?x . ?x :r ?b })",
    "?a :p ?b . ?b :r ?c . ?b a :C FILTER NOT EXISTS { ?b :q ?u . ?v :q ?u . ?v :p ?c }",
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
@pytest.mark.parametrize(
    ("strategy", "pushed"), [("search", 0), ("search", 1), ("rete", 0), ("rete", 1)]
)
@given(stream=st.lists(changes, min_size=1, max_size=40))
@pytest.mark.slow
def test_deltas_are_those_of_a_search(pattern, strategy, pushed, stream):
    """A plan that is swapped in, as re-planning would, while the other one is never changed."""
    graph = LiveGraph()
    search = graph.watch(parsed(pattern), strategy="search")
    reduced = graph.watch(parsed(pattern), strategy="rete")
    registry = graph._runtime.queries
    for at, (insert, s, p, o) in enumerate(stream):
        if at == len(stream) // 3:
            registry._detach(reduced)
            choices = Choices(strategy, KNOWN, reduced=True, pushed=bool(pushed))
            reduced.plan = build_plan(parsed(pattern), choices)
            registry._attach(reduced)
        (graph.insert if insert else graph.delete)(iri(s), iri(p), iri(o))
        mine, other = (
            sorted((row.diff, str(row.row)) for row in query.delta()) for query in (reduced, search)
        )
        assert mine == other
    assert reduced.count() == search.count()


def test_an_input_is_filtered_before_it_is_joined():
    """`:p` has all variables of the check, so `:r` is joined with the rows that are left."""
    plan = build_plan(parsed(QUERIES[2]), Choices("rete", KNOWN, reduced=True, pushed=True))
    (semijoin,) = [node for node in nodes(plan.root) if isinstance(node, SemiJoin)]
    assert isinstance(semijoin.left, Search)
    assert [p.predicate for p in semijoin.left.patterns] == [iri("p")]


@pytest.mark.parametrize(("asked", "pays"), [(1000, True), (10, False)])
def test_equal_pairs_are_counted_once_where_that_pays(asked, pays):
    """Of 100 pairs of a creator and a label 63 are expected to differ.

    1000 rows in question meet 10,000 of the pairs, or 6,300 different ones; 10 rows meet too few.
    """
    known = Statistics(
        3000,
        {
            iri("asked"): PredicateStats(asked, min(asked, 10), min(asked, 100)),
            iri("tag"): PredicateStats(1000, 100, 10),
            iri("label"): PredicateStats(100, 100, 10),
            iri("creator"): PredicateStats(100, 100, 10),
        },
    )
    text = "?a :asked ?p FILTER NOT EXISTS { ?p :tag ?u . ?q :label ?u . ?q :creator ?a }"
    plan = build_plan(parsed(text), Choices("rete", known, reduced=True))
    found = [node for node in nodes(plan.root) if isinstance(node, Unique)]
    assert ({"a", "u"} in [{v.name for v in node.schema} for node in found]) == pays


def test_a_pattern_without_common_variables_is_not_reduced():
    plain = build_plan(parsed(QUERIES[4]), Choices("rete", KNOWN))
    assert build_plan(parsed(QUERIES[4]), Choices("rete", KNOWN, reduced=True)).root == plain.root
