"""The aggregates on bags of values worked out by hand, errors and empty groups included."""

from __future__ import annotations

from itertools import permutations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions.aggregates import aggregate
from oracles.transactions import typed

ERROR = None
IRI, BLANK = NamedNode("a:a"), BlankNode("b")


def i(value):
    return typed(str(value), "integer")


def d(text):
    return typed(text, "decimal")


def f(text):
    return typed(text, "double")


VALUES = [
    # https://www.w3.org/TR/sparql11-query/#defn_aggCount and the definitions that follow it
    ("COUNT", [], i(0)),
    ("COUNT", [i(1), IRI, i(1)], i(3)),
    ("COUNT", [ERROR, i(1), ERROR], i(1)),
    ("SUM", [], i(0)),
    ("SUM", [i(1), i(2)], i(3)),
    ("SUM", [i(1), d("1.5")], d("2.5")),
    ("SUM", [i(1), typed("1.5", "float")], typed("2.5", "float")),
    ("SUM", [typed("1", "float"), f("0.5")], f("1.5")),
    ("SUM", [i(1), Literal("1")], ERROR),
    ("SUM", [i(1), ERROR], ERROR),
    ("SUM", [f("INF"), f("-INF")], f("NaN")),
    ("SUM", [f("1e308"), f("1e308")], f("INF")),
    ("SUM", [f("-1e308"), f("-1e308"), i(5)], f("-INF")),
    # Exact, then rounded once: no order of additions loses the 1.
    ("SUM", [f("1e100"), i(1), f("-1e100")], f("1")),
    ("AVG", [], i(0)),
    ("AVG", [i(1), i(2)], d("1.5")),
    ("AVG", [i(1), i(1)], d("1")),
    ("AVG", [i(1), f("2")], f("1.5")),
    ("AVG", [i(1), IRI], ERROR),
    ("MIN", [], ERROR),
    ("MIN", [i(2), d("1.5"), i(3)], d("1.5")),
    # The recommendation's example with errors: a blank node is less than a number.
    ("MIN", [i(1), BLANK], BLANK),
    ("MAX", [i(1), BLANK], i(1)),
    ("MAX", [Literal("b"), Literal("a")], Literal("b")),
    ("MAX", [IRI, i(1), ERROR], ERROR),
    ("MIN", [i(1), ERROR], ERROR),
    ("SAMPLE", [], ERROR),
    ("SAMPLE", [ERROR, i(2), i(1)], i(1)),
    ("SAMPLE", [ERROR], ERROR),
    ("GROUP_CONCAT", [], Literal("")),
    ("GROUP_CONCAT", [Literal("b"), Literal("a", language="en")], Literal("a b")),
    ("GROUP_CONCAT", [Literal("b"), i(1)], ERROR),
    ("GROUP_CONCAT", [Literal("b"), IRI], ERROR),
    ("GROUP_CONCAT", [Literal("b"), ERROR], ERROR),
]


@pytest.mark.parametrize(("function", "values", "expected"), VALUES)
def test_values_in_any_order(function, values, expected):
    for order in permutations(values):
        if expected is ERROR:
            with pytest.raises(ExpressionError):
                aggregate(function, order)
        else:
            assert aggregate(function, order) == expected


def test_the_separator():
    assert aggregate("GROUP_CONCAT", [Literal("a"), Literal("b")], "") == Literal("ab")


def test_terms_of_equal_value_are_told_apart_by_their_texts():
    twins = [typed("01", "integer"), i(1), typed("1.0", "decimal")]
    assert aggregate("MIN", twins) == typed("01", "integer")
    assert aggregate("MAX", twins) == typed("1.0", "decimal")
