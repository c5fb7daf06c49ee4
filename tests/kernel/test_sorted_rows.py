"""Rows in the order of numbers, against a sorted list."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from graphtide.kernel import JIT
from graphtide.kernel.batch import make_batch
from graphtide.kernel.groups import NOT_HERE, NOT_LEARNED
from graphtide.kernel.sorted_rows import BEFORE_ALL, SortedRows

pytestmark = pytest.mark.skipif(not JIT, reason="the kernel is compiled")

KNOWN = 4
NUMBERS = np.random.default_rng(1).permutation(3000) / 2
CLASSES = np.full(len(NUMBERS), KNOWN, np.int32)


def add(rows, lines, bound=BEFORE_ALL, begin=0):
    batch = make_batch(lines, 2)
    rows.reserve(batch)
    return rows.step(batch, begin, KNOWN, CLASSES, NUMBERS, bound)


@pytest.mark.parametrize("values", [5, 300, 2999])
@pytest.mark.parametrize("descending", [False, True])
def test_rows_after_a_bound_are_those_of_a_sorted_list(descending, values):
    rows = SortedRows(2, 1, descending=descending)
    sign = -1 if descending else 1
    chance = random.Random(values)
    present: Counter[tuple[int, int]] = Counter()
    for step in range(8):
        lines = []
        for _ in range(800):
            if present and chance.random() < (0.3 if step < 5 else 0.7):
                row, diff = chance.choice([*present]), -1
            else:
                row, diff = (chance.randrange(20), chance.randint(1, values)), 1
            present[row] += diff
            if not present[row]:
                del present[row]
            lines.append((0, diff, *row))
        assert add(rows, lines) == len(lines)
        for _ in range(20):
            bound = chance.choice([BEFORE_ALL, sign * chance.randint(-1, 1501) / 2])
            least = chance.choice((1, 10, 200))
            expected = Counter(
                {row: n for row, n in present.items() if not sign * NUMBERS[row[1]] <= bound}
            )
            numbers = sorted(sign * NUMBERS[value] for _, value in expected)
            found, reached = rows.after(bound, least)
            assert len(found) >= min(least, len(expected))
            assert {(a, v): n for a, v, n in found.tolist()} == {
                row: n for row, n in expected.items() if sign * NUMBERS[row[1]] <= reached
            }
            assert reached in numbers or (reached == np.inf and len(found) == len(expected))
    assert sorted(set(rows.ids().tolist())) == sorted({value for _, value in present})
    assert len(rows) == len(present)


def test_the_first_row_up_to_the_bound_stops():
    rows = SortedRows(2, 1, descending=False)
    order = np.argsort(NUMBERS[1:]) + 1
    lines = [(0, 1, 1, int(order[at])) for at in (9, 5, 8, 4, 7)]
    bound = NUMBERS[order[5]]
    assert add(rows, lines, bound) == 1
    assert add(rows, lines, bound, begin=2) == 3
    assert add(rows, lines, bound, begin=4) == 5
    assert len(rows) == 5


@pytest.mark.parametrize(("value", "why"), [(0, NOT_HERE), (len(NUMBERS), NOT_LEARNED)])
def test_nothing_is_added_of_a_batch_with_an_unknown_value(value, why):
    rows = SortedRows(2, 1, descending=False)
    assert add(rows, [(0, 1, 1, 1), (0, 1, 1, value)]) == why
    assert len(rows) == 0
