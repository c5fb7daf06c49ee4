"""Grouping: from the clauses of a query level to a Group node.

https://www.w3.org/TR/sparql11-query/#sparqlAggregateAlgebra
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import Aggregate, Extend, Group, Node, Project
from graphtide.lang.level import AggregateCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from graphtide.lang.level import Level


def group_rows(
    node: Node,
    keys: Sequence[Var],
    aggregates: Mapping[AggregateCall, Var],
    fresh: Callable[[], Var],
) -> Group:
    """The groups of `node`. Arguments that are no variables become columns first."""
    found = []
    for call, name in aggregates.items():
        argument = call.argument
        if argument is not None and not isinstance(argument, Var):
            column = fresh()
            node = Extend(node, column, argument)
            argument = column
        found.append(Aggregate(name, call.function, argument, call.distinct, call.separator))
    return Group(node, tuple(dict.fromkeys(keys)), tuple(found))


def rows_to_count(node: Node, visible: tuple[Var, ...], level: Level) -> Node:
    """The rows as `COUNT(DISTINCT *)` tells them apart: without what blank nodes stand for."""
    stars = any(call.argument is None and call.distinct for call in level.aggregates)
    return Project(node, visible) if stars else node


def sampled(
    expression: Expression, known: frozenset[Var], level: Level, invent: Callable[[str], Var]
) -> Expression:
    """An expression of HAVING or ORDER BY, in which a variable that is not grouped is sampled."""
    samples = {}
    for variable in free_variables(expression) - known - frozenset(level.aggregates.values()):
        call = AggregateCall("SAMPLE", variable)
        if call not in level.aggregates:
            level.aggregates[call] = invent("sample")
        samples[variable] = level.aggregates[call]
    return substitute(expression, samples)


def free_variables(expression: Expression) -> frozenset[Var]:
    """The variables that an expression reads from its own row, EXISTS patterns apart."""
    match expression:
        case Var():
            return frozenset((expression,))
        case Call(_, args):
            return frozenset().union(*map(free_variables, args))
        case Const() | Exists():
            return frozenset()
        case _:
            assert_never(expression)


def substitute(expression: Expression, values: Mapping[Var, Expression]) -> Expression:
    """The expression with other expressions in place of variables, EXISTS patterns apart."""
    match expression:
        case Var():
            return values.get(expression, expression)
        case Call(name, args):
            return Call(name, tuple(substitute(arg, values) for arg in args))
        case Const() | Exists():
            return expression
        case _:
            assert_never(expression)


def reads_only(expression: Expression, columns: frozenset[Var]) -> bool:
    """Whether an expression is a function of these columns alone."""
    match expression:
        case Var():
            return expression in columns
        case Call(_, args):
            return all(reads_only(arg, columns) for arg in args)
        case Const():
            return True
        case Exists():
            return False
        case _:
            assert_never(expression)
