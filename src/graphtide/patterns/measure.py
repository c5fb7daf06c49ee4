"""Durations of patterns and lifetimes of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, assert_never

from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.pattern_facts import can_be_empty, last_absence

if TYPE_CHECKING:
    from graphtide.patterns.automaton import Automaton, Transition


class Measure:
    """Lengths of patterns; `tick_ms` turns durations into ticks."""

    def __init__(self, tick_ms: int) -> None:
        self.tick_ms = tick_ms

    def ticks(self, node: tide.Within | tide.HoldsFor) -> int | None:
        """The length of a zone in ticks; None if it has no end.

        >>> from graphtide.lang.durations import WrittenDuration
        >>> Measure(1000).ticks(
        ...     tide.Within(tide.Atom("A", ()), WrittenDuration(5000, in_time=True))
        ... )
        5
        """
        length = node.length.ticks(self.tick_ms)
        return None if length == float("inf") else int(length)

    def shortest(self, node: tide.EventPattern) -> int:
        """The shortest time from its first event to its last.

        >>> from graphtide.lang.durations import WrittenDuration
        >>> a = tide.Atom("A", ())
        >>> Measure(1).shortest(
        ...     tide.Follows((a, tide.HoldsFor(tide.Follows((a, a)), WrittenDuration(4))))
        ... )
        4
        """
        match node:
            case tide.Atom() | tide.Not():
                return 0
            case tide.Follows(parts) | tide.Both(parts):
                return sum(map(self.shortest, parts))
            case tide.Interleaved(parts):
                return max(map(self.shortest, parts))
            case tide.Either(parts):
                return min(map(self.shortest, parts))
            case tide.Repeat(part, least, _):
                return least * self.shortest(part)
            case tide.Within(part, _):
                return (self.ticks(node) or 0) if only_timer(part) else self.shortest(part)
            case tide.HoldsFor(part, _):
                inside = 0 if can_be_empty(part) else self.ticks(node) or 0
                return max(inside, self.shortest(part))
            case _:
                assert_never(node)


def only_timer(part: tide.EventPattern) -> bool:
    """Whether a part with WITHIN always ends by its timer, as a NOT follows its last event.

    >>> a = tide.Atom("A", ())
    >>> (
    ...     only_timer(tide.Follows((a, tide.Not(a)))),
    ...     only_timer(tide.Either((a, tide.Follows((a, tide.Not(a)))))),
    ... )
    (True, False)
    """
    return last_absence(part) is not None and not event_last(part)


def event_last(node: tide.EventPattern) -> bool:
    """Whether it can end with an event or a timer.

    >>> event_last(tide.Follows((tide.Atom("A", ()), tide.Not(tide.Atom("B", ())))))
    False
    """
    match node:
        case tide.Atom() | tide.Within():
            return True
        case tide.Not():
            return False
        case tide.Follows(parts):
            for part in reversed(parts):
                if event_last(part):
                    return True
                if isinstance(part, tide.Not) or not can_be_empty(part):
                    return False
            return False
        case tide.Either(parts) | tide.Both(parts) | tide.Interleaved(parts):
            return any(map(event_last, parts))
        case tide.Repeat(part, _, _) | tide.HoldsFor(part, _):
            return event_last(part)
        case _:
            assert_never(node)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The longest life of a token in ticks; if it is unbounded, `why`."""

    ticks: float
    why: str = ""


def lifetime(automaton: Automaton) -> Lifetime:
    """The longest life of a token: the latest times of all positions, from its first event.

    >>> from graphtide.patterns.compile import compile_pattern
    >>> from graphtide.lang.durations import WrittenDuration
    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration, Within
    >>> body = tide.Within(
    ...     tide.Follows((tide.Atom("A", ()), tide.Atom("B", ()))), WrittenDuration(5)
    ... )
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> lifetime(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))
    Lifetime(ticks=5, why='')
    """
    arrival: list[float] = [0, *([-inf] * (len(automaton.positions) - 1))]
    entry: list[float] = [-inf] * len(automaton.zones)
    goes_on = [p.number for p in automaton.positions if not p.surely_final]
    moves = [t for position in goes_on for t in automaton.transitions[position]]
    for _ in range(len(automaton.positions) + len(automaton.zones) + 1):
        if not any([_arrive(automaton, t, arrival, entry) for t in moves]):  # noqa: C419 - all move
            break
    else:
        return Lifetime(inf, "a loop with a time of its own may go round for ever")
    for t in moves:
        if t.source and _latest(automaton, t, arrival, entry) == inf:
            after, waits = automaton.positions[t.source].name, automaton.positions[t.target].name
            return Lifetime(inf, f"after {after} it may wait for {waits} for ever")
    return Lifetime(max(arrival))


def _arrive(automaton: Automaton, t: Transition, arrival: list[float], entry: list[float]) -> bool:
    """Propagate the latest times along a transition; whether one has become later."""
    if arrival[t.source] == -inf:
        return False
    time = _latest(automaton, t, arrival, entry) if t.source else 0
    timer = automaton.positions[t.target].timer is not None
    begins = arrival[t.source] if timer else time
    later = time > arrival[t.target] or any(begins > entry[zone] for zone in t.enters)
    arrival[t.target] = max(arrival[t.target], time)
    for zone in t.enters:
        entry[zone] = max(entry[zone], begins)
    return later


def _latest(automaton: Automaton, t: Transition, arrival: list[float], entry: list[float]) -> float:
    timer = automaton.positions[t.target].timer
    if timer is not None:
        zone, length = timer
        return (arrival[t.source] if zone in t.enters else entry[zone]) + length
    return max(min((entry[z] + amount for z, amount in b.latest), default=inf) for b in t.bounds)
