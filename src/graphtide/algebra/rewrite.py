"""Rewrite rules: functions from algebra to algebra that keep all rows and their multiplicities.

`drop_order` removes ORDER BY where all rows are kept. `merge_patterns` makes one basic graph
pattern of a join of several, so that the planner has more join orders to choose from: a triple
pattern gives a set of rows, and a join of sets is a set, so nothing is counted twice.
`push_filters` moves each condition of a filter as close to the patterns as its meaning allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Expression, Var
from graphtide.algebra.trees import bottom_up, inputs, rebuilt
from graphtide.algebra.variables import certain, certain_extension, mentioned, schema


def drop_order(node: alg.Node) -> alg.Node:
    """Replace every ORDER BY without LIMIT and OFFSET by what it does to the bag of rows.

    >>> from graphtide.algebra.expressions import Var
    >>> drop_order(alg.Slice(alg.Bgp(()), (Var("a"),), distinct=True)) == alg.Distinct(
    ...     alg.Project(alg.Bgp(()), (Var("a"),))
    ... )
    True
    """
    return rebuilt(node, _without_order)


def _without_order(node: alg.Node) -> alg.Node:
    match node:
        case alg.Slice(child, variables, _, distinct, 0, None):
            projected = alg.Project(child, variables)
            return alg.Distinct(projected) if distinct else projected
        case _:
            return node


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
    return rebuilt(node, _merged)


def _merged(node: alg.Node) -> alg.Node:
    match node:
        case alg.Join(alg.Bgp(first), alg.Bgp(second)):
            return alg.Bgp(first + second)
        case alg.Join(alg.Bgp(()), other) | alg.Join(other, alg.Bgp(())):
            return other
        case _:
            return node


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
    return rebuilt(node, _filtered)


def _filtered(node: alg.Node) -> alg.Node:
    if not isinstance(node, alg.Filter):
        return node
    parts = [Part(each, mentioned(each)) for each in conjuncts(node.condition)]
    bound = _bindings(node.child, frozenset().union(*(part.reads for part in parts)))
    return _push(node.child, parts, bound)


def conjuncts(condition: Expression) -> list[Expression]:
    """The operands of a conjunction, nested ones included."""
    if isinstance(condition, Call) and condition.name == "&&":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def conjunction(parts: Sequence[Expression]) -> Expression:
    """One condition that is true when all parts are."""
    return parts[0] if len(parts) == 1 else Call("&&", tuple(parts))


class Part(NamedTuple):
    """One condition of a filter, and the variables that it mentions."""

    condition: Expression
    reads: frozenset[Var]


class Bindings(NamedTuple):
    """The variables that a node may bind, and those that it binds in every row."""

    possible: frozenset[Var]
    certain: frozenset[Var]


def _push(node: alg.Node, parts: list[Part], bound: Mapping[int, Bindings]) -> alg.Node:
    """Filter `node` by some conditions, each placed as deep inside it as possible.

    A condition may move below a node if it reads the same values there: every variable that it
    mentions and the node binds at all must be bound, in every row, by the input it moves to.
    """
    passed: list[tuple[alg.Node, list[Part]]] = []  # on the way down, with what stays above them
    while parts:
        here = node
        lower: list[Part] = []
        possible = bound[id(node)].possible
        match node:
            case alg.Join(left, right):
                lower, parts = _reading(parts, possible, bound[id(left)].certain)
                over, parts = _reading(parts, possible, bound[id(right)].certain)
                here = replace(node, right=_push(right, over, bound))
            case alg.LeftJoin(left, _):
                lower, parts = _reading(parts, possible, bound[id(left)].certain)
            case alg.Minus() | alg.Distinct():
                lower, parts = parts, []
            case alg.Union(left, right):
                here = alg.Union(_push(left, parts, bound), _push(right, parts, bound))
                parts = []
            case alg.Extend(_, var, _):
                lower, parts = _reading(parts, frozenset((var,)), frozenset())
            case alg.Group(child, keys) if keys:
                visible = possible | bound[id(child)].possible
                lower, parts = _reading(parts, visible, frozenset(keys))
            case alg.Filter(condition, child):
                here = child
                parts = [*(Part(each, frozenset()) for each in conjuncts(condition)), *parts]
            case _:
                pass
        passed.append((here, parts))
        if lower:
            node = inputs(here)[0]
        parts = lower
    if not passed:
        return node
    here, own = passed.pop()
    filtered = _under(own, here)
    for here, own in reversed(passed):
        name = "left" if isinstance(here, alg.Join | alg.LeftJoin | alg.Minus) else "child"
        filtered = _under(own, cast("alg.Node", replace(cast("Any", here), **{name: filtered})))
    return filtered


def _under(parts: list[Part], node: alg.Node) -> alg.Node:
    return alg.Filter(conjunction([part.condition for part in parts]), node) if parts else node


def _reading(
    parts: list[Part], possible: frozenset[Var], there: frozenset[Var]
) -> tuple[list[Part], list[Part]]:
    """The conditions for which all variables that a node may bind are `there`; the others."""
    return _divided(parts, lambda part: part.reads & possible <= there)


def _divided(parts: list[Part], test: Callable[[Part], bool]) -> tuple[list[Part], list[Part]]:
    sides: tuple[list[Part], list[Part]] = [], []
    for part in parts:
        sides[not test(part)].append(part)
    return sides


def _bindings(root: alg.Node, wanted: frozenset[Var]) -> dict[int, Bindings]:
    """For each node by its id, which of some variables it binds."""
    found: dict[int, Bindings] = {}
    for node in bottom_up(root):
        below = [found[id(each)] for each in inputs(node)]
        match node:
            case alg.Join() | alg.LeftJoin() | alg.Union():
                left, right = below
                both = left.possible | right.possible
                if isinstance(node, alg.Join):
                    sure = left.certain | right.certain
                else:
                    optional = isinstance(node, alg.LeftJoin)
                    sure = left.certain if optional else left.certain & right.certain
                found[id(node)] = Bindings(both, sure)
            case alg.Minus() | alg.Filter() | alg.Distinct():
                found[id(node)] = below[0]
            case alg.Extend(_, var, expression):
                possible, sure = below[0]
                sure |= certain_extension(var, expression) & wanted
                found[id(node)] = Bindings(possible | (wanted & {var}), sure)
            case _:
                own = frozenset(schema(node)) & wanted
                found[id(node)] = Bindings(own, certain(node) & wanted)
    return found


Rule = Callable[["alg.Node"], "alg.Node"]
"""A rule takes a node and returns one with the same rows and multiplicities on every graph."""

RULES: tuple[Rule, ...] = (drop_order, merge_patterns, push_filters)
"""Applied once each, in this order."""


def rewrite(node: alg.Node) -> alg.Node:
    """Apply every rule."""
    for rule in RULES:
        node = rule(node)
    return node
