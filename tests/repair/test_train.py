"""The Train Benchmark's repairs as fixes: faults are injected, and a plan leaves none."""

from pathlib import Path

import pyoxigraph as ox
import pytest
from repair.worlds import quads_of

import graphtide as gt
from graphtide.bench.train.load import load_model
from graphtide.bench.train.model import Model
from graphtide.lang.tide.program import Program
from graphtide.repair.search import find_repairs

REPAIRS = Path(__file__).parents[2] / "examples" / "repairs.tide"
QUERIES = Path(gt.__file__).parent / "bench" / "train" / "queries"
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
    texts = {goal: (QUERIES / f"{query}.rq").read_text() for goal, query in GOALS.items()}
    return {goal: len(list(store.query(text))) for goal, text in texts.items()}


@pytest.mark.slow
def test_a_broken_railway_is_mended():
    graph = gt.LiveGraph()
    load_model(graph, Model(1, "repair"))
    assert violations(graph) == REPAIR_1
    (plan,) = find_repairs(graph, REPAIRS, max_plans=1, max_seconds=600)
    watch = graph.watch(Program.read(REPAIRS).texts["RouteSensor"])
    plan.apply(graph)
    assert violations(graph) == dict.fromkeys(GOALS, 0)
    assert watch.count() == 0
    assert plan.violations == violations(graph)


NAME = "<http://www.semanticweb.org/ontologies/2015/trainbenchmark#{}>".format


@pytest.mark.parametrize("strategy", ["bfs", "dfs", "best-first"])
def test_injected_faults_are_found_and_mended(strategy):
    graph = gt.LiveGraph()
    load_model(graph, Model(1, "batch"))
    assert violations(graph) == dict.fromkeys(GOALS, 0)
    route, sensor = (
        graph.query(f"SELECT ?r ?s {{ ?r {NAME('requires')} ?s }} ORDER BY ?r ?s LIMIT 1")[n][0]
        for n in "rs"
    )
    segment, length = (
        graph.query(f"SELECT ?g ?l {{ ?g {NAME('length')} ?l }} ORDER BY ?g LIMIT 1")[n][0]
        for n in "gl"
    )
    with graph.transaction() as faults:
        faults.delete(route.as_py(), NAME("requires"), sensor.as_py())
        faults.delete(segment.as_py(), NAME("length"), length.as_py())
        zero = '"0"^^<http://www.w3.org/2001/XMLSchema#int>'
        faults.insert(segment.as_py(), NAME("length"), zero)
    broken = violations(graph)
    assert broken["Lengths"] == 1
    assert broken["Required"] >= 1
    found = find_repairs(graph, REPAIRS, strategy=strategy, max_plans=1, max_seconds=600)
    assert {step.fix for step in found[0].steps} >= {"Require", "SetLength"}
    found[0].apply(graph)
    assert violations(graph) == dict.fromkeys(GOALS, 0)
