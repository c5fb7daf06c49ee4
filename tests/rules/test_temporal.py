"""Temporal relations by their definitions, and the closed matrix of distances."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide.errors import GraphtideError
from graphtide.rules.expiry import closed, retentions
from graphtide.rules.temporal import (
    RELATIONS,
    AllTests,
    AnyTest,
    Bounds,
    NotTest,
    Span,
    Temporal,
    holds,
    relation_bounds,
)


def after(this, other, *numbers):
    return Temporal("AFTER", this, other, numbers)


TABLE = [
    # this relation[numbers] other: this span, other span, expected
    ("AFTER", (1, 5), (11, 11), (10, 10), True),
    ("AFTER", (1, 5), (10, 10), (10, 10), False),
    ("AFTER", (1, 5), (16, 16), (10, 10), False),
    ("AFTER", (), (10, 10), (9, 9), True),
    ("AFTER", (), (10, 10), (10, 10), False),
    ("AFTER", (-10, 10), (3, 3), (10, 10), True),  # partial order
    ("AFTER", (3,), (20, 20), (10, 12), True),  # from the other's end
    ("AFTER", (9,), (20, 20), (10, 12), False),
    ("BEFORE", (1, 5), (10, 12), (15, 15), True),
    ("BEFORE", (1, 5), (10, 10), (16, 16), False),
    ("COINCIDES", (), (1, 5), (1, 5), True),
    ("COINCIDES", (), (1, 5), (2, 5), False),
    ("COINCIDES", (1,), (1, 5), (2, 6), True),
    ("COINCIDES", (1, 0), (1, 5), (2, 6), False),
    ("DURING", (), (2, 4), (1, 5), True),
    ("DURING", (), (1, 4), (1, 5), False),
    ("DURING", (2,), (4, 5), (1, 6), False),
    ("INCLUDES", (), (1, 5), (2, 4), True),
    ("FINISHES", (), (3, 5), (1, 5), True),
    ("FINISHES", (), (1, 5), (1, 5), False),
    ("FINISHEDBY", (), (1, 5), (3, 5), True),
    ("STARTS", (), (1, 3), (1, 5), True),
    ("STARTS", (), (1, 5), (1, 5), False),
    ("STARTEDBY", (), (1, 5), (1, 3), True),
    ("MEETS", (), (1, 3), (3, 5), True),
    ("MEETS", (1,), (1, 3), (4, 5), True),
    ("MEETS", (), (1, 3), (4, 5), False),
    ("METBY", (), (3, 5), (1, 3), True),
    ("OVERLAPS", (), (1, 4), (3, 6), True),
    ("OVERLAPS", (), (1, 3), (3, 6), False),
    ("OVERLAPPEDBY", (), (3, 6), (1, 4), True),
]


@pytest.mark.parametrize(("name", "numbers", "this", "other", "expected"), TABLE)
def test_relations(name, numbers, this, other, expected):
    spans = {"a": Span(*this), "b": Span(*other)}
    assert holds(Temporal(name, "a", "b", numbers), spans) is expected


def by_differences(name, numbers, this, other):
    """A relation as compiled loops test it."""
    times = dict(zip(("start", "end", "other start", "other end"), (*this, *other), strict=True))
    return all(
        times[one] - times[two] in bounds for one, two, bounds in relation_bounds(name, numbers)
    )


@pytest.mark.parametrize(("name", "numbers", "this", "other", "expected"), TABLE)
def test_relations_as_differences(name, numbers, this, other, expected):
    assert by_differences(name, numbers, this, other) is expected


lasting = st.tuples(st.integers(0, 9), st.integers(0, 5)).map(lambda t: (t[0], t[0] + t[1]))


@settings(max_examples=500)
@given(
    st.sampled_from(sorted(RELATIONS)), lasting, lasting, st.lists(st.integers(-3, 6), max_size=4)
)
def test_differences_are_the_relation(name, this, other, drawn):
    numbers = tuple(drawn[: RELATIONS[name].most])
    numbers = numbers[:2] if len(numbers) == 3 else numbers
    expected = RELATIONS[name].holds(Span(*this), Span(*other), numbers)
    assert by_differences(name, numbers, this, other) == expected


instants = st.integers(-20, 20).map(lambda t: Span(t, t))


@given(
    st.sampled_from(sorted(RELATIONS)), instants, instants, st.lists(st.integers(0, 9), max_size=1)
)
def test_a_relation_never_holds_outside_its_distance(name, this, other, numbers):
    relation = RELATIONS[name]
    if relation.holds(this, other, tuple(numbers)):
        assert this.start - other.start in relation.distance(tuple(numbers))


def test_tests_are_combined():
    spans = {name: Span(t, t) for name, t in (("a", 0), ("b", 3), ("c", 9))}
    near, far = after("b", "a", 0, 5), after("c", "a", 0, 5)
    assert holds(AllTests((near,)), spans)
    assert not holds(AllTests((near, far)), spans)
    assert holds(AnyTest((near, far)), spans)
    assert holds(NotTest(far), spans)


CHAIN = AllTests(
    (
        after("b", "a", -2, 2),
        after("c", "a", -3, 4),
        after("d", "b", 1, 2),
        after("d", "c", 2, 3),
        after("e", "d", 1, 10),
    )
)


def test_the_matrix_is_closed():
    """The published example of temporal distances: four rows of its closed matrix."""
    matrix = closed("abcde", CHAIN)
    expected = {
        "a": {"b": (-2, 2), "c": (-3, 2), "d": (-1, 4), "e": (0, 14)},
        "b": {"a": (-2, 2), "c": (-2, 0), "d": (1, 2), "e": (2, 12)},
        "c": {"a": (-2, 3), "b": (0, 2), "d": (2, 3), "e": (3, 13)},
        "d": {"a": (-4, 1), "b": (-2, -1), "c": (-3, -2), "e": (1, 10)},
    }
    for row, cells in expected.items():
        assert {other: matrix[row, other] for other in cells} == {
            other: Bounds(*bounds) for other, bounds in cells.items()
        }


def test_how_long_events_are_kept():
    kept = {each.event: each.ticks for each in retentions("abcde", CHAIN)}
    assert kept == {"a": 14, "b": 12, "c": 13, "d": 10, "e": 0}


def test_without_a_bound_an_event_is_kept_for_ever():
    kept = {each.event: each.ticks for each in retentions("ab", after("b", "a", 1))}
    assert kept == {"a": inf, "b": None}
    assert {each.ticks for each in retentions("ab", AllTests(()))} == {inf}


def test_either_is_as_wide_as_both_sides():
    test = AnyTest((after("b", "a", 1, 3), after("b", "a", 7, 9)))
    assert closed("ab", test)["a", "b"] == Bounds(1, 9)


def test_what_is_kept_can_be_read_aloud():
    texts = [str(each) for each in retentions("ab", after("b", "a", 1, 5))]
    assert texts == [
        "a: kept for 5, as long as b may come",
        "b: not kept, no partner comes after it",
    ]


@pytest.mark.parametrize(
    ("operator", "numbers", "problem"),
    [
        ("SOON", (), "no temporal relation"),
        ("MEETS", (1, 2), "up to 1"),
        ("DURING", (1, 2, 3), "not 3"),
    ],
)
def test_mistakes_are_refused(operator, numbers, problem):
    with pytest.raises(GraphtideError, match=problem):
        Temporal(operator, "a", "b", numbers)


random_tests = st.recursive(
    st.builds(
        lambda names, low, width: after(*names, low, low + width),
        st.permutations("abc").map(lambda p: p[:2]),
        st.integers(-5, 5),
        st.integers(0, 6),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda t: AllTests(tuple(t))),
        st.lists(inner, min_size=1, max_size=2).map(lambda t: AnyTest(tuple(t))),
        inner.map(NotTest),
    ),
    max_leaves=4,
)


@given(random_tests, st.tuples(*(st.integers(0, 12) for _ in "abc")))
def test_no_match_needs_an_event_after_it_was_dropped(test, times):
    spans = {name: Span(t, t) for name, t in zip("abc", times, strict=True)}
    if not holds(test, spans):
        return
    for keeping in retentions("abc", test):
        own = spans[keeping.event].start
        last = max(span.start for span in spans.values())
        if keeping.ticks is None:
            assert last == own
        else:
            assert last <= own + keeping.ticks


relations = st.builds(
    lambda name, names, numbers: Temporal(name, *names, tuple(numbers[: RELATIONS[name].most])),
    st.sampled_from(sorted(RELATIONS)),
    st.permutations("abc").map(lambda p: p[:2]),
    st.lists(st.integers(0, 6), max_size=2),
)


@settings(max_examples=500)
@given(st.lists(relations, min_size=1, max_size=3), st.tuples(lasting, lasting, lasting))
def test_no_match_of_events_that_last_needs_one_after_it_was_dropped(tests, drawn):
    """An event comes when it ends. Those of the strategy last for up to 5 ticks."""
    spans = {name: Span(*each) for name, each in zip("abc", drawn, strict=True)}
    test = AllTests(tuple(tests))
    if not holds(test, spans):
        return
    for keeping in retentions("abc", test, max_duration=5):
        own = spans[keeping.event].end
        last = max(span.end for span in spans.values())
        assert last == own if keeping.ticks is None else last <= own + keeping.ticks
