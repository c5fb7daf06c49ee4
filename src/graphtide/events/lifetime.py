"""How long a token lives at most, and what that costs in memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.events.automaton import Automaton, Transition


@dataclass(frozen=True, slots=True)
class Lifetime:
    """`ticks` from the first event on; inf if there is no end, and then `why`."""

    ticks: float
    why: str = ""


def lifetime(automaton: Automaton) -> Lifetime:
    """How long a token may live. Times are counted from its first event, the latest that may be.

    >>> from graphtide.events.compile import compile_pattern
    >>> from graphtide.lang.durations import Duration
    >>> from graphtide.lang.event_algebra import Atom, Follows, PatternDeclaration, Within
    >>> body = Within(Follows((Atom("A", ()), Atom("B", ()))), Duration(5))
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
    """Passes on along one transition how late it may be; says whether anything is later now."""
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
