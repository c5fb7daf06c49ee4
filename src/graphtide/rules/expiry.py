"""Retention: how long a rule has to retain its events, derived from its temporal tests.

The tests bound the distances in time between events. The closure of these bounds (if b is within 5
of a, and c within 3 of b, then c is within 8 of a) gives for each event the latest time at which a
partner may still come. Until then the event is retained; one whose partners all lie in the past is
not retained at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, assert_never

from graphtide.rules import temporal

if TYPE_CHECKING:
    from graphtide.rules.model import Rule

Pair = tuple[str, str]
Distances = Mapping[Pair, temporal.Bounds]
"""The distance of the second event from the first, for each pair."""


def distances_of(test: temporal.Test) -> dict[Pair, temporal.Bounds]:
    """The bounds that a test puts on distances; pairs without a bound are left out.

    >>> distances_of(temporal.Temporal("AFTER", "c", "a", (1, 5)))
    {('a', 'c'): Bounds(low=1, high=5), ('c', 'a'): Bounds(low=-5, high=-1)}
    """
    return _bounds_of(test, _between_starts)


def _between_starts(test: temporal.Temporal) -> dict[Pair, temporal.Bounds]:
    bounds = temporal.RELATIONS[test.operator].distance(test.numbers)
    return {(test.other, test.this): bounds, (test.this, test.other): -bounds}


def _between_ends(test: temporal.Temporal) -> dict[Pair, temporal.Bounds]:
    """The bounds of a relation on the starts and ends of events with a duration."""
    names = {"start": (test.this, "start"), "end": (test.this, "end"),
             "other start": (test.other, "start"), "other end": (test.other, "end")}  # fmt: skip
    found: dict[Pair, temporal.Bounds] = {}
    for one, two, bounds in temporal.relation_bounds(test.operator, test.numbers):
        later, earlier = " ".join(names[one]), " ".join(names[two])
        found[earlier, later] = found.get((earlier, later), temporal.ANY).within(bounds)
        found[later, earlier] = -found[earlier, later]
    return found


def _bounds_of(
    test: temporal.Test, relation: Callable[[temporal.Temporal], dict[Pair, temporal.Bounds]]
) -> dict[Pair, temporal.Bounds]:
    match test:
        case temporal.Temporal():
            return relation(test)
        case temporal.AllTests(tests):
            found: dict[Pair, temporal.Bounds] = {}
            for each in tests:
                for pair, bounds in _bounds_of(each, relation).items():
                    found[pair] = found.get(pair, temporal.ANY).within(bounds)
            return found
        case temporal.AnyTest(tests):
            parts = [_bounds_of(each, relation) for each in tests]
            pairs = set.intersection(*(set(part) for part in parts)) if parts else set()
            return {pair: _hull([part[pair] for part in parts]) for pair in sorted(pairs)}
        case temporal.ExpressionTest():
            return {}
        case temporal.NotTest():
            return {}  # the complement of a range is unbounded
        case _:
            assert_never(test)


def _hull(parts: Sequence[temporal.Bounds]) -> temporal.Bounds:
    found = parts[0]
    for part in parts[1:]:
        found = found.around(part)
    return found


def closed(events: Sequence[str], test: temporal.Test) -> dict[Pair, temporal.Bounds]:
    """The closure of the bounds of a test, for all pairs of events."""
    return _closure(events, distances_of(test))


def end_distances(
    events: Sequence[str], test: temporal.Test, max_duration: float
) -> dict[Pair, temporal.Bounds]:
    """The closure for the ends of events that last for up to `max_duration` ticks.

    >>> after = temporal.Temporal("AFTER", "c", "a", (1, 5))
    >>> end_distances(("a", "c"), after, 10)["a", "c"]
    Bounds(low=1, high=15)
    """
    matrix = between_times(events, test, dict.fromkeys(events, max_duration))
    return {(a, b): matrix[f"{a} end", f"{b} end"] for a in events for b in events}


def between_times(
    events: Sequence[str], test: temporal.Test, longest: Mapping[str, float]
) -> dict[Pair, temporal.Bounds]:
    """The closure for the starts and ends of events, each of which has its longest duration.

    >>> meets = temporal.Temporal("MEETS", "a", "b")
    >>> between_times(("a", "b"), meets, {"a": 5, "b": 0})["a start", "b end"]
    Bounds(low=0, high=5)
    """
    known = _bounds_of(test, _between_ends)
    for event in events:
        known[f"{event} start", f"{event} end"] = temporal.Bounds(0, longest[event])
        known[f"{event} end", f"{event} start"] = temporal.Bounds(-longest[event], 0)
    nodes = [f"{event} {word}" for event in events for word in ("start", "end")]
    return _closure(nodes, known)


def _closure(events: Sequence[str], known: Distances) -> dict[Pair, temporal.Bounds]:
    """The smallest bounds for all pairs, over ways of any length (Floyd and Warshall)."""
    all_pairs = [(a, b) for a in events for b in events]
    low = {pair: known[pair].low if pair in known else -inf for pair in all_pairs}
    high = {pair: known[pair].high if pair in known else inf for pair in all_pairs}
    for event in events:
        low[event, event] = high[event, event] = 0
    for middle in events:
        for pair in all_pairs:
            to, onward = (pair[0], middle), (middle, pair[1])
            low[pair] = max(low[pair], low[to] + low[onward])
            high[pair] = min(high[pair], high[to] + high[onward])
    return {pair: temporal.Bounds(low[pair], high[pair]) for pair in all_pairs}


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an event of a rule is retained after its end, and for which partner.

    `ticks` is None if it is not retained, infinite if it is never evicted.
    """

    event: str
    ticks: float | None
    partner: str | None

    def __str__(self) -> str:
        if self.ticks is None:
            return f"{self.event}: not retained, no partner comes after it"
        if self.ticks == inf:
            return f"{self.event}: never evicted, {self.partner} may come at any time"
        return f"{self.event}: retained for {self.ticks:g}, as long as {self.partner} may come"


