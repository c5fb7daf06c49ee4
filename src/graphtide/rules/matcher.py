"""Matcher: one rule at work. An event comes, and completes matches with those that came before.

Each condition has a memory of the events that may still find partners. An event that matches a
condition is joined with the memories of the others, one after the other, and then with the facts
that have held since before the first of these events. It is the last event of the matches that it
completes; so each match is found once, and depends on nothing but the rule's own conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from graphtide.rules.event_memory import EventMemory
from graphtide.rules.expiry import distances_of, keepings
from graphtide.rules.happening import bound_by
from graphtide.rules.temporal import Both, Test, has_check, holds, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.expressions import Var
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term import Term
    from graphtide.rules.fact_memory import FactMemory
    from graphtide.rules.happening import Binding, Happening
    from graphtide.rules.model import EventCondition, EventType, Rule

Values = dict["EventType", list[tuple[int, ...]]]
"""By type, the parameters with which an event matches it."""

Events = dict[str, "Happening"]


@dataclass(frozen=True, slots=True)
class Match:
    """The events of a match by name, and the values of all variables."""

    rule: Rule
    events: Events
    binding: Binding
    time: int


@dataclass(slots=True)
class Waiting:
    """A match that holds unless an event comes that must not, up to a time."""

    match: Match
    until: float


class Matcher:
    """The memories of a rule's conditions."""

    def __init__(self, rule: Rule, facts: FactMemory | None, terms: TermDictionary) -> None:
        self.rule = rule
        self._facts = facts
        self._terms = terms
        self._orders = {c.name: _order(c, rule) for c in rule.positive}
        self._test, self._denied = _divided(rule)
        self._checks = has_check(rule.test)
        self._waiting: list[Waiting] = []
        self._event_variables = {v for c in rule.positive for v in c.variables}
        names = [condition.name for condition in rule.events]
        kept = {keeping.event: keeping for keeping in keepings(names, rule.test)}
        self.memories = {
            condition.name: EventMemory(kept[condition.name], self._lookups(condition))
            for condition in rule.events
        }

    def _lookups(self, condition: EventCondition) -> set[tuple[Var, ...]]:
        if condition.negated:
            return {self._known_to(condition)}
        steps = (step for order in self._orders.values() for step in order)
        return {shared for other, shared in steps if other is condition}

    def _known_to(self, condition: EventCondition) -> tuple[Var, ...]:
        """The variables of a denied event that the other conditions bind."""
        known = {v for other in self.rule.positive for v in other.variables}
        return tuple(v for v in condition.variables if v in known)

    def advance(self, now: int) -> list[Match]:
        """Time goes on: let go the events that nothing from now on can need.

        The matches that waited for nothing to happen, and for which nothing can any more.
        """
        for memory in self.memories.values():
            memory.expire(now)
        due = [waiting for waiting in self._waiting if waiting.until < now]
        if not due:
            return []
        self._waiting = [waiting for waiting in self._waiting if waiting.until >= now]
        if self._facts is not None:
            self._facts.catch_up()
        due.sort(key=lambda waiting: (waiting.until, waiting.match.time))
        return [waiting.match for waiting in due if self._still_holds(waiting.match)]

    def _still_holds(self, match: Match) -> bool:
        """Whether the facts of a match that waited are there to this day."""
        partly = {v: i for v, i in match.binding.items() if v in self._event_variables}
        return match.binding in self._with_facts(match.events, partly)

    def take(self, event: Happening, values: Values) -> list[Match]:
        """Take in an event; the matches that it completes."""
        if self._facts is not None:
            self._facts.catch_up()
        found: list[Match] = []
        for condition in self.rule.events:
            bindings = [
                binding
                for parameters in values.get(condition.type, ())
                if (binding := bound_by(condition, parameters, self._terms)) is not None
            ]
            for binding in bindings:
                if condition.negated:
                    self._deny(condition, event, binding)
                else:
                    found += self._completed(condition, event, binding)
            # Taken in after it was matched: a later condition finds it, an earlier one has not.
            for binding in bindings:
                self.memories[condition.name].add(event, binding)
        return [match for match in found if not self._must_wait(match)]

    def retract(self, event: Happening) -> None:
        """Forget an event: nothing matches it any more."""
        for memory in self.memories.values():
            memory.remove(event)
        self._waiting = [
            waiting for waiting in self._waiting if event not in waiting.match.events.values()
        ]

    def _deny(self, condition: EventCondition, event: Happening, binding: Binding) -> None:
        """An event came that must not: the matches that it spoils are gone."""
        self._waiting = [
            waiting
            for waiting in self._waiting
            if not self._spoils(condition, event, binding, waiting.match)
        ]

    def _spoils(
        self, condition: EventCondition, event: Happening, binding: Binding, match: Match
    ) -> bool:
        known = self._known_to(condition)
        if any(binding[v] != match.binding[v] for v in known):
            return False
        spans = {name: each.span for name, each in match.events.items()}
        spans[condition.name] = event.span
        values = self._values({**binding, **match.binding})
        return holds(self._denied[condition.name], spans, values)

    def _must_wait(self, match: Match) -> bool:
        """Whether a match is spoilt already, or may still be; then it waits."""
        until = -inf
        for condition in self.rule.negative:
            past = self.memories[condition.name].find(self._known_to(condition), match.binding)
            if any(self._spoils(condition, event, bound, match) for event, bound in past):
                return True
            bounds = distances_of(self._denied[condition.name])
            latest = min(
                (event.span.end + bounds[name, condition.name].high
                 for name, event in match.events.items() if (name, condition.name) in bounds),
                default=inf,
            )  # fmt: skip
            if latest < inf:
                until = max(until, latest)
        if until < match.time:
            return False
        self._waiting.append(Waiting(match, until))
        return True

    def _completed(
        self, condition: EventCondition, event: Happening, binding: Binding
    ) -> Iterator[Match]:
        steps = self._orders[condition.name]
        for events, more in self._joined(steps, 0, {condition.name: event}, binding):
            spans = {name: each.span for name, each in events.items()}
            if self._checks or holds(self._test, spans):
                for whole in self._with_facts(events, more):
                    if not self._checks or holds(self._test, spans, self._values(whole)):
                        yield Match(self.rule, events, whole, event.span.end)

    def _values(self, binding: Binding) -> dict[Var, Term] | None:
        """The terms of a binding, where tests look at them."""
        if not self._checks:
            return None
        return {v: self._terms.decode(i) for v, i in binding.items() if i}

    def _joined(
        self, steps: list[tuple[EventCondition, tuple[Var, ...]]], at: int, events: Events,
        binding: Binding,
    ) -> Iterator[tuple[Events, Binding]]:  # fmt: skip
        if at == len(steps):
            yield events, binding
            return
        condition, shared = steps[at]
        for event, bound in list(self.memories[condition.name].find(shared, binding)):
            named = {**events, condition.name: event}
            yield from self._joined(steps, at + 1, named, {**binding, **bound})

    def _with_facts(self, events: Events, binding: Binding) -> Iterator[Binding]:
        """The match with each row of facts that has held since before its first event."""
        facts = self._facts
        if facts is None:
            yield binding
            return
        first = min(event.since for event in events.values())
        key = tuple(binding[v] for v in facts.shared)
        for row in facts.older(key, first):
            yield {**binding, **dict(zip(facts.variables, row, strict=True))}


def _divided(rule: Rule) -> tuple[Test, dict[str, Test]]:
    """The tests between the events that have to happen, and those of each that must not."""
    parts = rule.test.tests if isinstance(rule.test, Both) else (rule.test,)
    denied = [condition.name for condition in rule.negative]
    plain = tuple(part for part in parts if not named(part).intersection(denied))
    return Both(plain), {
        name: Both(tuple(part for part in parts if name in named(part))) for name in denied
    }


def _order(first: EventCondition, rule: Rule) -> list[tuple[EventCondition, tuple[Var, ...]]]:
    """The other conditions, each after those it shares most with, and what it is looked up by."""
    known = set(first.variables)
    rest = [condition for condition in rule.positive if condition is not first]
    order = []
    while rest:
        following = max(rest, key=lambda c: len(known.intersection(c.variables)))
        rest.remove(following)
        order.append((following, tuple(v for v in following.variables if v in known)))
        known.update(following.variables)
    return order
