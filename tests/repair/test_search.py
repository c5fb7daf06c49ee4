"""The search for repair plans, against brute force with pyoxigraph."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repair.oracle import brute_force
from repair.worlds import graphs, hard, hopeless, journey, live_graph, maps, quads_of, soft
from support.programs import find_repairs
from support.sampling import slow

from graphtide.repair.state import updated_fingerprint

EXHAUSTIVE = ["bfs", "dfs", "best-first"]
ALL = [*EXHAUSTIVE, "hill-climbing", "random-restarts"]
EVERYTHING = {"max_seconds": 600, "max_states": 10**9, "max_plans": 10**6}
some = settings(deadline=None, max_examples=40)


@some
@given(graphs)
def test_the_shortest_plan_is_as_short_as_brute_force_finds(triples):
    world, graph = hard(), live_graph(triples)
    expected = brute_force(world, quads_of(graph), 3)
    found = find_repairs(graph, world.program, strategy="bfs", max_steps=3, **EVERYTHING)
    assert found.complete
    assert found.states == len(expected.states)
    assert (len(found[0].steps) if found else None) == expected.steps


@some
@given(graphs)
def test_every_plan_leads_where_it_says(triples):
    world, graph = hard(), live_graph(triples)
    for plan in find_repairs(graph, world.program, strategy="bfs", max_steps=3, **EVERYTHING)[:20]:
        fresh = live_graph(triples)
        watches = {name: fresh.watch(f"PREFIX : <http://example.org/>\n{text}")
                   for name, text in world.queries.items()}  # fmt: skip
        before = fresh.stats().transactions
        assert fresh.repair(plan) == len(plan.changes)
        quads = quads_of(fresh)
        assert world.violations(quads) == 0
        assert plan.counts == {n: len(world.rows(quads, g.query)) for n, g in world.goals.items()}
        assert fresh.stats().transactions == before + bool(plan.changes)
        if plan.changes:
            for name, rows in plan.preview.items():
                changes = sorted(str(row) for row in watches[name].delta())
                assert sorted(map(str, rows)) == changes


@some
@given(graphs)
def test_no_plan_does_more_than_is_needed_and_none_is_missing(triples):
    world, graph = hard(), live_graph(triples)
    start = quads_of(graph)
    expected = {start ^ state for state in brute_force(world, start, 3).solutions}
    found = find_repairs(graph, world.program, strategy="bfs", max_steps=3, **EVERYTHING)
    changes = []
    for plan in found:
        fresh = live_graph(triples)
        fresh.repair(plan)
        changes.append(start ^ quads_of(fresh))
    assert expected.issuperset(changes)
    assert not any(a <= b for i, b in enumerate(changes) for a in changes[:i])
    assert all(any(a <= b for a in changes) for b in expected)


@some
@given(graphs)
def test_the_cheapest_plan_is_as_cheap_as_brute_force_finds(triples):
    world, graph = soft(), live_graph(triples)
    expected = brute_force(world, quads_of(graph), 3)
    for strategy in EXHAUSTIVE:
        found = find_repairs(graph, world.program, strategy=strategy, max_steps=3, **EVERYTHING)
        assert found.complete
        assert (found[0].cost if found else None) == expected.cost


@settings(deadline=None, max_examples=100)
@given(maps, st.integers(1, 4))
def test_a_state_is_gone_on_from_again_when_it_is_reached_sooner_or_cheaper(triples, depth):
    world, graph = journey(), live_graph(triples)
    expected = brute_force(world, quads_of(graph), depth)
    for strategy in EXHAUSTIVE:
        found = find_repairs(graph, world.program, strategy=strategy, max_steps=depth, **EVERYTHING)
        assert found.complete
        assert (found[0].cost if found else None) == expected.cost


@pytest.mark.parametrize(
    "world",
    [
        slow(hard()),
        slow(soft()),
        hopeless(),
    ],
)
@some
@given(graphs)
def test_strategies_agree_on_whether_there_is_a_plan(world, triples):
    graph = live_graph(triples)
    expected = brute_force(world, quads_of(graph), 2).steps is not None
    for strategy in EXHAUSTIVE:
        found = find_repairs(graph, world.program, strategy=strategy, max_steps=2, **EVERYTHING)
        assert found.complete
        assert bool(found) is expected
    for strategy in ("hill-climbing", "random-restarts"):  # these may miss it, not invent it
        found = find_repairs(graph, world.program, strategy=strategy, max_steps=2, **EVERYTHING)
        assert not found.complete
        assert expected or not found
        for plan in found:
            fresh = live_graph(triples)
            fresh.repair(plan)
            assert world.violations(quads_of(fresh)) == 0


@pytest.mark.parametrize("strategy", ALL)
@settings(deadline=None, max_examples=15)
@given(graphs)
@pytest.mark.slow
def test_plans_come_in_the_same_order_every_time(strategy, triples):
    program = soft().program
    options = {
        "strategy": strategy,
        "max_steps": 3,
        "max_states": 200,
        "max_seconds": 600,
        "seed": 7,
    }
    first, again = (find_repairs(live_graph(triples), program, **options) for _ in range(2))
    assert first == again
    assert (first.states, first.stopped) == (again.states, again.stopped)


@settings(deadline=None, max_examples=15)
@given(graphs)
def test_states_with_equal_marks_are_told_apart(triples):
    program, graph = hard().program, live_graph(triples)
    right = find_repairs(graph, program, strategy="bfs", max_steps=2, **EVERYTHING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphtide.repair.state.updated_fingerprint", lambda fingerprint, changes: 0)
        found = find_repairs(graph, program, strategy="bfs", max_steps=2, **EVERYTHING)
    assert found == right
    assert found.states == right.states


def test_marks_of_states_that_are_much_alike_differ():
    """Four things, each in one of three places: 81 states."""
    fingerprints = set()
    for places in product((5, 6, 7), repeat=4):
        moved = [(thing, place) for thing, place in enumerate(places, start=20) if place != 5]
        come = [(1, (thing, 9, place, 0)) for thing, place in moved]
        fingerprints.add(
            updated_fingerprint(0, come + [(-1, (thing, 9, 5, 0)) for thing, _ in moved])
        )
    assert len(fingerprints) == 81
