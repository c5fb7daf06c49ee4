"""Observed changes per predicate: they weigh the cost of plans, and plans are looked at again."""

import numpy as np
from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.engine import queries
from graphtide.engine.evaluate import FIRST_REPLAN, ChangeRates
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.cost import plan_cost
from graphtide.plan.estimate import Estimator, PredicateStats, Statistics
from graphtide.plan.patterns import Choices
from graphtide.rdf.dictionary import TermDictionary

P, Q = NamedNode("ex:p"), NamedNode("ex:q")
SIZES = {P: PredicateStats(1000, 1000, 10), Q: PredicateStats(1000, 10, 1000)}


def cost(rates):
    statistics = Statistics(2000, SIZES, rates=rates)
    # A changed ex:p meets 100 quads of ex:q, a changed ex:q as many of ex:p: make one cheap.
    query = parse_query("SELECT * { ?a <ex:p> ?b . ?b <ex:q> <ex:c> }")
    plan = build_plan(query, Choices("search", statistics))
    return plan_cost(plan.root, Estimator(statistics)).change


def test_what_changes_often_counts_more():
    often_cheap, often_dear = cost({P: 9000.0, Q: 1.0}), cost({P: 1.0, Q: 9000.0})
    assert often_cheap < cost({}) < often_dear


def test_a_plan_is_looked_at_again_if_other_predicates_change():
    planned, same, other = (
        Statistics(2000, SIZES, rates=rates)
        for rates in ({}, {P: 60.0, Q: 40.0}, {P: 90.0, Q: 5.0})
    )
    assert not same.differ(planned, [P, Q])
    assert other.differ(planned, [P, Q])
    assert not other.differ(planned, [P])


def test_samples_stand_for_all_changes_since_the_last_one():
    terms, rates = TermDictionary(), ChangeRates()
    p, q = terms.intern(P), terms.intern(Q)
    changes = np.array([[0, 1, 1, p, 1, 0], [0, 1, 2, p, 2, 0], [0, -1, 1, q, 1, 0]], np.int32)
    rates.sample(changes, 30)
    assert rates.of([P, Q], terms) == {}  # too few to say
    rates.sample(changes[:1], FIRST_REPLAN)
    assert rates.of([P, Q], terms) == {P: 20 + FIRST_REPLAN - 30, Q: 10}
    rates.fade()
    assert rates.of([P], terms) == {P: (FIRST_REPLAN - 10) / 2}


def test_stats_have_the_cost_of_planning_again():
    graph = LiveGraph()
    query = graph.watch("SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?x . ?b <ex:p> ?x }")
    assert graph.stats().replans == 0
    assert graph.stats().replan_seconds == 0
    with graph.transaction() as tx:
        for i in range(1500):
            tx.insert(f"<ex:s{i}>", "<ex:p>", f"<ex:o{i % 5}>")
    assert query.replan()
    assert query.strategy == "counting"
    assert graph.stats().replans == 1
    assert graph.stats().replan_seconds > 0
    assert not query.replan()
    assert graph.stats().replans == 1


def test_a_replaced_predicate_is_noticed_before_as_many_changes_as_quads(monkeypatch):
    monkeypatch.setattr(queries, "LOOK_SHARE", 0)  # nothing depends on the clock
    graph = LiveGraph()
    ids = np.array([graph.terms.intern(f"<ex:{n}>") for n in range(9000)], np.int32)
    p, q = (graph.terms.intern(each) for each in (P, Q))

    def apply(count, predicate, diff):
        few, same = ids[:count], np.full(count, predicate, np.int32)
        graph.apply_ids(few, same, ids[few % 7], diff=np.full(count, diff, np.int32))
        len(graph)

    apply(9000, p, 1)
    apply(3000, q, 1)
    graph.watch("SELECT * { ?a <ex:p> ?x ; <ex:q> ?y }", name="all")
    registry = graph._runtime.queries

    def is_looked_at(count, predicate, diff):
        before = registry._looked_at
        apply(count, predicate, diff)
        return registry._looked_at != before

    assert not is_looked_at(2900, q, -1)
    assert not is_looked_at(2900, q, 1)  # as many changes as quads, but there is time
    assert is_looked_at(900, p, -1)  # half a period is over
    assert not is_looked_at(900, p, 1)
    assert not is_looked_at(5600, p, -1)  # another half, in which nothing was replaced
    assert is_looked_at(5600, p, 1)
