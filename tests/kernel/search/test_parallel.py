"""A store whose changes are searched in several threads, against one with a single thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import in_order, net, often
from kernel.quads import graph_streams, nets, programs, streams

from graphtide.kernel.search import parallel, quadstore
from graphtide.kernel.search.arrays import VERSION
from graphtide.kernel.search.program import ExistsCheck, SearchProgram
from graphtide.kernel.search.quadstore import QuadStore
from graphtide.kernel.workers import Workers

A, B, C = -1, -2, -3
LONELY = SearchProgram(((A, 7, B, 0),), 2, (ExistsCheck(True, ((B, 7, C, 0),)),))


@pytest.fixture(scope="module")
def workers():
    """Three threads, for however few changes; each searches a few at a time."""
    found = Workers(3)
    found.worth = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "SLICE", 2)
        patch.setattr(parallel, "EVALUATED_AT_ONCE", 4)
        patch.setattr(quadstore, "PART", 16)
        yield found
    found.close()


def expect_same(parallel, plain, changes):
    found, expected = parallel.apply(changes), plain.apply(changes)
    assert nets(found, net) == nets(expected, net)
    assert all(in_order(batch) and len(batch) for batch in found.values())
    assert parallel.counts() == plain.counts()
    assert sorted(parallel.quads().tolist()) == sorted(plain.quads().tolist())


def random_changes(seed, many=400, nodes=30):
    rng = np.random.default_rng(seed)
    changes = np.zeros((many, 6), np.int32)
    changes[:, 0], changes[:, 3] = np.arange(many), 7
    changes[:, 1] = rng.choice([1, 1, -1], many)
    changes[:, [2, 4]] = rng.integers(1, nodes, (many, 2))
    return changes


@often
@given(st.lists(programs(), min_size=1, max_size=3), streams(), st.data())
def test_random_programs_that_come_and_go(workers, installed, changes, data):
    store_all = data.draw(st.booleans())
    several = QuadStore(store_all=store_all, workers=workers)
    plain = QuadStore(store_all=store_all)
    cut = data.draw(st.integers(0, len(changes)))
    numbers = []
    for at, program in enumerate(installed):
        if at == 1:  # the first is there before any quad, the others are not
            expect_same(several, plain, changes[:cut])
        number = several.install(program)
        assert plain.install(program) == number
        numbers.append(number)
        assert net(several.evaluate(number)) == net(plain.evaluate(number))
    if len(installed) == 1:
        expect_same(several, plain, changes[:cut])
    if data.draw(st.booleans()):
        gone = numbers.pop(0)
        several.remove(gone)
        plain.remove(gone)
    expect_same(several, plain, changes[cut:])
    for number in numbers:
        assert net(several.evaluate(number)) == net(plain.evaluate(number))


@often
@given(programs(), graph_streams(4, (1, 2)), st.integers(1, 9))
def test_quads_that_change_again_and_again(workers, program, changes, worth):
    """Short parts are followed by changes that one thread applies."""
    few = Workers(workers.threads)
    few.worth, few._pool = worth, workers._pool
    several, plain = QuadStore(workers=few), QuadStore()
    assert several.install(program) == plain.install(program)
    expect_same(several, plain, changes)


def test_many_changes(workers):
    """Tables grow between parts, and each part is searched in slices."""
    several, plain = QuadStore(workers=workers), QuadStore()
    for program in (LONELY, SearchProgram(((A, 7, B, 0), (B, 7, C, 0), (C, 7, A, 0)), 3)):
        assert several.install(program) == plain.install(program)
    for seed in range(3):
        expect_same(several, plain, random_changes(seed, 2500, 60))


def test_all_threads_search(workers):
    seen, gate = set(), threading.Barrier(3, timeout=60)

    def work(space, begin):
        if begin < 3:  # each thread takes one of these, and waits for the others
            gate.wait()
        seen.add(threading.get_ident())
        return np.array([[begin]], np.int32)

    found = parallel.ParallelSearch(workers)._divided([None] * 3, range(9), work)
    assert np.concatenate(found)[:, 0].tolist() == list(range(9))
    assert len(seen) == 3


def test_versions_begin_anew(workers):
    several, plain = QuadStore(workers=workers), QuadStore()
    assert several.install(LONELY) == plain.install(LONELY)
    several._version = quadstore.LAST_VERSION - 40
    for seed in range(8):
        expect_same(several, plain, random_changes(seed, 40))
    versions = several._table.arrays.rows[:, VERSION]
    assert several._version < 1000
    assert versions.max() < 1000


@pytest.mark.parametrize("failing", [1, 2, 5])
def test_a_search_that_fails(workers, failing, monkeypatch):
    """The error comes out; what was applied can be undone; then all goes on."""
    changes = random_changes(failing)
    several, plain = QuadStore(workers=workers), QuadStore()
    several.install(LONELY)
    several.apply(changes[:200])
    plain.apply(changes[:200])
    search, calls = parallel.search_changes, []

    def fail(*args):
        calls.append(args)
        if len(calls) == 10 * failing:
            raise MemoryError("no room")
        return search(*args)

    with monkeypatch.context() as patch:
        patch.setattr(parallel, "search_changes", fail)
        with pytest.raises(MemoryError, match="no room"):
            several.apply(rest := changes[200:])
    undone = several.undo(rest)
    assert len(undone)
    other = several.rebuilt(undone)
    assert sorted(other.quads().tolist()) == sorted(plain.quads().tolist())
    again = other.install(LONELY)
    assert plain.install(LONELY) == again
    assert net(other.evaluate(again)) == net(plain.evaluate(again))
    expect_same(other, plain, rest)


def test_threads_end_and_the_calling_one_goes_on():
    workers = Workers(2)
    workers.worth = 0
    store = QuadStore(workers=workers)
    number = store.install(SearchProgram(((A, 7, B, 0),), 2))
    assert len(store.apply(np.array([[0, 1, 1, 7, 2, 0]], np.int32))[number]) == 1
    workers.close()
    assert len(store.apply(np.array([[0, -1, 1, 7, 2, 0]], np.int32))[number]) == 1
