"""Rewrite rules: functions from algebra to algebra that keep all rows and their multiplicities.

`drop_order` removes ORDER BY where all rows are kept. `merge_patterns` makes one basic graph
pattern of a join of several, so that the planner has more join orders to choose from: a triple
pattern gives a set of rows, and a join of sets is a set, so nothing is counted twice.
`push_filters` moves each condition of a filter as close to the patterns as its meaning allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from graphtide.algebra.expressions import Call, Expression
from graphtide.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Project,
    Slice,
    Union,
)
from graphtide.algebra.traverse import map_children
from graphtide.algebra.variables import certain, mentioned, schema


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
            projected = Project(drop_order(child), variables)
            return Distinct(projected) if distinct else projected
        case _:
            return map_children(node, drop_order)


def merge_patterns(node: Node) -> Node:
    """Merge joined basic graph patterns; the empty pattern, which joins with everything, vanishes.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> one, two = (TriplePattern(Var("a"), Var(p), Var("b")) for p in "pq")
    >>> merge_patterns(Join(Bgp((one,)), Join(Bgp(()), Bgp((two,))))) == Bgp((one, two))
    True
    """
    match map_children(node, merge_patterns):
        case Join(Bgp(first), Bgp(second)):
            return Bgp(first + second)
        case Join(Bgp(()), other) | Join(other, Bgp(())):
            return other
        case merged:
            return merged


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
    if isinstance(node, Filter):
        return reduce(_push, conjuncts(node.condition), push_filters(node.child))
    return map_children(node, push_filters)


def conjuncts(condition: Expression) -> list[Expression]:
    """The operands of a conjunction, nested ones included."""
    if isinstance(condition, Call) and condition.name == "&&":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def conjunction(parts: list[Expression]) -> Expression:
    """One condition that is true when all parts are."""
    return reduce(lambda a, b: Call("&&", (a, b)), parts)


def _push(node: Node, part: Expression) -> Node:
    """Filter `node` by one condition, placed as deep inside it as possible.

    A condition may move below a node if it reads the same values there: every variable that it
    mentions and the node binds at all must be bound, in every row, by the input it moves to.
    """
    match node:
        case Join(left, right):
            if _reads_only(part, node, left):
                return replace(node, left=_push(left, part))
            if _reads_only(part, node, right):
                return replace(node, right=_push(right, part))
        case LeftJoin(left, _) if _reads_only(part, node, left):
            return replace(node, left=_push(left, part))
        case Minus(left, _):
            return replace(node, left=_push(left, part))
        case Union(left, right):
            return Union(_push(left, part), _push(right, part))
        case Extend(child, var, _) if var not in mentioned(part):
            return replace(node, child=_push(child, part))
        case Distinct(child):
            return Distinct(_push(child, part))
        case Group(child, keys) if keys and _reads_keys(part, node):
            return replace(node, child=_push(child, part))
        case Filter(condition, child):
            return Filter(conjunction([*conjuncts(condition), part]), child)
        case _:
            pass
    return Filter(part, node)


def _reads_only(part: Expression, node: Node, side: Node) -> bool:
    """Whether a condition on `node`'s rows says the same on those of one of its inputs."""
    return mentioned(part) & frozenset(schema(node)) <= certain(side)


def _reads_keys(part: Expression, group: Group) -> bool:
    """Whether a condition on groups reads nothing but keys, which all rows of a group share."""
    visible = frozenset(schema(group)) | frozenset(schema(group.child))
    return mentioned(part) & visible <= frozenset(group.keys)


Rule = Callable[["Node"], "Node"]
"""A rule takes a node and returns one with the same rows and multiplicities on every graph."""

RULES: tuple[Rule, ...] = (drop_order, merge_patterns, push_filters)
"""Applied once each, in this order."""


def rewrite(node: Node) -> Node:
    """Apply every rule."""
    for rule in RULES:
        node = rule(node)
    return node
