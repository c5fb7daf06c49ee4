"""One large transaction is applied at once, and gives what its changes give one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import needs_jit, net, often
from kernel.quads import as_changes, nets, programs, streams

from graphtide.errors import LimitError
from graphtide.kernel.search import arrays, quadstore
from graphtide.kernel.search.program import SearchProgram
from graphtide.kernel.search.quadstore import QuadStore
from graphtide.kernel.twin import QuadStore as Twin
from graphtide.limits import Limits

pytestmark = needs_jit

FROM, TO = 7, 8
PATHS = SearchProgram(((-1, FROM, -2, 0), (-2, TO, -3, 0)), outputs=3)


def in_one(changes):
    """The changes as one transaction, the first."""
    one = changes.copy()
    one[:, 0] = 0
    return one


@often
@given(st.lists(programs(), min_size=1, max_size=3), st.lists(streams(), min_size=1, max_size=3))
def test_transactions_applied_at_once_agree_with_the_twin(installed, transactions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quadstore, "BULK", 0)
        patch.setattr(quadstore, "BULK_SHARE", 0)
        stores = QuadStore(), Twin()
        for program in installed:
            for store in stores:
                store.install(program)
        for changes in map(in_one, transactions):
            kernel, twin = (store.apply(changes) for store in stores)
            assert nets(kernel, net) == nets(twin, net)
            assert all(set(map(abs, batch[:, 1].tolist())) <= {1} for batch in kernel.values())
            assert stores[0].counts() == stores[1].counts()
            assert sorted(stores[0].quads().tolist()) == sorted(stores[1].quads().tolist())
        restored = stores[0].rebuilt(stores[0].undo(changes))
        replayed = Twin()
        for before in map(in_one, transactions[:-1]):
            replayed.apply(before)
        assert sorted(restored.quads().tolist()) == sorted(replayed.quads().tolist())


def random_paths(seed, count, nodes):
    """A transaction of inserts and deletes, with repetitions, over a few thousand nodes."""
    rng = np.random.default_rng(seed)
    changes = np.zeros((count, 6), np.int32)
    changes[:, 1] = rng.choice([1, 1, 1, -1], count)
    changes[:, 2], changes[:, 4] = rng.integers(100, 100 + nodes, (2, count))
    changes[:, 3] = rng.choice([FROM, TO], count)
    return changes


@pytest.mark.parametrize("count", [30_000, 300_000])
def test_a_large_transaction_is_that_of_its_changes(count):
    """Also one that makes a store so large that its quads are fetched ahead."""
    changes = random_paths(3, count, 200_000 if count > arrays.LARGE else 4_000)
    stored = random_paths(4, 3_000, 4_000)
    at_once, one_by_one = QuadStore(), QuadStore()
    numbers = [store.install(PATHS) for store in (at_once, one_by_one)]
    for store in (at_once, one_by_one):
        store.apply(stored)
    apart = changes.copy()
    apart[:, 0] = np.arange(len(apart))
    found = at_once.apply(changes)[numbers[0]]
    each = one_by_one.apply(apart)[numbers[1]]
    each[:, 0] = 0
    assert net(found) == net(each)
    assert at_once.counts() == one_by_one.counts()
    quads = {tuple(quad) for quad in at_once.quads().tolist()}
    starts = {}
    for s, p, o, _ in quads:
        if p == TO:
            starts.setdefault(s, []).append(o)
    paths = {(s, o, end) for s, p, o, _ in quads if p == FROM for end in starts.get(o, ())}
    assert net(at_once.evaluate(numbers[0])) == {0: dict.fromkeys(paths, 1)}


def test_a_limit_inside_a_large_transaction_leaves_what_can_be_undone():
    store = QuadStore()
    store.limits = Limits(flush_bytes=50_000)
    store.install(SearchProgram(((-1, FROM, -2, 0), (-3, TO, -4, 0)), outputs=4))
    store.apply(as_changes([(0, 1, 1, FROM, 1, 0)]))
    before = store.counts()
    changes = random_paths(5, 3_000, 1_000)
    with pytest.raises(LimitError) as raised:
        store.apply(changes)
    assert raised.value.limit == "flush_bytes"
    restored = store.rebuilt(store.undo(changes))
    assert restored.quads().tolist() == [[1, FROM, 1, 0]]
    assert restored.counts() == before


def test_a_large_transaction_finds_room_that_deletes_have_left():
    """The table grows for it although there is room for its first changes."""
    store = QuadStore()
    store.install(SearchProgram(((-1, FROM, -2, 0),), outputs=2))
    for first, end, diff in ((1, 30_001, 1), (1, 29_001, -1)):
        changes = np.zeros((end - first, 6), np.int32)
        changes[:, 0], changes[:, 1], changes[:, 3] = np.arange(end - first), diff, FROM
        changes[:, 2] = changes[:, 4] = np.arange(first, end)
        store.apply(changes)
    large = np.zeros((100_000, 6), np.int32)
    large[:, 1], large[:, 3] = 1, FROM
    large[:, 2] = large[:, 4] = np.arange(100_000, 200_000)
    store.apply(large)
    assert sorted(store.quads()[:, 0].tolist()) == [
        *range(29_001, 30_001),
        *range(100_000, 200_000),
    ]


def test_a_load_into_an_empty_store_leaves_what_single_inserts_leave():
    """With repetitions, with an index that comes later, and until half of it is deleted again."""
    changes = random_paths(6, 40_000, 4_000)
    changes[:, 1] = 1
    apart = changes.copy()
    apart[:, 0] = np.arange(len(apart))
    back = SearchProgram(((-1, FROM, -2, 0), (-3, FROM, -2, 0)), outputs=3)
    loaded, filled = QuadStore(), QuadStore()
    for store, batch in ((loaded, changes), (filled, apart)):
        store.install(PATHS)
        store.apply(batch)
        store.install(back)
    assert loaded.counts() == filled.counts()
    assert loaded.counts()["redundant"] > 0
    assert loaded.undo(changes).tolist()[::-1] == [
        [0, -1, *quad] for quad in dict.fromkeys(map(tuple, changes[:, 2:].tolist()))
    ]
    assert loaded.quads().tolist() == filled.quads().tolist()
    deleted = apart[::2].copy()
    deleted[:, 1] = -1
    assert nets(loaded.apply(deleted), net) == nets(filled.apply(deleted), net)
    assert net(loaded.evaluate(1)) == net(filled.evaluate(1))
    into = next(o for _, p, o, _ in loaded.quads().tolist() if p == FROM)
    chains = [store.chain((-1, FROM, into, 0)).tolist() for store in (loaded, filled)]
    assert chains[0] == chains[1] != []
