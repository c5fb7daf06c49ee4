"""Short names for algebra nodes, so that trees in tests can be read."""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Exists, Var
from graphtide.algebra.nodes import DEFAULT_GRAPH, Bgp, TriplePattern


def term(word: str):
    """`?x` is a variable, a number a literal, any other word an IRI."""
    if word.startswith("?"):
        return Var(word[1:])
    return Literal(int(word)) if word.isdigit() else NamedNode(f"http://example.org/{word}")


def bgp(*patterns: str) -> Bgp:
    """`"?a p ?b"`, or `"?a p ?b ?g"` inside a named graph."""
    words = [[term(word) for word in pattern.split()] for pattern in patterns]
    return Bgp(tuple(TriplePattern(*w[:3], *(w[3:] or [DEFAULT_GRAPH])) for w in words))


def operand(word: str):
    found = term(word)
    return found if isinstance(found, Var) else Const(found)


def call(text: str) -> Call:
    """`"?a < ?b"`, `"bound ?a"`."""
    match text.split():
        case [left, name, right]:
            return Call(name, (operand(left), operand(right)))
        case [name, argument]:
            return Call(name.upper(), (operand(argument),))
        case _:
            raise ValueError(text)


def all_of(*parts) -> Call:
    first, *rest = parts
    for part in rest:
        first = Call("&&", (first, part))
    return first


def exists(node) -> Exists:
    return Exists(node)


def not_exists(node) -> Call:
    return Call("!", (Exists(node),))


def names(text: str) -> tuple[Var, ...]:
    return tuple(Var(name) for name in text.split())
