"""rename: the same algebra with other names for some variables."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphtide.algebra.expressions import Var

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.rdf.terms import Term

T = TypeVar("T")


def rename(part: T, names: Mapping[Var, Var]) -> T:
    """A node or expression with variables renamed wherever they occur.

    >>> from graphtide.algebra.expressions import Call
    >>> rename(Call("+", (Var("a"), Var("b"))), {Var("b"): Var("c")})
    Call(name='+', args=(Var(name='a'), Var(name='c')))
    """
    return cast("T", _renamed(part, names))


def _renamed(part: Any, names: Mapping[Var, Var]) -> Any:  # noqa: ANN401 - any part of a node
    if isinstance(part, Var):
        return names.get(part, part)
    if isinstance(part, tuple | frozenset):
        return type(part)(_renamed(each, names) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        parts = {f.name: _renamed(getattr(part, f.name), names) for f in fields(part)}
        return replace(part, **parts)
    return part


# --- substitute: the same algebra with other terms in the place of some.


def substitute(part: T, terms: Mapping[Term, Term]) -> T:
    """A node or expression with terms replaced wherever they occur.

    >>> from graphtide.algebra.expressions import Const
    >>> from pyoxigraph import NamedNode
    >>> a, b = NamedNode("ex:a"), NamedNode("ex:b")
    >>> substitute(Const(a), {a: b})
    Const(term=<NamedNode value=ex:b>)
    """
    return cast("T", _substituted(part, terms))


def _substituted(part: Any, terms: Mapping[Term, Term]) -> Any:  # noqa: ANN401 - any part of a node
    if isinstance(part, tuple | frozenset):
        return type(part)(_substituted(each, terms) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        parts = {f.name: _substituted(getattr(part, f.name), terms) for f in fields(part)}
        return replace(part, **parts)
    try:
        return terms.get(part, part)
    except TypeError:  # not hashable, so no term
        return part
