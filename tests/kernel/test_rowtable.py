"""Row tables under stress: endless churn, growth, colliding fingerprints, long chains.

The operators drive them, as they do in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from kernel.batches import needs_jit, net

from graphtide.jit import compiled
from graphtide.kernel.batch import empty_batch, make_batch
from graphtide.kernel.counts import Answer, DistinctKernel
from graphtide.kernel.joins import JoinKernel, SemiJoinKernel
from graphtide.kernel.rowtable import RowTable, Table, key_hash, row_hash
from graphtide.kernel.search.program import ExistsCheck, SearchProgram
from graphtide.kernel.search.quadstore import QuadStore

if TYPE_CHECKING:
    from graphtide.arrays import Int, Ints2

pytestmark = needs_jit

PAIRS = 300_000
STEP = 1000
LIVE = 50


@compiled
def mark_of_row(rows: Ints2, i: Int) -> Int:
    return row_hash(1, rows, i, 0)


@compiled
def mark_of_key(table: Table, rows: Ints2, i: Int) -> Int:
    return key_hash(table, 0, rows, i)


def alive(width):
    """The rows to begin with: -50 to -1, the number in every column."""
    return make_batch([(0, 1, *[v] * width) for v in range(-LIVE, 0)], width)


def churn(width):
    """Batches that put the next row in and take out the one that came 25 rows earlier."""
    for begin in range(0, PAIRS, STEP):
        coming = np.arange(begin, begin + STEP, dtype=np.int32)
        values = np.stack([coming, coming - 25], axis=1).reshape(-1, 1)
        batch = np.repeat(values, 2 + width, axis=1)
        batch[:, 0] = np.arange(2 * STEP)
        batch[:, 1] = np.tile([1, -1], STEP)
        yield batch


LEFT_ALIVE = {*range(-LIVE, -25), *range(PAIRS - 25, PAIRS)}


@pytest.mark.parametrize("kind", [DistinctKernel, Answer])
def test_endless_churn_of_rows_does_not_grow_a_table(kind):
    table, sizes = kind(2), set()
    table.step(alive(2))
    for batch in churn(2):
        table.step(batch)
        sizes.add(table.nbytes)
    assert len(sizes) == 1
    assert max(sizes) < 200_000
    out = table.step(make_batch([(0, -1, v, v) for v in sorted(LEFT_ALIVE)], 2))
    assert out[:, -1].tolist() == sorted(LEFT_ALIVE)
    assert set(out[:, 1].tolist()) == {-1}


@pytest.mark.parametrize(
    "operator",
    [
        JoinKernel(2, 1, keys=[(0, 0)], outputs=[(0, 0), (1, -1)]),
        SemiJoinKernel(2, columns=[0], negated=False),
    ],
    ids=["join", "semijoin"],
)
def test_endless_churn_of_keys_does_not_grow_a_memory(operator):
    operator.step(alive(2), alive(1))
    sizes = set()
    for left, right in zip(churn(2), churn(1), strict=True):
        operator.step(left, right)
        sizes.add(operator.nbytes)
    assert len(sizes) == 1
    assert max(sizes) < 400_000
    assert operator.sizes() == {"left": LIVE, "right": LIVE}
    out = operator.step(empty_batch(2), make_batch([(0, -1, v) for v in range(-LIVE, PAIRS)], 1))
    assert net(out) == {0: {(v, v): -1 for v in LEFT_ALIVE}}


def test_endless_churn_of_quads_does_not_grow_the_store():
    store = QuadStore()
    check = ExistsCheck(True, ((-3, 7, -4, 0),))
    number = store.install(SearchProgram(((-1, 7, -2, 0), (-2, 8, -3, 0)), 3, (check,)))

    def quads(rows):
        """Row v as the quad (100 + v, 7 or 8, 101 + v): a chain of two alternating predicates."""
        changes = np.zeros((len(rows), 6), np.int32)
        changes[:, :2] = rows[:, :2]
        changes[:, 2] = 100 + rows[:, 2]
        changes[:, 3] = 7 + rows[:, 2] % 2
        changes[:, 4] = 101 + rows[:, 2]
        return changes

    store.apply(quads(alive(1)))
    sizes = set()
    for rows in churn(1):
        store.apply(quads(rows))
        sizes.add(store.nbytes)
    assert len(sizes) == 1
    assert max(sizes) < 1_000_000
    assert sorted(store.quads()[:, 0] - 100) == sorted(LEFT_ALIVE)
    # Each even row is a 7 followed by an 8, and but for the last of them by another 7.
    last = 100 + PAIRS - 2
    assert net(store.evaluate(number)) == {0: {(last, last + 1, last + 2): 1}}


def test_a_table_grows_and_shrinks_without_losing_a_row():
    distinct = DistinctKernel(2)
    numbers = np.random.default_rng(3).permutation(40_000).astype(np.int32)
    rows = np.stack([np.zeros_like(numbers), np.ones_like(numbers), numbers % 211, numbers], axis=1)
    for part in np.array_split(rows, 37):
        assert len(distinct.step(part)) == len(part)
    assert distinct.sizes() == {"rows": 40_000}
    assert len(distinct.step(rows)) == 0  # all were there
    gone = rows * np.array([1, -2, 1, 1], np.int32)
    out = distinct.step(gone)
    assert sorted(out[:, 3].tolist()) == list(range(40_000))
    assert set(out[:, 1].tolist()) == {-1}
    assert distinct.sizes() == {"rows": 0}
    assert len(distinct.step(rows[:100])) == 100


def marks_of(values, start):
    """The fingerprints of rows of one value, computed apart; `start` is the hash of no value."""
    with np.errstate(over="ignore"):
        state = (np.uint64(start) ^ values.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(29)
        return (state * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(33)


def colliding(start, mask):
    """Values whose fingerprints agree with those of others on the bits of `mask`, and the marks."""
    values = np.arange(1, 2_000_000, dtype=np.int32)
    marks = marks_of(values, start) & np.uint64(mask)
    _, place, counts = np.unique(marks, return_inverse=True, return_counts=True)
    return values, place, counts


def collision_cases(start):
    """About 2,000 values that share one home in a large table; some 900 pairs of equal marks."""
    values, place, counts = colliding(start, 1023 << 21)  # the first bits are the home
    same_home = values[place == np.argmax(counts)][:1500]
    values, place, counts = colliding(start, (1 << 31) - 1)
    same_mark = values[counts[place] > 1]
    return same_home, same_mark


@pytest.mark.slow
def test_rows_with_colliding_fingerprints_are_kept_apart():
    same_home, same_mark = collision_cases(start=2)
    assert len(same_home) == 1500 and len(same_mark) > 1000
    probe = same_mark.reshape(-1, 1)
    wanted = marks_of(same_mark, 2)
    assert all(mark_of_row(probe, i) == wanted[i] for i in range(0, len(probe), 100))
    rng = np.random.default_rng(5)
    for values in (same_home, same_mark):
        distinct, present = DistinctKernel(1), set()
        for _ in range(6):
            chosen = rng.permutation(values)[: len(values) // 2]
            diffs = np.where(np.isin(chosen, list(present)), -1, 1)
            batch = np.stack([np.zeros_like(chosen), diffs, chosen], axis=1).astype(np.int32)
            assert distinct.step(batch).tolist() == batch.tolist()
            present ^= set(chosen.tolist())
            assert distinct.sizes() == {"rows": len(present)}


@pytest.mark.slow
def test_keys_with_colliding_fingerprints_have_chains_of_their_own():
    same_home, same_mark = collision_cases(start=1)
    table, probe = RowTable(1, [(0,)]).arrays, same_mark.reshape(-1, 1)
    wanted = marks_of(same_mark, 1)
    assert all(mark_of_key(table, probe, i) == wanted[i] for i in range(0, len(probe), 100))
    rng = np.random.default_rng(6)
    for values in (same_home, same_mark):
        join = JoinKernel(2, 1, keys=[(0, 0)], outputs=[(0, 0), (1, -1)])
        left = [(0, 1, int(v), k) for k in range(3) for v in rng.permutation(values)]
        join.step(make_batch(left, 2), empty_batch(1))
        gone = rng.permutation(values)[: len(values) // 2]
        join.step(make_batch([(0, -1, int(v), k) for v in gone for k in (1, 0)], 2), empty_batch(1))
        out = join.step(empty_batch(2), make_batch([(0, 1, int(v)) for v in values], 1))
        kept = set(values.tolist()) - set(gone.tolist())
        expected = {(v, k): 1 for v in kept for k in range(3)} | {(int(v), 2): 1 for v in gone}
        assert net(out) == {0: expected}
