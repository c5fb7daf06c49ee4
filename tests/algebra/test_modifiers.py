"""Groups, slices and paths in the rules: random trees before and after, and names by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from algebra.build_nodes import all_of, bgp, call, exists, names, term
from algebra.random_modifiers import filtered_trees
from algebra.random_nodes import graphs
from hypothesis import HealthCheck, given, settings

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import (
    Aggregate,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    OrderKey,
    Path,
    Project,
    SelectQuery,
    Slice,
    Union,
)
from graphtide.algebra.paths import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
    matches_zero_length,
)
from graphtide.algebra.rewrite import RULES, drop_order, push_filters, rewrite
from graphtide.algebra.traverse import rename
from graphtide.algebra.variables import certain, mentioned, schema
from oracles.reference import evaluate_query

AB, BC = bgp("?a p ?b"), bgp("?b q ?c")
N = Aggregate(Var("n"), "COUNT", None)
M = Aggregate(Var("m"), "MAX", Var("b"))
BY_A = Group(AB, names("a"), (N,))
STEPS = OneOrMore(Link(term("p")))
ON_A, ON_B, ON_N = call("?a < 1"), call("?b < 1"), call("?n < 1")


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(filtered_trees, graphs)
def test_a_rewritten_tree_has_the_same_rows(root, quads):
    query = SelectQuery(schema(root), root)
    expected = evaluate_query(query, quads)
    for rule in (*RULES, rewrite):
        assert evaluate_query(replace(query, root=rule(root)), quads) == expected


# node: schema (in order), certain, mentioned
TABLE = [
    (Path(Var("b"), STEPS, Var("a")), "b a", "a b", "a b"),
    (Path(Var("a"), STEPS, Var("a"), Var("g")), "a g", "a g", "a g"),
    (Path(term("x"), STEPS, term("y")), "", "", ""),
    (BY_A, "a n", "a n", "a b n"),
    (Group(AB, (), (M,)), "m", "", "a b m"),
    (Group(LeftJoin(AB, BC), names("c a"), (M, N)), "c a m n", "a n", "a b c m n"),
    (Group(AB, names("z"), ()), "z", "", "a b z"),
    (Slice(LeftJoin(AB, BC), names("c a"), (OrderKey(Var("b")),)), "c a", "a", "a b c"),
]


@pytest.mark.parametrize(("node", "columns", "bound", "everywhere"), TABLE)
def test_variables_of_a_node(node, columns, bound, everywhere):
    assert schema(node) == names(columns)
    assert certain(node) == frozenset(names(bound))
    assert mentioned(node) == frozenset(names(everywhere))


FILTERS = {
    "group, on a key": (Filter(ON_A, BY_A), replace(BY_A, child=Filter(ON_A, AB))),
    "group, on a count": (Filter(ON_N, BY_A), Filter(ON_N, BY_A)),
    "group, each part its way": (
        Filter(all_of(ON_A, ON_N), BY_A),
        Filter(ON_N, replace(BY_A, child=Filter(ON_A, AB))),
    ),
    # ?b is unbound outside the group, and would not be inside.
    "group, on a variable that is hidden": (Filter(ON_B, BY_A), Filter(ON_B, BY_A)),
    "group, exists on a hidden variable": (
        Filter(exists(BC), BY_A),
        Filter(exists(BC), BY_A),
    ),
    # Without keys there is a row even when nothing is left to group.
    "group without keys": (
        Filter(call("1 < 0"), Group(AB, (), (N,))),
        Filter(call("1 < 0"), Group(AB, (), (N,))),
    ),
    "slice": (
        Filter(ON_A, Slice(AB, names("a"), limit=1)),
        Filter(ON_A, Slice(AB, names("a"), limit=1)),
    ),
    "path": (
        Filter(ON_A, Path(Var("a"), STEPS, Var("b"))),
        Filter(ON_A, Path(Var("a"), STEPS, Var("b"))),
    ),
    "inside a slice": (
        Slice(Filter(ON_A, Distinct(AB)), names("a"), limit=1),
        Slice(Distinct(Filter(ON_A, AB)), names("a"), limit=1),
    ),
}


@pytest.mark.parametrize("case", FILTERS)
def test_push_filters(case):
    before, after = FILTERS[case]
    assert push_filters(before) == after


def test_drop_order_only_where_nothing_is_cut():
    keys = (OrderKey(Var("a")),)
    whole, cut = Slice(AB, names("a"), keys), Slice(AB, names("a"), keys, limit=1)
    assert drop_order(whole) == Project(AB, names("a"))
    assert drop_order(replace(whole, distinct=True)) == Distinct(Project(AB, names("a")))
    assert drop_order(cut) == cut
    assert drop_order(replace(whole, offset=1)) == replace(whole, offset=1)
    assert drop_order(Union(Join(whole, cut), BC)) == Union(Join(drop_order(whole), cut), BC)


def test_rename_reaches_everything():
    b, z = Var("b"), Var("z")
    node = Slice(
        Extend(Filter(exists(bgp("?b q ?c")), Group(AB, (b,), (M,))), Var("k"), call("?b + ?m")),
        (b,),
        (OrderKey(b),),
        per=(b,),
    )
    expected = Slice(
        Extend(
            Filter(
                exists(bgp("?z q ?c")),
                Group(bgp("?a p ?z"), (z,), (Aggregate(Var("m"), "MAX", z),)),
            ),
            Var("k"),
            call("?z + ?m"),
        ),
        (z,),
        (OrderKey(z),),
        per=(z,),
    )
    assert rename(node, {b: z}) == expected


P = Link(term("p"))


@pytest.mark.parametrize(
    ("path", "still"),
    [
        (P, False),
        (NegatedSet(()), False),
        (Inverse(Sequence((P, P))), False),
        (OneOrMore(P), False),
        (ZeroOrOne(P), True),
        (ZeroOrMore(P), True),
        (Sequence((ZeroOrMore(P), P)), False),
        (Sequence((ZeroOrMore(P), ZeroOrOne(P))), True),
        (Alternative((P, ZeroOrOne(P))), True),
        (OneOrMore(Inverse(ZeroOrOne(P))), True),
    ],
)
def test_which_paths_matches_zero_length(path, still):
    assert matches_zero_length(path) is still
