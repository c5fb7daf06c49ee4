"""Traversal of algebra trees: one `walk` and one `replaced` for nodes, expressions and paths.

Everything in the algebra is a frozen dataclass, or a tuple or frozenset of such. `parts`,
`map_parts`, `walk` and `replaced` see everything, the expressions and the EXISTS patterns inside
them included; `trees` follows only the inputs of nodes.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphtide.algebra.expressions import Var
from graphtide.algebra.trees import Deep, bottom_up
from graphtide.rdf.terms import TERM_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from graphtide.rdf.terms import Term

T = TypeVar("T")


def parts(part: object) -> tuple[Any, ...]:
    """The fields of a node or expression, or the elements of a collection; a variable has none."""
    if isinstance(part, tuple | frozenset):
        return tuple(part)
    return tuple([getattr(part, name) for name in _names(type(part))])


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    """The fields of nodes or expressions of a kind."""
    found = _NAMES.get(kind)
    if found is None:
        seen = is_dataclass(kind) and not issubclass(kind, Var)
        found = tuple(each.name for each in fields(cast("Any", kind))) if seen else ()
        _NAMES[kind] = found
    return found


def walk(part: object) -> Iterator[Any]:
    """A node or expression and everything below it, parents first; a node that is shared once.

    >>> from graphtide.algebra.expressions import Call
    >>> [each for each in walk(Call("+", (Var("a"), Var("b")))) if isinstance(each, Var)]
    [Var(name='a'), Var(name='b')]
    """
    seen: set[int] = set()
    rest: list[Any] = [part]
    while rest:
        each = rest.pop()
        if isinstance(each, Deep):
            if id(each) in seen:
                continue
            seen.add(id(each))
        yield each
        rest += reversed(parts(each))


def map_parts(part: T, f: Callable[[Any], Any]) -> T:
    """A node, expression or collection with `f` applied to each of its `parts`."""
    old = parts(part)
    new = tuple(map(f, old))
    if all(one is other for one, other in zip(old, new, strict=True)):
        return part
    if isinstance(part, tuple | frozenset):
        return cast("T", type(part)(new))
    names = _names(type(part))
    return cast("T", replace(cast("Any", part), **dict(zip(names, new, strict=True))))


def replaced(part: T, f: Callable[[Any], Any]) -> T:
    """A node or expression with some of its parts replaced, wherever they occur.

    `f` gives what takes the place of a part, or None to look for such parts inside of it.
    """
    new: dict[int, tuple[Any, Any]] = {}  # with the old node, so that its id stays taken

    def one(each: Any) -> Any:  # noqa: ANN401 - a part of any kind
        if id(each) not in new:
            if not isinstance(each, Deep):
                return inside(each)
            for node in bottom_up(each, known=lambda below: id(below) in new):
                new[id(node)] = node, inside(node)
        return new[id(each)][1]

    def inside(each: Any) -> Any:  # noqa: ANN401 - a part of any kind
        found = f(each)
        return map_parts(each, one) if found is None else found

    return cast("T", one(part))


def rename(part: T, names: Mapping[Var, Var]) -> T:
    """A node or expression with variables renamed wherever they occur.

    >>> from graphtide.algebra.expressions import Call
    >>> rename(Call("+", (Var("a"), Var("b"))), {Var("b"): Var("c")})
    Call(name='+', args=(Var(name='a'), Var(name='c')))
    """
    return replaced(part, lambda each: names.get(each) if isinstance(each, Var) else None)


def substitute(part: T, terms: Mapping[Term, Term]) -> T:
    """A node or expression with terms replaced wherever they occur.

    >>> from graphtide.algebra.expressions import Const
    >>> from pyoxigraph import NamedNode
    >>> a, b = NamedNode("ex:a"), NamedNode("ex:b")
    >>> substitute(Const(a), {a: b})
    Const(term=<NamedNode value=ex:b>)
    """
    return replaced(part, lambda each: terms.get(each) if isinstance(each, TERM_TYPES) else None)
