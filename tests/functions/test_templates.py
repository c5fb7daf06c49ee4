"""Templates: what they make of a row, and when two blank nodes are one."""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.functions.templates import fill_template

X, Y = Var("x"), Var("y")
A, P = NamedNode("a:a"), NamedNode("a:p")
LABEL, OTHER = BlankNode("l"), BlankNode("o")


@pytest.mark.parametrize(
    ("pattern", "row", "quads"),
    [
        (TriplePattern(X, P, A), {X: A}, [(A, P, A, None)]),
        (TriplePattern(X, P, A), {}, []),
        (TriplePattern(X, P, A), {X: Literal("x")}, []),
        (TriplePattern(A, X, A), {X: BlankNode("b")}, []),
        (TriplePattern(A, X, A), {X: Literal("x")}, []),
        (TriplePattern(A, P, X), {X: Literal("x")}, [(A, P, Literal("x"), None)]),
        (TriplePattern(A, P, A, X), {X: A}, [(A, P, A, A)]),
        (TriplePattern(A, P, A, X), {X: BlankNode("b")}, []),
        (TriplePattern(A, P, A, X), {}, []),
    ],
)
def test_what_a_row_makes(pattern, row, quads):
    assert fill_template([pattern], row) == quads


def node(label, row, scope=""):
    ((subject, _, _, _),) = fill_template([TriplePattern(label, P, A)], row, scope=scope)
    assert isinstance(subject, BlankNode)
    return subject


def test_a_blank_node_is_a_function_of_label_row_and_scope():
    row = {X: A, Y: Literal("y")}
    assert node(LABEL, row) == node(LABEL, dict(reversed(row.items())))
    others = [(OTHER, row, ""), (LABEL, {X: A}, ""), (LABEL, row, "s"), (LABEL, {Y: A}, "")]
    assert len({node(LABEL, row), *(node(*other) for other in others)}) == 5


def test_one_label_is_one_node_in_all_triples_of_a_row():
    first, second = fill_template([TriplePattern(LABEL, P, A), TriplePattern(A, P, LABEL)], {X: A})
    assert first[0] == second[2]
