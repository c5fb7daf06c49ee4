"""Strict mode: a change without effect is rejected before anything is applied."""

from __future__ import annotations

import numpy as np
import pytest
from engine.small_graph import batch, commit, delete, insert, lines, quad, watch

from graphtide import GraphtideError, LiveGraph
from graphtide.errors import StrictError


@pytest.fixture
def graph():
    graph = LiveGraph(strict=True)
    insert(graph, "a knows b", time=5)
    return graph


def unchanged(graph) -> bool:
    stats = graph.stats()
    return (stats.quads, stats.inserted, stats.redundant, stats.transactions, graph.clock) == (
        1, 1, 0, 1, 5,
    )  # fmt: skip


def test_an_insert_of_a_present_quad_is_refused(graph):
    with pytest.raises(
        StrictError, match=r"insert of a quad that is present: <\S+a> <\S+knows> <\S+b>"
    ):
        insert(graph, "a knows b", time=9)
    assert unchanged(graph)


def test_a_delete_of_an_absent_quad_is_refused(graph):
    with pytest.raises(StrictError, match="delete of an absent quad"):
        delete(graph, "a knows c", time=9)
    assert unchanged(graph)


def test_the_graph_of_a_quad_counts(graph):
    insert(graph, "a knows b g")
    with pytest.raises(StrictError, match=r"<http://example\.org/g>"):
        insert(graph, "a knows b g")
    assert len(graph) == 2


@pytest.mark.parametrize(
    "changes",
    [
        ("+ c knows d", "+ a knows b"),
        ("+ c knows d", "+ c knows d"),
        ("- a knows b", "- a knows b"),
        ("+ c knows d", "- x knows y"),
    ],
)
def test_a_transaction_with_one_redundant_change_is_refused_whole(graph, changes):
    knows = watch(graph)
    with pytest.raises(StrictError, match="nothing of this transaction was applied"):
        commit(graph, *changes, time=9)
    assert unchanged(graph)
    assert lines(knows.delta()) == ["+1 a b"]  # still the first answer


def test_changes_are_judged_in_their_order(graph):
    commit(graph, "- a knows b", "+ a knows b", "+ c knows d", "- c knows d")
    assert len(graph) == 1
    assert graph.stats().redundant == 0


def test_a_batch_is_refused_before_anything_is_applied(graph):
    rows = batch((6, 0, "+ c knows d"), (7, 0, "+ d knows e"), (8, 0, "+ c knows d"))
    with pytest.raises(StrictError):
        graph.apply(rows)
    assert unchanged(graph)


def test_ids_are_refused_before_anything_is_applied(graph):
    a, knows, b = (np.array([graph.terms.encode(term)], np.int32) for term in quad("a knows b"))
    with pytest.raises(StrictError):
        graph.apply_ids(b.repeat(2), knows.repeat(2), np.concatenate([a, a]))
    assert unchanged(graph)


def test_the_graph_goes_on_after_a_refusal(graph):
    knows = watch(graph)
    with pytest.raises(StrictError):
        insert(graph, "a knows b")
    insert(graph, "b knows c")
    assert lines(knows.delta()) == ["+1 b c"]


def test_strict_mode_needs_every_quad():
    with pytest.raises(GraphtideError, match="strict mode has to know every quad"):
        LiveGraph(strict=True, store="matched")
