"""Random batches, and how two of them are compared."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from graphtide.kernel import JIT
from graphtide.kernel.batch import make_batch

needs_jit = pytest.mark.skipif(not JIT, reason="compares compiled loops with their twins")

often = settings(deadline=None, max_examples=200)
"""No deadline: the first call of a compiled loop may have to compile it."""

DIFFS = st.sampled_from([1, 1, 1, -1, -1, 2, -2])


def net(batch, first=2):
    """What each transaction did in the end: {transaction: {row: count}}, without zeros."""
    total = {}
    for tx, diff, *row in batch.tolist():
        total.setdefault(tx, Counter())[tuple(row[first - 2 :])] += diff
    nonzero = {tx: {r: n for r, n in rows.items() if n} for tx, rows in total.items()}
    return {tx: rows for tx, rows in nonzero.items() if rows}


def in_order(batch):
    return bool(np.all(np.diff(batch[:, 0]) >= 0))


@st.composite
def batches(draw, width, most=12, values=3):
    """Rows in transaction order: duplicates, unbound values (0), negative multiplicities."""
    row = st.tuples(st.integers(0, 3), DIFFS, *[st.integers(0, values)] * width)
    return make_batch(sorted(draw(st.lists(row, max_size=most)), key=lambda r: r[0]), width)


@st.composite
def column_pairs(draw, left, right):
    """Pairs of columns, no column twice; some of them for keys, some loose."""
    lefts = draw(st.permutations(range(left)))
    rights = draw(st.permutations(range(right)))
    pairs = list(zip(lefts, rights, strict=False))
    cut = draw(st.integers(0, len(pairs)))
    end = draw(st.integers(cut, len(pairs)))
    return pairs[:cut], pairs[cut:end]
