"""Static analysis of patterns: emptiness, absence, variables, time spans, size; and inlining."""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Final

from graphtide.algebra.expressions import Var
from graphtide.lang.tide.ast import (
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
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from graphtide.lang.tide.ast import EventPattern, PatternDeclaration
    from graphtide.rdf.terms import Term

MAX_POSITIONS: Final = 10_000
"""Maximum number of positions of a pattern."""

Variables = frozenset[Var]


def parts_of(pattern: EventPattern) -> tuple[EventPattern, ...]:
    """The direct parts of a pattern."""
    match pattern:
        case Atom():
            return ()
        case Follows(parts) | Either(parts) | Both(parts) | Interleaved(parts):
            return parts
        case Repeat(part) | Not(part) | Within(part) | HoldsFor(part):
            return (part,)


def walk(pattern: EventPattern) -> Iterator[EventPattern]:
    """A pattern and all its parts, in pre-order.

    >>> [type(part).__name__ for part in walk(Not(Atom("A", ())))]
    ['Not', 'Atom']
    """
    yield pattern
    for part in parts_of(pattern):
        yield from walk(part)


def can_be_empty(pattern: EventPattern) -> bool:
    """Whether it accepts the empty trace, which takes no time.

    >>> a = Atom("A", ())
    >>> can_be_empty(Repeat(a, 0, None)), can_be_empty(Not(a)), can_be_empty(a)
    (True, True, False)
    """
    match pattern:
        case Atom() | Within(Not()):
            return False
        case Not():
            return True
        case Either(parts):
            return any(can_be_empty(part) for part in parts)
        case Repeat(part, least):
            return least == 0 or can_be_empty(part)
        case _:
            return all(can_be_empty(part) for part in parts_of(pattern))


def has_event(pattern: EventPattern) -> bool:
    """Whether it contains an event outside of NOT."""
    if isinstance(pattern, Atom):
        return True
    return not isinstance(pattern, Not) and any(has_event(part) for part in parts_of(pattern))


def first_absence(pattern: EventPattern) -> Not | None:
    """A NOT that may come before all its events.

    >>> a, b = Atom("A", ()), Atom("B", ())
    >>> first_absence(Follows((Repeat(a, 0, None), Not(b), a))) == Not(b)
    True
    """
    match pattern:
        case Not():
            return pattern
        case Follows(parts):
            return _nearest(first_absence, parts)
        case _:
            found = (first_absence(part) for part in parts_of(pattern))
            return next((absence for absence in found if absence), None)


def last_absence(pattern: EventPattern) -> Not | None:
    """A NOT without WITHIN that may come after all its events.

    >>> a, b = Atom("A", ()), Atom("B", ())
    >>> last_absence(Follows((a, Not(b), Repeat(a, 0, None)))) == Not(b)
    True
    """
    match pattern:
        case Not():
            return pattern
        case Within():
            return None
        case Follows(parts):
            return _nearest(last_absence, reversed(parts))
        case _:
            found = (last_absence(part) for part in parts_of(pattern))
            return next((absence for absence in found if absence), None)


def _nearest(
    find: Callable[[EventPattern], Not | None], parts: Iterable[EventPattern]
) -> Not | None:
    """The first result among the parts that may come first."""
    for part in parts:
        found = find(part)
        if found is not None or not can_be_empty(part):
            return found
    return None


# --- variables ---


def variables_in(pattern: EventPattern) -> Variables:
    """All variables of a pattern."""
    atoms = (part for part in walk(pattern) if isinstance(part, Atom))
    return frozenset(v for atom in atoms for v in atom.arguments if isinstance(v, Var))


def may_bind(pattern: EventPattern) -> Variables:
    """The variables that some trace binds: those outside of NOT.

    >>> x, y = Var("x"), Var("y")
    >>> sorted(map(str, may_bind(Follows((Atom("A", (x,)), Not(Atom("B", (y,))))))))
    ['?x']
    """
    match pattern:
        case Atom():
            return variables_in(pattern)
        case Not():
            return frozenset()
        case _:
            return frozenset().union(*(may_bind(part) for part in parts_of(pattern)))


def must_bind(pattern: EventPattern) -> Variables:
    """The variables that every trace binds.

    >>> x, y = Var("x"), Var("y")
    >>> sorted(map(str, must_bind(Either((Atom("A", (x, y)), Atom("B", (x,)))))))
    ['?x']
    """
    match pattern:
        case Atom():
            return variables_in(pattern)
        case Not() | Repeat(_, 0):
            return frozenset()
        case Either(parts):
            return frozenset.intersection(*map(must_bind, parts))
        case _:
            return frozenset().union(*(must_bind(part) for part in parts_of(pattern)))


# --- time ---

Span = tuple[float, float]
"""Minimum and maximum time from the first event of a trace to its last."""


def span_of(pattern: EventPattern, *, in_time: bool) -> Span:
    """The time span of a pattern, in milliseconds if `in_time`, else in ticks.

    Durations in the other unit are ignored: only a graph knows the length of a tick. If the minimum
    is above the maximum, nothing can match.

    >>> from graphtide.lang.durations import WrittenDuration as Duration
    >>> steps = Follows((Atom("A", ()), Atom("B", ())))
    >>> span_of(HoldsFor(Within(steps, Duration(5)), Duration(2)), in_time=False)
    (2, 5)
    """
    match pattern:
        case Atom():
            return 0, 0
        case Not():
            return 0, inf
        case Within(Not(), length):
            return (length.amount,) * 2 if length.in_time == in_time else (0, inf)
        case Within(part, length):
            least, most = span_of(part, in_time=in_time)
            return least, min(most, length.amount if length.in_time == in_time else inf)
        case HoldsFor(part, length):
            least, most = span_of(part, in_time=in_time)
            return max(least, length.amount if length.in_time == in_time else 0), most
        case Repeat(part, least_times, most_times):
            least, most = span_of(part, in_time=in_time)
            return least_times * least, most if most_times == 1 else inf
        case _:
            return _joined_span(pattern, [span_of(p, in_time=in_time) for p in parts_of(pattern)])


def _joined_span(pattern: EventPattern, spans: list[Span]) -> Span:
    least, most = [span[0] for span in spans], [span[1] for span in spans]
    match pattern:
        case Either():
            return min(least), max(most)
        case Interleaved():
            return max(least), inf if len(spans) > 1 else max(most)
        case Follows((_, *rest)) if all(_is_pause(part) for part in rest):
            return sum(least), sum(most)
        case _:
            return sum(least), inf if len(spans) > 1 else max(most)


def _is_pause(pattern: EventPattern) -> bool:
    """Whether it is `NOT p WITHIN d`, which takes exactly d."""
    return isinstance(pattern, Within) and isinstance(pattern.part, Not)


# --- size ---


def positions(pattern: EventPattern) -> int:
    """The number of positions of its automaton: events, copied for each repetition and order.

    >>> a, b = Atom("A", ()), Atom("B", ())
    >>> positions(Repeat(Follows((a, b)), 3, 3)), positions(Both((a, b)))
    (6, 4)
    """
    match pattern:
        case Atom():
            return 1
        case Repeat(part, _, most):
            return positions(part) * (most or 1)
        case Both(parts):
            # One copy of a part for each set of parts that may have come before it.
            return sum(map(positions, parts)) * (1 << len(parts) - 1)
        case Interleaved(parts):
            sizes = [positions(part) for part in parts]
            return sum(size * prod(n + 1 for n in sizes) // (size + 1) for size in sizes)
        case Within(part) if last_absence(part):
            return positions(part) + 1
        case _:
            return sum(map(positions, parts_of(pattern)))


# --- construction: flat chains, and inlining ---

if TYPE_CHECKING:
    Argument = Var | Term | None
    Made = Callable[[EventPattern], EventPattern]

Chain = Follows | Either | Both
"""Associative operators: nested ones of the same kind are flattened."""


def chained(kind: type[Chain], parts: Iterable[EventPattern]) -> EventPattern:
    """One node for a chain of one operator.

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
    """Inline a pattern: replace parameters by arguments, and rename its other variables.

    A local variable `?s` becomes `?space.s`, which no text can contain. `made` gets each new node.

    >>> from graphtide.lang.tide.ast import PatternDeclaration
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
    """Copy a pattern with other arguments; no node is shared, so that each has its own offset."""

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
