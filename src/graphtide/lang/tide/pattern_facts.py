"""Static analysis of patterns: emptiness, absence, variables, time spans, size; and inlining."""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod
from typing import TYPE_CHECKING, Final, TypeAlias

from graphtide.algebra.expressions import Var
from graphtide.lang.tide import ast as tide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from graphtide.rdf.terms import Term

MAX_POSITIONS: Final = 10_000
"""Maximum number of positions of a pattern."""

Variables = frozenset[Var]


def parts_of(pattern: tide.EventPattern) -> tuple[tide.EventPattern, ...]:
    """The direct parts of a pattern."""
    match pattern:
        case tide.Atom():
            return ()
        case tide.Follows(parts) | tide.Either(parts) | tide.Both(parts) | tide.Interleaved(parts):
            return parts
        case tide.Repeat(part) | tide.Not(part) | tide.Within(part) | tide.HoldsFor(part):
            return (part,)


def walk(pattern: tide.EventPattern) -> Iterator[tide.EventPattern]:
    """A pattern and all its parts, in pre-order.

    >>> [type(part).__name__ for part in walk(tide.Not(tide.Atom("A", ())))]
    ['Not', 'Atom']
    """
    yield pattern
    for part in parts_of(pattern):
        yield from walk(part)


def can_be_empty(pattern: tide.EventPattern) -> bool:
    """Whether it accepts the empty trace, which takes no time.

    >>> a = tide.Atom("A", ())
    >>> can_be_empty(tide.Repeat(a, 0, None)), can_be_empty(tide.Not(a)), can_be_empty(a)
    (True, True, False)
    """
    match pattern:
        case tide.Atom() | tide.Within(tide.Not()):
            return False
        case tide.Not():
            return True
        case tide.Either(parts):
            return any(can_be_empty(part) for part in parts)
        case tide.Repeat(part, least):
            return least == 0 or can_be_empty(part)
        case _:
            return all(can_be_empty(part) for part in parts_of(pattern))


def has_event(pattern: tide.EventPattern) -> bool:
    """Whether it contains an event outside of NOT."""
    if isinstance(pattern, tide.Atom):
        return True
    return not isinstance(pattern, tide.Not) and any(has_event(part) for part in parts_of(pattern))


def first_absence(pattern: tide.EventPattern) -> tide.Not | None:
    """A NOT that may come before all its events.

    >>> a, b = tide.Atom("A", ()), tide.Atom("B", ())
    >>> first_absence(tide.Follows((tide.Repeat(a, 0, None), tide.Not(b), a))) == tide.Not(b)
    True
    """
    match pattern:
        case tide.Not():
            return pattern
        case tide.Follows(parts):
            return _nearest(first_absence, parts)
        case _:
            found = (first_absence(part) for part in parts_of(pattern))
            return next((absence for absence in found if absence), None)


def first_atoms(pattern: tide.EventPattern) -> list[tide.Atom]:
    """The events that a trace may begin with.

    >>> a, b = tide.Atom("A", ()), tide.Atom("B", ())
    >>> [atom.event for atom in first_atoms(tide.Follows((tide.Repeat(a, 0, 1), b)))]
    ['A', 'B']
    """
    match pattern:
        case tide.Atom():
            return [pattern]
        case tide.Not():
            return []
        case tide.Follows(parts):
            found: list[tide.Atom] = []
            for part in parts:
                found += first_atoms(part)
                if not can_be_empty(part):
                    break
            return found
        case _:
            return [atom for part in parts_of(pattern) for atom in first_atoms(part)]


def last_greedy(pattern: tide.EventPattern) -> tide.Repeat | None:
    """A greedy repetition that may come last.

    >>> a, b = tide.Atom("A", ()), tide.Atom("B", ())
    >>> more = tide.Repeat(a, 1, None, greedy=True)
    >>> last_greedy(tide.Follows((more, b))), last_greedy(tide.Follows((b, more))) == more
    (None, True)
    """
    match pattern:
        case tide.Repeat(part):
            return pattern if pattern.greedy else last_greedy(part)
        case tide.Follows(parts):
            for part in reversed(parts):
                found = last_greedy(part)
                if found is not None or isinstance(part, tide.Not) or not can_be_empty(part):
                    return found
            return None
        case _:
            found_parts = (last_greedy(part) for part in parts_of(pattern))
            return next((each for each in found_parts if each), None)


