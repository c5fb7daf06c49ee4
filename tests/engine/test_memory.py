"""Endless streams of inserts and deletes need bounded memory."""

from __future__ import annotations

import pytest
from engine.small_graph import KNOWS, PATHS, PREFIX, iri, watch

from graphtide import LiveGraph
from graphtide.kernel import JIT

QUERIES = (
    KNOWS,
    PATHS,
    "SELECT DISTINCT ?a { ?a :knows ?b OPTIONAL { ?b :likes ?c } }",
    "SELECT ?a { ?a :knows ?b FILTER(?b != ?a) MINUS { ?b :likes ?a } }",
)


@pytest.mark.parametrize("strategy", ["rete", "search"])
def test_a_window_that_slides_forever_needs_the_room_of_a_window(strategy):
    graph = LiveGraph()
    watches = [graph.watch(PREFIX + q, strategy=strategy, history=50) for q in QUERIES]
    terms = [iri(f"n{n}") for n in range(40)]
    knows, likes = iri("knows"), iri("likes")

    def slide(rounds: int) -> None:
        for n in range(rounds):
            s, o = terms[n % 40], terms[n * 7 % 40]
            graph.insert(s, knows, o)
            graph.insert(o, likes, s)
            if n >= 20:
                old_s, old_o = terms[(n - 20) % 40], terms[(n - 20) * 7 % 40]
                graph.delete(old_s, knows, old_o)
                graph.delete(old_o, likes, old_s)
            if n % 100 == 0:
                graph._runtime.flush()

    slide(400 if JIT else 60)
    before = graph.stats()
    slide(8000 if JIT else 300)
    after = graph.stats()
    assert after.inserted > 10 * before.inserted or not JIT
    assert after.quads <= 2 * 40 * 40
    for size in ("quad_bytes", "term_bytes", "query_bytes"):
        assert getattr(after, size) <= 2 * getattr(before, size)
    assert all(len(list(found.rows())) <= 50 for found in watches)


def test_queries_that_come_and_go_leave_nothing_behind():
    graph = LiveGraph()
    for n in range(50):
        graph.insert(iri(f"n{n}"), iri("knows"), iri(f"n{n * 3 % 50}"))
    kept = watch(graph)
    before = graph.stats()
    for _ in range(30):
        found = [watch(graph, query) for query in QUERIES]
        for each in found:
            each.close()
    after = graph.stats()
    assert (after.queries, after.searches, after.indexes) == (1, before.searches, before.indexes)
    assert (after.quad_bytes, after.query_bytes) == (before.quad_bytes, before.query_bytes)
    assert kept.count() == 50
    assert len(graph._runtime.queries.plans.network) == len(set(kept.node_ids.values()))
