"""Statistics of a graph, and estimates by the textbook formulas."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.kernel.values import LEAST_HUB
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.choose import depends_on_data
from graphtide.plan.estimate import (
    RDF_TYPE,
    Estimate,
    Estimator,
    PredicateStats,
    Statistics,
    joined,
)
from graphtide.plan.physical import Search, searches
from graphtide.plan.samples import MOST_MET, ValueSample

A, B = Var("a"), Var("b")


def iri(name):
    return NamedNode(f"http://example.org/{name}")


def estimate(text, statistics):
    plan = build_plan(parse_query(f"PREFIX : <http://example.org/> {text}"), "rete")
    return Estimator(statistics)(plan.root)


P_Q = Statistics(
    1300,
    {
        iri("p"): PredicateStats(1000, 100, 50),
        iri("q"): PredicateStats(200, 20, 200),
        RDF_TYPE: PredicateStats(100, 100, 2),
    },
    {iri("C"): 90, iri("D"): 10},
)
ESTIMATES = {
    "?a :p ?b": 1000,
    "?a :p :x": 20,  # 1000 / 50 objects
    ":x :p ?b": 10,  # 1000 / 100 subjects
    ":x :p :y": 0.2,
    "?a a :C": 90,
    "?a a :D": 10,
    "?a a :Unknown": 0,
    "?a :unknown ?b": 0,
    "?a ?any ?b": 1300,
    "?a :p ?a": 10,  # 1000 / max(100, 50)
    "?a :p ?b . ?b :q ?c": 4000,  # 1000 * 200 / max(50, 20)
    "?a :p ?b . ?c :q ?d": 200_000,
    "?a :p ?b . ?a a :C": 900,  # 1000 * 90 / max(100, 90)
    "?a :p ?b FILTER(?a = ?b)": 100,
    "{ ?a :p ?b } UNION { ?a :q ?b }": 1200,
    "?a :p ?b FILTER EXISTS { ?b :q ?c }": 400,  # 20 of 50 values
    "?a :p ?b FILTER NOT EXISTS { ?b :q ?c }": 600,
}


@pytest.mark.parametrize("pattern", ESTIMATES)
def test_expected_rows(pattern):
    found = estimate(f"SELECT * {{ {pattern} }}", P_Q)
    assert found.rows == pytest.approx(ESTIMATES[pattern])


HUB = Statistics(
    2100,
    {
        iri("p"): PredicateStats(1000, 1000, 100, {}, {iri("hub"): 505}),
        iri("q"): PredicateStats(1100, 200, 1100, {iri("hub"): 105}),
    },
)
AT_HUBS = {
    "?a :p :hub": 505,
    "?a :p :x": 5,  # 495 quads of 99 objects
    ":hub :q ?b": 105,
    "?a :p ?b . ?b :q ?c": 505 * 105 + 495 * 995 / 199,
    "?a :p ?b . ?c :p ?b": 505**2 + 495**2 / 99,
    "?a :p ?b . ?c :p ?b . ?d :p ?b": 505**3 + 495**3 / 99**2,
}


@pytest.mark.parametrize("pattern", AT_HUBS)
def test_expected_rows_at_hubs(pattern):
    """The rows of a hub are multiplied with its own partners, those of others with the average."""
    found = estimate(f"SELECT * {{ {pattern} }}", HUB)
    assert found.rows == pytest.approx(AT_HUBS[pattern])


@pytest.mark.parametrize("sampled", [False, True])
@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.data())
def test_a_join_with_a_key_has_the_rows_of_the_other_side(sampled, degrees, data):
    """Each value is in one row on the left: so each row on the right has one partner, a hub's too.

    Any of the values on the right may be known as hubs, also all of them.
    """
    hubs = data.draw(st.sets(st.sampled_from(range(len(degrees)))))
    # The other values are taken to be equally frequent, so the total is all that is known of them.
    values = float(len(degrees))
    sample = {A: ValueSample(frozenset(range(len(degrees))), 0, values)} if sampled else {}
    key = Estimate(values, {A: values}, samples=sample)
    known = {A: {n: float(degrees[n]) for n in hubs}} if hubs else {}
    other = Estimate(float(sum(degrees)), {A: values, B: float(sum(degrees))}, known, sample)
    assert joined(key, other).rows == pytest.approx(sum(degrees))
    assert joined(other, key).rows == pytest.approx(sum(degrees))


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        # 505 rows of the hub with 5 each, and 55 rows of three other values with 5 each
        ({7, 1, 2, 3}, 505 * 5 + 3 * 55 * 5),
        # the hub is on the left only: 55 rows of each of four values with 5 each
        ({4, 1, 2, 3}, 4 * 55 * 5),
    ],
)
def test_a_sample_tells_whether_the_other_input_has_a_hub(there, expected):
    left = Estimate(
        1000.0, {A: 10.0}, {A: {7: 505.0}}, {A: ValueSample(frozenset(range(10)), 0, 10.0)}
    )
    right = Estimate(20.0, {A: 4.0}, samples={A: ValueSample(frozenset(there), 0, 4.0)})
    assert joined(left, right).rows == pytest.approx(expected)
    assert joined(right, left).rows == pytest.approx(expected)


def test_distinct_rows_are_no_more_than_their_values_allow():
    assert estimate("SELECT DISTINCT ?b { ?a :p ?b }", P_Q).rows == 50


estimates = st.builds(
    Estimate,
    st.floats(1, 1e6),
    st.dictionaries(st.sampled_from([A, B, Var("c")]), st.floats(1, 1e4), min_size=1),
)


@given(estimates, estimates, estimates)
def test_the_estimate_of_a_join_does_not_depend_on_its_order(a, b, c):
    for other in (joined(a, joined(b, c)), joined(joined(c, a), b)):
        whole = joined(joined(a, b), c)
        assert other.rows == pytest.approx(whole.rows)
        assert other.values == whole.values


NAMES = ("aaabcdef", "pq", "abcdefghi")  # one subject is a hub more often than not
quads = st.tuples(*(st.sampled_from([iri(n) for n in names]) for names in NAMES))


def is_skewed(degrees):
    """Whether a quad has twice as many partners if values with four quads or more are known."""
    hubs = [n for n in degrees.values() if n >= LEAST_HUB]
    rest = [n for n in degrees.values() if n < LEAST_HUB]
    even = sum(rest) ** 2 / len(rest) if rest else 0
    known = (sum(n * n for n in hubs) + even) / degrees.total()
    return known > 2 * degrees.total() / len(degrees)


def exact_statistics(graph):
    graph._runtime.flush()
    return graph._runtime.queries.plans.statistics(exact=True)


@given(st.lists(st.tuples(st.booleans(), quads), max_size=40))
def test_statistics_are_those_of_the_quads_that_are_there(changes):
    graph = LiveGraph()
    present = set()
    for inserted, quad in changes:
        (graph.insert if inserted else graph.delete)(*quad)
        (present.add if inserted else present.discard)(quad)
    statistics = exact_statistics(graph)
    assert statistics.quads == len(present)
    for predicate in {p for _, p, _ in present}:
        own = [(s, o) for s, p, o in present if p == predicate]
        found = statistics.predicates[predicate]
        subjects, objects = Counter(s for s, _ in own), Counter(o for _, o in own)
        hubs = [
            {statistics.name(t): n for t, n in each.items() if n >= LEAST_HUB and is_skewed(each)}
            for each in (subjects, objects)
        ]
        assert found == PredicateStats(len(own), len(subjects), len(objects), *hubs)


def test_class_sizes():
    graph = LiveGraph()
    for name, kind in (("a", "C"), ("b", "C"), ("c", "D")):
        graph.insert(iri(name), RDF_TYPE, iri(kind))
    graph.delete(iri("a"), RDF_TYPE, iri("C"))
    statistics = exact_statistics(graph)
    assert (statistics.class_size(iri("C")), statistics.class_size(iri("D"))) == (1, 1)


def test_statistics_follow_a_graph_that_grows_and_shrinks():
    graph = LiveGraph()
    for n in range(100):
        graph.insert(iri(f"s{n}"), iri("p"), n)
    assert graph.watch("SELECT * { ?s ?p ?o }").count() == 100  # settles
    assert graph._runtime.queries.plans.statistics().quads == 100
    for n in range(10, 100):
        graph.delete(iri(f"s{n}"), iri("p"), n)
    assert exact_statistics(graph).quads == 10


def test_statistics_are_measured_after_so_many_changes(monkeypatch):
    graph = LiveGraph()
    with graph.transaction() as tx:
        for n in range(1000):
            tx.insert(iri(f"s{n}"), iri("p"), n)
    plans = graph._runtime.queries.plans
    exact_statistics(graph)
    for changes, fresh, measured in ((10, False, False), (1, True, True), (200, False, False)):
        for n in range(changes):  # the number of quads stays
            (graph.delete if n % 2 else graph.insert)(iri("s"), iri("p"), n // 2)
        graph._runtime.flush()
        before = plans.statistics()
        if measured:
            assert plans.statistics(fresh=fresh) is not before
        else:
            assert plans.statistics(fresh=fresh) is before


def test_only_what_a_query_reads_is_measured_until_another_reads_more():
    """`p` has 30 quads, `q` 20 and `r` 10; what is expected of a pattern alone is exact."""
    graph = LiveGraph()
    with graph.transaction() as tx:
        for name, many in (("p", 30), ("q", 20), ("r", 10)):
            for n in range(many):
                tx.insert(iri(f"s{n}"), iri(name), iri(f"o{n}"))
    plans = graph._runtime.queries.plans
    prefix = "PREFIX : <http://example.org/> "
    one = graph.watch(prefix + "SELECT * { ?a :p ?b OPTIONAL { ?a :q ?c } }")
    assert plans.statistics().predicates.keys() == {iri("p"), iri("q")}
    assert plans.statistics().quads == 60
    graph.query(prefix + "SELECT * { ?a :q ?b . ?b :r ?c }")
    assert plans.statistics().predicates.keys() == {iri("p"), iri("q"), iri("r")}
    for n in range(60):  # so that all is out of date
        graph.insert(iri(f"t{n}"), iri("r"), iri("o"))
    graph.query(prefix + "SELECT * { ?a :q ?b . ?b :r ?c }")
    assert plans.statistics().predicates.keys() == {iri("q"), iri("r")}
    expected = one.facts().expected
    rows = sorted(round(n) for node, n in expected.items() if isinstance(node, Search))
    assert rows == [20, 30]


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ("?a :p ?b", False),
        ("?a :p ?b . ?a a :C . ?b a :D FILTER (?b > 1)", False),
        ("?a a :C . ?a a :D", False),
        ("?a ?p :o", False),
        ("?a :p ?b . ?b :q ?c", True),
        ("?a a :C . ?b a :D", True),  # a product
        ("?a :p ?b . :s :q :o", True),
        ("?a :p ?b FILTER NOT EXISTS { ?a :q ?c }", True),
        ("?a :p ?b OPTIONAL { ?b :q ?c }", True),
        ("?a :p+ ?b", True),
        ("GRAPH ?g { }", True),
        ("", True),
    ],
)
def test_one_pattern_and_its_tests_are_planned_without_statistics(text, depends):
    """If a plan does not depend on data, no strategy with memories has another one to offer."""
    query = parse_query(f"PREFIX : <http://example.org/> SELECT * {{ {text} }}")
    assert depends_on_data(query, union=False) is depends
    if not depends:
        assert len(searches(build_plan(query, "search").root)) == 1


def test_what_samples_have_in_common_is_remembered_of_few():
    one = ValueSample(frozenset(range(10)), 0, 10.0)
    others = [ValueSample(frozenset(range(n, n + 10)), 0, 10.0) for n in range(3 * MOST_MET)]
    drawn = [one.meets(other).drawn for other in others]
    assert drawn[:11] == [100.0 / max(10 - n, 0.5) if n < 10 else 200.0 for n in range(11)]
    assert [one.meets(other).drawn for other in others] == drawn
    assert len(one._met) <= MOST_MET
