"""Trees with more levels than Python's stack has calls."""

from __future__ import annotations

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Var
from graphtide.algebra.rewrite import rewrite
from graphtide.algebra.traverse import rename, walk
from graphtide.algebra.trees import balanced, bottom_up
from graphtide.algebra.variables import certain, mentioned, schema

DEPTH = 5000
A, B, C = Var("a"), Var("b"), Var("c")
LEAF = alg.Bgp((alg.TriplePattern(A, B, C),))


def deep(last: Var) -> alg.Node:
    """OPTIONALs in a row."""
    node: alg.Node = alg.Bgp((alg.TriplePattern(A, B, last),))
    for _ in range(DEPTH):
        node = alg.LeftJoin(node, LEAF)
    return node


def test_equal_trees_have_equal_hashes_and_texts():
    one, other = deep(C), deep(C)
    assert one is not other and one == other and hash(one) == hash(other)
    assert repr(one) == repr(other) and repr(one).count("LeftJoin(left=") == DEPTH


def test_a_difference_at_the_bottom_is_seen():
    assert deep(B) != deep(C)
    assert {deep(B), deep(C), deep(C)} == {deep(C), deep(B)}


def test_a_text_is_that_of_a_dataclass():
    node = alg.Extend(alg.Distinct(LEAF), A, Var("x"))
    assert (
        repr(node) == f"Extend(child=Distinct(child={LEAF!r}), var={A!r}, expression={Var('x')!r})"
    )


def test_passes_reach_the_bottom():
    node = deep(Var("last"))
    assert schema(node) == (A, B, Var("last"), C)
    assert certain(node) == {A, B, Var("last")} and mentioned(node) == {A, B, C, Var("last")}
    assert rename(node, {Var("last"): C}) == deep(C)
    assert sum(isinstance(each, alg.LeftJoin) for each in walk(node)) == DEPTH
    assert len(bottom_up(node)) == DEPTH + 2  # the leaf on the right is one object


def test_a_filter_moves_through_all_levels():
    condition = Call("=", (A, A))
    filtered = rewrite(alg.Filter(condition, deep(C)))
    first, *_ = bottom_up(filtered)
    assert isinstance(first, alg.Bgp) and isinstance(filtered, alg.LeftJoin)
    assert [each.condition for each in walk(filtered) if isinstance(each, alg.Filter)] == [
        condition
    ]


def test_shared_nodes_stay_shared():
    shared = alg.Distinct(LEAF)
    union = rewrite(balanced(alg.Union, [shared] * DEPTH))
    assert len(bottom_up(union)) == DEPTH + 1  # the unions, the shared node and its leaf
    renamed = rename(union, {A: Var("x")})
    assert len({id(each) for each in bottom_up(renamed)}) == len(bottom_up(union))


def test_each_condition_moves_on_its_own():
    """One that stays above an OPTIONAL does not keep the next one there."""
    stays, moves = Call("BOUND", (C,)), Call("=", (A, A))
    right = alg.Bgp((alg.TriplePattern(A, B, C),))
    left = alg.Bgp((alg.TriplePattern(A, A, A),))
    node = alg.Filter(Call("&&", (stays, moves)), alg.LeftJoin(left, right))
    assert rewrite(node) == alg.Filter(stays, alg.LeftJoin(alg.Filter(moves, left), right))
