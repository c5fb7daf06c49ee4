"""Comparisons of calculated numbers, compiled, against their twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import needs_jit, often

from graphtide.kernel.twin import calculate as twin
from graphtide.kernel.values import (
    ADD,
    AT_LEAST,
    COLUMN,
    CONSTANT,
    DOUBLE,
    EQUAL,
    ERROR,
    EXACT,
    FALSE,
    GREATER,
    LESS,
    MULTIPLY,
    NEGATE,
    OPEN,
    STRING,
    SUBTRACT,
    TRUE,
    calculate,
)

pytestmark = needs_jit

NUMBERS = st.sampled_from(
    [0.0, 1.0, -2.0, 3.0, 0.5, 94906267.0, 2.0**52, -(2.0**53), 1e200, float("inf"), float("nan")]
)
KINDS = st.sampled_from([EXACT, EXACT, EXACT, DOUBLE, STRING, 10])


@st.composite
def sides(draw, terms):
    """Steps that leave one number on the stack."""
    load = st.one_of(
        st.tuples(st.just(COLUMN), st.integers(0, 1)),
        st.tuples(st.just(CONSTANT), st.integers(0, terms)),
    )
    steps = [draw(load)]
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            steps += [draw(load), (draw(st.sampled_from([ADD, SUBTRACT, MULTIPLY])), 0)]
        else:
            steps.append((NEGATE, 0))
    return steps


@st.composite
def cases(draw):
    terms = draw(st.lists(st.tuples(KINDS, NUMBERS), min_size=1, max_size=5))
    kinds = np.array([0, *(kind for kind, _ in terms)], np.int8)
    numbers = np.array([0.0, *(number for _, number in terms)])
    steps = draw(sides(len(terms))) + draw(sides(len(terms)))
    ids = st.integers(0, len(terms))
    rows = draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=4))
    op = draw(st.integers(EQUAL, AT_LEAST))
    return op, np.array(steps, np.int32), np.array(rows, np.int32), kinds, numbers


@often
@given(cases())
def test_calculate_and_twin_agree(case):
    assert calculate(*case).tolist() == twin(*case).tolist()


@pytest.mark.parametrize("way", [calculate, twin])
@pytest.mark.parametrize(
    ("op", "left", "right", "wanted"),
    [
        (EQUAL, [(2,), (3,), ADD], [(5,)], TRUE),
        (LESS, [(2,), (3,), SUBTRACT], [(0,)], TRUE),
        (GREATER, [(2,), NEGATE], [(2,)], FALSE),
        (EQUAL, [(2,), (2,), MULTIPLY], [(4,)], TRUE),
        (EQUAL, [(94906267,), (94906267,), MULTIPLY], [(4,)], OPEN),  # above 2**53: not exact
        (EQUAL, [(0.5,), (0.5,), ADD], [(1,)], OPEN),  # decimals are not calculated with floats
        (LESS, [(2,), (3,), ADD], [(5.5,)], TRUE),  # but they are compared
        (EQUAL, [(2,), (None,), ADD], [(5,)], ERROR),
    ],
)
def test_by_hand(way, op, left, right, wanted):
    numbers = sorted({step[0] for step in left + right if isinstance(step, tuple) and step[0]})
    ids = {None: 0} | {number: at for at, number in enumerate([0, *numbers], start=1)}
    steps = [
        (CONSTANT, ids[step[0]]) if isinstance(step, tuple) else (step, 0) for step in left + right
    ]
    kinds = np.array([0] + [EXACT] * (len(ids) - 1), np.int8)
    known = np.array([0.0, 0.0, *map(float, numbers)])
    batch = np.zeros((1, 2), np.int32)
    assert way(op, np.array(steps, np.int32), batch, kinds, known).tolist() == [wanted]
