"""Conditions decided from the typed side columns agree with the functions on the terms."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.engine.dataflow.conditions import OPERATORS, Condition, quick_outcomes
from graphtide.errors import ExpressionError
from graphtide.functions.evaluate import evaluate
from graphtide.functions.values import effective_boolean
from graphtide.kernel.batch import make_batch
from graphtide.kernel.values import ERROR, FALSE, OPEN, TRUE
from graphtide.rdf.dictionary import TermDictionary

XSD = "http://www.w3.org/2001/XMLSchema#"
A, B, C = Var("a"), Var("b"), Var("c")
SCHEMA = (A, B)


def typed(text: str, name: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + name))


def expected(expression, row) -> int:
    """What the functions say of a row."""
    try:
        return TRUE if effective_boolean(evaluate(expression, row)) else FALSE
    except ExpressionError:
        return ERROR


def check(expression, left, right) -> None:
    """One row: the outcome must be the functions' one, or left open where that is allowed."""
    terms = TermDictionary()
    ids = [0 if term is None else terms.encode(term) for term in (left, right)]
    batch = make_batch([(0, 1, *ids)], 2)
    row = {var: term for var, term in ((A, left), (B, right)) if term is not None}
    wanted = expected(expression, row)
    assert Condition(expression, SCHEMA, terms)(batch).tolist() == [wanted == TRUE]
    quick = quick_outcomes(expression, SCHEMA, terms)
    if quick is not None:
        (outcome,) = quick(batch).tolist()
        assert outcome in (wanted, OPEN), f"{left} {right}: {outcome} instead of {wanted}"


# --- every pair of notable terms, every operator ---

NOTABLE = (
    None,
    NamedNode("http://example.org/a"),
    NamedNode("http://example.org/b"),
    BlankNode("a"),
    Literal("a"),
    Literal("1"),
    Literal(""),
    Literal("a", language="en"),
    Literal("a", language="fr"),
    typed("true", "boolean"),
    typed("1", "boolean"),
    typed("false", "boolean"),
    typed("maybe", "boolean"),
    typed("1", "integer"),
    typed("01", "integer"),
    typed("-0", "integer"),
    typed("one", "integer"),
    typed("1", "byte"),
    typed("300", "byte"),
    typed("9007199254740993", "integer"),
    typed("9007199254740992", "integer"),
    typed(str(10**400), "integer"),
    typed("1.0", "decimal"),
    typed("0.1", "decimal"),
    typed("0.1000000000000000055511151231257827", "decimal"),
    typed("1e0", "decimal"),
    typed("0.1", "double"),
    typed("1E0", "double"),
    typed("-0.0", "double"),
    typed("9007199254740992", "double"),
    typed("1e309", "double"),
    typed("INF", "double"),
    typed("-INF", "double"),
    typed("NaN", "double"),
    typed("NaN", "float"),
    typed("0.1", "float"),
    typed("1", "float"),
    typed("16777217", "float"),
    typed("2024-01-01T00:00:00Z", "dateTime"),
    typed("2024-01-01T01:00:00+01:00", "dateTime"),
    typed("2023-12-31T24:00:00Z", "dateTime"),
    typed("2024-01-01T00:00:00", "dateTime"),
    typed("2024-01-01T00:00:00.000", "dateTime"),
    typed("2024-01-02T00:00:00", "dateTime"),
    typed("2024-01-01T00:00:00.0000001Z", "dateTime"),
    typed("2024-02-30T00:00:00Z", "dateTime"),
    typed("-0044-03-15T00:00:00Z", "dateTime"),
    typed("12024-01-01T00:00:00Z", "dateTime"),
    typed("2024-01-01", "date"),
    typed("2024-01-01Z", "date"),
    typed("P1D", "dayTimeDuration"),
    typed("PT24H", "dayTimeDuration"),
    typed("a", "string"),
    Literal("1", datatype=NamedNode("http://example.org/unit")),
    Literal("2", datatype=NamedNode("http://example.org/unit")),
)