def retentions(
    events: Sequence[str], test: temporal.Test, max_duration: int = 0
) -> list[Retention]:
    """The retention of each event of a rule, given the longest duration of events.

    >>> for retention in retentions(("a", "c"), temporal.Temporal("AFTER", "c", "a", (1, 5))):
    ...     print(retention)
    a: retained for 5, as long as c may come
    c: not retained, no partner comes after it
    """
    matrix = end_distances(events, test, max_duration) if max_duration else closed(events, test)
    return [_retention(event, events, matrix) for event in events]


def _retention(event: str, events: Sequence[str], matrix: Distances) -> Retention:
    others = [other for other in events if other != event]
    partner = max(others, key=lambda other: matrix[event, other].high, default=None)
    if partner is None or matrix[event, partner].high < 0:
        return Retention(event, None, None)
    return Retention(event, matrix[event, partner].high, partner)


def rule_retentions(rule: Rule, max_duration: int = 0) -> dict[str, Retention]:
    """The retention of each event of a rule, by name.

    Tests of a NO EVENT do not bound the distances between the other events.
    """
    parts = rule.test.tests if isinstance(rule.test, temporal.AllTests) else (rule.test,)
    denied = {condition.name for condition in rule.negative}
    plain = tuple(part for part in parts if not temporal.named(part) & denied)
    names = [condition.name for condition in rule.positive]
    found = {each.event: each for each in retentions(names, temporal.AllTests(plain), max_duration)}
    for name in denied:
        own = tuple(part for part in parts if name in temporal.named(part))
        (*_, found[name]) = retentions(
            [*names, name], temporal.AllTests((*plain, *own)), max_duration
        )
    return found


def waits(rule: Rule) -> dict[str, Retention]:
    """The events after which a match has to wait for a NO EVENT, and for how long."""
    parts = rule.test.tests if isinstance(rule.test, temporal.AllTests) else (rule.test,)
    found: dict[str, Retention] = {}
    for condition in rule.negative:
        own = distances_of(
            temporal.AllTests(
                tuple(part for part in parts if condition.name in temporal.named(part))
            )
        )
        for (event, other), bounds in own.items():
            if other == condition.name and 0 <= bounds.high < inf:
                before = found.get(event)
                if before is None or (before.ticks or 0) < bounds.high:
                    found[event] = Retention(event, bounds.high, other)
    return found