def last_absence(pattern: tide.EventPattern) -> tide.Not | None:
    """A NOT without WITHIN that may come after all its events.

    >>> a, b = tide.Atom("A", ()), tide.Atom("B", ())
    >>> last_absence(tide.Follows((a, tide.Not(b), tide.Repeat(a, 0, None)))) == tide.Not(b)
    True
    """
    match pattern:
        case tide.Not():
            return pattern
        case tide.Within():
            return None
        case tide.Follows(parts):
            return _nearest(last_absence, reversed(parts))
        case _:
            found = (last_absence(part) for part in parts_of(pattern))
            return next((absence for absence in found if absence), None)


def _nearest(
    find: Callable[[tide.EventPattern], tide.Not | None], parts: Iterable[tide.EventPattern]
) -> tide.Not | None:
    """The first result among the parts that may come first."""
    for part in parts:
        found = find(part)
        if found is not None or not can_be_empty(part):
            return found
    return None


# --- variables ---


def variables_in(pattern: tide.EventPattern) -> Variables:
    """All variables of a pattern."""
    atoms = (part for part in walk(pattern) if isinstance(part, tide.Atom))
    return frozenset(v for atom in atoms for v in atom.arguments if isinstance(v, Var))


def may_bind(pattern: tide.EventPattern) -> Variables:
    """The variables that some trace binds: those outside of NOT.

    >>> x, y = Var("x"), Var("y")
    >>> sorted(
    ...     map(str, may_bind(tide.Follows((tide.Atom("A", (x,)), tide.Not(tide.Atom("B", (y,)))))))
    ... )
    ['?x']
    """
    match pattern:
        case tide.Atom():
            return variables_in(pattern)
        case tide.Not():
            return frozenset()
        case _:
            return frozenset().union(*(may_bind(part) for part in parts_of(pattern)))


def must_bind(pattern: tide.EventPattern) -> Variables:
    """The variables that every trace binds.

    >>> x, y = Var("x"), Var("y")
    >>> sorted(map(str, must_bind(tide.Either((tide.Atom("A", (x, y)), tide.Atom("B", (x,)))))))
    ['?x']
    """
    match pattern:
        case tide.Atom():
            return variables_in(pattern)
        case tide.Not() | tide.Repeat(_, 0):
            return frozenset()
        case tide.Either(parts):
            return frozenset.intersection(*map(must_bind, parts))
        case _:
            return frozenset().union(*(must_bind(part) for part in parts_of(pattern)))


# --- time ---

Span = tuple[float, float]
"""Minimum and maximum time from the first event of a trace to its last."""


def span_of(pattern: tide.EventPattern, *, in_time: bool) -> Span:
    """The time span of a pattern, in milliseconds if `in_time`, else in ticks.

    Durations in the other unit are ignored: only a graph knows the length of a tick. If the minimum
    is above the maximum, nothing can match.

    >>> from graphtide.lang.durations import WrittenDuration as Duration
    >>> steps = tide.Follows((tide.Atom("A", ()), tide.Atom("B", ())))
    >>> span_of(tide.HoldsFor(tide.Within(steps, Duration(5)), Duration(2)), in_time=False)
    (2, 5)
    """
    match pattern:
        case tide.Atom():
            return 0, 0
        case tide.Not():
            return 0, inf
        case tide.Within(tide.Not(), length):
            return (length.amount,) * 2 if length.in_time == in_time else (0, inf)
        case tide.Within(part, length):
            least, most = span_of(part, in_time=in_time)
            return least, min(most, length.amount if length.in_time == in_time else inf)
        case tide.HoldsFor(part, length):
            least, most = span_of(part, in_time=in_time)
            return max(least, length.amount if length.in_time == in_time else 0), most
        case tide.Repeat(part, least_times, most_times):
            least, most = span_of(part, in_time=in_time)
            return least_times * least, most if most_times == 1 else inf
        case _:
            return _joined_span(pattern, [span_of(p, in_time=in_time) for p in parts_of(pattern)])


