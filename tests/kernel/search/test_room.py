"""When a quad store makes room: for quads that come, and not for those that might."""

from __future__ import annotations

import numpy as np
import pytest

from graphtide import LiveGraph
from graphtide.engine import ingest
from graphtide.kernel.search.program import SearchProgram
from graphtide.kernel.search.quadstore import CHUNK, QuadStore

PAIRS = SearchProgram(((-1, 7, -2, 0), (-2, 7, -3, 0)), outputs=3)


def inserts(first, many, nodes=1000):
    """Distinct quads, each a transaction."""
    numbers = np.arange(first, first + many)
    changes = np.zeros((many, 6), np.int32)
    changes[:, 0], changes[:, 1], changes[:, 3] = np.arange(many), 1, 7
    changes[:, 2], changes[:, 4] = 1 + numbers // nodes, 1 + numbers % nodes
    return changes


def sizes(store):
    t = store._table.arrays
    return len(t.rows), len(t.slots), len(t.heads)


@pytest.mark.parametrize("many", [100, CHUNK, 3 * CHUNK])
def test_quads_that_are_replaced_need_no_room(many):
    store = QuadStore()
    store.install(PAIRS)
    store.apply(inserts(0, many))
    before = sizes(store)
    replaced = np.repeat(inserts(0, many), 2, axis=0)
    replaced[:, 0], replaced[::2, 1] = np.arange(2 * many), -1
    for _ in range(3):
        store.apply(replaced)
    assert sizes(store) == before


def test_redundant_inserts_need_no_room():
    store = QuadStore()
    store.install(PAIRS)
    changes = inserts(0, 500)
    store.apply(changes)
    before = sizes(store)
    for _ in range(5):
        store.apply(changes)
    assert sizes(store) == before


def test_an_index_with_few_keys_stays_small():
    store = QuadStore()
    store.install(PAIRS)
    store.apply(inserts(0, 30_000, nodes=10_000))  # three subjects
    indexes = store._table.arrays.indexes
    assert min(indexes[:, 1].tolist()) < 200


def test_room_for_all_quads_of_a_batch_is_made_once(monkeypatch):
    """From the second piece on, unless the quads of those before were known."""
    monkeypatch.setattr(ingest, "PIECE", 5000)
    graph = LiveGraph()
    graph.watch("SELECT ?a { ?a <ex:p> ?b . ?b <ex:p> ?a }")
    ids = graph.terms.encode_column([f"<ex:{n}>" for n in range(200)])
    p = np.full(40_000, graph.terms.encode("<ex:p>"), np.int32)
    s, o = np.repeat(ids, 200), np.tile(ids, 200)
    store, seen = graph._runtime.store, []
    apply = store.apply

    def noted(changes):
        found = apply(changes)
        seen.append(sizes(store))
        return found

    monkeypatch.setattr(store, "apply", noted)
    graph.apply_ids(s, p, o)
    assert len(seen) == 8
    assert len(set(seen[1:])) == 1
    assert store.to_come == 0
    graph.apply_ids(s, p, o)
    assert set(seen[8:]) == {seen[-1]}
    assert seen[-1] == seen[7]
    assert len(graph) == 40_000
