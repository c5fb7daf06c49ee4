"""Comparisons, calculations and counts of values, compiled, against their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel.batches import needs_jit, often

from graphtide.kernel import twin
from graphtide.kernel.values import (
    ADD,
    AT_LEAST,
    COLUMN,
    CONSTANT,
    DATETIME,
    DOUBLE,
    EQUAL,
    ERROR,
    EXACT,
    FALSE,
    GREATER,
    IRI,
    LESS,
    LOCAL_DATETIME,
    MAX_SAMPLED,
    MULTIPLY,
    NEGATE,
    OPEN,
    STRING,
    SUBTRACT,
    TRUE,
    UNEQUAL,
    calculate,
    compare,
    count_values,
)

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


@needs_jit
@often
@given(comparisons())
def test_compare_and_twin_agree(case):
    assert compare(*case).tolist() == twin.compare(*case).tolist()


@needs_jit
@pytest.mark.parametrize("judge", [compare, twin.compare])
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


@needs_jit
@pytest.mark.parametrize("judge", [compare, twin.compare])
def test_no_rows_no_outcomes(judge):
    kinds, numbers = np.zeros(2, np.int8), np.zeros(2)
    assert judge(EQUAL, column([]), column([1]), kinds, numbers).tolist() == []


OPERANDS = st.sampled_from(
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
    terms = draw(st.lists(st.tuples(KINDS, OPERANDS), min_size=1, max_size=5))
    kinds = np.array([0, *(kind for kind, _ in terms)], np.int8)
    numbers = np.array([0.0, *(number for _, number in terms)])
    steps = draw(sides(len(terms))) + draw(sides(len(terms)))
    ids = st.integers(0, len(terms))
    rows = draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=4))
    op = draw(st.integers(EQUAL, AT_LEAST))
    return op, np.array(steps, np.int32), np.array(rows, np.int32), kinds, numbers


@needs_jit
@often
@given(cases())
def test_calculate_and_twin_agree(case):
    assert calculate(*case).tolist() == twin.calculate(*case).tolist()


@needs_jit
@pytest.mark.parametrize("way", [calculate, twin.calculate])
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


QUADS = st.sets(st.tuples(*[st.integers(1, 6)] * 3, st.integers(0, 2)))


@needs_jit
@often
@given(QUADS)
def test_counts_agree_with_the_twin(quads):
    rows = np.array(sorted(quads), np.int32).reshape(len(quads), 4)
    mine, other = count_values(rows), twin.count_values(rows)
    assert [each.tolist() for each in mine[:3]] == [each.tolist() for each in other[:3]]
    # Hubs of one predicate are in no order.
    assert [sorted(each.tolist()) for each in mine[3:]] == [sorted(e.tolist()) for e in other[3:]]


@pytest.mark.parametrize("way", [count_values, twin.count_values])
@given(quads=QUADS, wanted=st.sets(st.integers(1, 9)))
def test_predicates_that_are_not_wanted_count_nothing(way, quads, wanted):
    """As if only the quads of the others were there."""
    rows = np.array(sorted(quads), np.int32).reshape(len(quads), 4)
    some = way(rows, sorted(wanted))
    rest = way(rows[np.isin(rows[:, 1], sorted(wanted))])
    for mine, other in zip(some[:3], rest[:3], strict=True):
        padded = other.tolist() + [0] * (len(mine) - len(other))
        assert mine.tolist() == padded
    for mine, other in zip(some[3:], rest[3:], strict=True):
        assert sorted(mine.tolist()) == sorted(other.tolist())


@needs_jit
@pytest.mark.parametrize("many", [5, 300, 3000])
def test_samples_agree_with_the_twin(many):
    """All of few values, about one in two or in sixteen of more; the same ones in all columns."""
    rows = [(n + 1, 7, n + 1, 0) for n in range(many)] + [(1, 8, 2, 0), (2, 8, 2, 0)]
    ways = [way(np.array(rows, np.int32))[5:] for way in (count_values, twin.count_values)]
    mine, other = ([sorted(each.tolist()) for each in way] for way in ways)
    assert mine == other
    subjects, objects = mine
    assert subjects[:-2] == objects[:-1]
    assert subjects[-2:] == [[8, 1], [8, 2]]
    assert many == 5 or many >> 5 < len(subjects) - 2 < MAX_SAMPLED


@needs_jit
@pytest.mark.parametrize("others", [10, 40, 400])
def test_hubs_agree_with_the_twin(others):
    """Value 1 has very many quads, 2 has as many as make a hub, 3 too few; others have two."""
    ends = [1] * (90 + others) + [2] * 40 + [3] * 3 + [*range(10, 10 + others)] * 2
    rows = np.array([(n + 1, 7, end, 0) for n, end in enumerate(ends)], np.int32)
    mine, other = (sorted(way(rows)[4].tolist()) for way in (count_values, twin.count_values))
    assert mine == other == [[7, 1, 90 + others], [7, 2, 40]]


def test_all_of_few_values_are_hubs_if_they_have_quads_enough():
    rows = np.array([(n + 1, 7, 1 + n % 3, 0) for n in range(96)] + [(1, 7, 9, 0)], np.int32)
    hubs = twin.count_values(rows)[4].tolist()
    assert sorted(hubs) == [[7, value, 32] for value in (1, 2, 3)]


def test_a_value_counts_once_for_each_of_its_predicates():
    """Predicate 7 has subjects 1, 2 and objects 3, 4; predicate 8 has subject 1, object 3."""
    rows = [(1, 7, 3, 0), (1, 7, 4, 0), (1, 8, 3, 0), (2, 7, 3, 0), (2, 7, 3, 5)]
    quads, subjects, objects, *_ = twin.count_values(np.array(rows, np.int32))
    assert (quads[7], subjects[7], objects[7]) == (4, 2, 2)
    assert (quads[8], subjects[8], objects[8]) == (1, 1, 1)
