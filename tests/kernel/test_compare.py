"""Comparisons by side columns, compiled, against their twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import needs_jit, often

from graphtide.kernel.twin import compare as twin
from graphtide.kernel.values import (
    AT_LEAST,
    DATETIME,
    DOUBLE,
    EQUAL,
    ERROR,
    EXACT,
    FALSE,
    IRI,
    LESS,
    LOCAL_DATETIME,
    OPEN,
    STRING,
    TRUE,
    UNEQUAL,
    compare,
)

pytestmark = needs_jit

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0, float("inf"), float("nan")])


def column(ids):
    return np.array(ids, np.int32)


@st.composite
def comparisons(draw):
    terms = draw(st.lists(st.tuples(st.integers(1, 10), NUMBERS), min_size=1, max_size=6))
    kinds = np.array([0, *(kind for kind, _ in terms)], np.int8)
    numbers = np.array([0.0, *(number for _, number in terms)])
    size = draw(st.integers(0, 8))
    ids = st.integers(0, len(terms))
    columns = [
        column(draw(st.lists(ids, min_size=n, max_size=n)))
        for n in draw(st.sampled_from([(size, size), (size, 1), (1, size)]))
    ]
    return draw(st.integers(EQUAL, AT_LEAST)), *columns, kinds, numbers


@often
@given(comparisons())
def test_compare_and_twin_agree(case):
    assert compare(*case).tolist() == twin(*case).tolist()


@pytest.mark.parametrize("judge", [compare, twin])
def test_outcomes_worked_out_by_hand(judge):
    kinds = [0, EXACT, DOUBLE, DOUBLE, DATETIME, LOCAL_DATETIME, STRING, STRING, IRI, 10]
    numbers = np.array([0.0, 2.0, 2.0, float("nan"), 2.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    cases = [
        (EQUAL, 1, 2, TRUE),  # 2 = 2.0e0
        (LESS, 1, 2, FALSE),
        (EQUAL, 3, 3, OPEN),  # NaN is unequal to itself: left to the terms
        (EQUAL, 1, 4, OPEN),  # a number and a dateTime
        (EQUAL, 4, 5, OPEN),  # with and without timezone
        (EQUAL, 6, 7, FALSE),  # two strings
        (UNEQUAL, 6, 7, TRUE),
        (EQUAL, 6, 6, TRUE),
        (LESS, 6, 7, OPEN),  # strings are ordered by their texts
        (EQUAL, 8, 1, FALSE),  # an IRI equals nothing else
        (EQUAL, 9, 9, OPEN),
        (EQUAL, 0, 1, ERROR),  # unbound
        (UNEQUAL, 1, 0, ERROR),
    ]
    for op, a, b, expected in cases:
        out = judge(op, column([a]), column([b]), np.array(kinds, np.int8), numbers)
        assert out.tolist() == [expected], (op, a, b)


@pytest.mark.parametrize("judge", [compare, twin])
def test_no_rows_no_outcomes(judge):
    kinds, numbers = np.zeros(2, np.int8), np.zeros(2)
    assert judge(EQUAL, column([]), column([1]), kinds, numbers).tolist() == []
