"""Blocks of addresses: loops read and write the arrays; who has a block is not copied."""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np
import pytest
from kernel.batches import needs_jit

from graphtide.jit import compiled
from graphtide.kernel.batch import make_batch
from graphtide.kernel.counts import Answer
from graphtide.kernel.search.quadstore import QuadStore
from graphtide.views import Block, floats1, ints1, ints2, longs1, longs2, make_block


@compiled
def add_all(block: Block):
    """Add to one cell of each array, and return the sum of the shapes, as digits."""
    a, b, c = ints1(block, 0), ints2(block, 1), longs1(block, 2)
    d, e = longs2(block, 3), floats1(block, 4)
    a[1] += 1
    b[1, 2] += 2
    c[0] += 3
    d[2, 1] += 4
    e[1] += 0.5
    ends = len(a) * 10_000_000 + b.shape[0] * 1_000_000 + b.shape[1] * 100_000
    return ends + len(c) * 10_000 + d.shape[0] * 1000 + d.shape[1] * 100 + len(e)


def test_loops_read_and_write_the_arrays_of_a_block():
    arrays = [
        np.zeros(2, np.int32),
        np.zeros((2, 3), np.int32),
        np.full(1, 1 << 40, np.int64),
        np.zeros((3, 2), np.int64),
        np.zeros(4),
    ]
    block = make_block(arrays)
    assert [add_all(block), add_all(block)] == [22_313_204, 22_313_204]
    assert [array.tolist() for array in arrays] == [
        [0, 2],
        [[0, 0, 0], [0, 0, 4]],
        [(1 << 40) + 6],
        [[0, 0], [0, 0], [0, 8]],
        [0, 1.0, 0, 0],
    ]


@needs_jit
@pytest.mark.parametrize("duplicate", [copy, deepcopy])
def test_who_has_a_block_is_not_copied(duplicate):
    answer = Answer(1)
    answer.step(make_batch([(0, 1, 7)], 1))
    for holder in (answer, QuadStore()):
        with pytest.raises(TypeError, match="is not copied"):
            duplicate(holder)


@needs_jit
def test_an_answer_that_has_shrunk_goes_on_in_its_new_table():
    """Whose arrays are others than those of the block before."""
    answer, many = Answer(1), 100_000
    rows = np.zeros((many, 3), np.int32)
    rows[:, 1], rows[:, 2] = 1, np.arange(1, many + 1)
    answer.step(rows)
    gone = rows[10:].copy()
    gone[:, 1] = -1
    answer.step(gone)
    assert answer.step(make_batch([(0, 1, 3), (0, 1, many)], 1)).tolist() == [
        [0, 1, 1, 3],
        [0, 1, 0, many],
    ]
    assert sorted(answer.rows().tolist()) == [
        *([n, 1 + (n == 3)] for n in range(1, 11)),
        [many, 1],
    ]
