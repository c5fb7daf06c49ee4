"""Whether a query is well-designed: its OPTIONALs mean the same bottom-up and outside-in.

The recommendation evaluates an OPTIONAL's right side by itself. pyoxigraph hands it the rows found
so far, which is faster and gives the same answer, unless a variable of the right side also occurs
elsewhere in the query but not surely in the left side. For such queries it is no oracle.
"""

from __future__ import annotations

from typing import assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
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
from graphtide.algebra.variables import certain, mentioned

_NOTHING = frozenset[Var]()


def well_designed(node: Node, elsewhere: frozenset[Var] = _NOTHING) -> bool:
    """Whether every OPTIONAL below `node` keeps its new variables to itself.

    `elsewhere` holds the variables that the rest of the query mentions.

    >>> from graphtide.lang.sparql import parse_query
    >>> well_designed(parse_query("SELECT * { ?a <x:p> ?b OPTIONAL { ?b <x:q> ?c } }").root)
    True
    >>> query = "SELECT * { ?a <x:p> ?c { ?a <x:p> ?b OPTIONAL { ?b <x:q> ?c } } }"
    >>> well_designed(parse_query(query).root)
    False
    """
    match node:
        case Bgp() | Values() | GraphNames() | Path():
            return True
        case Join(left, right) | Minus(left, right):
            return _both(left, right, elsewhere)
        case LeftJoin(left, right, condition):
            exposed = mentioned(right) - certain(left)
            inside = condition is None or _in_expression(condition)
            return not exposed & elsewhere and inside and _both(left, right, elsewhere)
        case Union(left, right):
            return well_designed(left, elsewhere) and well_designed(right, elsewhere)
        case Filter(condition, child):
            return _in_expression(condition) and well_designed(child, elsewhere)
        case Extend(child, _, expression):
            return _in_expression(expression) and well_designed(child, elsewhere)
        case Project(child, _) | Distinct(child) | Group(child) | Slice(child):
            return well_designed(child, elsewhere)
        case _:
            assert_never(node)


def _both(left: Node, right: Node, elsewhere: frozenset[Var]) -> bool:
    return well_designed(left, elsewhere | mentioned(right)) and well_designed(
        right, elsewhere | mentioned(left)
    )


def _in_expression(expression: Expression) -> bool:
    """Inside EXISTS the outer row is substituted anyway: only the body itself counts."""
    match expression:
        case Var() | Const():
            return True
        case Call(_, args):
            return all(_in_expression(argument) for argument in args)
        case Exists(pattern):
            return well_designed(pattern)
        case _:
            assert_never(expression)
