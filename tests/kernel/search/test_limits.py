"""A search that finds too much: what the store holds afterwards, and that it works on."""

from __future__ import annotations

import numpy as np
import pytest
from kernel.batches import needs_jit

from graphtide.errors import LimitError
from graphtide.kernel.search.program import SearchProgram
from graphtide.kernel.search.quadstore import CHUNK, QuadStore
from graphtide.limits import Allowance, Limits

pytestmark = needs_jit

P, Q = 7, 8
PAIRS = SearchProgram(((-1, P, -2, 0), (-3, Q, -4, 0)), outputs=4)
SMALL = Limits(flush_bytes=50_000, query_bytes=50_000)


def quads(predicate, count, diff=1):
    ids = np.arange(100, 100 + count, dtype=np.int32)
    parts = [np.arange(count), np.full(count, diff), ids, np.full(count, predicate), ids, 0 * ids]
    return np.column_stack(parts).astype(np.int32)


def content(store):
    return sorted(map(tuple, store.quads().tolist()))


def pair_count(store, number):
    return len(store.evaluate(number))


@pytest.mark.parametrize("store_all", [True, False])
@pytest.mark.parametrize("count", [100, CHUNK + 100])
def test_inserts_that_make_too_many_rows_can_be_undone(store_all, count):
    store = QuadStore(store_all=store_all)
    store.limits = SMALL
    store.install(PAIRS)
    store.apply(quads(P, 2))
    before, counts = content(store), store.counts()
    changes = np.concatenate([quads(P, count), quads(9, 5), quads(Q, count), quads(P, 3)])
    with pytest.raises(LimitError) as raised:
        store.apply(changes)
    assert raised.value.limit == "flush_bytes"
    assert content(store) != before
    restored = store.rebuilt(store.undo(changes))
    assert content(restored) == before
    assert restored.counts() == counts


def test_a_delete_that_changes_too_many_rows_can_be_undone():
    store = QuadStore()
    store.limits = SMALL
    store.apply(np.concatenate([quads(P, 1), quads(Q, 3000)]))
    before = content(store)
    store.install(PAIRS)
    changes = np.concatenate([quads(Q, 1, -1), quads(P, 1, -1), quads(Q, 2999, -1)])
    with pytest.raises(LimitError):
        store.apply(changes)
    restored = store.rebuilt(store.undo(changes))
    assert content(restored) == before
    number = restored.install(PAIRS)
    assert len(restored.apply(quads(Q, 1, -1))[number]) == 1


def test_an_evaluation_that_finds_too_much():
    store = QuadStore()
    number = store.install(PAIRS)
    store.apply(np.concatenate([quads(P, 100), quads(Q, 100)]))
    with Allowance(SMALL, "query"), pytest.raises(LimitError, match="query_bytes"):
        store.evaluate(number)
    assert pair_count(store, number) == 100 * 100


def test_an_evaluation_that_takes_too_long():
    store = QuadStore()
    number = store.install(PAIRS)
    store.apply(quads(P, 10))
    with Allowance(Limits(query_seconds=1e-9), "query"), pytest.raises(LimitError):
        store.evaluate(number)
    assert pair_count(store, number) == 0
