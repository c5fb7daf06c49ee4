"""merge_patterns: before and after, by hand."""

from __future__ import annotations

import pytest
from algebra.build_nodes import bgp, call, names, term

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
from graphtide.algebra.rewrite import merge_patterns

A, B, C = bgp("?a p ?b"), bgp("?b q ?c"), bgp("?c r ?d")
AB = bgp("?a p ?b", "?b q ?c")
ABC = bgp("?a p ?b", "?b q ?c", "?c r ?d")
NOTHING = bgp()
DATA = Values(names("a"), ((term("x"),),))
LESS = call("?a < ?b")

CASES = {
    "two patterns": (Join(A, B), AB),
    "left-deep": (Join(Join(A, B), C), ABC),
    "right-deep": (Join(A, Join(B, C)), ABC),
    "empty on the left": (Join(NOTHING, DATA), DATA),
    "empty on the right": (Join(DATA, NOTHING), DATA),
    "only empty": (Join(NOTHING, NOTHING), NOTHING),
    "empty beside a pattern": (Join(A, Join(NOTHING, B)), AB),
    "the same pattern twice": (Join(A, A), bgp("?a p ?b", "?a p ?b")),
    "different graphs": (Join(bgp("?a p ?b ?g"), A), bgp("?a p ?b ?g", "?a p ?b")),
    "not through values": (Join(Join(A, DATA), B), Join(Join(A, DATA), B)),
    "not through a filter": (Join(Filter(LESS, A), B), Join(Filter(LESS, A), B)),
    "inside a left join": (
        LeftJoin(Join(A, B), Join(B, C), LESS),
        LeftJoin(AB, bgp("?b q ?c", "?c r ?d"), LESS),
    ),
    "not across a left join": (LeftJoin(A, B), LeftJoin(A, B)),
    "inside a union": (Union(Join(A, B), Join(NOTHING, A)), Union(AB, A)),
    "inside minus": (
        Minus(Join(A, B), Join(B, NOTHING), frozenset(names("g"))),
        Minus(AB, B, frozenset(names("g"))),
    ),
    "an empty optional stays": (LeftJoin(A, NOTHING), LeftJoin(A, NOTHING)),
    "inside a filter": (Filter(LESS, Join(A, B)), Filter(LESS, AB)),
    "inside bind": (
        Extend(Join(A, B), Var("n"), Const(term("1"))),
        Extend(AB, Var("n"), Const(term("1"))),
    ),
    "inside project": (Project(Join(A, B), names("a")), Project(AB, names("a"))),
    "inside distinct": (Distinct(Join(A, B)), Distinct(AB)),
    "values": (DATA, DATA),
    "graph names": (Join(GraphNames(Var("g")), NOTHING), GraphNames(Var("g"))),
}


@pytest.mark.parametrize("case", CASES)
def test_merge_patterns(case):
    before, after = CASES[case]
    assert merge_patterns(before) == after
    assert merge_patterns(after) == after
