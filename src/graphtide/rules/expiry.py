"""Expiry: how long an event has to be kept for a rule, and why.

The tests of a rule bound the distances in time between its events. Closing these bounds (if b is
within 5 of a, and c within 3 of b, then c is within 8 of a) gives for each event the latest time
at which a partner may still come. Until then it is kept; an event whose partners all lie in the
past is not kept at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, assert_never

from graphtide.rules.temporal import (
    ANY,
    RELATIONS,
    AllTests,
    AnyTest,
    Bounds,
    ExpressionTest,
    NotTest,
    Temporal,
    named,
    relation_bounds,
)

if TYPE_CHECKING:
    from graphtide.rules.model import Rule
    from graphtide.rules.temporal import Test

Pair = tuple[str, str]
Distances = Mapping[Pair, Bounds]
"""The distance of the second event from the first, for each pair."""


def distances_of(test: Test) -> dict[Pair, Bounds]:
    """What a test says about distances by itself; pairs that it leaves open are not there.

    >>> distances_of(Temporal("AFTER", "c", "a", (1, 5)))
    {('a', 'c'): Bounds(low=1, high=5), ('c', 'a'): Bounds(low=-5, high=-1)}
    """
    return _told(test, _between_starts)


def _between_starts(test: Temporal) -> dict[Pair, Bounds]:
    bounds = RELATIONS[test.operator].distance(test.numbers)
    return {(test.other, test.this): bounds, (test.this, test.other): -bounds}


def _between_ends(test: Temporal) -> dict[Pair, Bounds]:
    """What a relation says about starts and ends of events that last."""
    names = {"start": (test.this, "start"), "end": (test.this, "end"),
             "other start": (test.other, "start"), "other end": (test.other, "end")}  # fmt: skip
    found: dict[Pair, Bounds] = {}
    for one, two, bounds in relation_bounds(test.operator, test.numbers):
        later, earlier = " ".join(names[one]), " ".join(names[two])
        found[earlier, later] = found.get((earlier, later), ANY).within(bounds)
        found[later, earlier] = -found[earlier, later]
    return found


def _told(test: Test, relation: Callable[[Temporal], dict[Pair, Bounds]]) -> dict[Pair, Bounds]:
    match test:
        case Temporal():
            return relation(test)
        case AllTests(tests):
            found: dict[Pair, Bounds] = {}
            for each in tests:
                for pair, bounds in _told(each, relation).items():
                    found[pair] = found.get(pair, ANY).within(bounds)
            return found
        case AnyTest(tests):
            parts = [_told(each, relation) for each in tests]
            pairs = set.intersection(*(set(part) for part in parts)) if parts else set()
            return {pair: _hull([part[pair] for part in parts]) for pair in sorted(pairs)}
        case ExpressionTest():
            return {}
        case NotTest():
            return {}  # what is not after may be before, or much later
        case _:
            assert_never(test)


def _hull(parts: Sequence[Bounds]) -> Bounds:
    found = parts[0]
    for part in parts[1:]:
        found = found.around(part)
    return found


def closed(events: Sequence[str], test: Test) -> dict[Pair, Bounds]:
    """The tightest distances that follow from a test, for all pairs of events."""
    return _closure(events, distances_of(test))


def end_distances(events: Sequence[str], test: Test, max_duration: float) -> dict[Pair, Bounds]:
    """The tightest distances between the ends of events that last for up to `max_duration` ticks.

    >>> after = Temporal("AFTER", "c", "a", (1, 5))
    >>> end_distances(("a", "c"), after, 10)["a", "c"]
    Bounds(low=1, high=15)
    """
    known = _told(test, _between_ends)
    for event in events:
        known[f"{event} start", f"{event} end"] = Bounds(0, max_duration)
        known[f"{event} end", f"{event} start"] = Bounds(-max_duration, 0)
    nodes = [f"{event} {word}" for event in events for word in ("start", "end")]
    matrix = _closure(nodes, known)
    return {(a, b): matrix[f"{a} end", f"{b} end"] for a in events for b in events}


def _closure(events: Sequence[str], known: Distances) -> dict[Pair, Bounds]:
    matrix = {(a, b): known.get((a, b), ANY) for a in events for b in events}
    for event in events:
        matrix[event, event] = Bounds(0, 0)
    for middle in events:
        for a in events:
            for b in events:
                way = matrix[a, middle] + matrix[middle, b]
                matrix[a, b] = matrix[a, b].within(way)
    return matrix


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an event of a rule is kept after it happened, and for which partner.

    `ticks` None: not at all; infinite: for ever.
    """

    event: str
    ticks: float | None
    partner: str | None

    def __str__(self) -> str:
        if self.ticks is None:
            return f"{self.event}: not kept, no partner comes after it"
        if self.ticks == inf:
            return f"{self.event}: kept for ever, {self.partner} may come at any time"
        return f"{self.event}: kept for {self.ticks:g}, as long as {self.partner} may come"


def retentions(events: Sequence[str], test: Test, max_duration: int = 0) -> list[Retention]:
    """For each event of a rule, how long it is kept after its end.

    None of them lasts for more than `max_duration` ticks.

    >>> for retention in retentions(("a", "c"), Temporal("AFTER", "c", "a", (1, 5))):
    ...     print(retention)
    a: kept for 5, as long as c may come
    c: not kept, no partner comes after it
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
    """How long the events of a rule have to be remembered, by name.

    What must not happen says nothing about the distance of those that do: it is left out for them.
    """
    parts = rule.test.tests if isinstance(rule.test, AllTests) else (rule.test,)
    denied = {condition.name for condition in rule.negative}
    plain = tuple(part for part in parts if not named(part) & denied)
    names = [condition.name for condition in rule.positive]
    found = {each.event: each for each in retentions(names, AllTests(plain), max_duration)}
    for name in denied:
        own = tuple(part for part in parts if name in named(part))
        (*_, found[name]) = retentions([*names, name], AllTests((*plain, *own)), max_duration)
    return found


def waits(rule: Rule) -> dict[str, Retention]:
    """The events after which a match of a rule waits for others that must not happen."""
    parts = rule.test.tests if isinstance(rule.test, AllTests) else (rule.test,)
    found: dict[str, Retention] = {}
    for condition in rule.negative:
        own = distances_of(AllTests(tuple(part for part in parts if condition.name in named(part))))
        for (event, other), bounds in own.items():
            if other == condition.name and 0 <= bounds.high < inf:
                before = found.get(event)
                if before is None or (before.ticks or 0) < bounds.high:
                    found[event] = Retention(event, bounds.high, other)
    return found
