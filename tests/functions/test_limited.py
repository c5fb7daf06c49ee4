"""Values that would be too large are errors of their rows, whatever function makes them."""

from __future__ import annotations

from itertools import product

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.errors import ExpressionError
from graphtide.functions.aggregates import aggregate
from graphtide.functions.comparison import order_value
from graphtide.functions.evaluate import evaluate
from graphtide.functions.table import FUNCTIONS, Function
from graphtide.functions.values import value_of
from graphtide.limits import Allowance, Limits

XSD = "http://www.w3.org/2001/XMLSchema#"
A = Var("a")


def typed(text, name):
    return Literal(text, datatype=NamedNode(XSD + name))


def year(digits):
    return typed(f"{'9' * digits}-12-31T23:59:59Z", "dateTime")


def call(name, *terms):
    return evaluate(Call(name, tuple(map(Const, terms))), {})


def test_a_year_of_5000_digits():
    assert call("YEAR", year(5000)) == typed("9" * 5000, "integer")
    assert call("MONTH", year(5000)) == typed("12", "integer")
    day = typed("PT1S", "dayTimeDuration")
    assert call("+", year(5000), day).value == f"1{'0' * 5000}-01-01T00:00:00Z"


def test_a_duration_of_5000_digits():
    long = typed(f"P{'9' * 5000}Y", "yearMonthDuration")
    assert call("+", long, long).value == f"P1{'9' * 4999}8Y"
    assert call(">", long, typed("P1Y", "yearMonthDuration")).value == "true"


@pytest.mark.parametrize("name", ["integer", "decimal", "double", "float", "unsignedInt"])
def test_a_number_of_a_million_digits_has_no_value(name):
    number = typed("9" * 1_000_000, name)
    assert value_of(number) is None
    for operator in ("<", "+", "*", "="):
        with pytest.raises(ExpressionError):
            call(operator, number, typed("1", "integer"))
    assert call("ISNUMERIC", number).value == "false"
    assert call("SAMETERM", number, number).value == "true"
    assert order_value(number) > order_value(typed("1", "integer"))


def test_a_cast_reads_no_more_digits_than_a_literal():
    with pytest.raises(ExpressionError):
        call(f"<{XSD}integer>", Literal("9" * 1_000_000))


def test_products_grow_up_to_the_limit():
    limits = Limits(digits=100)
    with Allowance(limits):
        assert call("*", typed("9" * 50, "integer"), typed("10" * 25, "integer"))
        for name in ("integer", "decimal"):
            with pytest.raises(ExpressionError, match="too many digits"):
                call("*", typed("9" * 60, name), typed("9" * 60, name))
    assert limits.exceeded == {"digits": 2}


def test_numbers_of_18_digits_always_work():
    """https://www.w3.org/TR/xmlschema-2/#decimal asks for them."""
    with Allowance(Limits(digits=1)):
        assert call("+", typed("9" * 17, "integer"), typed("1", "integer")).value == "1" + "0" * 17
        assert call("+", typed("1E300", "double"), typed("0", "integer")).value == "1" + "0" * 300


def test_the_value_of_a_literal_does_not_depend_on_who_asked_before():
    number = typed("9" * 200, "integer")
    assert value_of(number) is not None
    with Allowance(Limits(digits=100)):
        assert value_of(number) is None
    assert value_of(number) is not None


def test_thirty_doublings_by_concat():
    text = Literal("x")
    with pytest.raises(ExpressionError, match="too long"):  # noqa: PT012 - at the 25th
        for times in range(30):
            assert len(text.value) == 2**times <= Limits().literal_length
            text = call("CONCAT", text, text)


@pytest.mark.parametrize(
    ("name", "terms", "length"),
    [
        ("CONCAT", [Literal("x" * 60), Literal("x" * 40)], 100),
        ("REPLACE", [Literal("x" * 10), Literal("x"), Literal("0123456789")], 100),
        ("REPLACE", [Literal("ab" * 25), Literal("(a)b"), Literal("$1$1$0")], 100),
        ("ENCODE_FOR_URI", [Literal("é" * 10 + "x" * 40)], 100),
        ("UCASE", [Literal("ŉ" * 50)], 100),
        ("STR", [NamedNode("ex:" + "x" * 97)], 100),
        ("SUBSTR", [Literal("x" * 100), typed("1", "integer")], 100),
    ],
)
def test_a_text_may_be_as_long_as_the_limit(name, terms, length):
    limits = Limits(literal_length=length)
    with Allowance(limits):
        assert len(call(name, *terms).value) == length
        assert not limits.exceeded
    limits = Limits(literal_length=length - 1)
    with Allowance(limits), pytest.raises(ExpressionError, match="too long"):
        call(name, *terms)
    assert limits.exceeded == {"literal_length": 1}


def test_group_concat_is_limited_as_well():
    with Allowance(Limits(literal_length=10)):
        assert aggregate("GROUP_CONCAT", [Literal("abc")] * 2, ", ").value == "abc, abc"
        with pytest.raises(ExpressionError, match="too long"):
            aggregate("GROUP_CONCAT", [Literal("abc")] * 3, ", ")


def test_other_alternatives_of_an_expression_are_still_evaluated():
    long = Call("CONCAT", (A, A))
    with Allowance(Limits(literal_length=10)):
        either = Call("COALESCE", (long, Const(Literal("short"))))
        assert evaluate(either, {A: Literal("x" * 6)}) == Literal("short")


HOSTILE = [
    Literal("x" * 900),
    Literal("(a+)+\\1" * 30),
    Literal("x" * 300, language="en"),
    typed("9" * 5000, "integer"),
    typed("-" + "9" * 900, "integer"),
    typed("9" * 900 + "." + "9" * 90, "decimal"),
    typed("1e400", "double"),
    typed("-INF", "float"),
    typed("NaN", "double"),
    typed("1" * 900 + "e-900", "double"),
    year(4990),
    year(900),
    typed("-" + "9" * 900, "gYear"),
    typed(f"P{'9' * 900}DT0.{'1' * 90}S", "duration"),
    typed("P" + "9" * 6000 + "M", "yearMonthDuration"),
    typed("x" * 100, "dateTime"),
    Literal("x", datatype=NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#" + "HTML")),
    NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"),
    NamedNode("http://example.com/" + "é" * 300),
    BlankNode("b" * 500),
]
STRICT = {name: entry for name, entry in FUNCTIONS.items() if isinstance(entry, Function)}


@pytest.mark.parametrize("name", STRICT)
def test_hostile_arguments_give_a_value_or_an_error_of_the_row(name):
    entry = STRICT[name]
    most = 2 if entry.most is None else min(entry.most, 2)
    limits = Limits(digits=1000, literal_length=1000, regex_steps=1000)
    with Allowance(limits):
        for count in range(entry.least, most + 1):
            for terms in product(HOSTILE, repeat=count):
                extra = [Literal("a")] * max(0, entry.least - 2)
                try:
                    found = call(name, *terms, *extra)
                except ExpressionError:
                    continue
                longest = max((len(t.value) for t in terms), default=0)
                assert len(found.value) <= max(1100, longest)
