"""Conditions with sums and products: decided by numbers just as the functions decide by terms."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.engine.dataflow.conditions import OPERATORS, Condition, quick_outcomes
from graphtide.errors import ExpressionError
from graphtide.functions.evaluate import evaluate
from graphtide.functions.values import effective_boolean
from graphtide.kernel.batch import make_batch
from graphtide.kernel.values import ERROR, FALSE, OPEN, TRUE
from graphtide.rdf.dictionary import TermDictionary

XSD = "http://www.w3.org/2001/XMLSchema#"
A, B = Var("a"), Var("b")
SCHEMA = (A, B)

TERMS = st.one_of(
    st.integers(-9, 9).map(Literal),
    st.sampled_from([10**8, 94906267, 2**53 - 1, 10**30, -(10**15)]).map(Literal),
    st.sampled_from([0.0, -0.0, 1.5, 1e300, float("inf"), float("nan")]).map(Literal),
    st.sampled_from(
        [
            Literal(text, datatype=NamedNode(XSD + name))
            for text, name in [
                ("0.1", "decimal"),
                ("2.0", "decimal"),
                ("0.30000000000000004", "decimal"),
                ("1.5", "float"),
                ("P1D", "dayTimeDuration"),
                ("2024-01-01T00:00:00Z", "dateTime"),
                ("one", "integer"),
            ]
        ]
    ),
    st.sampled_from([Literal("a"), NamedNode("http://example.org/a")]),
)

EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from([A, B, Var("nowhere")]), TERMS.map(Const)),
    lambda inner: st.one_of(
        st.builds(
            lambda name, a, b: Call(name, (a, b)), st.sampled_from(["+", "-", "*"]), inner, inner
        ),
        st.builds(lambda a: Call("UMINUS", (a,)), inner),
    ),
    max_leaves=6,
)


def by_functions(expression, row):
    try:
        return TRUE if effective_boolean(evaluate(expression, row)) else FALSE
    except ExpressionError:
        return ERROR


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(sorted(OPERATORS)), EXPRESSIONS, EXPRESSIONS, TERMS, TERMS)
def test_numbers_and_terms_decide_alike(name, left, right, a, b):
    expression = Call(name, (left, right))
    terms = TermDictionary()
    batch = make_batch([(0, 1, terms.encode(a), terms.encode(b))], 2)
    wanted = by_functions(expression, {A: a, B: b})
    assert Condition(expression, SCHEMA, terms)(batch).tolist() == [wanted == TRUE]
    quick = quick_outcomes(expression, SCHEMA, terms)
    if quick is not None:
        assert quick(batch).tolist() in ([wanted], [OPEN])


def test_whole_numbers_and_doubles_are_not_left_open():
    terms = TermDictionary()
    values = [Literal(3), Literal(-4), Literal(2.5)]
    batch = make_batch(
        [(0, 1, terms.encode(a), terms.encode(b)) for a in values for b in values], 2
    )
    square = Call("+", (Call("*", (A, A)), Call("*", (B, B))))
    outcomes = quick_outcomes(Call(">", (square, Const(Literal(24)))), SCHEMA, terms)(batch)
    squares = np.array([9, 16, 6.25])
    assert outcomes.tolist() == (squares[:, None] + squares > 24).astype(int).ravel().tolist()
