"""`query.since(seq)`: the deltas after a sequence number, from memory or the journal."""

from __future__ import annotations

import random

import pytest

from graphtide import LiveGraph
from graphtide.errors import GraphtideError

QUERY = "SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:p> ?c }"


def shake(graph, chance, count):
    for _ in range(count):
        change = graph.insert if chance.random() < 0.6 else graph.delete
        change(f"<ex:{chance.randrange(5)}>", "<ex:p>", f"<ex:{chance.randrange(5)}>")


def texts(deltas):
    return [(delta.seq, delta.time, sorted(map(str, delta))) for delta in deltas]


@pytest.mark.parametrize("batched", [True, False])
def test_what_is_after_a_number(batched):
    chance, graph = random.Random(3), LiveGraph()
    shake(graph, chance, 20)
    query = graph.watch(QUERY)
    if not batched:
        query.on_delta(lambda _: None)
    for _ in range(5):
        shake(graph, chance, 20)
        every = texts(query.deltas())
        for seq in range(-1, graph.transactions + 2):
            assert texts(query.since(seq)) == [each for each in every if each[0] > seq]


def test_what_is_evicted_is_an_error():
    chance, graph = random.Random(4), LiveGraph()
    query = graph.watch(QUERY, history=10)
    shake(graph, chance, 200)
    every = texts(query.deltas())
    assert query.evicted
    first = every[0][0]
    assert texts(query.since(first)) == every[1:]
    with pytest.raises(GraphtideError, match="no longer retained"):
        query.since(0)


def test_a_store_remembers_further_back(tmp_path):
    chance = random.Random(5)
    with LiveGraph.open(tmp_path) as graph:
        query = graph.watch(QUERY, name="pairs")
        shake(graph, chance, 60)
        every = texts(query.deltas())
    with LiveGraph.open(tmp_path) as graph:
        shake(graph, chance, 30)
        (query,) = graph.queries
        later = [each for each in texts(query.deltas()) if each[0] >= 60]
        for seq in (-1, 10, 40, 59, 70):
            expected = [each for each in every + later if each[0] > seq]
            assert texts(query.since(seq)) == expected
