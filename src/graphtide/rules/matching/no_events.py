"""The conditions NO EVENT of a rule: which events match them, and which matches these cancel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.rules.expiry import distances_of, end_distances, rule_retentions
from graphtide.rules.kernel.layout import CONDITION, END, EVENT, HIT_VALUES, ORDER, SINCE, START
from graphtide.rules.matching import types as kinds
from graphtide.rules.temporal import Span, has_check, holds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.matching.matcher import RulePlan
    from graphtide.rules.model import EventCondition, EventType


@dataclass(frozen=True, slots=True)
class PendingMatch:
    """A match that fires unless a forbidden event comes up to a time."""

    match: kinds.Match
    row: tuple[int, ...]
    spans: tuple[int, ...]
    until: float


class Denial(NamedTuple):
    """An event that a NO EVENT condition forbids: its values, and when it came."""

    condition: EventCondition
    event: kinds.MatchedEvent
    binding: kinds.Binding


class NoEvents:
    """The conditions NO EVENT of a rule: which events match them, and which matches these cancel.

    `known` has by condition the variables that it shares with a match, `number` the columns of all
    variables, `bounds` the distances between events in its test.
    """

    def __init__(
        self, shape: kinds.Shape, planned: RulePlan, terms: TermDictionary,
        types: Mapping[EventType, int],
    ) -> None:  # fmt: skip
        rule = shape.rule
        self.shape = shape
        self.tests = planned.denied
        self.conditions = rule.negative
        self._reading = {name for name, test in planned.denied.items() if has_check(test)}
        names, max_duration = [condition.name for condition in rule.positive], planned.max_duration
        self.bounds = {
            name: end_distances([*names, name], test, max_duration)
            if max_duration
            else distances_of(test)
            for name, test in planned.denied.items()
        }
        self.retained = rule_retentions(rule, max_duration)
        self._terms = terms
        own = {v for c in rule.negative for v in c.variables}
        variables = tuple(dict.fromkeys((*planned.variables, *own)))
        self.number = {v: at for at, v in enumerate(variables)}
        self._matchers = [
            (types[c.type], kinds.ConditionMatcher(c, at, self.number, len(variables), terms))
            for at, c in enumerate(rule.negative)
        ]
        bound = {v for c in rule.positive for v in c.variables}
        self.known = {c.name: tuple(v for v in c.variables if v in bound) for c in rule.negative}
        self._none: Ints = np.empty((0, HIT_VALUES + len(variables)), np.int32)

    def hits(self, hits: Mapping[int, Ints]) -> Ints:
        """The forbidden events as rows of hits, in order of events, then of conditions."""
        found = [matcher.rows(hits[type_]) for type_, matcher in self._matchers if type_ in hits]
        if len(found) < 2:
            return found[0] if found else self._none
        rows = np.concatenate(found)
        return rows[np.argsort(rows[:, EVENT], kind="stable")]

    def denial(self, number: int, values: Sequence[int], event: Sequence[int]) -> Denial:
        """A forbidden event, given the number of its condition and the values of all variables."""
        condition = self.conditions[number]
        binding = {v: values[self.number[v]] for v in condition.variables}
        span = Span(event[START], event[END])
        return Denial(condition, kinds.MatchedEvent(span, event[ORDER], event[SINCE]), binding)

    def denials(self, hits: Ints, events: Longs) -> Iterator[tuple[int, Denial]]:
        """Forbidden events with their indices, decoded."""
        for row in hits.tolist():
            event = events[row[EVENT]].tolist()
            yield row[EVENT], self.denial(row[CONDITION], row[HIT_VALUES:], event)

    def cancels(self, denial: Denial, match: kinds.Match) -> bool:
        """Whether a forbidden event cancels a match."""
        name, binding = denial.condition.name, denial.binding
        if any(binding[v] != match.binding[v] for v in self.known[name]):
            return False
        return self.forbids(denial, match)

    def forbids(self, denial: Denial, match: kinds.Match) -> bool:
        """Whether a forbidden event that agrees with a match cancels it, by times and values."""
        name = denial.condition.name
        spans = {other: each.span for other, each in match.events.items()}
        spans[name] = denial.event.span
        values: dict[Var, Term] = {}
        if name in self._reading:
            both = {**denial.binding, **match.binding}
            values = {v: self._terms.decode(i) for v, i in both.items() if i}
        return holds(self.tests[name], spans, values)
