"""Traversal of algebra trees: one `walk` and one `map` for nodes, expressions and paths.

Everything in the algebra is a frozen dataclass, or a tuple or frozenset of such. `children` and
`map_children` see only a node's inputs; `parts`, `map_parts` and `walk` see everything, the
expressions and the EXISTS patterns inside them included.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphtide.algebra.expressions import Var

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from graphtide.algebra.nodes import Node
    from graphtide.rdf.terms import Term

T = TypeVar("T")

INPUTS = ("left", "right", "child")
"""The fields of a node that hold other nodes."""


def children(node: Node) -> tuple[Node, ...]:
    """The inputs of a node, left before right."""
    return tuple(getattr(node, name) for name in INPUTS if hasattr(node, name))


def map_children(node: Node, f: Callable[[Node], Node]) -> Node:
    """The same node over other inputs; a leaf is returned as it is."""
    inputs: dict[str, Any] = {n: f(getattr(node, n)) for n in INPUTS if hasattr(node, n)}
    return replace(node, **inputs) if inputs else node


def parts(part: object) -> Iterable[Any]:
    """The fields of a node or expression, or the elements of a collection; a variable has none."""
    if isinstance(part, tuple | frozenset):
        return part
    if is_dataclass(part) and not isinstance(part, Var):
        return (getattr(part, each.name) for each in fields(part))
    return ()


def walk(part: object) -> Iterator[Any]:
    """A node or expression and everything below it, parents first.

    >>> from graphtide.algebra.expressions import Call
    >>> [each for each in walk(Call("+", (Var("a"), Var("b")))) if isinstance(each, Var)]
    [Var(name='a'), Var(name='b')]
    """
    yield part
    for each in parts(part):
        yield from walk(each)


def map_parts(part: T, f: Callable[[Any], Any]) -> T:
    """A copy of a node, expression or collection with `f` applied to each of its `parts`."""
    if isinstance(part, tuple | frozenset):
        return cast("T", type(part)(map(f, part)))
    if is_dataclass(part) and not isinstance(part, type | Var):
        return replace(part, **{each.name: f(getattr(part, each.name)) for each in fields(part)})
    return part


def rename(part: T, names: Mapping[Var, Var]) -> T:
    """A node or expression with variables renamed wherever they occur.

    >>> from graphtide.algebra.expressions import Call
    >>> rename(Call("+", (Var("a"), Var("b"))), {Var("b"): Var("c")})
    Call(name='+', args=(Var(name='a'), Var(name='c')))
    """
    if isinstance(part, Var):
        return cast("T", names.get(part, part))
    return map_parts(part, lambda each: rename(each, names))


def substitute(part: T, terms: Mapping[Term, Term]) -> T:
    """A node or expression with terms replaced wherever they occur.

    >>> from graphtide.algebra.expressions import Const
    >>> from pyoxigraph import NamedNode
    >>> a, b = NamedNode("ex:a"), NamedNode("ex:b")
    >>> substitute(Const(a), {a: b})
    Const(term=<NamedNode value=ex:b>)
    """
    if part in terms:
        return cast("T", terms[cast("Term", part)])
    return map_parts(part, lambda each: substitute(each, terms))
