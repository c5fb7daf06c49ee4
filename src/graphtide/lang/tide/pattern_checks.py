"""Whether a pattern is well formed: what docs/patterns.md refuses, each with reason and advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from graphtide.errors import GraphtideError
from graphtide.lang.sparql.scanner import name_hint
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
from graphtide.lang.tide.pattern_facts import (
    MOST_POSITIONS,
    Variables,
    can_be_empty,
    first_absence,
    has_event,
    last_absence,
    may_bind,
    must_bind,
    parts_of,
    positions,
    span_of,
    variables_in,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.lang.tide.ast import EventPattern, PatternDeclaration


# --- Flaw: a mistake in a pattern, wherever the pattern was written.


@dataclass(frozen=True, slots=True, eq=False)
class Flaw:
    """What is wrong, and what to do: about a part, or a variable of the head or PER, or all."""

    message: str
    hint: str | None
    part: EventPattern | None = None
    variable: Var | None = None
    per: bool = False


# --- Whether the variables of a pattern have values where they need some: parameters, PER, NOT.

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


_WORDS: Final = {Either: "OR", Both: "AND", Interleaved: "ALL"}


def check_pattern(pattern: PatternDeclaration) -> None:
    """Refuse a pattern that is not well formed, however it was made.

    >>> from graphtide.lang.tide.ast import PatternDeclaration
    >>> never = Repeat(Atom("A", ()), 0, None)
    >>> check_pattern(PatternDeclaration("P", (), never, "CHRONICLE", (), 1))
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the pattern P accepts no event at all as a match
      hint: ask for one event at least: {+} instead of {*}, or an event after it
    """
    found = list(flaws_of(pattern))
    if found:
        message = "; ".join(dict.fromkeys(flaw.message for flaw in found))
        raise GraphtideError(message, hint=found[0].hint)


def flaws_of(pattern: PatternDeclaration) -> Iterator[Flaw]:
    """Everything that is wrong with a pattern; of its shape, what is wrong first.

    >>> from graphtide.lang.tide.ast import Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Not(Atom("B", ()))))
    >>> [flaw.message for flaw in flaws_of(PatternDeclaration("P", (), body, "STRICT", (), 1))]
    ['NOT does not say until when']
    """
    body = pattern.body
    if positions(body) > MOST_POSITIONS:
        message = f"the pattern {pattern.name} has more than {MOST_POSITIONS:,} positions"
        yield Flaw(message, "AND, ALL and {n} multiply: ask for fewer at once")
        return
    steps = _local_flaws, _absence_flaws, _trace_flaws
    for step in steps:
        # What stands in one ALL inside of another is found twice.
        found = {(flaw.message, id(flaw.part)): flaw for flaw in step(pattern.name, body)}
        yield from found.values()
        if found:
            break
    yield from variable_flaws(pattern)


# --- each part by itself ---


def _local_flaws(_name: str, body: EventPattern) -> Iterator[Flaw]:
    for part in walk(body):
        match part:
            case Either() | Both() | Interleaved():
                yield from _operand_flaws(part)
            case Within() | HoldsFor():
                yield from _time_flaws(part)
            case Repeat():
                yield from _repeat_flaws(part)
            case Not(inner):
                yield from _denied_flaws(part, inner)


def _operand_flaws(part: Either | Both | Interleaved) -> Iterator[Flaw]:
    word = _WORDS[type(part)]
    for operand in part.parts:
        absence = _bare_absence(operand)
        if absence is not None:
            hint = "write an event before it or after it, in brackets"
            yield Flaw(f"NOT cannot stand by itself in {word}", hint, absence)
        elif isinstance(part, Interleaved):
            yield from _interleaved_flaws(operand)


def _bare_absence(pattern: EventPattern) -> Not | None:
    """The NOT that a pattern is, perhaps with something written behind it."""
    while isinstance(pattern, Repeat | Within | HoldsFor):
        pattern = pattern.part
    return pattern if isinstance(pattern, Not) else None


def _interleaved_flaws(operand: EventPattern) -> Iterator[Flaw]:
    for part in walk(operand):
        if isinstance(part, Not):
            yield Flaw("NOT cannot stand inside ALL", "use AND, or put NOT after ALL(…)", part)
        elif isinstance(part, Repeat) and part.most is None:
            hint = "say how many, as in {3}, or use AND"
            yield Flaw("{+} and {*} cannot stand inside ALL", hint, part)


def _time_flaws(part: Within | HoldsFor) -> Iterator[Flaw]:
    word = "WITHIN" if isinstance(part, Within) else "HOLDS FOR"
    if part.length.amount < 0:
        yield Flaw(f"{word} takes no negative duration", "write 0 or more", part)
    core = part.part
    while isinstance(core, Repeat) and core.most == 1:
        core = core.part
    if isinstance(core, Atom):
        hint = f"put the events that {word} is about in brackets: (a -> b) {word} …"
        yield Flaw(f"{word} on a single event says nothing: it takes no time", hint, part)
    elif isinstance(part, HoldsFor) and isinstance(core, Not):
        hint = "write NOT … WITHIN, or NOT ((…) HOLDS FOR …)"
        yield Flaw("HOLDS FOR cannot be about NOT alone", hint, part)
    elif not has_event(part.part) and not isinstance(core, Not):
        hint = "write the events that it is about in the same brackets"
        yield Flaw(f"{word} has no event to be about", hint, part)


def _repeat_flaws(part: Repeat) -> Iterator[Flaw]:
    if part.most is not None and part.most < 1:
        hint = "write {1} or more, or {*} for any number of times"
        yield Flaw(f"nothing can match {{{part.most}}}", hint, part)
    elif (part.least, part.most) not in ((0, None), (1, None), (part.most, part.most)):
        yield Flaw("a repetition is {n}, {+} or {*}", "set least and most to the same", part)
    if isinstance(part.part, Not) or not has_event(part.part):
        hint = "write NOT a{3} for what must not happen so often"
        yield Flaw("NOT alone cannot be repeated", hint, part)


def _denied_flaws(absence: Not, inner: EventPattern) -> Iterator[Flaw]:
    if isinstance(_bare_absence(inner), Not):
        yield Flaw("NOT NOT has no meaning", "leave both out", absence)
    elif can_be_empty(inner) and has_event(inner):
        hint = "write {+} instead of {*}"
        yield Flaw("what stands after NOT may be empty, so it always happens", hint, absence)
    else:
        yield from _absence_flaws("", inner)


# --- the whole ---


def _absence_flaws(_name: str, body: EventPattern) -> Iterator[Flaw]:
    """NOT in the first place or the last one."""
    first, last = first_absence(body), last_absence(body)
    if first is not None:
        hint = "write before it the event from which on nothing may happen"
        yield Flaw("NOT cannot be what a pattern begins with", hint, first)
    if last is not None and last is not first:
        hint = "write the event after it, or WITHIN and a duration"
        yield Flaw("NOT does not say until when", hint, last)


def _trace_flaws(name: str, body: EventPattern) -> Iterator[Flaw]:
    """What accepts the empty trace, or none."""
    if can_be_empty(body):
        loop = next((p for p in walk(body) if isinstance(p, Repeat) and p.least == 0), body)
        hint = "ask for one event at least: {+} instead of {*}, or an event after it"
        yield Flaw(f"the pattern {name} accepts no event at all as a match", hint, loop)
        return
    for part in walk(body):
        if _is_contradiction(part) and not any(map(_is_contradiction, parts_of(part))):
            hint = "WITHIN is how long it may take, HOLDS FOR how long it has to"
            yield Flaw("nothing can match this: it has to take longer than it may", hint, part)


def _is_contradiction(pattern: EventPattern) -> bool:
    spans = (span_of(pattern, in_time=in_time) for in_time in (True, False))
    return any(least > most for least, most in spans)
