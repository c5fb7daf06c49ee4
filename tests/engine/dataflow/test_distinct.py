"""DISTINCT in parts of a batch: the same changes, and room for the rows that differ."""

from __future__ import annotations

import numpy as np
import pytest

from graphtide.engine.dataflow.operators import AT_ONCE, DistinctRows
from graphtide.kernel import DistinctKernel


def batch(rows, different, seed):
    """Rows of two columns with that many different values, come and gone in transactions."""
    random = np.random.default_rng(seed)
    values = random.integers(1, different + 1, rows)
    diffs = np.concatenate([np.ones(rows // 2, int), random.choice([1, -1], rows - rows // 2)])
    seen: dict[int, int] = {}
    for at, value in enumerate(values.tolist()):
        if not seen.get(value):
            diffs[at] = 1  # what is not there cannot go
        seen[value] = seen.get(value, 0) + diffs[at]
    return np.column_stack([np.arange(rows) // 7, diffs, values, values % 5]).astype(np.int32)


@pytest.mark.parametrize("rows", [0, 1, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE])
def test_parts_give_the_changes_of_the_whole(rows):
    changes = batch(rows, 50, seed=rows)
    operator, whole = DistinctRows(2), DistinctKernel(2)
    assert operator.step(changes).tolist() == whole.step(changes).tolist()
    assert operator.sizes() == whole.sizes()


def test_equal_rows_take_no_room():
    operator, part = DistinctRows(2), DistinctKernel(2)
    changes = batch(20 * AT_ONCE, 50, seed=1)
    operator.step(changes)
    part.step(changes[:AT_ONCE])
    assert operator.nbytes <= 2 * part.nbytes
