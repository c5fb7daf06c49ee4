"""Queries that are evaluated again at every report: the same results; plan and indexes are kept."""

from __future__ import annotations

import pytest

from graphtide import LiveGraph
from graphtide.engine import queries
from graphtide.engine.dataflow import running_plans
from graphtide.engine.dataflow.programs import SharedPrograms

QUERY = """PREFIX : <ex:> REGISTER {} :q AS SELECT ?x ?z FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 1]
WHERE {{ WINDOW :w {{ ?x :p ?y . ?y :q ?z }} }}"""
EVENTS = ["a p b", "b q c", "b q d", "z r z", "a p b", "c p b", "z r z", "z r z", "z r z", "b q c"]


def push(graph, first=0):
    for time, event in enumerate(EVENTS, start=first):
        graph.stream("<ex:s>").push([[f"<ex:{name}>" for name in event.split()]], time=time)
    graph.advance(first + len(EVENTS))


def results(query):
    return [(r.time, sorted((str(row["x"]), str(row["z"])) for row in r)) for r in query.results()]


@pytest.mark.parametrize("output", ["ISTREAM", "DSTREAM", "RSTREAM"])
def test_results_are_those_of_the_maintained_query(output):
    graphs = [LiveGraph(), LiveGraph()]
    maintained, again = (
        graph.watch(QUERY.format(output), report="change", reevaluate=reevaluate)
        for graph, reevaluate in zip(graphs, (False, True), strict=True)
    )
    for graph in graphs:
        push(graph)
    assert results(again) == results(maintained)
    assert sum(len(rows) for _, rows in results(again)) > 2
    assert again.count() == maintained.count()


def test_plan_and_indexes_are_kept_and_equal_quads_are_not_asked_twice(monkeypatch):
    calls = []

    def counted(owner, name):
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: calls.append(name) or real(*args))

    graph = LiveGraph()
    query = graph.watch(QUERY.format("ISTREAM"), report="change", reevaluate=True)
    counted(queries, "choose_plan")
    counted(running_plans, "evaluate_once")
    counted(SharedPrograms, "acquire")
    push(graph)
    assert set(calls) == {"evaluate_once"}
    assert len(calls) < len(EVENTS) == len(query.results())


def test_what_was_installed_goes_with_the_query():
    graph = LiveGraph()
    query = graph.watch(QUERY.format("ISTREAM"), report="change", reevaluate=True)
    push(graph)
    assert graph.stats().indexes > 0
    query.close()
    assert graph.stats().indexes == 0


def test_changes_of_the_graph_count_too():
    graph = LiveGraph()
    text = """PREFIX : <ex:> SELECT ?x ?z FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 1]
    WHERE { WINDOW :w { ?x :p ?y } ?y :q ?z }"""
    query = graph.watch(text, report="change", reevaluate=True)
    graph.stream("<ex:s>").push([("<ex:a>", "<ex:p>", "<ex:b>")], time=1)
    graph.insert("<ex:b>", "<ex:q>", "<ex:c>", time=2)
    graph.stream("<ex:s>").push([("<ex:z>", "<ex:r>", "<ex:z>")], time=3)
    graph.advance(4)
    assert [len(rows) for _, rows in results(query)] == [0, 1]
