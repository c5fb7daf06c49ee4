"""From the declaration of a pattern to its automaton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.events.automaton import (
    START,
    Automaton,
    Letter,
    Negation,
    Position,
    Spans,
    Transition,
    Zone,
)
from graphtide.events.bounds import as_bound, bounds
from graphtide.events.build import Builder, Names
from graphtide.events.links import END, Link, all_links
from graphtide.events.sketch import Beside, Chain, Inside, Rest
from graphtide.lang.event_algebra import Atom, EventPattern, PatternDeclaration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.events.sketch import Place
    from graphtide.rdf.term import Term


def compile_pattern(
    pattern: PatternDeclaration,
    types: Mapping[str, int],
    encode: Callable[[Term], int],
    tick_ms: int = 1000,
) -> Automaton:
    """The automaton of a checked pattern; `types` numbers the events, `encode` the constants.

    >>> from graphtide.lang.event_algebra import Follows
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> automaton = compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1)
    >>> [(t.source, t.target) for ts in automaton.transitions for t in ts]
    [(0, 1), (1, 2)]
    """
    names = Names(types, encode, tick_ms)
    parameters = tuple(map(names.slot, pattern.parameters))
    per = tuple(map(names.slot, pattern.per))
    positions, transitions, zones, negations = _parts(pattern.body, names)
    ordered = tuple(sorted(types, key=lambda name: types[name]))
    return Automaton(
        name=pattern.name,
        positions=positions,
        transitions=transitions,
        zones=zones,
        negations=negations,
        variables=tuple(names.slots),
        parameters=parameters,
        context=pattern.context,
        per=per,
        types=ordered,
    )


Parts = tuple[
    tuple[Position, ...], tuple[tuple[Transition, ...], ...], tuple[Zone, ...], tuple[Negation, ...]
]


def _parts(body: EventPattern, names: Names) -> Parts:
    builder = Builder(names)
    start, end = builder.build(body)
    places = builder.sketch.places
    found = all_links(builder.sketch, [start, *(place.after for place in places)], end)
    transitions = tuple(
        tuple(
            t
            for link in out
            if link.target != END
            for t in _transition(i, link, places, builder.zones)
        )
        for i, out in enumerate(found)
    )
    positions = [Position(START, None, None, (), (), "start")]
    for i, place in enumerate(places):
        ends = tuple(
            _waited(place.chain, link.leaves, builder.zones)
            for link in found[i + 1]
            if link.target == END and not link.nots
        )
        position = Position(i + 1, place.letter, place.timer, place.zones, ends, place.name)
        positions.append(position)
    negations = tuple(
        Negation(number, node, _only_letter(node.part, names), _inner(node.part, names))
        for node, number in builder.nots.items()
    )
    return tuple(positions), transitions, tuple(builder.zones), negations


def _inner(body: EventPattern, names: Names) -> Automaton:
    """The automaton of what a NOT forbids: the slots are those of the whole pattern."""
    positions, transitions, zones, negations = _parts(body, names)
    return Automaton("NOT", positions, transitions, zones, negations, (), (), "CHRONICLE", ())


def _only_letter(node: EventPattern, names: Names) -> Letter | None:
    return names.letter(node) if isinstance(node, Atom) else None


def _transition(
    source: int, link: Link, places: list[Place], zones: list[Zone]
) -> list[Transition]:
    """The transition of a link; none if it could never reach the end."""
    place = places[link.target]
    enters = tuple(zone for zone, _ in link.enters)
    ways = bounds(place.chain, frozenset(enters) if place.timer is None else frozenset())
    if not ways:
        return []
    before = places[source - 1] if source else None
    held = _waited(before.chain, link.leaves, zones) if before else ()
    active = before.zones if before else ()
    crosses = tuple(z for z in active if z in place.zones and z not in (*link.leaves, *enters))
    return [
        Transition(
            source=source,
            target=link.target + 1,
            spare=link.spare,
            enters=enters,
            crosses=crosses,
            leaves=link.leaves,
            held=held,
            early=tuple(e for e in dict.fromkeys(ways[0].early) if e[1] > 0),
            bounds=tuple(dict.fromkeys(map(as_bound, ways))),
            nots=tuple(dict.fromkeys(link.nots)),
        )
    ]


def _waited(chain: Chain, leaves: tuple[int, ...], zones: list[Zone]) -> Spans:
    """HOLDS FOR that is looked at when the zone is left: where the event could be no last one."""
    lower = (zones[zone] for zone in leaves if zones[zone].least)
    return tuple((zone.number, zone.least) for zone in lower if _moves(chain, zone.number))


def _moves(chain: Chain, zone: int) -> bool:
    """May more events come in a zone after a place?"""
    for step in chain:
        match step:
            case Inside(inner, _) if inner.number == zone:
                return False
            case Rest(_, moves) if moves:
                return True
            case Beside(others) if others:
                return True
            case _:
                continue
    return False
