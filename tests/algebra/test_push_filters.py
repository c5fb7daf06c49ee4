"""push_filters: before and after, by hand, for every kind of node."""

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
    Union,
    Values,
)
from graphtide.algebra.rewrite import conjunction, conjuncts, push_filters

AB, BC, CD = bgp("?a p ?b"), bgp("?b q ?c"), bgp("?c r ?d")
ON_A, ON_B, ON_C, ON_AC = call("?a < 1"), call("?b < 1"), call("?c < 1"), call("?a = ?c")
ON_NOTHING, ON_Z = call("1 < 2"), call("bound ?z")
MAYBE_C = LeftJoin(AB, BC)
ONE = Const(term("1"))
UNDEF = Values(names("b x"), ((None, term("u")),))


def unmoved(condition, node):
    return Filter(condition, node), Filter(condition, node)


CASES = {
    # Join: to the side that surely binds all that the condition reads.
    "join, left": (Filter(ON_A, Join(AB, MAYBE_C)), Join(Filter(ON_A, AB), MAYBE_C)),
    "join, right": (
        Filter(ON_C, Join(UNDEF, BC)),
        Join(UNDEF, Filter(ON_C, BC)),
    ),
    "join, the left side first": (Filter(ON_B, Join(AB, BC)), Join(Filter(ON_B, AB), BC)),
    "join, needs both": unmoved(ON_AC, Join(AB, BC)),
    "join, bound on neither for sure": unmoved(ON_C, Join(MAYBE_C, LeftJoin(AB, CD))),
    "join, a variable of no row": (Filter(ON_Z, Join(AB, BC)), Join(Filter(ON_Z, AB), BC)),
    "join, no variables": (Filter(ON_NOTHING, Join(AB, BC)), Join(Filter(ON_NOTHING, AB), BC)),
    "join, undefined values": unmoved(ON_B, Join(UNDEF, LeftJoin(CD, BC))),
    # OPTIONAL: only to the left, and only what the left surely binds.
    "left join, left": (Filter(ON_A, MAYBE_C), LeftJoin(Filter(ON_A, AB), BC)),
    "left join, right": unmoved(ON_C, MAYBE_C),
    "left join, both": unmoved(ON_AC, MAYBE_C),
    "left join, bound in both": (Filter(ON_B, MAYBE_C), LeftJoin(Filter(ON_B, AB), BC)),
    "left join, open on the left": unmoved(ON_C, LeftJoin(MAYBE_C, CD)),
    "left join, keeps its condition": (
        Filter(ON_A, LeftJoin(AB, BC, ON_AC)),
        LeftJoin(Filter(ON_A, AB), BC, ON_AC),
    ),
    # MINUS: always to the left.
    "minus": (Filter(ON_A, Minus(AB, BC)), Minus(Filter(ON_A, AB), BC)),
    "minus, open column": (
        Filter(ON_C, Minus(MAYBE_C, CD, frozenset(names("g")))),
        Minus(Filter(ON_C, MAYBE_C), CD, frozenset(names("g"))),
    ),
    "minus, a variable of the right only": (
        Filter(ON_C, Minus(AB, BC)),
        Minus(Filter(ON_C, AB), BC),
    ),
    # UNION: to both.
    "union": (Filter(ON_A, Union(AB, BC)), Union(Filter(ON_A, AB), Filter(ON_A, BC))),
    # BIND: below it, unless the condition reads the new variable.
    "bind, another variable": (
        Filter(ON_A, Extend(AB, Var("n"), ONE)),
        Extend(Filter(ON_A, AB), Var("n"), ONE),
    ),
    "bind, its variable": unmoved(call("?n < ?a"), Extend(AB, Var("n"), ONE)),
    # DISTINCT: below it; projection: not.
    "distinct": (Filter(ON_A, Distinct(AB)), Distinct(Filter(ON_A, AB))),
    "project": unmoved(ON_A, Project(AB, names("a"))),
    # Leaves.
    "pattern": unmoved(ON_A, AB),
    "values": unmoved(call("bound ?b"), UNDEF),
    "graph names": unmoved(call("bound ?g"), GraphNames(Var("g"))),
    # Conditions are taken apart, and meet again where they cannot move on.
    "parts go their own ways": (
        Filter(all_of(ON_A, ON_C, ON_AC), Join(AB, BC)),
        Filter(ON_AC, Join(Filter(ON_A, AB), Filter(ON_C, BC))),
    ),
    "parts meet again": (Filter(all_of(ON_A, ON_B), AB), Filter(all_of(ON_A, ON_B), AB)),
    "filter over filter": (Filter(ON_A, Filter(ON_B, AB)), Filter(all_of(ON_B, ON_A), AB)),
    "filter over a filter that moves": (
        Filter(ON_C, Filter(ON_A, Join(AB, BC))),
        Join(Filter(ON_A, AB), Filter(ON_C, BC)),
    ),
    "through several nodes": (
        Filter(ON_A, Distinct(Minus(LeftJoin(Join(AB, BC), CD), CD))),
        Distinct(Minus(LeftJoin(Join(Filter(ON_A, AB), BC), CD), CD)),
    ),
    # EXISTS reads every variable that its pattern mentions.
    "exists over one side": (
        Filter(exists(bgp("?a s ?x")), Join(AB, BC)),
        Join(Filter(exists(bgp("?a s ?x")), AB), BC),
    ),
    "exists over both sides": unmoved(not_exists(bgp("?a s ?c")), Join(AB, BC)),
    "exists whose own name is also outside": unmoved(exists(bgp("?a s ?c")), LeftJoin(AB, BC)),
    # Filters deeper down are pushed as well.
    "inside left join": (
        LeftJoin(AB, Filter(ON_B, Join(BC, CD))),
        LeftJoin(AB, Join(Filter(ON_B, BC), CD)),
    ),
    "inside union": (Union(Filter(ON_A, Distinct(AB)), BC), Union(Distinct(Filter(ON_A, AB)), BC)),
    "inside bind": (
        Extend(Filter(ON_A, Distinct(AB)), Var("n"), ONE),
        Extend(Distinct(Filter(ON_A, AB)), Var("n"), ONE),
    ),
    "inside project": (
        Project(Filter(ON_A, Distinct(AB)), names("a")),
        Project(Distinct(Filter(ON_A, AB)), names("a")),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_push_filters(case):
    before, after = CASES[case]
    assert push_filters(before) == after
    assert push_filters(after) == after


def test_conjuncts_and_conjunction_are_opposites():
    parts = [ON_A, ON_B, ON_C]
    assert conjuncts(all_of(ON_A, all_of(ON_B, ON_C))) == parts
    assert conjuncts(conjunction(parts)) == parts
    assert conjunction([ON_A]) == ON_A
    assert conjuncts(ON_A) == [ON_A]
