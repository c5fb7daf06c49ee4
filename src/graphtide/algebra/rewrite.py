"""Rewrite rules: pure functions from algebra to algebra that keep every answer the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call
from graphtide.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Path,
    Project,
    Slice,
    Union,
    Values,
)
from graphtide.algebra.variables import certain, expression_variables, schema

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression


# --- drop_order: where all rows are kept, their order changes nothing about which there are.


def drop_order(node: Node) -> Node:
    """Replace every ORDER BY without LIMIT and OFFSET by what it does to the bag of rows.

    >>> from graphtide.algebra.expressions import Var
    >>> drop_order(Slice(Bgp(()), (Var("a"),), distinct=True)) == Distinct(
    ...     Project(Bgp(()), (Var("a"),))
    ... )
    True
    """
    match node:
        case Slice(child, variables, _, distinct, 0, None):
            kept = Project(drop_order(child), variables)
            return Distinct(kept) if distinct else kept
        case Join() | LeftJoin() | Union() | Minus():
            return replace(node, left=drop_order(node.left), right=drop_order(node.right))
        case Filter() | Extend() | Project() | Distinct() | Group() | Slice():
            return replace(node, child=drop_order(node.child))
        case Bgp() | Values() | GraphNames() | Path():
            return node
        case _:
            assert_never(node)


# --- merge_patterns: a join of basic graph patterns is one basic graph pattern.
#
# Each triple pattern gives a set of rows, and a natural join of sets is a set: nothing is counted
# twice. One larger pattern leaves the planner more orders to choose from.


def merge_patterns(node: Node) -> Node:
    """Merge joined basic graph patterns; the empty pattern, which joins with everything, vanishes.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> one, two = (TriplePattern(Var("a"), Var(p), Var("b")) for p in "pq")
    >>> merge_patterns(Join(Bgp((one,)), Join(Bgp(()), Bgp((two,))))) == Bgp((one, two))
    True
    """
    match node:
        case Join(left, right):
            return _joined(merge_patterns(left), merge_patterns(right))
        case LeftJoin() | Union() | Minus():
            return replace(node, left=merge_patterns(node.left), right=merge_patterns(node.right))
        case Filter() | Extend() | Project() | Distinct() | Group() | Slice():
            return replace(node, child=merge_patterns(node.child))
        case Bgp() | Values() | GraphNames() | Path():
            return node
        case _:
            assert_never(node)


def _joined(left: Node, right: Node) -> Node:
    match left, right:
        case Bgp(first), Bgp(second):
            return Bgp(first + second)
        case Bgp(()), other:
            return other
        case other, Bgp(()):
            return other
        case _:
            return Join(left, right)


# --- push_filters: each condition of a filter moves as close to the patterns as its meaning
# allows.
#
# A condition may move below a node if it reads the same values there: every variable it mentions that
# the node binds at all must be bound, in every row, by the input it moves to.


def push_filters(node: Node) -> Node:
    """Move the conditions of all filters down.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> left = Bgp((TriplePattern(Var("a"), Var("p"), Var("b")),))
    >>> right = Bgp((TriplePattern(Var("b"), Var("q"), Var("c")),))
    >>> a_is_b = Call("=", (Var("a"), Var("b")))
    >>> push_filters(Filter(a_is_b, LeftJoin(left, right))) == LeftJoin(Filter(a_is_b, left), right)
    True
    """
    match node:
        case Filter(condition, child):
            pushed = push_filters(child)
            for part in conjuncts(condition):
                pushed = _push(part, pushed)
            return pushed
        case Join() | LeftJoin() | Union() | Minus():
            return replace(node, left=push_filters(node.left), right=push_filters(node.right))
        case Extend() | Project() | Distinct() | Group() | Slice():
            return replace(node, child=push_filters(node.child))
        case Bgp() | Values() | GraphNames() | Path():
            return node
        case _:
            assert_never(node)


def conjuncts(condition: Expression) -> list[Expression]:
    """The parts of a condition that must all be true."""
    if isinstance(condition, Call) and condition.name == "&&":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def conjunction(parts: list[Expression]) -> Expression:
    """One condition that is true when all parts are."""
    return reduce(lambda a, b: Call("&&", (a, b)), parts)


def _push(part: Expression, node: Node) -> Node:
    """One condition, which reads `node`'s rows, as deep inside `node` as it may go."""
    match node:
        case Join(left, right):
            if _reads_only(part, node, left):
                return replace(node, left=_push(part, left))
            if _reads_only(part, node, right):
                return replace(node, right=_push(part, right))
        case LeftJoin(left, _) if _reads_only(part, node, left):
            return replace(node, left=_push(part, left))
        case Minus(left, _):
            return replace(node, left=_push(part, left))
        case Union(left, right):
            return Union(_push(part, left), _push(part, right))
        case Extend(child, var, _) if var not in expression_variables(part):
            return replace(node, child=_push(part, child))
        case Distinct(child):
            return Distinct(_push(part, child))
        case Group(child, keys) if keys and _reads_keys(part, node):
            return replace(node, child=_push(part, child))
        case Filter(condition, child):
            return Filter(conjunction([*conjuncts(condition), part]), child)
        case _:
            pass
    return Filter(part, node)


def _reads_only(part: Expression, node: Node, side: Node) -> bool:
    """Whether a condition on `node`'s rows says the same on those of one of its inputs."""
    return expression_variables(part) & frozenset(schema(node)) <= certain(side)


def _reads_keys(part: Expression, group: Group) -> bool:
    """Whether a condition on groups reads nothing but keys, which all rows of a group share."""
    visible = frozenset(schema(group)) | frozenset(schema(group.child))
    return expression_variables(part) & visible <= frozenset(group.keys)


Rule = Callable[["Node"], "Node"]
"""A rule takes a node and returns one with the same rows and multiplicities on every graph."""

RULES: tuple[Rule, ...] = (drop_order, merge_patterns, push_filters)
"""Applied once each, in this order."""


def rewrite(node: Node) -> Node:
    """Apply every rule."""
    for rule in RULES:
        node = rule(node)
    return node
