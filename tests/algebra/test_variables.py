"""Which variables a node has, which it surely binds, which it mentions: worked out by hand."""

from __future__ import annotations

import pytest
from algebra.build_nodes import all_of, bgp, call, exists, names, not_exists, term

from graphtide.algebra.expressions import Const, Var
from graphtide.algebra.nodes import (
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Join,
    LeftJoin,
    Minus,
    Project,
    TriplePattern,
    Union,
    Values,
)
from graphtide.algebra.variables import certain, mentioned, merge, pattern_variables, schema

AB, BC, CD = bgp("?a p ?b"), bgp("?b p ?c"), bgp("?c p ?d")
NO_ROWS = Values(names("x y"), ())
HALF = Values(names("x y"), ((term("u"), None), (term("v"), term("w"))))

# node: schema (in order), certain, mentioned
TABLE = [
    (bgp(), "", "", ""),
    (AB, "a b", "a b", "a b"),
    (bgp("?a p 1"), "a", "a", "a"),
    (bgp("s p o"), "", "", ""),
    (bgp("?a ?a ?a ?a"), "a", "a", "a"),
    (bgp("?b ?p ?a ?g", "?a p ?b"), "b p a g", "b p a g", "b p a g"),
    (GraphNames(Var("g")), "g", "g", "g"),
    (HALF, "x y", "x", "x y"),
    (NO_ROWS, "x y", "x y", "x y"),
    (Join(AB, BC), "a b c", "a b c", "a b c"),
    (Join(BC, AB), "b c a", "a b c", "a b c"),
    (LeftJoin(AB, BC), "a b c", "a b", "a b c"),
    (LeftJoin(AB, BC, call("?c < ?z")), "a b c", "a b", "a b c z"),
    (Union(AB, BC), "a b c", "b", "a b c"),
    (Union(AB, bgp()), "a b", "", "a b"),
    (Minus(AB, BC), "a b", "a b", "a b c"),
    (Minus(LeftJoin(AB, BC), CD), "a b c", "a b", "a b c d"),
    (Filter(call("?a < ?z"), AB), "a b", "a b", "a b z"),
    (Filter(exists(CD), AB), "a b", "a b", "a b c d"),
    (Filter(call("bound ?c"), LeftJoin(AB, BC)), "a b c", "a b", "a b c"),
    (Extend(AB, Var("n"), call("?a + ?z")), "a b n", "a b", "a b n z"),
    (Extend(AB, Var("n"), Const(term("1"))), "a b n", "a b", "a b n"),
    (Project(Join(AB, BC), names("c a")), "c a", "a c", "a b c"),
    (Project(AB, names("z a")), "z a", "a", "a b z"),
    (Project(LeftJoin(AB, BC), names("c")), "c", "", "a b c"),
    (Distinct(LeftJoin(AB, BC)), "a b c", "a b", "a b c"),
    (Join(Union(AB, CD), AB), "a b c d", "a b", "a b c d"),
]


@pytest.mark.parametrize(("node", "columns", "bound", "everywhere"), TABLE)
def test_variables_of_a_node(node, columns, bound, everywhere):
    assert schema(node) == names(columns)
    assert certain(node) == frozenset(names(bound))
    assert mentioned(node) == frozenset(names(everywhere))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (Var("a"), "a"),
        (Const(term("1")), ""),
        (call("?a < ?b"), "a b"),
        (
            all_of(call("?a < ?b"), call("bound ?c"), not_exists(Filter(call("?x = ?y"), CD))),
            "a b c d x y",
        ),
    ],
)
def test_variables_of_an_expression(expression, expected):
    assert mentioned(expression) == frozenset(names(expected))


def test_a_pattern_has_each_variable_once_in_order():
    pattern = TriplePattern(Var("b"), Var("a"), Var("b"), Var("g"))
    assert pattern_variables(pattern) == names("b a g")


def test_merge_keeps_the_first_place_of_each():
    assert merge(names("b a"), names("a c"), names("c b d")) == names("b a c d")
