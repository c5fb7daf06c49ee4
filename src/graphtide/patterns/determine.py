"""The subset construction: from an automaton to a deterministic one, where that is possible.

States are sets of positions; a move of a state consumes one letter. A state with two letters of one
type is *ambiguous*: an event may match both, and then a token would be in two states at once. So is
a state in which transitions of one letter have different conditions. `why_not` has the reasons why
a pattern cannot be run with one state for each token; if it is empty, `tables.py` makes its arrays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.patterns.automaton import START, Automaton, Letter, Spans, Transition

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_STATES = 10_000

Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenMove:
    """A transition between states, by a letter, or by a timer if there is none.

    `final` are the ways to accept after it, as in `Position`.
    """

    source: int
    target: int
    letter: Letter | None
    members: tuple[Transition, ...]
    final: tuple[Spans, ...]

    @property
    def spare(self) -> bool:
        """Whether it only repeats a loop."""
        return all(member.spare for member in self.members)


@dataclass(frozen=True, slots=True)
class Deterministic:
    """States are sets of positions, state 0 is the start; `moves[s]` leave state s."""

    automaton: Automaton
    states: tuple[Positions, ...]
    moves: tuple[tuple[TokenMove, ...], ...]
    ambiguous: frozenset[int]
    why_not: tuple[str, ...]


def determine(automaton: Automaton) -> Deterministic:
    """The deterministic form.

    >>> from graphtide.patterns.compile import compile_pattern
    >>> from graphtide.lang.tide.ast import Atom, Either, Follows, PatternDeclaration
    >>> a, b, c = (Atom(name, ()) for name in "abc")
    >>> body = Either((Follows((a, b)), Follows((a, c))))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> found = determine(compile_pattern(pattern, {"a": 0, "b": 1, "c": 2}, lambda term: 1))
    >>> found.states, found.why_not
    (((0,), (1, 3), (2,), (4,)), ())
    """
    numbers: dict[Positions, int] = {(START,): 0}
    moves: list[tuple[TokenMove, ...]] = []
    for positions in _growing(numbers):
        moves.append(tuple(_moves(automaton, positions, numbers)))
        if len(numbers) > MAX_STATES:
            break
    whole = len(moves) == len(numbers)
    ambiguous = {s: list(_ambiguities(automaton, out)) for s, out in enumerate(moves)}
    reasons = [reason for found in ambiguous.values() for reason in found]
    if any(n.letter is None for n in automaton.negations):
        reasons.append("NOT of a pattern of several events")
    if automaton.gathers:
        reasons.append("conditions between events, or computed parameters")
    if automaton.context == "UNRESTRICTED":
        reasons.append("an event goes to all instances that it advances")
    if not whole:
        reasons.append(f"more than {MAX_STATES:,} states")
    return Deterministic(
        automaton,
        tuple(numbers),
        (*moves, *((),) * (len(numbers) - len(moves))),
        frozenset(s for s, found in ambiguous.items() if found),
        tuple(dict.fromkeys(reasons)),
    )


def _growing(numbers: dict[Positions, int]) -> Iterable[Positions]:
    """The states, including those that are added during the iteration."""
    done = 0
    while done < len(numbers):
        fresh = list(numbers)[done:]
        done += len(fresh)
        yield from fresh


def _moves(
    automaton: Automaton, positions: Positions, numbers: dict[Positions, int]
) -> Iterable[TokenMove]:
    """The moves of a state; a token that is always complete there has none."""
    if any(automaton.positions[p].surely_final for p in positions):
        return
    groups: dict[tuple[Letter | None, int], list[Transition]] = {}
    for transition in (t for p in positions for t in automaton.transitions[p]):
        target = automaton.positions[transition.target]
        timer = 0 if target.letter is not None else target.number
        groups.setdefault((target.letter, timer), []).append(transition)
    source = numbers[positions]
    for (letter, _), members in groups.items():
        targets = tuple(sorted({t.target for t in members}))
        final = tuple(dict.fromkeys(e for t in targets for e in automaton.positions[t].final))
        number = numbers.setdefault(targets, len(numbers))
        yield TokenMove(source, number, letter, tuple(members), final)


def _ambiguities(automaton: Automaton, moves: tuple[TokenMove, ...]) -> Iterable[str]:
    """Reasons why a state is ambiguous."""
    types = Counter(move.letter.type for move in moves if move.letter is not None)
    for type_, letters in types.items():
        if letters > 1:
            yield f"{automaton.types[type_]} is awaited in two ways at once"
    if any(move.letter is None for move in moves) and len(moves) > 1:
        yield "an absence is awaited together with something else"
    for move in moves:
        yield from _disagreements(move)


def _disagreements(move: TokenMove) -> Iterable[str]:
    first, *others = move.members
    for one in others:
        if (one.nots, one.held, one.early) != (first.nots, first.held, first.early):
            yield "ways that read the same events ask for different things"
        if one.bounds != first.bounds:
            yield "ways that read the same events have different time"
    entered = {zone for member in move.members for zone in member.enters}
    if any(entered.intersection(member.crosses) for member in move.members):
        yield "a part with a time of its own begins while it goes on in another way"
    if any(len(member.bounds) > 1 for member in move.members):
        yield "ALL with several parts that have their own time"
    if len(move.final) > 1 and () not in move.final:
        yield "there are several ends with different times"
