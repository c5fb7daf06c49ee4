"""Check that a pattern is well-formed: the rules of docs/patterns.md, each with a hint."""

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
    MAX_POSITIONS,
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


@dataclass(frozen=True, slots=True, eq=False)
class Flaw:
    """An error and its hint: about a part, a variable of the parameters or of PER, or the whole."""

    message: str
    hint: str | None
    part: EventPattern | None = None
    variable: Var | None = None
    per: bool = False


# --- variables: parameters, PER and NOT ---

NOTHING: Variables = frozenset()


def variable_flaws(pattern: PatternDeclaration) -> Iterator[Flaw]:
    """Variables that are not bound where they have to be."""
    bound = must_bind(pattern.body)
    for place, variable in enumerate(pattern.parameters):
        if variable in pattern.parameters[:place]:
            yield Flaw(f"{variable} is given twice", None, variable=variable)
        elif variable not in bound:
            yield _unbound(pattern, variable)
    for place, variable in enumerate(pattern.per):
        if variable in pattern.per[:place]:
            yield Flaw(f"{variable} is given twice", None, variable=variable, per=True)
        else:
            yield from _not_everywhere(pattern, variable)
    for absence, late in _late(pattern.body, NOTHING, NOTHING):
        hint = f"bind {late} by an event before NOT, or use another variable in NOT"
        message = f"{late} is used in NOT before it is bound"
        yield Flaw(message, hint, absence, late)


def _unbound(pattern: PatternDeclaration, variable: Var) -> Flaw:
    if variable in may_bind(pattern.body):
        message = f"{variable} is not bound in some matches of the pattern {pattern.name}"
        hint = "use it in every alternative of OR, and outside of {*}"
    elif variable in variables_in(pattern.body):
        message = f"{variable} occurs only in NOT, so it is not bound"
        hint = "use it in an event outside of NOT"
    else:
        known = sorted(str(v) for v in may_bind(pattern.body))
        message = f"the parameter {variable} of the pattern {pattern.name} is not bound"
        hint = name_hint(str(variable), known, "variable")
    return Flaw(message, hint, variable=variable)


def _not_everywhere(pattern: PatternDeclaration, variable: Var) -> Iterator[Flaw]:
    atoms = (part for part in walk(pattern.body) if isinstance(part, Atom))
    without = next((atom for atom in atoms if variable not in atom.arguments), None)
    if without is not None:
        message = f"PER {variable}: the event {without.event} does not have {variable}"
        hint = "a variable after PER must occur in every event of the pattern"
        yield Flaw(message, hint, variable=variable, per=True)


def _late(pattern: EventPattern, before: Variables, after: Variables) -> Iterator[tuple[Not, Var]]:
    """Each NOT with a variable that may be bound after it, and need not be bound before."""
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
    """For each part, the variables that later parts may bind; equal sets are shared."""
    found = [after]
    for part in reversed(parts[1:]):
        more = may_bind(part)
        found.append(found[-1] if more <= found[-1] else found[-1] | more)
    return found[::-1]


def _all_of(parts: Sequence[EventPattern]) -> Variables:
    return NOTHING.union(*map(may_bind, parts))


_WORDS: Final = {Either: "OR", Both: "AND", Interleaved: "ALL"}


def check_pattern(pattern: PatternDeclaration) -> None:
    """Raise an error if a pattern is not well-formed, also one built in Python.

    >>> from graphtide.lang.tide.ast import PatternDeclaration
    >>> never = Repeat(Atom("A", ()), 0, None)
    >>> check_pattern(PatternDeclaration("P", (), never, "CHRONICLE", (), 1))
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the pattern P accepts the empty sequence
      hint: require at least one event: {+} instead of {*}, or an event after it
    """
    found = list(flaws_of(pattern))
    if found:
        message = "; ".join(dict.fromkeys(flaw.message for flaw in found))
        raise GraphtideError(message, hint=found[0].hint)


def flaws_of(pattern: PatternDeclaration) -> Iterator[Flaw]:
    """All errors of a pattern; of its structure, only the first kind.

    >>> from graphtide.lang.tide.ast import Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Not(Atom("B", ()))))
    >>> [flaw.message for flaw in flaws_of(PatternDeclaration("P", (), body, "STRICT", (), 1))]
    ['NOT at the end of a pattern needs WITHIN']
    """
    body = pattern.body
    if positions(body) > MAX_POSITIONS:
        message = f"the pattern {pattern.name} has more than {MAX_POSITIONS:,} positions"
        yield Flaw(message, "AND, ALL and {n} multiply the positions: use smaller parts")
        return
    steps = _local_flaws, _absence_flaws, _trace_flaws
    for step in steps:
        # Parts of an ALL inside of another ALL are found twice.
        found = {(flaw.message, id(flaw.part)): flaw for flaw in step(pattern.name, body)}
        yield from found.values()
        if found:
            break
    yield from variable_flaws(pattern)


