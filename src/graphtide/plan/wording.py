"""Variables, patterns and expressions in words, as a query would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import DefaultGraph, MergedGraph, TriplePattern
from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from collections.abc import Iterable

INFIX = frozenset(("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "&&", "||"))


def names(variables: Iterable[Var]) -> str:
    """Variables in a list; nothing is 'nothing'."""
    return " ".join(f"?{v.name}" for v in variables) or "nothing"


def patterns_text(patterns: Iterable[TriplePattern]) -> str:
    """Triple patterns as a query would write them, IRIs shortened to their last part."""
    return " . ".join(_pattern_text(p) for p in patterns)


def _pattern_text(pattern: TriplePattern) -> str:
    triple = " ".join(short(p) for p in (pattern.subject, pattern.predicate, pattern.object))
    if isinstance(pattern.graph, DefaultGraph):
        return triple
    return f"{triple} in {graph_text(pattern.graph)}"


def graph_text(graph: object) -> str:
    """Where a pattern is asked, other than in the default graph."""
    if isinstance(graph, MergedGraph):
        return "any graph" if graph.names is None else " or ".join(map(short, graph.names))
    return short(graph)


def short(position: object) -> str:
    """A term or variable as text, an IRI shortened to its last part."""
    if isinstance(position, NamedNode):
        tail = position.value.rstrip("/#")
        return ":" + tail[max(tail.rfind("/"), tail.rfind("#")) + 1 :]
    return str(position)


def expression_text(expression: Expression) -> str:
    """An expression as a query would write it."""
    match expression:
        case Var():
            return str(expression)
        case Const(term):
            return short(term)
        case Exists():
            return "EXISTS { … }"
        case Call("UMINUS" | "UPLUS" as name, (arg,)):
            return f"{'-' if name == 'UMINUS' else '+'}{expression_text(arg)}"
        case Call("IN" | "NOT IN" as name, (needle, *others)):
            inside = ", ".join(expression_text(a) for a in others)
            return f"{expression_text(needle)} {name} ({inside})"
        case Call(name, (left, right)) if name in INFIX:
            return f"({expression_text(left)} {name} {expression_text(right)})"
        case Call(name, args):
            inside = ", ".join(expression_text(a) for a in args)
            return f"{_function_name(name)}({inside})"
        case _:
            assert_never(expression)


def _function_name(name: str) -> str:
    return name if not name.startswith("<http") else name.rstrip(">").rsplit("#", 1)[-1]
