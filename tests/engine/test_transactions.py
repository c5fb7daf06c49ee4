"""Inserts, deletes and transactions: set semantics, atomicity, named graphs."""

from __future__ import annotations

import pytest
from engine.small_graph import (
    KNOWN,
    KNOWS,
    PATHS,
    answer,
    commit,
    delete,
    insert,
    iri,
    lines,
    quad,
    watch,
)

from graphtide import GraphtideError, LiveGraph

STRATEGIES = ("rete", "search")


@pytest.fixture
def graph():
    return LiveGraph()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_insert_and_a_delete_each_give_their_delta(graph, strategy):
    paths = watch(graph, PATHS, strategy=strategy)
    insert(graph, "a knows b", "b knows c")
    assert lines(paths.delta()) == ["+1 a c"]
    delete(graph, "a knows b")
    assert lines(paths.delta()) == ["-1 a c"]
    assert (paths.count(), len(graph)) == (0, 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_quad_that_matches_twice_joins_with_itself(graph, strategy):
    paths = watch(graph, PATHS, strategy=strategy)
    insert(graph, "a knows a")
    assert lines(paths.delta()) == ["+1 a a"]
    insert(graph, "a knows b")
    assert lines(paths.delta()) == ["+1 a b"]
    delete(graph, "a knows a")
    assert lines(paths.delta()) == ["-1 a a", "-1 a b"]


def test_redundant_changes_are_counted_and_have_no_effect(graph):
    knows = watch(graph)
    insert(graph, "a knows b", "a knows b", "a knows b")
    assert not knows.delta()
    delete(graph, "x knows y")
    assert not knows.delta()
    delete(graph, "a knows b", "a knows b")
    assert not knows.delta()
    stats = graph.stats()
    assert (stats.inserted, stats.deleted, stats.redundant) == (1, 1, 4)
    assert (stats.quads, stats.transactions, knows.count()) == (0, 6, 0)


def test_a_transaction_gives_one_net_delta(graph):
    knows = watch(graph)
    insert(graph, "a knows b")
    commit(graph, "+ a knows c", "- a knows b", "+ b knows c")
    assert lines(knows.delta()) == ["+1 a c", "+1 b c", "-1 a b"]


def test_insert_and_delete_of_one_quad_in_a_transaction_net_to_nothing(graph):
    knows, stats = watch(graph), graph.stats
    commit(graph, "+ a knows b", "- a knows b")
    assert not knows.delta()
    assert (len(graph), stats().inserted, stats().deleted, stats().redundant) == (0, 1, 1, 0)


def test_delete_and_insert_of_a_present_quad_net_to_nothing(graph):
    knows = watch(graph)
    insert(graph, "a knows b")
    commit(graph, "- a knows b", "+ a knows b")
    assert not knows.delta()
    assert quad("a knows b") in graph
    assert knows.count() == 1


def test_the_last_change_of_a_quad_in_a_transaction_wins(graph):
    knows = watch(graph)
    commit(graph, "+ a knows b", "- a knows b", "+ a knows b", "+ a knows b")
    assert lines(knows.delta()) == ["+1 a b"]
    commit(graph, "- a knows b", "+ a knows b", "- a knows b")
    assert lines(knows.delta()) == ["-1 a b"]
    assert graph.stats().redundant == 1


def test_duplicate_rows_are_counted(graph):
    known = watch(graph, KNOWN)
    commit(graph, "+ a knows c", "+ b knows c")
    assert lines(known.delta()) == ["+2 c"]
    delete(graph, "a knows c")
    assert lines(known.delta()) == ["-1 c"]
    assert answer(known) == {"c": 1}


def test_an_exception_inside_the_block_applies_nothing(graph):
    knows = watch(graph)

    def broken() -> None:
        with graph.transaction(time=9) as tx:
            tx.insert(*quad("a knows b"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert (len(graph), graph.clock, graph.stats().transactions) == (0, 0, 0)
    assert not knows.delta()
    insert(graph, "a knows b")
    assert lines(knows.delta()) == ["+1 a b"]


def test_a_bad_term_inside_the_block_applies_nothing(graph):
    def broken() -> None:
        with graph.transaction() as tx:
            tx.insert(*quad("a knows b"))
            tx.insert(iri("a"), '"no predicate"', iri("b"))

    with pytest.raises(GraphtideError, match="cannot be a predicate"):
        broken()
    assert len(graph) == 0


def test_an_empty_transaction_is_a_transaction(graph):
    knows = watch(graph)
    insert(graph, "a knows b")
    commit(graph, time=4)
    assert not knows.delta()
    assert (graph.clock, graph.stats().transactions) == (4, 2)


def test_a_transaction_takes_no_changes_outside_its_block(graph):
    tx = graph.transaction()
    with pytest.raises(GraphtideError, match="not open"):
        tx.insert(*quad("a knows b"))
    with tx:
        tx.insert(*quad("a knows b"))
    with pytest.raises(GraphtideError, match="not open"):
        tx.delete(*quad("a knows b"))
    assert len(graph) == 1


def test_two_open_transactions_commit_in_the_order_they_end(graph):
    knows = watch(graph)
    with graph.transaction() as outer:
        outer.insert(*quad("a knows b"))
        with graph.transaction() as inner:
            inner.insert(*quad("b knows c"))
        assert lines(knows.delta()) == ["+1 b c"]
    assert lines(knows.delta()) == ["+1 a b"]


def test_named_graphs_are_apart_from_the_default_graph(graph):
    default, named = (
        watch(graph, KNOWS),
        watch(graph, "SELECT ?a ?b ?g { GRAPH ?g { ?a :knows ?b } }"),
    )
    insert(graph, "a knows b")
    assert (lines(default.delta()), lines(named.delta())) == (["+1 a b"], [])
    insert(graph, "a knows b g")
    assert (lines(default.delta()), lines(named.delta())) == ([], ["+1 a b g"])
    delete(graph, "a knows b")
    assert (lines(default.delta()), lines(named.delta())) == (["-1 a b"], [])
    assert (len(graph), answer(named)) == (1, {"a b g": 1})


def test_one_named_graph_can_be_asked_for(graph):
    one = watch(graph, "SELECT ?a { GRAPH :g { ?a :knows ?b } }")
    insert(graph, "a knows b g", "c knows b h", "d knows b")
    assert answer(one) == {"a": 1}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_graph_variable_joins_across_patterns(graph, strategy):
    both = watch(
        graph, "SELECT ?a ?b ?g { GRAPH ?g { ?a :knows ?b } ?a :likes ?g }", strategy=strategy
    )
    insert(graph, "a knows b g", "a knows b h", "a likes h")
    assert answer(both) == {"a b h": 1}


def test_the_names_of_graphs_come_with_their_first_quad_and_go_with_their_last(graph):
    names = watch(graph, "SELECT ?g { GRAPH ?g {} }")
    insert(graph, "a knows b", "a knows b g")
    assert lines(names.delta()) == ["+1 g"]
    insert(graph, "a likes b g")
    assert not names.delta()
    delete(graph, "a knows b g")
    assert not names.delta()
    delete(graph, "a likes b g")
    assert lines(names.delta()) == ["-1 g"]


def test_quads_and_membership_show_the_current_graph(graph):
    insert(graph, "a knows b", "a knows b g")
    delete(graph, "a knows b")
    (found,) = graph.quads()
    assert [str(term) for term in found] == list(quad("a knows b g"))
    assert found in graph
    assert quad("a knows b g") in graph
    assert quad("a knows b") not in graph
    assert (*quad("a knows b"), None) not in graph
    assert quad("a knows b unheard-of") not in graph
    graph.insert(iri("a"), iri("age"), 5)
    assert (iri("a"), iri("age"), 5) in graph
    assert (iri("a"), iri("age"), 6) not in graph
    assert (iri("a"), iri("age"), 5, None) in graph
