"""Evaluating whole expressions: rows, errors, EXISTS, three-valued logic, terms kept as written."""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Exists, Var
from graphtide.algebra.nodes import Bgp
from graphtide.errors import ExpressionError, UnsupportedError
from graphtide.functions.evaluate import compile_expression, evaluate
from graphtide.functions.terms import resolve_iri
from graphtide.functions.values import effective_boolean
from graphtide.functions.xsd import BOOLEAN, DECIMAL, INTEGER, XSD

A, B = Var("a"), Var("b")
TRUE, FALSE = (Literal(text, datatype=NamedNode(BOOLEAN)) for text in ("true", "false"))
ERROR = Call("/", (Const(Literal(1)), Const(Literal(0))))
OPERANDS = {"T": Const(TRUE), "F": Const(FALSE), "E": ERROR}
PATTERN = Bgp(())


def lit(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(datatype))


# https://www.w3.org/TR/sparql11-query/#evaluation
@pytest.mark.parametrize(
    ("left", "right", "disjunction", "conjunction"),
    [
        ("T", "T", TRUE, TRUE),
        ("T", "F", TRUE, FALSE),
        ("F", "T", TRUE, FALSE),
        ("F", "F", FALSE, FALSE),
        ("T", "E", TRUE, None),
        ("E", "T", TRUE, None),
        ("F", "E", None, FALSE),
        ("E", "F", None, FALSE),
        ("E", "E", None, None),
    ],
)
def test_three_valued_logic(ours, left, right, disjunction, conjunction):
    operands = (OPERANDS[left], OPERANDS[right])
    assert ours(Call("||", operands), {}) == disjunction
    assert ours(Call("&&", operands), {}) == conjunction


def test_unbound_variables():
    with pytest.raises(ExpressionError, match=r"\?a is unbound"):
        evaluate(A, {})
    assert evaluate(Call("BOUND", (A,)), {}) == FALSE
    assert evaluate(Call("BOUND", (A,)), {A: Literal("")}) == TRUE
    assert evaluate(Call("COALESCE", (A, ERROR, B)), {B: Literal("b")}) == Literal("b")


def test_only_the_chosen_branch_is_evaluated():
    assert evaluate(Call("IF", (Const(TRUE), A, ERROR)), {A: Literal("a")}) == Literal("a")
    assert evaluate(Call("IF", (Const(FALSE), ERROR, A)), {A: Literal("a")}) == Literal("a")


def test_exists_asks_the_given_function():
    asked = []

    def exists(pattern, row):
        asked.append((pattern, dict(row)))
        return A in row

    expression = Call("!", (Exists(PATTERN),))
    assert evaluate(expression, {A: Literal("a")}, exists) == FALSE
    assert evaluate(expression, {}, exists) == TRUE
    assert asked == [(PATTERN, {A: Literal("a")}), (PATTERN, {})]


def test_exists_without_a_function_is_refused_when_compiled():
    with pytest.raises(UnsupportedError, match="EXISTS"):
        compile_expression(Exists(PATTERN))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (Call("RAND", ()), "RAND cannot be maintained"),
        (Call("NOPE", ()), "unknown function NOPE"),
        (Call("STR", ()), "STR takes 1 argument"),
        (Call("IF", (A, A, Call("UUID", ()))), "UUID cannot be maintained"),
        (Call("BOUND", (Const(TRUE),)), "BOUND takes a variable"),
    ],
)
def test_bad_calls_are_refused_when_compiled(expression, message):
    with pytest.raises(UnsupportedError, match=message):
        compile_expression(expression)


def test_a_compiled_expression_serves_many_rows():
    double = compile_expression(Call("*", (A, Const(Literal(2)))))
    found = [double({A: Literal(n)}) for n in range(3)]
    assert found == [Literal(0), Literal(2), Literal(4)]


@pytest.mark.parametrize(
    ("term", "truth"),
    [
        (TRUE, True),
        (lit("0", BOOLEAN), False),
        (Literal("false"), True),
        (Literal(""), False),
        (lit("-0.0", DECIMAL), False),
        (Literal(float("nan")), False),
        (lit("00", XSD + "byte"), False),
        (lit(str(10**30), INTEGER), True),
    ],
)
def test_effective_boolean(term, truth):
    assert effective_boolean(term) is truth


@pytest.mark.parametrize(
    "term", [NamedNode("x:a"), BlankNode("b"), Literal("a", language="en"), lit("one", INTEGER)]
)
def test_no_effective_boolean(term):
    with pytest.raises(ExpressionError):
        effective_boolean(term)


@pytest.mark.parametrize("text", ["01", "+1", "1.0", "1.50", "-0.0", "99999999999999999999.5"])
def test_arithmetic_reads_values_and_not_forms(text):
    assert evaluate(Call("=", (A, Call("UPLUS", (A,)))), {A: lit(text, DECIMAL)}) == TRUE


def test_answers_are_canonical():
    total = Call("+", (A, B))
    row = {A: lit("0001", XSD + "byte"), B: lit("+2", XSD + "unsignedLong")}
    assert evaluate(total, row) == lit("3", INTEGER)
    assert evaluate(total, {**row, B: lit("2.50", DECIMAL)}) == lit("3.5", DECIMAL)


def test_numbers_keep_all_their_digits():
    long = "1" * 5000
    assert evaluate(Call("+", (A, A)), {A: lit(long, INTEGER)}) == lit("2" * 5000, INTEGER)
    tiny = f"0.{'0' * 60}1"
    assert evaluate(Call("-", (A, B)), {A: lit("1", DECIMAL), B: lit(tiny, DECIMAL)}) == lit(
        f"0.{'9' * 61}", DECIMAL
    )


# RFC 3986, sections 5.4.1 and 5.4.2
@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("http:g", "http:g"),
    ],
)
def test_relative_references(reference, expected):
    base = "http://a/b/c/d;p?q"
    assert resolve_iri(base, reference) == expected
    found = evaluate(Call("IRI", (A, Const(NamedNode(base)))), {A: Literal(reference)})
    assert found == NamedNode(expected)


def test_a_relative_reference_without_base_is_an_error(ours):
    assert ours(Call("IRI", (A,)), {A: Literal("g")}) is None
