"""A look at an unchanged answer takes no lock, and no change is missed by it."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest
from engine.small_graph import PREFIX, batch, commit, delete, insert, iri, quad, watch

from graphtide import LiveGraph, Program
from graphtide.engine.reclaim import ALWAYS

PATIENCE = 600
"""Seconds after which threads are taken to wait for each other."""


def apply_ids(graph):
    ids = graph.terms.encode_column(list(quad("c knows d")))
    graph.apply_ids(*(np.array([i], np.int32) for i in ids))


def callback_that_inserts(graph):
    other = watch(graph, "SELECT ?a { ?a :likes ?b }")
    other.on_appear(lambda _: insert(graph, "c knows d"))
    insert(graph, "a likes b")


def rule_that_inserts(graph):
    graph.run(
        Program.parse(
            f"{PREFIX} RULE R WHEN FACT {{ ?a :likes ?b }} THEN INSERT {{ :c :knows :d }}"
        )
    )
    insert(graph, "a likes b")


def event_that_inserts(graph):
    graph.run(
        Program.parse(
            f"{PREFIX} EVENT E(?a) AS {{ ?a :likes ?b }}"
            " RULE R WHEN EVENT e = E(?a) THEN INSERT { :c :knows :d }"
        )
    )
    graph.publish([quad("a likes b")], time=1)


CHANGES = {
    "insert": lambda graph: insert(graph, "c knows d"),
    "insert at a time": lambda graph: insert(graph, "c knows d", time=5),
    "transaction": lambda graph: commit(graph, "+ c knows d"),
    "transaction at a time": lambda graph: commit(graph, "+ c knows d", time=5),
    "batch": lambda graph: graph.apply(batch((3, 9, "+ c knows d"))),
    "ids": apply_ids,
    "update": lambda graph: graph.update(PREFIX + "INSERT DATA { :c :knows :d }"),
    "callback": callback_that_inserts,
    "rule": rule_that_inserts,
    "event": event_that_inserts,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("look", ["delta", "drain", "count"])
def test_every_change_is_seen_by_the_next_look(change, look):
    graph = LiveGraph()
    query = watch(graph)
    insert(graph, "a knows b")
    for _ in range(2):
        query.drain(), query.delta(), query.count()
    change(graph)
    if look == "count":
        assert query.count() == 2
    elif look == "drain":
        assert [len(net) for net, _ in query.drain()] == [1]
    elif change not in (callback_that_inserts, rule_that_inserts, event_that_inserts):
        assert [str(row) for row in query.delta()] == [f"+ a={iri('c')} b={iri('d')}"]
    else:
        query.delta()
    assert (iri("c"), iri("knows"), iri("d")) in graph


def test_rows_that_turn_with_the_clock_are_seen():
    graph = LiveGraph()
    query = watch(graph, "SELECT ?x { ?x :due ?d FILTER (?d < NOW()) }")
    due = '"1970-01-01T00:00:05Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    graph.insert(iri("a"), iri("due"), due)
    for expected, time in ((0, 3), (0, 5), (1, 6), (1, 7)):
        graph.advance(time)
        assert [query.count(), query.count()] == [expected, expected]


def test_a_delta_is_that_of_the_last_transaction_only():
    graph = LiveGraph()
    query = watch(graph)
    insert(graph, "a knows b")
    assert len(query.delta()) == len(query.delta()) == 1
    insert(graph, "a likes b")
    assert len(query.delta()) == len(query.delta()) == 0
    delete(graph, "a knows b")
    assert [row.diff for row in query.delta()] == [-1]
    query.drain()
    assert len(query.delta()) == 0


@pytest.mark.skipif(ALWAYS, reason="every look frees terms, under the lock")
def test_an_unchanged_answer_is_read_while_another_thread_has_the_lock():
    graph = LiveGraph()
    query = watch(graph)
    insert(graph, "a knows b", "a likes b")
    query.drain(), query.delta()
    found = []
    reader = Thread(target=lambda: found.append((query.count(), query.drain(), len(query.delta()))))
    with graph.lock:
        reader.start()
        reader.join(PATIENCE)
        assert found == [(1, [], 0)]


def test_a_change_that_waits_is_read_under_the_lock():
    graph = LiveGraph()
    query = watch(graph)
    insert(graph, "a knows b")
    query.drain(), query.delta()
    found = []
    reader = Thread(target=lambda: found.append(query.count()))
    with graph.lock:
        insert(graph, "c knows d")
        reader.start()
        reader.join(0.01)
        insert(graph, "e knows f")
    reader.join(PATIENCE)
    assert found == [3]
