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

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Expression
from graphtide.algebra.traverse import map_children
from graphtide.algebra.variables import certain, mentioned, schema


def drop_order(node: alg.Node) -> alg.Node:
    """Replace every ORDER BY without LIMIT and OFFSET by what it does to the bag of rows.

    >>> from graphtide.algebra.expressions import Var
    >>> drop_order(alg.Slice(alg.Bgp(()), (Var("a"),), distinct=True)) == alg.Distinct(
    ...     alg.Project(alg.Bgp(()), (Var("a"),))
    ... )
    True
    """
    match node:
        case alg.Slice(child, variables, _, distinct, 0, None):
            projected = alg.Project(drop_order(child), variables)
            return alg.Distinct(projected) if distinct else projected
        case _:
            return map_children(node, drop_order)


def merge_patterns(node: alg.Node) -> alg.Node:
    """Merge joined basic graph patterns; the empty pattern, which joins with everything, vanishes.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> one, two = (TriplePattern(Var("a"), Var(p), Var("b")) for p in "pq")
    >>> merge_patterns(
    ...     alg.Join(alg.Bgp((one,)), alg.Join(alg.Bgp(()), alg.Bgp((two,))))
    ... ) == alg.Bgp((one, two))
    True
    """
    match map_children(node, merge_patterns):
        case alg.Join(alg.Bgp(first), alg.Bgp(second)):
            return alg.Bgp(first + second)
        case alg.Join(alg.Bgp(()), other) | alg.Join(other, alg.Bgp(())):
            return other
        case merged:
            return merged


def push_filters(node: alg.Node) -> alg.Node:
    """Move the conditions of all filters down.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> left = alg.Bgp((TriplePattern(Var("a"), Var("p"), Var("b")),))
    >>> right = alg.Bgp((TriplePattern(Var("b"), Var("q"), Var("c")),))
    >>> a_is_b = Call("=", (Var("a"), Var("b")))
    >>> push_filters(alg.Filter(a_is_b, alg.LeftJoin(left, right))) == alg.LeftJoin(
    ...     alg.Filter(a_is_b, left), right
    ... )
    True
    """
    if isinstance(node, alg.Filter):
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


def _push(node: alg.Node, part: Expression) -> alg.Node:
    """Filter `node` by one condition, placed as deep inside it as possible.

    A condition may move below a node if it reads the same values there: every variable that it
    mentions and the node binds at all must be bound, in every row, by the input it moves to.
    """
    match node:
        case alg.Join(left, right):
            if _reads_only(part, node, left):
                return replace(node, left=_push(left, part))
            if _reads_only(part, node, right):
                return replace(node, right=_push(right, part))
        case alg.LeftJoin(left, _) if _reads_only(part, node, left):
            return replace(node, left=_push(left, part))
        case alg.Minus(left, _):
            return replace(node, left=_push(left, part))
        case alg.Union(left, right):
            return alg.Union(_push(left, part), _push(right, part))
        case alg.Extend(child, var, _) if var not in mentioned(part):
            return replace(node, child=_push(child, part))
        case alg.Distinct(child):
            return alg.Distinct(_push(child, part))
        case alg.Group(child, keys) if keys and _reads_keys(part, node):
            return replace(node, child=_push(child, part))
        case alg.Filter(condition, child):
            return alg.Filter(conjunction([*conjuncts(condition), part]), child)
        case _:
            pass
    return alg.Filter(part, node)


def _reads_only(part: Expression, node: alg.Node, side: alg.Node) -> bool:
    """Whether a condition on `node`'s rows says the same on those of one of its inputs."""
    return mentioned(part) & frozenset(schema(node)) <= certain(side)


def _reads_keys(part: Expression, group: alg.Group) -> bool:
    """Whether a condition on groups reads nothing but keys, which all rows of a group share."""
    visible = frozenset(schema(group)) | frozenset(schema(group.child))
    return mentioned(part) & visible <= frozenset(group.keys)


Rule = Callable[["alg.Node"], "alg.Node"]
"""A rule takes a node and returns one with the same rows and multiplicities on every graph."""

RULES: tuple[Rule, ...] = (drop_order, merge_patterns, push_filters)
"""Applied once each, in this order."""


def rewrite(node: alg.Node) -> alg.Node:
    """Apply every rule."""
    for rule in RULES:
        node = rule(node)
    return node
