"""Random patterns that are well formed, and random streams of events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from graphtide.algebra.expressions import Var
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide.ast import (
    Atom,
    Both,
    Either,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    PatternDeclaration,
    Repeat,
    Within,
)
from graphtide.lang.tide.gathering import changed_atoms
from graphtide.lang.tide.pattern_facts import first_atoms, last_absence, walk

if TYPE_CHECKING:
    from graphtide.lang.tide.ast import EventPattern

TYPES = {"a": 1, "b": 1, "c": 2, "z": 0}
"""The types of events and how many parameters each has; no pattern asks for z."""

X, Y = Var("x"), Var("y")


def certain(pattern: EventPattern) -> set[Var]:
    """The variables that have a value after any trace of a pattern."""
    match pattern:
        case Atom():
            return {argument for argument in pattern.arguments if isinstance(argument, Var)}
        case Follows(parts) | Both(parts) | Interleaved(parts):
            return set().union(*map(certain, parts))
        case Either(parts):
            return set.intersection(*map(certain, parts))
        case Repeat():
            return certain(pattern.part) if pattern.least else set()
        case Not():
            return set()
        case Within() | HoldsFor():
            return certain(pattern.part)


def may_be_empty(pattern: EventPattern) -> bool:
    """Whether a pattern accepts the empty trace."""
    match pattern:
        case Atom():
            return False
        case Follows(parts) | Both(parts) | Interleaved(parts):
            return all(map(may_be_empty, parts))
        case Either(parts):
            return any(map(may_be_empty, parts))
        case Repeat():
            return pattern.least == 0 or may_be_empty(pattern.part)
        case Not():
            return True
        case Within() | HoldsFor():
            return may_be_empty(pattern.part)


@st.composite
def atoms(draw: st.DrawFn, variables: tuple[Var | None, ...] = (X, Y, None)) -> Atom:
    """One event of some type."""
    name = draw(st.sampled_from(["a", "b", "c"]))
    return Atom(name, tuple(draw(st.sampled_from(variables)) for _ in range(TYPES[name])))


def lengths() -> st.SearchStrategy[WrittenDuration]:
    """Lengths of time in ticks."""
    return st.integers(1, 8).map(WrittenDuration)


@st.composite
def absent(draw: st.DrawFn, known: set[Var], *, composite: bool) -> Not:
    """NOT of something that asks for no value that is not known yet."""
    variables = (*sorted(known, key=lambda v: v.name), None)
    parts = draw(st.lists(atoms(variables), min_size=1, max_size=2 if composite else 1))
    if len(parts) == 1:
        return Not(parts[0])
    return Not(draw(st.sampled_from([Follows(tuple(parts)), Either(tuple(parts))])))


@st.composite
def sequences(draw: st.DrawFn, depth: int, known: set[Var], *, composite: bool) -> EventPattern:
    """Parts one after the other, perhaps with something that must not be in between."""
    parts: list[EventPattern] = []
    seen = set(known)
    for _ in range(draw(st.integers(2, 3))):
        if parts and draw(st.integers(0, 3)) == 0:
            gap = draw(absent(seen, composite=composite))
            parts.append(Within(gap, draw(lengths())) if draw(st.booleans()) else gap)
        parts.append(draw(patterns(depth - 1, seen, composite=composite)))
        seen |= certain(parts[-1])
    if draw(st.integers(0, 4)) == 0:
        last = draw(absent(seen, composite=composite))
        if draw(st.booleans()):
            return Follows((*parts, Within(last, draw(lengths()))))
        return Within(Follows((*parts, last)), draw(lengths()))
    return Follows(tuple(parts))


@st.composite
def simple(draw: st.DrawFn) -> EventPattern:
    """What may stand in ALL."""
    parts = draw(st.lists(atoms(), min_size=1, max_size=2))
    return parts[0] if len(parts) == 1 else Follows(tuple(parts))


@st.composite
def patterns(
    draw: st.DrawFn, depth: int = 2, known: frozenset[Var] | set[Var] = frozenset(), *,
    composite: bool = True,
) -> EventPattern:  # fmt: skip
    """Any pattern of some depth that cannot be empty. `composite`: NOT may be of several events."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(atoms())
    kind = draw(st.sampled_from(["follows", "follows", "or", "and", "times", "within", "holds",
                                 "all"]))  # fmt: skip
    below = patterns(depth - 1, known, composite=composite)
    match kind:
        case "follows":
            return draw(sequences(depth, set(known), composite=composite))
        case "or":
            return Either(tuple(draw(st.lists(below, min_size=2, max_size=2))))
        case "and":
            return Both(tuple(draw(st.lists(below, min_size=2, max_size=2))))
        case "times":
            bounds = [(2, 2), (1, None), (0, None), (1, 2), (2, 3), (0, 1), (0, 2), (2, None)]
            least, most = draw(st.sampled_from(bounds))
            if draw(st.integers(0, 2)) == 0:
                return Follows((Repeat(draw(atoms()), least, most, greedy=True), draw(atoms())))
            repeat = Repeat(draw(below), least, most)
            return repeat if least else Follows((repeat, draw(atoms())))
        case "all":
            return Interleaved((draw(simple()), draw(simple())))
        case _:
            part = draw(sequences(depth, set(known), composite=composite))
            node = Within if kind == "within" else HoldsFor
            return node(part, draw(lengths()))


