"""Which patterns inside EXISTS depend on the outer row in more than their shared variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

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
from graphtide.algebra.variables import certain, expression_variables, mentioned

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var


def reads_outer(node: Node, outer: frozenset[Var]) -> bool:
    """Whether evaluating `node` once and joining it could differ from evaluating it per outer row.

    True when an expression mentions an outer variable that its own pattern does not certainly
    bind, and for OPTIONAL, MINUS and BIND that meet an outer variable: for these, substitution and
    joining are not the same. So it is with groups by, and ranges for each, other variables.
    """
    match node:
        case Bgp() | Values() | GraphNames() | Path():
            return False
        case Join(left, right) | Union(left, right):
            return reads_outer(left, outer) or reads_outer(right, outer)
        case Filter(condition, child):
            return _expression_reads(condition, child, outer) or reads_outer(child, outer)
        case Project(child, variables):
            return reads_outer(child, outer & frozenset(variables))
        case Distinct(child):
            return reads_outer(child, outer)
        case Group(child, keys):
            return reads_outer(child, outer) or bool((mentioned(child) & outer) - {*keys})
        case Slice(child, variables, per=per):
            seen = outer & frozenset(variables)
            return reads_outer(child, seen) or bool((mentioned(child) & seen) - {*per})
        case LeftJoin() | Minus() | Extend():
            return bool(mentioned(node) & outer)
        case _:
            assert_never(node)


def _expression_reads(expression: Expression, child: Node, outer: frozenset[Var]) -> bool:
    return bool((expression_variables(expression) & outer) - certain(child))


def assigned(node: Node) -> frozenset[Var]:
    """The variables that a BIND inside `node` gives a value."""
    match node:
        case Bgp() | Values() | GraphNames() | Path():
            return frozenset()
        case Extend(child, var, _):
            return assigned(child) | {var}
        case Join(left, right) | LeftJoin(left, right) | Union(left, right) | Minus(left, right):
            return assigned(left) | assigned(right)
        case Filter(_, child) | Project(child, _) | Distinct(child) | Slice(child):
            return assigned(child)
        case Group(child, _, aggregates):
            return assigned(child) | {a.var for a in aggregates}
        case _:
            assert_never(node)
