"""Check that a pattern is well-formed: the rules of docs/patterns.md, each with a hint."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide import gathering
from graphtide.lang.tide import pattern_facts as facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.algebra.expressions import Var


@dataclass(frozen=True, slots=True, eq=False)
class Flaw:
    """An error and its hint: about a part, a variable of the parameters or of PER, or the whole."""

    message: str
    hint: str | None
    part: tide.EventPattern | None = None
    variable: Var | None = None
    per: bool = False


# --- variables: parameters, PER and NOT ---

NOTHING: facts.Variables = frozenset()


def variable_flaws(pattern: tide.PatternDeclaration) -> Iterator[Flaw]:
    """Variables that are not bound where they have to be."""
    bound = facts.must_bind(pattern.body)
    for place, variable in enumerate(pattern.parameters):
        if variable in pattern.parameters[:place]:
            yield Flaw(f"{variable} is given twice", None, variable=variable)
        elif variable not in bound and variable not in dict(pattern.computed):
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


def _unbound(pattern: tide.PatternDeclaration, variable: Var) -> Flaw:
    if variable in facts.may_bind(pattern.body):
        message = f"{variable} is not bound in some matches of the pattern {pattern.name}"
        hint = "use it in every alternative of OR, and outside of {*}"
    elif variable in facts.variables_in(pattern.body):
        message = f"{variable} occurs only in NOT, so it is not bound"
        hint = "use it in an event outside of NOT"
    else:
        known = sorted(str(v) for v in facts.may_bind(pattern.body))
        message = f"the parameter {variable} of the pattern {pattern.name} is not bound"
        hint = name_hint(str(variable), known, "variable")
    return Flaw(message, hint, variable=variable)


def _not_everywhere(pattern: tide.PatternDeclaration, variable: Var) -> Iterator[Flaw]:
    first = facts.first_atoms(pattern.body)
    without = next((atom for atom in first if variable not in atom.arguments), None)
    if without is not None:
        message = f"PER {variable}: the event {without.event} does not have {variable}"
        hint = "a variable after PER must occur in the events that the pattern begins with"
        yield Flaw(message, hint, variable=variable, per=True)


def _late(
    pattern: tide.EventPattern, before: facts.Variables, after: facts.Variables
) -> Iterator[tuple[tide.Not, Var]]:
    """Each NOT with a variable that may be bound after it, and need not be bound before."""
    if not any(isinstance(part, tide.Not) for part in facts.walk(pattern)):
        return
    match pattern:
        case tide.Not(part):
            late = (facts.variables_in(part) - before) & after
            yield from ((pattern, variable) for variable in sorted(late, key=str))
            yield from _late(part, before, NOTHING)
        case tide.Follows(parts):
            for part, rest in zip(parts, _after_each(parts, after), strict=True):
                yield from _late(part, before, rest)
                before |= facts.must_bind(part)
        case tide.Both(parts) | tide.Interleaved(parts):
            for place, part in enumerate(parts):
                others = _all_of((*parts[:place], *parts[place + 1 :]))
                yield from _late(part, before, after | others)
        case tide.Repeat(part, _, most):
            again = NOTHING if most == 1 else facts.may_bind(part)
            yield from _late(part, before, after | again)
        case _:
            for part in facts.parts_of(pattern):
                yield from _late(part, before, after)


def _after_each(
    parts: Sequence[tide.EventPattern], after: facts.Variables
) -> list[facts.Variables]:
    """For each part, the variables that later parts may bind; equal sets are shared."""
    found = [after]
    for part in reversed(parts[1:]):
        more = facts.may_bind(part)
        found.append(found[-1] if more <= found[-1] else found[-1] | more)
    return found[::-1]


def _all_of(parts: Sequence[tide.EventPattern]) -> facts.Variables:
    return NOTHING.union(*map(facts.may_bind, parts))


_WORDS: Final = {tide.Either: "OR", tide.Both: "AND", tide.Interleaved: "ALL"}


def flaws_of(pattern: tide.PatternDeclaration) -> Iterator[Flaw]:
    """All errors of a pattern; of its structure, only the first kind.

    >>> from graphtide.lang.tide.ast import Follows, PatternDeclaration
    >>> body = tide.Follows((tide.Atom("A", ()), tide.Not(tide.Atom("B", ()))))
    >>> [flaw.message for flaw in flaws_of(tide.PatternDeclaration("P", (), body, "STRICT", (), 1))]
    ['NOT at the end of a pattern needs WITHIN']
    """
    body = pattern.body
    if facts.positions(body) > facts.MAX_POSITIONS:
        message = f"the pattern {pattern.name} has more than {facts.MAX_POSITIONS:,} positions"
        yield Flaw(message, "AND, ALL and {n} multiply the positions: use smaller parts")
        return
    steps = _local_flaws, _absence_flaws, _greedy_flaws, _trace_flaws
    for step in steps:
        # Parts of an ALL inside of another ALL are found twice.
        found = {(flaw.message, id(flaw.part)): flaw for flaw in step(pattern.name, body)}
        yield from found.values()
        if found:
            break
    if pattern.skip != "NO SKIP" and pattern.context != "UNRESTRICTED":
        hint = "in other contexts an event is part of one match only"
        yield Flaw(f"{pattern.skip} is for CONTEXT UNRESTRICTED", hint)
    spans = (facts.span_of(body, in_time=in_time) for in_time in (True, False))
    if pattern.interval and all(most == inf for _, most in spans):
        hint = "add WITHIN and a duration: rules have to know how long it may last"
        yield Flaw("INTERVAL is for a pattern that is over in some time", hint)
    for message, advice, atom in gathering.problems_of(pattern):
        yield Flaw(message, advice, atom)
    yield from variable_flaws(pattern)


# --- single parts ---


def _local_flaws(_name: str, body: tide.EventPattern) -> Iterator[Flaw]:
    for part in facts.walk(body):
        match part:
            case tide.Either() | tide.Both() | tide.Interleaved():
                yield from _operand_flaws(part)
            case tide.Within() | tide.HoldsFor():
                yield from _time_flaws(part)
            case tide.Repeat():
                yield from _repeat_flaws(part)
            case tide.Not(inner):
                yield from _denied_flaws(part, inner)


def _operand_flaws(part: tide.Either | tide.Both | tide.Interleaved) -> Iterator[Flaw]:
    word = _WORDS[type(part)]
    for operand in part.parts:
        absence = _bare_absence(operand)
        if absence is not None:
            hint = "write an event before it or after it, in brackets"
            yield Flaw(f"NOT cannot be an operand of {word}", hint, absence)
        elif isinstance(part, tide.Interleaved):
            yield from _interleaved_flaws(operand)


def _bare_absence(pattern: tide.EventPattern) -> tide.Not | None:
    """The NOT of a pattern that is NOT alone, perhaps with suffixes."""
    while isinstance(pattern, tide.Repeat | tide.Within | tide.HoldsFor):
        pattern = pattern.part
    return pattern if isinstance(pattern, tide.Not) else None


def _interleaved_flaws(operand: tide.EventPattern) -> Iterator[Flaw]:
    for part in facts.walk(operand):
        if isinstance(part, tide.Not):
            yield Flaw("NOT is not allowed inside ALL", "use AND, or put NOT after ALL(…)", part)
        elif isinstance(part, tide.Repeat) and part.most != part.least:
            hint = "use a fixed number, such as {3}, or AND"
            yield Flaw("{+} and {*} are not allowed inside ALL", hint, part)


def _time_flaws(part: tide.Within | tide.HoldsFor) -> Iterator[Flaw]:
    word = "WITHIN" if isinstance(part, tide.Within) else "HOLDS FOR"
    if part.length.amount < 0:
        yield Flaw(f"the duration of {word} is negative", "write 0 or more", part)
    core = part.part
    while isinstance(core, tide.Repeat) and core.most == 1:
        core = core.part
    if isinstance(core, tide.Atom):
        hint = f"put the events in brackets: (a -> b) {word} …"
        yield Flaw(f"{word} on a single event has no effect", hint, part)
    elif isinstance(part, tide.HoldsFor) and isinstance(core, tide.Not):
        hint = "write NOT … WITHIN, or NOT ((…) HOLDS FOR …)"
        yield Flaw("HOLDS FOR cannot be applied to NOT alone", hint, part)
    elif not facts.has_event(part.part) and not isinstance(core, tide.Not):
        hint = "put the events in the same brackets"
        yield Flaw(f"{word} needs an event outside of NOT", hint, part)


def _repeat_flaws(part: tide.Repeat) -> Iterator[Flaw]:
    if part.most is not None and part.most < 1:
        hint = "write {1} or more, or {*} for any number of times"
        yield Flaw(f"nothing can match {{{part.most}}}", hint, part)
    elif part.least < 0 or (part.most is not None and part.least > part.most):
        shown = f"{{{part.least},{part.most}}}"
        yield Flaw(f"nothing can match {shown}", "write the lower number first", part)
    if part.greedy and not all(
        isinstance(each, tide.Atom | tide.Either) for each in facts.walk(part.part)
    ):
        hint = "write (A OR B){+} GREEDY, or leave GREEDY out"
        yield Flaw("GREEDY is for one event that is repeated", hint, part)
    if isinstance(part.part, tide.Not) or not facts.has_event(part.part):
        hint = "write NOT a{3} to exclude three repetitions"
        yield Flaw("NOT alone cannot be repeated", hint, part)


def _denied_flaws(absence: tide.Not, inner: tide.EventPattern) -> Iterator[Flaw]:
    if isinstance(_bare_absence(inner), tide.Not):
        yield Flaw("NOT NOT is not allowed", "remove both", absence)
    elif facts.can_be_empty(inner) and facts.has_event(inner):
        hint = "write {+} instead of {*}"
        yield Flaw("the pattern after NOT accepts the empty sequence", hint, absence)
    else:
        yield from _absence_flaws("", inner)


# --- whole patterns ---


def _absence_flaws(_name: str, body: tide.EventPattern) -> Iterator[Flaw]:
    """NOT at the beginning or at the end."""
    first, last = facts.first_absence(body), facts.last_absence(body)
    if first is not None:
        hint = "write an event before it, or in a rule NO EVENT a = A(…) BEFORE[0,10s] b"
        yield Flaw("a pattern cannot begin with NOT", hint, first)
    if last is not None and last is not first:
        hint = "add WITHIN and a duration, or an event after it"
        yield Flaw("NOT at the end of a pattern needs WITHIN", hint, last)


def _greedy_flaws(_name: str, body: tide.EventPattern) -> Iterator[Flaw]:
    """A greedy repetition at the end: a match is complete with its first trace."""
    last = facts.last_greedy(body)
    if last is not None:
        hint = "write what ends it, such as A{+} GREEDY -> NOT A WITHIN 5s"
        yield Flaw("GREEDY at the end of a pattern has no effect", hint, last)


def _trace_flaws(name: str, body: tide.EventPattern) -> Iterator[Flaw]:
    """Patterns that accept the empty trace, or no trace."""
    if facts.can_be_empty(body):
        loop = next(
            (p for p in facts.walk(body) if isinstance(p, tide.Repeat) and p.least == 0), body
        )
        hint = "require at least one event: {+} instead of {*}, or an event after it"
        yield Flaw(f"the pattern {name} accepts the empty sequence", hint, loop)
        return
    for part in facts.walk(body):
        if _is_contradiction(part) and not any(map(_is_contradiction, facts.parts_of(part))):
            hint = "WITHIN is the maximum duration, HOLDS FOR the minimum"
            yield Flaw("nothing can match this: HOLDS FOR is longer than WITHIN", hint, part)


def _is_contradiction(pattern: tide.EventPattern) -> bool:
    spans = (facts.span_of(pattern, in_time=in_time) for in_time in (True, False))
    return any(least > most for least, most in spans)
