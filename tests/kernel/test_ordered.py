"""Trees of values in order, against sorted lists: ids, counts, extremes, and blocks given back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphtide.jit import JIT, compiled
from graphtide.kernel.ordered import (
    FREE,
    FREE_MARK,
    HIGH,
    ID,
    LARGEST,
    LIVE,
    THIN,
    TOP,
    USED,
    OrderedValues,
    Trees,
    change_times,
    class_of,
    count_of,
    height_of,
    outermost,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.arrays import Int, Ints2, Longs1

pytestmark = pytest.mark.skipif(not JIT, reason="trees are compiled")

Change = tuple[int, int, int]
"""A tree, a value, and its diff."""


@compiled
def change_all(t: Trees, roots: Longs1, changes: Ints2, before: Longs1) -> None:
    """Apply changes; how often each value was there."""
    for i in range(len(changes)):
        tree, value = changes[i, 0], changes[i, 1]
        # Ids are in another order than keys.
        root, was = change_times(t, roots[tree], 1000 - value, float(value) / 3, changes[i, 2])
        roots[tree], before[i] = root, was


@compiled
def end_of(t: Trees, root: Int, last: Int) -> Int:
    """The id of the first or the last value."""
    return t.cells[outermost(t, root, last), ID]


class Forest:
    """Trees under test, and a counter of values for each."""

    def __init__(self, trees: int) -> None:
        self.values = OrderedValues()
        self.roots = np.zeros(trees, np.int64)
        self.expected: list[Counter[int]] = [Counter() for _ in range(trees)]

    def change(self, changes: Sequence[Change]) -> None:
        """Apply changes in one call, and check how often values were there."""
        before = np.zeros(len(changes), np.int64)
        expected = []
        for tree, value, diff in changes:
            expected.append(self.expected[tree][value])
            self.expected[tree][value] += diff
            if not self.expected[tree][value]:
                del self.expected[tree][value]
        self.values.reserve(len(changes))
        batch = np.array(changes, np.int32).reshape(-1, 3)
        change_all(self.values.arrays, self.roots, batch, before)
        assert before.tolist() == expected

    def check(self) -> None:
        """Compare all trees with their counters, and what they use with what is taken."""
        used = 0
        for root, counter in zip(self.roots.tolist(), self.expected, strict=True):
            inside = [(1000 - value, times) for value, times in sorted(counter.items())]
            assert list(self.values.values(root)) == inside
            if inside:
                ends = [end_of(self.values.arrays, root, last) for last in (0, 1)]
                assert ends == [inside[0][0], inside[-1][0]]
                used += self._units(root)
            else:
                assert root == 0
        t = self.values.arrays
        assert t.meta[LIVE] == sum(map(len, self.expected))
        assert t.meta[USED] == used
        assert self._free() == t.meta[HIGH] - used
        ids = sorted(1000 - value for counter in self.expected for value in counter)
        assert sorted(self.values.ids(self.roots).tolist()) == ids

    def _units(self, root: int) -> int:
        """Entries of all blocks of a tree, which has no thin ones."""
        t = self.values.arrays
        units, level = 1 << class_of(root), [(place_of(root), count_of(root))]
        assert count_of(root) > 1 or height_of(root) == 0
        for _ in range(height_of(root)):
            level = [tuple(cell) for at, n in level for cell in t.cells[at : at + n].tolist()]
            units += LARGEST * len(level)
            assert all(THIN - 1 <= count <= LARGEST for _, count in level)
        return int(units)

    def _free(self) -> int:
        """Entries of all free blocks."""
        t = self.values.arrays
        found = 0
        for size in range(TOP + 1):
            place = int(t.meta[FREE + size])
            while place:
                assert t.words[place - 1] == FREE_MARK + size
                found += 1 << size
                place = int(t.cells[place - 1, 0])
        return found


small = st.tuples(st.integers(0, 3), st.integers(0, 20), st.sampled_from([-2, -1, 0, 1, 1, 2]))


@given(st.lists(st.lists(small, max_size=40), max_size=5))
def test_small_trees_are_sorted_lists(batches: list[list[Change]]) -> None:
    forest = Forest(4)
    for batch in batches:
        forest.change(batch)
        forest.check()


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
@pytest.mark.parametrize("removed", ["ascending", "descending", "random", "others"])
def test_a_tree_of_several_levels_grows_and_shrinks(order: str, removed: str) -> None:
    random = np.random.default_rng(5)
    forest = Forest(3)
    many = 40_000

    def sequence(name: str) -> list[int]:
        values = np.arange(many)
        if name == "descending":
            return values[::-1].tolist()  # type: ignore[no-any-return]
        return (values if name == "ascending" else random.permutation(values)).tolist()  # type: ignore[no-any-return]

    forest.change([(0, value, 1) for value in sequence(order)])
    forest.check()
    assert height_of(forest.roots[0]) == 2
    high = int(forest.values.arrays.meta[HIGH])
    gone = sequence(removed)
    for part in np.array_split(np.array(gone), 7):
        forest.change([(0, value, -1) for value in part.tolist()])
        forest.check()
        if removed == "others":
            forest.change([(1, value + many, 1) for value in part.tolist()])
            forest.check()
    assert forest.roots[0] == 0
    if removed != "others":
        forest.change([(2, value, 1) for value in sequence("random")])
        assert forest.values.arrays.meta[HIGH] <= 2 * high


def test_changes_at_random_in_trees_of_all_sizes() -> None:
    random = np.random.default_rng(6)
    forest = Forest(6)
    for _ in range(60):
        tree = random.integers(0, 6, 400)
        value = (random.random(400) * 4.0 ** (1 + tree)).astype(np.int64)
        diff = random.choice([-1, 1, 1] if random.random() < 0.6 else [-1, -1, 1], 400)
        forest.change(np.column_stack([tree, value, diff]).tolist())
        forest.check()


def test_a_group_of_one_value_takes_one_entry() -> None:
    forest = Forest(10_000)
    forest.change([(tree, tree, 1) for tree in range(10_000)])
    forest.check()
    assert forest.values.nbytes <= 16 * (10_000 + LARGEST)


def test_groups_that_grow_together_reuse_what_smaller_ones_had() -> None:
    forest = Forest(1000)
    for value in range(100):
        forest.change([(tree, value, 1) for tree in range(1000)])
    forest.check()
    assert forest.values.nbytes <= 1000 * 100 * 24  # 128 entries of 16 bytes, and some free ones
