"""A store that divides its programs among threads, against one that does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import in_order, net, often
from kernel.quads import nets, programs, streams

from graphtide.kernel import QuadStore
from graphtide.kernel.search.divided import DividedStore
from graphtide.kernel.search.program import ExistsCheck, SearchProgram
from graphtide.kernel.workers import Workers

A, B, C = -1, -2, -3


@pytest.fixture(scope="module")
def workers():
    found = Workers(3)
    found.worth = 0
    yield found
    found.close()


def expect_same(divided, plain, changes):
    found, expected = divided.apply(changes), plain.apply(changes)
    assert nets(found, net) == nets(expected, net)
    assert all(in_order(batch) and len(batch) for batch in found.values())
    assert divided.counts() == plain.counts()
    assert sorted(divided.quads().tolist()) == sorted(plain.quads().tolist())


@often
@given(st.lists(programs(), min_size=1, max_size=3), streams(), st.data())
def test_random_programs_that_come_and_go(workers, installed, changes, data):
    divided, plain = DividedStore(workers), QuadStore()
    cut = data.draw(st.integers(0, len(changes)))
    numbers = []
    for at, program in enumerate(installed):
        if at == 1:  # the first is there before any quad, the others are not
            expect_same(divided, plain, changes[:cut])
        number = divided.install(program)
        assert plain.install(program) == number
        if data.draw(st.booleans()):
            divided.follow(number)
        numbers.append(number)
        assert net(divided.evaluate(number)) == net(plain.evaluate(number))
    if len(installed) == 1:
        expect_same(divided, plain, changes[:cut])
    if data.draw(st.booleans()):
        gone = numbers.pop(0)
        divided.remove(gone)
        plain.remove(gone)
    expect_same(divided, plain, changes[cut:])
    for number in numbers:
        assert net(divided.evaluate(number)) == net(plain.evaluate(number))


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_part_that_fails(workers, failing, monkeypatch):
    """The error comes out; what was applied can be undone; then all goes on."""
    program = SearchProgram(((A, 7, B, 0),), 2, (ExistsCheck(True, ((B, 7, C, 0),)),))
    rng = np.random.default_rng(failing)
    changes = np.zeros((400, 6), np.int32)
    changes[:, 0], changes[:, 3] = np.arange(400), 7
    changes[:, 1] = rng.choice([1, 1, -1], 400)
    changes[:, [2, 4]] = rng.integers(1, 30, (400, 2))
    divided, plain = DividedStore(workers), QuadStore()
    number = divided.install(program)
    divided.follow(number)
    divided.apply(changes[:200])
    plain.apply(changes[:200])
    broken = divided._parts[failing]

    def fail(_):
        raise MemoryError("no room")

    monkeypatch.setattr(broken, "apply", fail)
    with pytest.raises(MemoryError, match="no room"):
        divided.apply(rest := changes[200:])
    undone = divided.undo(rest)
    assert len(undone)
    other = divided.rebuilt(undone)
    assert sorted(other.quads().tolist()) == sorted(plain.quads().tolist())
    again = other.install(program)
    other.follow(again)
    assert plain.install(program) == again
    assert net(other.evaluate(again)) == net(plain.evaluate(again))
    expect_same(other, plain, rest)


def test_parts_are_made_anew_if_filling_them_fails(workers, monkeypatch):
    divided, plain = DividedStore(workers), QuadStore()
    changes = np.array([[n, 1, n % 9 + 1, 7, n % 5 + 1, 0] for n in range(40)], np.int32)
    divided.apply(changes)
    plain.apply(changes)
    number = divided.install(program := SearchProgram(((A, 7, B, 0), (B, 7, C, 0)), 3))
    assert plain.install(program) == number
    divided.follow(number)

    def fail(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(divided._parts[1], "apply", fail)
    with pytest.raises(KeyboardInterrupt):
        divided.evaluate(number)
    deletes = changes[:20].copy()
    deletes[:, 1] = -1
    expect_same(divided, plain, deletes)
    assert net(divided.evaluate(number)) == net(plain.evaluate(number))


def test_threads_end_and_the_calling_one_goes_on():
    workers = Workers(2)
    workers.worth = 0
    store = DividedStore(workers)
    number = store.install(SearchProgram(((A, 7, B, 0),), 2))
    store.follow(number)
    assert len(store.apply(np.array([[0, 1, 1, 7, 2, 0]], np.int32))[number]) == 1
    workers.close()
    assert len(store.apply(np.array([[0, -1, 1, 7, 2, 0]], np.int32))[number]) == 1
