"""The Train Benchmark's repairs as fixes: faults are injected, and a plan leaves none."""

from pathlib import Path

import pyoxigraph as ox
import pytest
from repair.worlds import quads_of
from support.programs import find_repairs

import graphtide as gt
from benchmarks.datasets.queries import train_query_text
from benchmarks.datasets.train import TrainModel
from benchmarks.train.driver import load_model
from graphtide.lang.tide.program import Program

REPAIRS = Path(__file__).parents[2] / "examples" / "repairs.tide"
GOALS = {
    "Lengths": "PosLength",
    "Monitored": "SwitchMonitored",
    "Required": "RouteSensor",
    "Set": "SwitchSet",
    "Neighbours": "SemaphoreNeighbor",
    "Short": "ConnectedSegments",
}
REPAIR_1 = {"Lengths": 52, "Monitored": 0, "Required": 12, "Set": 1, "Neighbours": 8, "Short": 4}
"""What the benchmark publishes for its model of size 1 in the repair scenario."""


def violations(graph):
    """As pyoxigraph finds them with the benchmark's own queries."""
    store = ox.Store()
    store.extend(quads_of(graph))
    texts = {goal: train_query_text(query) for goal, query in GOALS.items()}
    return {goal: len(list(store.query(text))) for goal, text in texts.items()}


@pytest.mark.slow
def test_a_broken_railway_is_mended():
    graph = gt.LiveGraph()
    load_model(graph, TrainModel(1, "repair"))
    assert violations(graph) == REPAIR_1
    (plan,) = find_repairs(graph, REPAIRS, max_plans=1, max_seconds=600)
    watch = graph.watch(Program.read(REPAIRS).texts["RouteSensor"])
    graph.repair(plan)
    assert violations(graph) == dict.fromkeys(GOALS, 0)
    assert watch.count() == 0
    assert plan.violations == violations(graph)


def test_the_faults_of_the_example_are_mended():
    graph = gt.LiveGraph()
    graph.load(REPAIRS.with_name("rail.ttl"))
    four = {"Lengths": 1, "Monitored": 1, "Required": 1, "Set": 1}
    assert violations(graph) == four | {"Neighbours": 0, "Short": 0}
    (plan,) = find_repairs(graph, REPAIRS, max_plans=1)
    graph.repair(plan)
    assert violations(graph) == dict.fromkeys(GOALS, 0)


NAME = "<http://www.semanticweb.org/ontologies/2015/trainbenchmark#{}>".format


def first_row(graph, text):
    """The terms of the first row, as N-Triples texts."""
    (row,) = graph.query(f"{text} LIMIT 1", terms=True).to_pylist()
    return tuple(row.values())


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["bfs", "dfs", "best-first"])
def test_injected_faults_are_found_and_mended(strategy):
    graph = gt.LiveGraph()
    load_model(graph, TrainModel(1, "batch"))
    assert violations(graph) == dict.fromkeys(GOALS, 0)
    route, sensor = first_row(graph, f"SELECT ?r ?s {{ ?r {NAME('requires')} ?s }} ORDER BY ?r ?s")
    segment, length = first_row(graph, f"SELECT ?g ?l {{ ?g {NAME('length')} ?l }} ORDER BY ?g")
    with graph.transaction() as faults:
        faults.delete(route, NAME("requires"), sensor)
        faults.delete(segment, NAME("length"), length)
        zero = '"0"^^<http://www.w3.org/2001/XMLSchema#int>'
        faults.insert(segment, NAME("length"), zero)
    broken = violations(graph)
    assert broken["Lengths"] == 1
    assert broken["Required"] >= 1
    found = find_repairs(graph, REPAIRS, strategy=strategy, max_plans=1, max_seconds=600)
    assert {step.fix for step in found[0].steps} >= {"Require", "SetLength"}
    graph.repair(found[0])
    assert violations(graph) == dict.fromkeys(GOALS, 0)
