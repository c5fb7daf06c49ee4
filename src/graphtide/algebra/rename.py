"""rename: the same algebra with other names for some variables."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphtide.algebra.expressions import Var

if TYPE_CHECKING:
    from collections.abc import Mapping

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
