"""The clock of a graph: it advances with the data, and never goes back."""

from __future__ import annotations

import numpy as np
import pytest
from engine.small_graph import batch, commit, delete, insert, quad, watch

from graphtide import GraphtideError, LiveGraph


@pytest.fixture
def graph():
    graph = LiveGraph()
    insert(graph, "a knows b", time=10)
    return graph


def stamps(found) -> list[tuple[int, int]]:
    return [(row.time, row.tx) for row in found.rows()]


def test_a_change_without_a_time_happens_now(graph):
    knows = watch(graph)
    insert(graph, "b knows c")
    commit(graph, "+ c knows d")
    assert [row.time for row in knows.rows()] == [10, 10, 10]


def test_equal_times_are_different_transactions():
    graph = LiveGraph()
    knows = watch(graph)
    insert(graph, "a knows b", "b knows c", time=3)
    commit(graph, "+ c knows d", "+ d knows e", time=3)
    assert stamps(knows) == [(3, 0), (3, 1), (3, 2), (3, 2)]


def test_advance_moves_the_clock_alone(graph):
    knows = watch(graph)
    graph.advance(to=20)
    graph.advance(to=20)
    assert (graph.clock, graph.stats().clock, graph.stats().transactions) == (20, 20, 1)
    insert(graph, "b knows c")
    assert [row.time for row in knows.delta()] == [20]


def ids_of(graph):
    return [np.array([graph.terms.encode(term)], np.int32) for term in quad("x knows y")]


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: insert(graph, "x knows y", time=9),
        lambda graph: delete(graph, "a knows b", time=9),
        lambda graph: commit(graph, "+ x knows y", time=9),
        lambda graph: graph.apply(batch((9, 0, "+ x knows y"))),
        lambda graph: graph.apply(batch((11, 0, "+ x knows y")), time=9),
        lambda graph: graph.apply(batch((11, 0, "+ x knows y"), (10, 1, "+ x knows z"))),
        lambda graph: graph.apply_ids(*ids_of(graph), time=np.array([9])),
        lambda graph: graph.advance(to=9),
    ],
    ids=["insert", "delete", "transaction", "apply", "apply at", "within", "ids", "advance"],
)
def test_time_that_runs_backwards_is_refused_and_changes_nothing(graph, change):
    with pytest.raises(GraphtideError, match="time runs backwards") as caught:
        change(graph)
    assert caught.value.hint
    assert (graph.clock, len(graph), graph.stats().transactions) == (10, 1, 1)
    insert(graph, "b knows c", time=10)
    assert len(graph) == 2


def test_the_message_names_both_times(graph):
    with pytest.raises(GraphtideError, match="7 is before the graph's clock, 10"):
        insert(graph, "x knows y", time=7)
    with pytest.raises(GraphtideError, match="a transaction at 12 after one at 13"):
        graph.apply(batch((13, 0, "+ x knows y"), (12, 1, "+ x knows z")))


def test_the_first_delta_of_a_late_query_has_the_time_of_the_last_transaction(graph):
    graph.advance(to=15)
    knows = watch(graph)
    assert [row.time for row in knows.delta()] == [15]