def _joined_span(pattern: tide.EventPattern, spans: list[Span]) -> Span:
    least, most = [span[0] for span in spans], [span[1] for span in spans]
    match pattern:
        case tide.Either():
            return min(least), max(most)
        case tide.Interleaved():
            return max(least), inf if len(spans) > 1 else max(most)
        case tide.Follows((_, *rest)) if all(_is_pause(part) for part in rest):
            return sum(least), sum(most)
        case _:
            return sum(least), inf if len(spans) > 1 else max(most)


def _is_pause(pattern: tide.EventPattern) -> bool:
    """Whether it is `NOT p WITHIN d`, which takes exactly d."""
    return isinstance(pattern, tide.Within) and isinstance(pattern.part, tide.Not)


# --- size ---


def positions(pattern: tide.EventPattern) -> int:
    """The number of positions of its automaton: events, copied for each repetition and order.

    >>> a, b = tide.Atom("A", ()), tide.Atom("B", ())
    >>> positions(tide.Repeat(tide.Follows((a, b)), 3, 3)), positions(tide.Both((a, b)))
    (6, 4)
    """
    match pattern:
        case tide.Atom():
            return 1
        case tide.Repeat(part, least, most):
            return positions(part) * (most or max(least, 1))
        case tide.Both(parts):
            # One copy of a part for each set of parts that may have come before it.
            return sum(map(positions, parts)) * (1 << len(parts) - 1)
        case tide.Interleaved(parts):
            sizes = [positions(part) for part in parts]
            return sum(size * prod(n + 1 for n in sizes) // (size + 1) for size in sizes)
        case tide.Within(part) if last_absence(part):
            return positions(part) + 1
        case _:
            return sum(map(positions, parts_of(pattern)))


# --- construction: flat chains, and inlining ---

if TYPE_CHECKING:
    Argument: TypeAlias = Var | Term | None
    Made: TypeAlias = Callable[[tide.EventPattern], tide.EventPattern]

Chain = tide.Follows | tide.Either | tide.Both
"""Associative operators: nested ones of the same kind are flattened."""


def chained(kind: type[Chain], parts: Iterable[tide.EventPattern]) -> tide.EventPattern:
    """One node for a chain of one operator.

    >>> a, b, c = (tide.Atom(name, ()) for name in "ABC")
    >>> chained(tide.Follows, [tide.Follows((a, b)), c]) == tide.Follows((a, b, c))
    True
    """
    flat: list[tide.EventPattern] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else [part])
    return kind(tuple(flat))


def inlined(
    pattern: tide.PatternDeclaration, arguments: Sequence[Argument], space: str, made: Made
) -> tide.EventPattern:
    """Inline a pattern: replace parameters by arguments, and rename its other variables.

    A local variable `?s` becomes `?space.s`, which no text can contain. `made` gets each new node.

    >>> from graphtide.lang.tide.ast import PatternDeclaration
    >>> x, y, s = Var("x"), Var("y"), Var("s")
    >>> pattern = tide.PatternDeclaration("P", (x,), tide.Atom("A", (x, s)), "CHRONICLE", (), 1)
    >>> inlined(pattern, [y], "P", lambda node: node) == tide.Atom("A", (y, Var("P.s")))
    True
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


def _copied(
    node: tide.EventPattern, value: Callable[[Argument], Argument], made: Made
) -> tide.EventPattern:
    """Copy a pattern with other arguments; no node is shared, so that each has its own offset."""

    def copy(part: tide.EventPattern) -> tide.EventPattern:
        return _copied(part, value, made)

    match node:
        case tide.Atom(_, arguments):
            return made(tide.Atom(node.event, tuple(map(value, arguments))))
        case tide.Follows(parts) | tide.Either(parts) | tide.Both(parts) | tide.Interleaved(parts):
            return made(type(node)(tuple(map(copy, parts))))
        case tide.Repeat(part):
            return made(replace(node, part=copy(part)))
        case tide.Not(part):
            return made(tide.Not(copy(part)))
        case tide.Within(part, length) | tide.HoldsFor(part, length):
            return made(type(node)(copy(part), length))
