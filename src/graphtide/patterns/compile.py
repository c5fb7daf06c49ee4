"""Compiles a pattern to its automaton, with exact time bounds on transitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from graphtide.algebra.variables import mentioned
from graphtide.lang.tide.ast import Atom, EventPattern, PatternDeclaration
from graphtide.lang.tide.references import reference_of
from graphtide.patterns import automaton as auto
from graphtide.patterns import build
from graphtide.patterns.gather import Evaluator, EventNames

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


# --- The latest time of a transition: what must follow it takes time, too.
#
# From a place outwards (`Chain`) we know, for an event at time t at the place, the earliest time of
# the end of each part around it: max(t + ahead, entry of z + amount for each (z, amount) in
# `held`).
# Where a part is a zone with an upper bound, that must not be later than entry + most. Zones are
# nested, so the earliest end is best everywhere: the bounds are exact, as long as a HOLDS FOR that
# has to be waited for has an event before its end that may come later (`moves`).


@dataclass(frozen=True, slots=True)
class Ahead:
    """Bounds at some level of a chain; `ahead` None: the end does not depend on t."""

    ahead: int | None = 0
    held: auto.Spans = ()
    latest: auto.Spans = ()
    order: tuple[tuple[int, int, int], ...] = ()
    moves: bool = False
    early: auto.Spans = ()


def bounds(chain: build.Chain, new: frozenset[int]) -> list[Ahead]:
    """The bounds of each way from a place to the end; `new` zones begin at the place.

    >>> from graphtide.patterns.automaton import Zone
    >>> bounds((build.Rest(3, True), build.Inside(auto.Zone(0, 0, 10))), frozenset())[0].latest
    ((0, 7),)
    """
    found = [Ahead()]
    for step in chain:
        match step:
            case build.Rest(amount, moves):
                found = [_later(way, amount, moves) for way in found]
            case build.Inside():
                inside = (_inside(way, step, step.zone.number in new) for way in found)
                found = [way for way in inside if way is not None]
            case build.Beside(others):
                found = [
                    _beside(way, others_way) for way in found for others_way in _others(others)
                ]
    return found


def as_bound(way: Ahead) -> auto.Bound:
    """The part of it that a transition carries.

    >>> as_bound(Ahead(latest=((0, 7), (0, 5))))
    Bound(latest=((0, 5),), order=())
    """
    least: dict[int, int] = {}
    for zone, amount in way.latest:
        least[zone] = min(amount, least.get(zone, amount))
    return auto.Bound(tuple(sorted(least.items())), tuple(dict.fromkeys(way.order)))


def _later(way: Ahead, amount: int, moves: bool) -> Ahead:  # noqa: FBT001
    return replace(
        way,
        ahead=None if way.ahead is None else way.ahead + amount,
        held=tuple((zone, least + amount) for zone, least in way.held),
        moves=way.moves or moves,
    )


def _inside(way: Ahead, step: build.Inside, new: bool) -> Ahead | None:  # noqa: FBT001
    zone = step.zone
    if new:
        return _begun(way, step)
    if zone.least:
        way = _held(way, zone)
    if zone.most is None:
        return way
    most = zone.most
    latest = () if way.ahead is None else ((zone.number, most - way.ahead),)
    inner = [(z, amount) for z, amount in way.held if z != zone.number]
    if any(amount > most for z, amount in way.held if z == zone.number):
        return None
    order = tuple((z, zone.number, amount - most) for z, amount in inner)
    way = replace(way, latest=way.latest + latest, order=way.order + order)
    return replace(way, ahead=None, held=((zone.number, most),)) if step.forced else way


def _held(way: Ahead, zone: auto.Zone) -> Ahead:
    """A HOLDS FOR that goes on: a later event may wait; if none can, t must be late enough."""
    if way.moves:
        return replace(way, held=(*way.held, (zone.number, zone.least)))
    if way.ahead is None:
        return way
    return replace(way, early=(*way.early, (zone.number, zone.least - way.ahead)))


def _begun(way: Ahead, step: build.Inside) -> Ahead | None:
    """A zone that begins at t: all in it is relative to t."""
    zone, ahead = step.zone, way.ahead or 0
    if zone.least > ahead and not way.moves:
        return None
    ahead = max(ahead, zone.least)
    if zone.most is not None and ahead > zone.most:
        return None
    return replace(way, ahead=zone.most if step.forced else ahead)


def _others(
    others: tuple[tuple[tuple[build.Chain, frozenset[int]], ...], ...],
) -> list[list[Ahead]]:
    """The continuations of the other parts of ALL, in all combinations."""
    ways = [[way for chain, new in other for way in bounds(chain, new)] for other in others]
    return [list(choice) for choice in product(*ways)]


def _beside(way: Ahead, others: list[Ahead]) -> Ahead:
    """ALL ends when the last of its parts does."""
    aheads = [w.ahead for w in (way, *others) if w.ahead is not None]
    return Ahead(
        ahead=max(aheads, default=None),
        held=tuple(h for w in (way, *others) for h in w.held),
        latest=tuple(l for w in (way, *others) for l in w.latest),
        order=tuple(o for w in (way, *others) for o in w.order),
        moves=way.moves or bool(others),
        early=way.early,
    )


def compile_pattern(
    pattern: PatternDeclaration,
    types: Mapping[str, int],
    encode: Callable[[Term], int],
    tick_ms: int = 1000,
    terms: TermDictionary | None = None,
) -> auto.Automaton:
    """The automaton of a checked pattern; `types` numbers the events, `encode` the constants.

    With `terms` it can be run also if events have conditions, or parameters are computed.

    >>> from graphtide.lang.tide.ast import Follows
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> automaton = compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1)
    >>> [(t.source, t.target) for ts in automaton.transitions for t in ts]
    [(0, 1), (1, 2)]
    """
    events = EventNames(pattern)
    names = build.PositionNames(types, encode, tick_ms, events)
    parameters = tuple(map(names.slot, pattern.parameters))
    per = tuple(map(names.slot, pattern.per))
    positions, transitions, zones, negations = _parts(pattern.body, names)
    ordered = tuple(sorted(types, key=lambda name: types[name]))
    for variable in {v for _, e in pattern.computed for v in mentioned(e)}:
        if reference_of(variable) is None:
            names.slot(variable)
    slots = tuple(names.slots)
    evaluator = None if terms is None else Evaluator(events, slots, terms)
    if evaluator is not None:
        negations = tuple(_evaluated(negation, evaluator) for negation in negations)
    return auto.Automaton(
        name=pattern.name,
        positions=positions,
        transitions=transitions,
        zones=zones,
        negations=negations,
        variables=slots,
        parameters=parameters,
        context=pattern.context,
        per=per,
        types=ordered,
        skip=pattern.skip,
        computed=tuple((names.slot(v), expression) for v, expression in pattern.computed),
        gathered=len(events.numbers),
        evaluator=evaluator,
    )


def _evaluated(negation: auto.Negation, evaluator: Evaluator) -> auto.Negation:
    """A NOT whose conditions can be evaluated, too."""
    inner = negation.automaton
    deeper = tuple(_evaluated(each, evaluator) for each in inner.negations)
    return replace(negation, automaton=replace(inner, evaluator=evaluator, negations=deeper))


Parts = tuple[
    tuple[auto.AutomatonPosition, ...],
    tuple[tuple[auto.Transition, ...], ...],
    tuple[auto.Zone, ...],
    tuple[auto.Negation, ...],
]


def _parts(body: EventPattern, names: build.PositionNames) -> Parts:
    builder = build.Builder(names)
    start, end = builder.build(body)
    places = builder.sketch.places
    found = build.all_links(builder.sketch, [start, *(place.after for place in places)], end)
    transitions = tuple(
        _possessive(
            [
                t
                for link in out
                if link.target != build.END
                for t in _transition(i, link, places, builder.zones)
            ],
            places,
        )
        for i, out in enumerate(found)
    )
    positions = [auto.AutomatonPosition(auto.START, None, None, (), (), "start")]
    for i, place in enumerate(places):
        ends = tuple(
            _waited(place.chain, link.leaves, builder.zones)
            for link in found[i + 1]
            if link.target == build.END and not link.nots
        )
        position = auto.AutomatonPosition(
            i + 1, place.letter, place.timer, place.zones, ends, place.name,
            names.gathers(place.atom), None if place.atom is None else place.atom.condition,
        )  # fmt: skip
        positions.append(position)
    negations = tuple(
        auto.Negation(number, node, _only_letter(node.part, names), _inner(node.part, names))
        for node, number in builder.nots.items()
    )
    return tuple(positions), transitions, tuple(builder.zones), negations


def _possessive(
    out: list[auto.Transition], places: list[build.SketchState]
) -> tuple[auto.Transition, ...]:
    """Leave out transitions that leave a greedy loop with an event that surely repeats it.

    Where that depends on the event or on time, it is left to `ConfigurationMover`.
    """

    def asked(t: auto.Transition) -> tuple[object, ...]:
        return places[t.target - 1].letter, t.nots, t.held, t.early, t.bounds

    def sure(t: auto.Transition) -> bool:
        atom = places[t.target - 1].atom
        return atom is None or atom.condition is None

    again = {(loop, asked(t)) for t in out if sure(t) for loop in t.greedy}
    return tuple(t for t in out if not any((loop, asked(t)) in again for loop in t.past))


def _inner(body: EventPattern, names: build.PositionNames) -> auto.Automaton:
    """The automaton of a NOT, over the slots of the whole pattern."""
    positions, transitions, zones, negations = _parts(body, names)
    return auto.Automaton("NOT", positions, transitions, zones, negations, (), (), "CHRONICLE", ())


def _only_letter(node: EventPattern, names: build.PositionNames) -> auto.Letter | None:
    plain = isinstance(node, Atom) and node.condition is None
    return names.letter(node) if plain else None  # type: ignore[arg-type]


def _transition(
    source: int, link: build.SketchLink, places: list[build.SketchState], zones: list[auto.Zone]
) -> list[auto.Transition]:
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
        auto.Transition(
            source=source,
            target=link.target + 1,
            spare=link.spare,
            greedy=link.greedy,
            past=link.past,
            enters=enters,
            crosses=crosses,
            leaves=link.leaves,
            held=held,
            early=tuple(e for e in dict.fromkeys(ways[0].early) if e[1] > 0),
            bounds=tuple(dict.fromkeys(map(as_bound, ways))),
            nots=tuple(dict.fromkeys(link.nots)),
        )
    ]


def _waited(chain: build.Chain, leaves: tuple[int, ...], zones: list[auto.Zone]) -> auto.Spans:
    """The HOLDS FOR bounds that are checked when a zone is left, not at its last event."""
    lower = (zones[zone] for zone in leaves if zones[zone].least)
    return tuple((zone.number, zone.least) for zone in lower if _moves(chain, zone.number))


def _moves(chain: build.Chain, zone: int) -> bool:
    """Whether more events may come in a zone after a place."""
    for step in chain:
        match step:
            case build.Inside(inner, _) if inner.number == zone:
                return False
            case build.Rest(_, moves) if moves:
                return True
            case build.Beside(others) if others:
                return True
            case _:
                continue
    return False
