"""Observed changes per predicate: they weigh the cost of plans, and plans are looked at again."""

import numpy as np
import pytest
from kernel.batches import needs_jit
from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.engine import queries
from graphtide.engine.evaluate import FIRST_REPLAN, ChangeRates
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.cost import plan_cost
from graphtide.plan.estimate import Estimator, PredicateStats, Statistics
from graphtide.plan.patterns import Choices
from graphtide.plan.physical import HashJoin, Search, nodes
from graphtide.rdf.dictionary import TermDictionary

P, Q, R = (NamedNode(f"ex:{name}") for name in "pqr")
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


def joined_last(rates, *, observed):
    """The predicates of the input that the topmost join of a chain has by itself."""
    sizes = dict.fromkeys((P, Q, R), PredicateStats(1000, 500, 500))
    known = Statistics(3000, sizes, rates=rates)
    query = parse_query("SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d }")
    root = build_plan(query, Choices("rete", known, observed=observed)).root
    top = next(each for each in reversed(nodes(root)) if isinstance(each, HashJoin))
    return {
        side.patterns[0].predicate for side in (top.left, top.right) if isinstance(side, Search)
    }


def test_what_changes_most_is_joined_last():
    """A change of the last input goes through one join, and stores nothing that was joined."""
    assert joined_last({P: 900.0, R: 5.0}, observed=True) == {P}
    assert joined_last({P: 5.0, R: 900.0}, observed=True) == {R}
    assert joined_last({P: 5.0, R: 900.0}, observed=False) == joined_last({}, observed=False)


def test_a_join_order_for_observed_changes_is_considered():
    """`q` fans out on both sides; changes of `p`, of which there are few, should not."""
    graph = LiveGraph()
    with graph.transaction() as tx:
        for i in range(2000):
            tx.insert(f"<ex:b{i % 40}>", "<ex:q>", f"<ex:c{i // 40}>")
        for i in range(40):
            tx.insert(f"<ex:a{i}>", "<ex:p>", f"<ex:b{i}>")
            tx.insert(f"<ex:c{i % 50}>", "<ex:r>", f"<ex:d{i}>")
    query = graph.watch("SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d }")
    name = "rete, for observed changes:"
    assert name not in query.explain(why=True)
    for _ in range(FIRST_REPLAN // 50):
        for i in range(40):
            graph.delete(f"<ex:a{i}>", "<ex:p>", f"<ex:b{i}>")
            graph.insert(f"<ex:a{i}>", "<ex:p>", f"<ex:b{i}>")
    query.replan()
    assert name in query.explain(why=True)


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


@pytest.fixture
def changing(monkeypatch):
    """A query planned for so many quads of `q`, and how to change them: were plans looked at?"""
    monkeypatch.setattr(queries, "LOOK_SHARE", 0)  # nothing depends on the clock
    monkeypatch.setattr(queries, "FIRST_REPLAN", 1000)
    graph = LiveGraph()
    ids = np.array([graph.terms.encode(f"<ex:{n}>") for n in range(900)], np.int32)

    def change(some, predicate, diff):
        before = graph._runtime.queries._looked_at
        few, same = ids[some], np.full(len(ids[some]), graph.terms.encode(predicate), np.int32)
        graph.apply_ids(few, same, ids[few % 7], diff=np.full(len(few), diff, np.int32))
        len(graph)
        return graph._runtime.queries._looked_at != before

    def planned_for(quads):
        change(slice(900), P, 1)
        change(slice(quads), Q, 1)
        graph.watch("SELECT * { ?a <ex:p> ?x ; <ex:q> ?y }")
        return change

    return planned_for


@needs_jit
def test_a_replaced_predicate_is_noticed_before_as_many_changes_as_quads(changing):
    change = changing(300)
    assert not change(slice(290), Q, -1)
    assert not change(slice(290), Q, 1)  # as many changes as quads, but there is time
    assert change(slice(90), P, -1)  # half a period is over
    assert not change(slice(90), P, 1)
    assert not change(slice(560), P, -1)  # another half, in which nothing was replaced
    assert change(slice(560), P, 1)


@needs_jit
def test_a_predicate_that_has_grown_is_noticed_at_once(changing):
    """Planned for 20 quads, the query is looked at when 3 * 20 + 1000 / 16 more have come."""
    change = changing(20)
    assert not change(slice(20, 100), Q, 1)
    assert change(slice(100, 200), Q, 1)


@needs_jit
def test_changes_without_an_effect_are_observed(changing):
    """Quads of `p` whose subjects have none of `q` change no answer."""
    change = changing(300)
    assert not change(slice(300, 850), P, -1)
    assert change(slice(300, 850), P, 1)