def lasts(pattern: EventPattern) -> bool:
    """Whether a part has to last for some time, which another bound could make impossible.

    The evaluator does not look ahead: for it an instance is alive until its time is over, even if
    what it still needs would take longer. So there are no such parts inside of WITHIN here.
    """
    match pattern:
        case Atom():
            return False
        case Follows(parts) | Either(parts) | Both(parts) | Interleaved(parts):
            return any(map(lasts, parts))
        case HoldsFor() | Within(Not()) | Within(Follows((*_, Not()))):
            return True
        case Repeat() | Not() | Within():
            return lasts(pattern.part)


def hurries(pattern: EventPattern) -> bool:
    """Whether there is a WITHIN around a part that has to last for some time."""
    match pattern:
        case Within(Not(part)):
            return hurries(part)
        case Within(part):
            parts = part.parts if isinstance(part, Follows) else (part,)
            return any(lasts(each) or hurries(each) for each in parts)
        case Follows(parts) | Either(parts) | Both(parts) | Interleaved(parts):
            return any(map(hurries, parts))
        case Repeat() | Not() | HoldsFor():
            return hurries(pattern.part)
        case Atom():
            return False


@st.composite
def declarations(
    draw: st.DrawFn,
    *,
    composite: bool = True,
    contexts: tuple[str, ...] = ("CHRONICLE", "IMMEDIATE", "STRICT"),
) -> PatternDeclaration:
    """A pattern with parameters and a context."""
    whole = patterns(composite=composite)
    body = draw(whole.filter(lambda p: not may_be_empty(p) and not hurries(p)))
    parameters = tuple(sorted(certain(body), key=lambda v: v.name))
    context = draw(st.sampled_from(contexts))
    return PatternDeclaration("p", parameters, body, context, (), 1)


@st.composite
def unrestricted_declarations(draw: st.DrawFn) -> PatternDeclaration:
    """A pattern of which every combination counts, with or without what a match ends."""
    pattern = draw(declarations(contexts=("UNRESTRICTED",)))
    skips = ["NO SKIP", "SKIP TO NEXT", "SKIP PAST LAST"]
    return replace(pattern, skip="NO SKIP" if waits(pattern.body) else draw(st.sampled_from(skips)))


def waits(pattern: EventPattern) -> bool:
    """Whether time alone may complete a part."""
    return any(isinstance(part, Within) and last_absence(part.part) for part in walk(pattern))


@st.composite
def shared_declarations(draw: st.DrawFn) -> PatternDeclaration:
    """A pattern with PER ?x, of which some events lack ?x; those that it begins with have it."""
    pattern = draw(per_declarations())
    first = {id(atom) for atom in first_atoms(pattern.body)}

    def without(atom: Atom) -> Atom:
        lacks = id(atom) not in first and draw(st.booleans())
        return replace(atom, arguments=(None, *atom.arguments[1:])) if lacks else atom

    return replace(pattern, body=changed_atoms(pattern.body, without, lambda *_: None))


@st.composite
def short_declarations(draw: st.DrawFn) -> PatternDeclaration:
    """A pattern of two events without variables, in a context where noise counts."""
    one = st.sampled_from([Atom("a", (None,)), Atom("b", (None,))])
    first, last = draw(one), draw(one)
    gap = (Not(draw(atoms((None,)))),) if draw(st.booleans()) else ()
    context = draw(st.sampled_from(["IMMEDIATE", "STRICT"]))
    return PatternDeclaration("p", (), Follows((first, *gap, last)), context, (), 1)


@st.composite
def per_declarations(draw: st.DrawFn) -> PatternDeclaration:
    """A pattern whose events all have ?x first, with PER ?x."""
    pattern = draw(declarations())
    body = keyed(pattern.body)
    parameters = tuple(sorted(certain(body), key=lambda v: v.name))
    return PatternDeclaration("p", parameters, body, pattern.context, (X,), 1)


def keyed(pattern: EventPattern) -> EventPattern:
    """The pattern with ?x as the first argument of each event."""
    match pattern:
        case Atom():
            rest = tuple(None if argument == X else argument for argument in pattern.arguments[1:])
            return Atom(pattern.event, (X, *rest))
        case Follows(parts) | Either(parts) | Both(parts) | Interleaved(parts):
            return type(pattern)(tuple(map(keyed, parts)))
        case Repeat():
            return replace(pattern, part=keyed(pattern.part))
        case Not():
            return Not(keyed(pattern.part))
        case Within() | HoldsFor():
            return type(pattern)(keyed(pattern.part), pattern.length)


@st.composite
def streams(draw: st.DrawFn, most: int = 9) -> list[tuple[str, tuple[int, ...], int]]:
    """Events in order of time: type, values and time."""
    time = 0
    events = []
    for _ in range(draw(st.integers(1, most))):
        time += draw(st.integers(0, 3))
        name = draw(st.sampled_from(["a", "a", "b", "b", "c", "c", "z"]))
        values = tuple(draw(st.integers(1, 2)) for _ in range(TYPES[name]))
        events.append((name, values, time))
    return events