# --- single parts ---


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
            yield Flaw(f"NOT cannot be an operand of {word}", hint, absence)
        elif isinstance(part, Interleaved):
            yield from _interleaved_flaws(operand)


def _bare_absence(pattern: EventPattern) -> Not | None:
    """The NOT of a pattern that is NOT alone, perhaps with suffixes."""
    while isinstance(pattern, Repeat | Within | HoldsFor):
        pattern = pattern.part
    return pattern if isinstance(pattern, Not) else None


def _interleaved_flaws(operand: EventPattern) -> Iterator[Flaw]:
    for part in walk(operand):
        if isinstance(part, Not):
            yield Flaw("NOT is not allowed inside ALL", "use AND, or put NOT after ALL(…)", part)
        elif isinstance(part, Repeat) and part.most is None:
            hint = "use a fixed number, such as {3}, or AND"
            yield Flaw("{+} and {*} are not allowed inside ALL", hint, part)


def _time_flaws(part: Within | HoldsFor) -> Iterator[Flaw]:
    word = "WITHIN" if isinstance(part, Within) else "HOLDS FOR"
    if part.length.amount < 0:
        yield Flaw(f"the duration of {word} is negative", "write 0 or more", part)
    core = part.part
    while isinstance(core, Repeat) and core.most == 1:
        core = core.part
    if isinstance(core, Atom):
        hint = f"put the events in brackets: (a -> b) {word} …"
        yield Flaw(f"{word} on a single event has no effect", hint, part)
    elif isinstance(part, HoldsFor) and isinstance(core, Not):
        hint = "write NOT … WITHIN, or NOT ((…) HOLDS FOR …)"
        yield Flaw("HOLDS FOR cannot be applied to NOT alone", hint, part)
    elif not has_event(part.part) and not isinstance(core, Not):
        hint = "put the events in the same brackets"
        yield Flaw(f"{word} needs an event outside of NOT", hint, part)


def _repeat_flaws(part: Repeat) -> Iterator[Flaw]:
    if part.most is not None and part.most < 1:
        hint = "write {1} or more, or {*} for any number of times"
        yield Flaw(f"nothing can match {{{part.most}}}", hint, part)
    elif (part.least, part.most) not in ((0, None), (1, None), (part.most, part.most)):
        yield Flaw("a repetition is {n}, {+} or {*}", "set least and most to the same number", part)
    if isinstance(part.part, Not) or not has_event(part.part):
        hint = "write NOT a{3} to exclude three repetitions"
        yield Flaw("NOT alone cannot be repeated", hint, part)


def _denied_flaws(absence: Not, inner: EventPattern) -> Iterator[Flaw]:
    if isinstance(_bare_absence(inner), Not):
        yield Flaw("NOT NOT is not allowed", "remove both", absence)
    elif can_be_empty(inner) and has_event(inner):
        hint = "write {+} instead of {*}"
        yield Flaw("the pattern after NOT accepts the empty sequence", hint, absence)
    else:
        yield from _absence_flaws("", inner)


# --- whole patterns ---


def _absence_flaws(_name: str, body: EventPattern) -> Iterator[Flaw]:
    """NOT at the beginning or at the end."""
    first, last = first_absence(body), last_absence(body)
    if first is not None:
        hint = "write an event before it"
        yield Flaw("a pattern cannot begin with NOT", hint, first)
    if last is not None and last is not first:
        hint = "add WITHIN and a duration, or an event after it"
        yield Flaw("NOT at the end of a pattern needs WITHIN", hint, last)


def _trace_flaws(name: str, body: EventPattern) -> Iterator[Flaw]:
    """Patterns that accept the empty trace, or no trace."""
    if can_be_empty(body):
        loop = next((p for p in walk(body) if isinstance(p, Repeat) and p.least == 0), body)
        hint = "require at least one event: {+} instead of {*}, or an event after it"
        yield Flaw(f"the pattern {name} accepts the empty sequence", hint, loop)
        return
    for part in walk(body):
        if _is_contradiction(part) and not any(map(_is_contradiction, parts_of(part))):
            hint = "WITHIN is the maximum duration, HOLDS FOR the minimum"
            yield Flaw("nothing can match this: HOLDS FOR is longer than WITHIN", hint, part)


def _is_contradiction(pattern: EventPattern) -> bool:
    spans = (span_of(pattern, in_time=in_time) for in_time in (True, False))
    return any(least > most for least, most in spans)
