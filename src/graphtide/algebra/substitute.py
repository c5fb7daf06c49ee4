"""substitute: the same algebra with other terms in the place of some."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.rdf.term import Term

T = TypeVar("T")


def substitute(part: T, terms: Mapping[Term, Term]) -> T:
    """A node or expression with terms replaced wherever they occur.

    >>> from graphtide.algebra.expressions import Const
    >>> from graphtide.rdf.term import NamedNode
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
