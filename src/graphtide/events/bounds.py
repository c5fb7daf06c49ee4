"""Until when a transition may be used: what must follow it needs time of its own.

From a place outwards (`Chain`) we know, for an event at time t at the place, the earliest time of
the end of each part around it: max(t + ahead, entry of z + amount for each (z, amount) of `held`).
Where a part is a zone with an upper bound, that must not be later than entry + most. Zones lie
within each other, so to be as early as possible everywhere is best: what is found here is exact, as
long as a HOLDS FOR that has to be waited for has an event before its end that may wait (`moves`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from graphtide.events.automaton import Bound, Spans
from graphtide.events.sketch import Beside, Chain, Inside, Rest

if TYPE_CHECKING:
    from graphtide.events.automaton import Zone


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is known at some distance from a place; `ahead` None: the end does not depend on t."""

    ahead: int | None = 0
    held: Spans = ()
    latest: Spans = ()
    order: tuple[tuple[int, int, int], ...] = ()
    moves: bool = False
    early: Spans = ()


def bounds(chain: Chain, new: frozenset[int]) -> list[Ahead]:
    """The ways from a place to the end; `new` zones begin at the place. Empty: there is none.

    >>> from graphtide.events.automaton import Zone
    >>> bounds((Rest(3, True), Inside(Zone(0, 0, 10))), frozenset())[0].latest
    ((0, 7),)
    """
    found = [Ahead()]
    for step in chain:
        match step:
            case Rest(amount, moves):
                found = [_later(way, amount, moves) for way in found]
            case Inside():
                kept = [_inside(way, step, step.zone.number in new) for way in found]
                found = [way for way in kept if way is not None]
            case Beside(others):
                found = [
                    _beside(way, others_way) for way in found for others_way in _others(others)
                ]
    return found


def as_bound(way: Ahead) -> Bound:
    """The part of it that a transition carries.

    >>> as_bound(Ahead(latest=((0, 7), (0, 5))))
    Bound(latest=((0, 5),), order=())
    """
    least: dict[int, int] = {}
    for zone, amount in way.latest:
        least[zone] = min(amount, least.get(zone, amount))
    return Bound(tuple(sorted(least.items())), tuple(dict.fromkeys(way.order)))


def _later(way: Ahead, amount: int, moves: bool) -> Ahead:  # noqa: FBT001
    return replace(
        way,
        ahead=None if way.ahead is None else way.ahead + amount,
        held=tuple((zone, least + amount) for zone, least in way.held),
        moves=way.moves or moves,
    )


def _inside(way: Ahead, step: Inside, new: bool) -> Ahead | None:  # noqa: FBT001
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


def _held(way: Ahead, zone: Zone) -> Ahead:
    """A HOLDS FOR that goes on: its end waits, or if nothing can wait, t must be late enough."""
    if way.moves:
        return replace(way, held=(*way.held, (zone.number, zone.least)))
    if way.ahead is None:
        return way
    return replace(way, early=(*way.early, (zone.number, zone.least - way.ahead)))


def _begun(way: Ahead, step: Inside) -> Ahead | None:
    """A zone that begins at t: all in it is relative to t."""
    zone, ahead = step.zone, way.ahead or 0
    if zone.least > ahead and not way.moves:
        return None
    ahead = max(ahead, zone.least)
    if zone.most is not None and ahead > zone.most:
        return None
    return replace(way, ahead=zone.most if step.forced else ahead)


def _others(others: tuple[tuple[tuple[Chain, frozenset[int]], ...], ...]) -> list[list[Ahead]]:
    """One way on for each of the other parts of ALL, in all combinations."""
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
