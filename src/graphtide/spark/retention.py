"""Retention: for how long the events of a rule may be needed to come back to what it knows.

That is as long as the rule keeps them, and more where events must not happen: a match that waits is
found again from its events, and one that was spoilt has to be spoilt again.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from graphtide.rules.expiry import closed, distances_of, retentions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.rules.model import EventType, Rule


def retention(rule: Rule, types: Mapping[EventType, int]) -> dict[int, float]:
    """By number of a type, how many ticks its events are needed; never, if it is missing."""
    names = [condition.name for condition in rule.events]
    ticks = {each.event: each.ticks for each in retentions(names, rule.test)}
    positive = {c.name: max(_known(ticks[c.name]), _waits(rule, c.name)) for c in rule.positive}
    longest = max(positive.values(), default=-inf)
    found: dict[int, float] = {}
    for condition in rule.events:
        needed = positive.get(condition.name, -inf)
        if condition.negated:
            needed = max(0, _known(ticks[condition.name])) + longest
        if needed >= 0:
            type_ = types[condition.type]
            found[type_] = max(found.get(type_, 0), needed)
    return found


def _known(ticks: float | None) -> float:
    return -inf if ticks is None else ticks


def _waits(rule: Rule, event: str) -> float:
    """How long a match may wait after one of its events for others that must not come."""
    distances = closed([condition.name for condition in rule.events], rule.test)
    bounds = distances_of(rule.test)
    return max(
        (
            distances[event, other.name].high + bounds[other.name, denied.name].high
            for other in rule.positive
            for denied in rule.negative
            if (other.name, denied.name) in bounds
        ),
        default=-inf,
    )
