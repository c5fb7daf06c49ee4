"""Patterns put together: chains without needless nesting, and one pattern's body inside another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.lang.event_algebra import (
    Atom,
    Both,
    Either,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    Repeat,
    Within,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from graphtide.lang.event_algebra import EventPattern, PatternDeclaration
    from graphtide.rdf.term import Term

    Argument = Var | Term | None
    Made = Callable[[EventPattern], EventPattern]

Chain = Follows | Either | Both
"""What has operators between its parts; brackets inside a run of one operator say nothing."""


def chained(kind: type[Chain], parts: Iterable[EventPattern]) -> EventPattern:
    """One node for a run of one operator.

    >>> a, b, c = (Atom(name, ()) for name in "ABC")
    >>> chained(Follows, [Follows((a, b)), c]) == Follows((a, b, c))
    True
    """
    flat: list[EventPattern] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else [part])
    return kind(tuple(flat))


def inlined(
    pattern: PatternDeclaration, arguments: Sequence[Argument], space: str, made: Made
) -> EventPattern:
    """The body of a pattern for another one: arguments for parameters, its own variables renamed.

    A variable `?s` of its own becomes `?space.s`, which no text can have. `made` sees each node.

    >>> from graphtide.lang.event_algebra import PatternDeclaration
    >>> x, y, s = Var("x"), Var("y"), Var("s")
    >>> pattern = PatternDeclaration("P", (x,), Atom("A", (x, s)), "CHRONICLE", (), 1)
    >>> inlined(pattern, [y], "P", lambda node: node)
    Atom(event='A', arguments=(Var(name='y'), Var(name='P.s')))
    """
    given = {
        parameter: argument
        for parameter, argument in zip(pattern.parameters, arguments, strict=True)
        if argument is not None
    }

    def value(argument: Argument) -> Argument:
        if not isinstance(argument, Var):
            return argument
        return given.get(argument, Var(f"{space}.{argument.name}"))

    return _copied(pattern.body, value, made)


def _copied(node: EventPattern, value: Callable[[Argument], Argument], made: Made) -> EventPattern:
    """A new tree with other arguments; no part of it is shared, so that each has its own place."""

    def copy(part: EventPattern) -> EventPattern:
        return _copied(part, value, made)

    match node:
        case Atom(event, arguments):
            return made(Atom(event, tuple(map(value, arguments))))
        case Follows(parts) | Either(parts) | Both(parts) | Interleaved(parts):
            return made(type(node)(tuple(map(copy, parts))))
        case Repeat(part, least, most):
            return made(Repeat(copy(part), least, most))
        case Not(part):
            return made(Not(copy(part)))
        case Within(part, length) | HoldsFor(part, length):
            return made(type(node)(copy(part), length))
