"""apply_ids: changes as id arrays, with or without stamps."""

from __future__ import annotations

import numpy as np
import pytest
from engine.small_graph import insert, lines, quad, watch

from graphtide import GraphtideError, LiveGraph

CHAIN = ("a knows b", "b knows c", "c knows d")


@pytest.fixture
def graph():
    return LiveGraph()


def columns(graph, *texts: str) -> list[np.ndarray]:
    rows = [[graph.terms.encode(term) for term in quad(text)] for text in texts]
    return list(np.array(rows, np.int32).T)


def test_each_change_is_a_transaction_without_tx(graph):
    knows = watch(graph)
    insert(graph, "z knows z", time=4)
    graph.apply_ids(*columns(graph, *CHAIN))
    assert [(row.time, row.tx) for row in knows.rows()] == [(4, 0), (4, 1), (4, 2), (4, 3)]
    assert lines(knows.delta()) == ["+1 c d"]


def test_with_tx_and_time_rows_share_transactions(graph):
    knows = watch(graph)
    graph.apply_ids(
        *columns(graph, *CHAIN), time=np.array([3, 3, 5]), tx=np.array([7, 7, 7], np.int64)
    )
    assert [(row.time, row.tx) for row in knows.rows()] == [(3, 7), (3, 7), (5, 7)]
    assert (graph.stats().transactions, graph.clock) == (2, 5)


def test_diffs_delete(graph):
    knows = watch(graph)
    graph.apply_ids(*columns(graph, CHAIN[0], CHAIN[0]), diff=np.array([1, -1], np.int8))
    assert lines(knows.rows()) == ["+1 a b", "-1 a b"]
    assert len(graph) == 0


def test_graphs_are_ids_and_0_is_the_default_graph(graph):
    s, p, o, g = columns(graph, "a knows b g", "a knows b g")
    graph.apply_ids(s, p, o, np.array([0, g[0]]))
    assert quad("a knows b") in graph
    assert quad("a knows b g") in graph


def test_no_rows_are_no_transaction(graph):
    nothing = np.empty(0, np.int32)
    graph.apply_ids(nothing, nothing, nothing)
    graph.apply_ids(nothing, nothing, nothing, time=nothing, tx=nothing, diff=nothing)
    assert graph.stats().transactions == 0


ONE = np.array([1], np.int32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"s": np.array([0])}, "the ids of s run from 1 to 3"),
        ({"p": np.array([4])}, "the ids of p run from 1 to 3"),
        ({"o": np.array([-1])}, "the ids of o run from 1 to 3"),
        ({"g": np.array([4])}, "the ids of g run from 0 to 3"),
        ({"g": np.array([-1])}, "the ids of g run from 0 to 3"),
        ({"o": np.array([1, 2])}, "o must be an array of 1 integers"),
        ({"p": np.array([[1]])}, "p must be an array of 1 integers"),
        ({"s": np.array([1.5])}, "s must be an array of 1 integers.*float64"),
        ({"g": np.array([0, 0])}, "g must be an array of 1 integers"),
        ({"diff": np.array([0])}, r"diff is \+1 for an insert and -1 for a delete"),
        ({"diff": np.array([2])}, r"diff is \+1 for an insert and -1 for a delete"),
        ({"diff": np.array([1, 1])}, "diff must be an array of 1 integers"),
        ({"time": np.array([1, 2])}, "time must be an array of 1 integers"),
        ({"time": np.array([1.5])}, "time must be an array of 1 integers"),
        ({"tx": np.array([1, 2])}, "tx must be an array of 1 integers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(graph, arguments, message):
    columns(graph, "a knows b")
    with pytest.raises(GraphtideError, match=message):
        graph.apply_ids(**{"s": ONE, "p": ONE, "o": ONE, **arguments})
    assert (len(graph), graph.stats().transactions) == (0, 0)


def test_time_within_the_arrays_runs_backwards(graph):
    with pytest.raises(GraphtideError, match="a transaction at 4 after one at 5"):
        graph.apply_ids(*columns(graph, *CHAIN), time=np.array([4, 5, 4]))
    assert len(graph) == 0
