"""Whether the variables of a pattern have values where they need some: parameters, PER, NOT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.lang.event_algebra import Atom, Both, Follows, Interleaved, Not, Repeat
from graphtide.lang.hints import name_hint
from graphtide.lang.pattern_facts import (
    Variables,
    may_bind,
    must_bind,
    parts_of,
    variables_in,
    walk,
)
from graphtide.lang.pattern_flaw import Flaw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.lang.event_algebra import EventPattern, PatternDeclaration

NOTHING: Variables = frozenset()


def variable_flaws(pattern: PatternDeclaration) -> Iterator[Flaw]:
    """Variables that have no value where one is needed."""
    bound = must_bind(pattern.body)
    for place, variable in enumerate(pattern.parameters):
        if variable in pattern.parameters[:place]:
            yield Flaw(f"{variable} stands here twice", None, variable=variable)
        elif variable not in bound:
            yield _unbound(pattern, variable)
    for place, variable in enumerate(pattern.per):
        if variable in pattern.per[:place]:
            yield Flaw(f"{variable} stands here twice", None, variable=variable, per=True)
        else:
            yield from _not_everywhere(pattern, variable)
    for absence, late in _late(pattern.body, NOTHING, NOTHING):
        hint = f"let an event before NOT have {late}, or use another variable in NOT"
        message = f"{late} stands in NOT, but has its value only later"
        yield Flaw(message, hint, absence, late)


def _unbound(pattern: PatternDeclaration, variable: Var) -> Flaw:
    if variable in may_bind(pattern.body):
        message = f"{variable} has no value in some matches of the pattern {pattern.name}"
        hint = "let it stand in every alternative of OR, and outside of {*}"
    elif variable in variables_in(pattern.body):
        message = f"{variable} stands only in NOT, so it has no value"
        hint = "let an event that does happen have it"
    else:
        known = sorted(str(v) for v in may_bind(pattern.body))
        message = f"the pattern {pattern.name} has the parameter {variable}, which nothing binds"
        hint = name_hint(str(variable), known, "variable")
    return Flaw(message, hint, variable=variable)


def _not_everywhere(pattern: PatternDeclaration, variable: Var) -> Iterator[Flaw]:
    atoms = (part for part in walk(pattern.body) if isinstance(part, Atom))
    without = next((atom for atom in atoms if variable not in atom.arguments), None)
    if without is not None:
        message = f"PER {variable}: the event {without.event} does not have {variable}"
        hint = "a variable after PER stands in every event of the pattern"
        yield Flaw(message, hint, variable=variable, per=True)


def _late(pattern: EventPattern, before: Variables, after: Variables) -> Iterator[tuple[Not, Var]]:
    """Each NOT with a variable that may get its value after it, and need not have one before."""
    if not any(isinstance(part, Not) for part in walk(pattern)):
        return
    match pattern:
        case Not(part):
            late = (variables_in(part) - before) & after
            yield from ((pattern, variable) for variable in sorted(late, key=str))
            yield from _late(part, before, NOTHING)
        case Follows(parts):
            for part, rest in zip(parts, _after_each(parts, after), strict=True):
                yield from _late(part, before, rest)
                before |= must_bind(part)
        case Both(parts) | Interleaved(parts):
            for place, part in enumerate(parts):
                others = _all_of((*parts[:place], *parts[place + 1 :]))
                yield from _late(part, before, after | others)
        case Repeat(part, _, most):
            again = NOTHING if most == 1 else may_bind(part)
            yield from _late(part, before, after | again)
        case _:
            for part in parts_of(pattern):
                yield from _late(part, before, after)


def _after_each(parts: Sequence[EventPattern], after: Variables) -> list[Variables]:
    """For each part, what those behind it may give a value; equal sets are one."""
    found = [after]
    for part in reversed(parts[1:]):
        more = may_bind(part)
        found.append(found[-1] if more <= found[-1] else found[-1] | more)
    return found[::-1]


def _all_of(parts: Sequence[EventPattern]) -> Variables:
    return NOTHING.union(*map(may_bind, parts))
