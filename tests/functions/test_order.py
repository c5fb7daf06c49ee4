"""The total order of terms: what the recommendation fixes, and that `<` never contradicts it."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions.comparison import compare, order_value, total_order
from oracles.transactions import LITERALS, TWINS, typed

ASCENDING = [
    None,
    BlankNode("z"),
    NamedNode("a:a"),
    NamedNode("a:b"),
    typed("NaN", "double"),
    typed("-INF", "double"),
    typed("-2", "integer"),
    typed("-0.5", "decimal"),
    typed("0", "integer"),
    typed("9007199254740992", "double"),
    typed("9007199254740993", "integer"),
    typed("INF", "float"),
    typed("false", "boolean"),
    typed("true", "boolean"),
    Literal(""),
    Literal("B"),
    Literal("a"),
    Literal("a", language="en"),
    Literal("b"),
    typed("2020-01-01", "date"),
    typed("2020-01-02", "date"),
    typed("2020-01-01T12:00:00+01:00", "dateTime"),
    typed("2020-01-01T12:00:00Z", "dateTime"),
    typed("P1D", "dayTimeDuration"),
    typed("P27D", "duration"),
    typed("P1M", "yearMonthDuration"),
    typed("P32D", "duration"),
    typed("x", "hexBinary"),
    typed("one", "integer"),
]


def test_the_order_by_hand():
    for lower, higher in pairwise(ASCENDING):
        assert order_value(lower) < order_value(higher), f"{lower} {higher}"


@pytest.mark.parametrize(
    "level",
    [
        [
            typed("1", "integer"),
            typed("01", "integer"),
            typed("1.0", "decimal"),
            typed("1", "float"),
        ],
        [BlankNode("a"), BlankNode("b")],
        [typed("2020-01-01T12:00:00+01:00", "dateTime"), typed("2020-01-01T11:00:00Z", "dateTime")],
        [typed("1", "boolean"), typed("true", "boolean")],
        [typed("P1D", "dayTimeDuration"), typed("PT24H", "duration")],
    ],
)
def test_terms_that_are_level_are_told_apart_by_their_texts(level):
    assert len({order_value(term) for term in level}) == 1
    assert len({total_order(term) for term in level}) == len(level)


def test_it_never_contradicts_less_than():
    decided = 0
    for left, right in product((*LITERALS, *TWINS, *ASCENDING[4:]), repeat=2):
        try:
            order = compare(left, right)
        except ExpressionError:
            continue
        decided += 1
        if order < 0:
            assert order_value(left) < order_value(right), f"{left} {right}"
    assert decided > 300
