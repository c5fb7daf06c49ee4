"""The W3C's update evaluation tests on a live graph, alone and under standing queries."""

from __future__ import annotations

from collections import Counter

import pytest
from w3c.expected import term_of
from w3c.graph_store import stored
from w3c.isomorphism import same_bag
from w3c.manifest import UpdateTest, path_of, suite_folder, update_tests
from w3c.suites import line, parameters

from graphtide import LiveGraph
from oracles.answers import row_of

EVERYTHING = {
    "default": "SELECT ?s ?p ?o { ?s ?p ?o }",
    "named": "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }",
}
TESTS = parameters(update_tests())


@pytest.mark.parametrize("test", TESTS)
def test_update(test: UpdateTest, record_property) -> None:
    record_property(*line(test, "engine"))
    graph = before(test)
    graph.update(request(test), load_from=suite_folder())
    assert same_bag(list(graph.quads()), after(test))


@pytest.mark.parametrize("strategy", ["search", "rete"])
@pytest.mark.parametrize("test", TESTS)
def test_watched(test: UpdateTest, strategy, record_property) -> None:
    record_property(*line(test, f"watched-{strategy}"))
    graph = before(test)
    watches = [graph.watch(text, strategy=strategy) for text in EVERYTHING.values()]
    graph.update(request(test), load_from=suite_folder())
    rows_of_deltas = []
    for watch in watches:
        rows = watch.table(terms=True).to_pylist()
        rows_of_deltas += [tuple(map(term_of, row.values())) for row in rows]
        summed: Counter = Counter()
        for delta in watch.rows():
            summed[row_of(delta.row)] += delta.diff
        assert +summed == Counter(tuple(sorted(row.items())) for row in rows)
    assert len(rows_of_deltas) == len(graph)
    assert same_bag([row if len(row) == 4 else (*row, None) for row in rows_of_deltas], after(test))


def before(test: UpdateTest) -> LiveGraph:
    graph = LiveGraph()
    with graph.transaction() as tx:
        for quad in stored(test.before):
            tx.insert(*quad)
    return graph


def after(test: UpdateTest) -> list:
    return list(dict.fromkeys(stored(test.after)))


def request(test: UpdateTest) -> str:
    text = path_of(test.request).read_text(encoding="utf-8")
    return f"BASE <{test.request}>\n{text}"
