"""Plan nodes in words: what a node does, and what it stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import DefaultGraph, TriplePattern
from graphtide.algebra.variables import pattern_variables
from graphtide.plan.physical import (
    Compute,
    Constant,
    HashJoin,
    Keep,
    Merge,
    Physical,
    Search,
    Select,
    SemiJoin,
    Unique,
)
from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INFIX = frozenset(("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "&&", "||"))


def describe(node: Physical) -> str:
    """One line on what a node does."""
    match node:
        case Search(patterns, checks):
            found = "input" if is_input(node) else "search"
            text = f"{found} {patterns_text(patterns)}"
            for check in checks:
                word = "without" if check.negated else "with"
                text += f" {word} {{ {patterns_text(check.patterns)} }}"
            return text
        case Constant(rows):
            return "one empty row" if rows == ((),) else _constants(len(rows))
        case HashJoin(_, _, keys, loose, overlap):
            text = f"join on {names(keys)}" if keys or loose else "product"
            text += f", {names(loose)} if bound" if loose else ""
            return text + (f", one of {names(overlap)} bound on both sides" if overlap else "")
        case SemiJoin(_, _, keys, negated):
            return f"{'antijoin' if negated else 'semijoin'} on {names(keys)}"
        case Select(_, condition):
            return f"select {expression_text(condition)}"
        case Compute(_, var, expression):
            return f"compute {names((var,))} as {expression_text(expression)}"
        case Merge():
            return "union"
        case Unique():
            return f"distinct {names(node.schema)}"
        case Keep():
            return f"project {names(node.schema)}"
        case _:
            assert_never(node)


def is_input(node: Physical) -> bool:
    """Whether a node is an input node of a network: one edge, and the classes of its ends."""
    if not isinstance(node, Search) or node.checks:
        return False
    return all(len(pattern_variables(p)) < 2 for p in node.patterns[1:])


def state_of(node: Physical, sizes: Mapping[str, int] | None) -> str:
    """What a node stores, with the rows it holds now if they are known; empty for nothing."""

    def size(key: str) -> str:
        return "" if sizes is None else f" ({sizes.get(key, 0):,} now)"

    match node:
        case HashJoin():
            return f"left rows{size('left')} and right rows{size('right')}"
        case SemiJoin():
            return f"left rows{size('left')} and a count per right key{size('right')}"
        case Unique():
            return f"a count per row{size('rows')}"
        case Search() | Constant() | Select() | Compute() | Merge() | Keep():
            return ""
        case _:
            assert_never(node)


def _constants(count: int) -> str:
    return "1 constant row" if count == 1 else f"{count} constant rows"


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
    return f"{triple} in {short(pattern.graph)}"


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