@pytest.mark.parametrize("op", OPERATORS)
def test_every_pair_of_notable_terms(op):
    terms = TermDictionary()
    ids = [0 if term is None else terms.encode(term) for term in NOTABLE]
    expression = Call(op, (A, B))
    pairs = list(product(range(len(NOTABLE)), repeat=2))
    batch = make_batch([(0, 1, ids[i], ids[j]) for i, j in pairs], 2)
    rows = [
        {var: NOTABLE[k] for var, k in zip(SCHEMA, pair, strict=True) if NOTABLE[k] is not None}
        for pair in pairs
    ]
    wanted = np.array([expected(expression, row) for row in rows])
    quick = quick_outcomes(expression, SCHEMA, terms)(batch)
    wrong = [
        f"{NOTABLE[i]} {op} {NOTABLE[j]}"
        for (i, j), q, w in zip(pairs, quick, wanted, strict=True)
        if q not in (w, OPEN)
    ]
    assert wrong == []
    assert (Condition(expression, SCHEMA, terms)(batch) == (wanted == TRUE)).all()
    assert {TRUE, FALSE, ERROR} <= set(quick.tolist())  # the side columns do decide something


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("constant", [typed("1", "integer"), typed("NaN", "double"), Literal("a")])
def test_a_constant_on_either_side(op, constant):
    terms = TermDictionary()
    ids = [0 if term is None else terms.encode(term) for term in NOTABLE]
    batch = make_batch([(0, 1, i, 0) for i in ids], 2)
    for expression in (Call(op, (A, Const(constant))), Call(op, (Const(constant), A))):
        rows = [{} if term is None else {A: term} for term in NOTABLE]
        wanted = [expected(expression, row) == TRUE for row in rows]
        assert Condition(expression, SCHEMA, terms)(batch).tolist() == wanted


# --- random terms ---

digits = st.text("0123456789", min_size=1, max_size=22)
signs = st.sampled_from(("", "-", "+"))
zones = st.sampled_from(("", "Z", "+00:00", "-00:00", "+01:00", "-14:00", "+05:30", "+14:01"))
integers = st.builds(lambda s, d: typed(s + d, "integer"), signs, digits)
decimals = st.builds(lambda s, a, b: typed(f"{s}{a}.{b}", "decimal"), signs, digits, digits)
small = st.builds(
    typed,
    st.integers(-3, 3).map(str),
    st.sampled_from(("integer", "int", "decimal", "double", "float", "byte", "unsignedByte")),
)
doubles = st.builds(
    lambda value, name: typed(repr(value).replace("inf", "INF").replace("nan", "NaN"), name),
    st.floats(),
    st.sampled_from(("double", "float")),
)
moments = st.builds(
    lambda value, digits, zone: typed(
        f"{value:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + digits + zone, "dateTime"
    ),
    st.datetimes() | st.sampled_from([datetime(2024, 1, 1, h, tzinfo=UTC) for h in range(3)]),
    st.sampled_from(("", ".0", ".5", ".123456", ".1234567", ".1234560")),
    zones,
)
strings = st.builds(Literal, st.sampled_from(("", "a", "b", "ä", "1")))
tagged = st.builds(
    lambda t, l: Literal(t, language=l), st.sampled_from("ab"), st.sampled_from(("en", "fr"))
)
odd = st.builds(
    typed,
    st.sampled_from(("", "a", "1", "true", "0", "2024-01-01", "P1Y", "PT0S", "1e3", " 1 ")),
    st.sampled_from(
        (
            "integer",
            "decimal",
            "double",
            "boolean",
            "dateTime",
            "date",
            "time",
            "duration",
            "gYear",
            "anyURI",
            "hexBinary",
        )
    ),
)
others = st.sampled_from(NOTABLE)
anything = st.one_of(
    others, integers, decimals, small, small, doubles, moments, strings, tagged, odd
)
operators = st.sampled_from(list(OPERATORS))


@settings(max_examples=1500, deadline=None)
@given(operators, anything, anything)
@example("=", typed("0.30000000000000004", "double"), typed("0.3", "decimal"))
@example("<", typed("999999999999999.9", "decimal"), typed("1000000000000000", "integer"))
@example("=", typed("-0", "decimal"), typed("-0.0", "double"))
def test_random_pairs_of_terms(op, left, right):
    check(Call(op, (A, B)), left, right)
    check(Call(op, (A, A)), left, right)


comparisons = st.builds(
    lambda op, left, right: Call(op, (left, right)),
    operators,
    st.sampled_from((A, B, C, Const(typed("1", "integer")))),
    st.sampled_from((A, B, Const(typed("2.5", "double")), Const(Literal("a")))),
)
bound = st.sampled_from((Call("BOUND", (A,)), Call("BOUND", (C,))))
logical = st.recursive(
    comparisons | bound,
    lambda inner: st.one_of(
        st.builds(
            lambda name, a, b: Call(name, (a, b)), st.sampled_from(("&&", "||")), inner, inner
        ),
        st.builds(lambda a: Call("!", (a,)), inner),
    ),
    max_leaves=5,
)


@settings(max_examples=500, deadline=None)
@given(logical, others | small, others | small)
def test_random_combinations_in_three_values(expression, left, right):
    check(expression, left, right)


TRUTHS = {
    TRUE: Call("=", (Const(Literal(1)), A)),
    FALSE: Call("=", (Const(Literal(2)), A)),
    ERROR: Call("=", (C, A)),
    OPEN: Call("=", (Const(typed("1", "float")), A)),
}


@pytest.mark.parametrize("name", ["&&", "||"])
@pytest.mark.parametrize(("left", "right"), list(product(TRUTHS, repeat=2)))
def test_truth_tables(name, left, right):
    """https://www.w3.org/TR/sparql11-query/#evaluation, with `1 = 1.0` as an open question."""
    check(Call(name, (TRUTHS[left], TRUTHS[right])), Literal(1), None)
    check(Call("!", (Call(name, (TRUTHS[left], TRUTHS[right])),)), Literal(1), None)


def test_the_parts_of_the_truth_tables_are_what_they_say():
    terms = TermDictionary()
    batch = make_batch([(0, 1, terms.encode(Literal(1)), 0)], 2)
    for outcome, expression in TRUTHS.items():
        assert quick_outcomes(expression, SCHEMA, terms)(batch).tolist() == [outcome]


def test_a_condition_on_no_rows_gives_no_rows():
    terms = TermDictionary()
    for expression in (*TRUTHS.values(), Call("STRLEN", (A,))):
        assert Condition(expression, SCHEMA, terms)(make_batch([], 2)).tolist() == []


@pytest.mark.parametrize("rows", [1, 31, 32, 200])
def test_what_the_side_columns_leave_open_is_asked_row_by_row(rows):
    terms = TermDictionary()
    ids = [terms.encode(typed(f"{n % 7}.5", "float" if n % 2 else "double")) for n in range(rows)]
    batch = make_batch([(0, 1, i, ids[0]) for i in ids], 2)
    wanted = [n % 7 > 2 for n in range(rows)]
    assert Condition(Call(">", (A, Const(Literal(2.5)))), SCHEMA, terms)(batch).tolist() == wanted


def test_a_condition_that_is_no_comparison_is_left_to_the_functions():
    terms = TermDictionary()
    for expression in (
        Call("STRLEN", (A,)),
        Call("&&", (Call("BOUND", (A,)), A)),
        Call("=", (Const(Literal(1)), Const(Literal(1)))),
        Call("=", (Call("/", (A, B)), A)),
    ):
        assert quick_outcomes(expression, SCHEMA, terms) is None
