"""RuleSet: the rules of an engine; each event, and each tick of the clock, goes to all of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.rules.agenda import PendingFiring, RuleMatches
from graphtide.rules.kernel.layout import END, ORDER, SINCE, START
from graphtide.rules.matching.matcher import Matcher, MatcherSavepoint
from graphtide.rules.matching.memory import FactMemory
from graphtide.rules.matching.types import TypeIndex, TypeMatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from graphtide.engine.events import EventBatch
    from graphtide.engine.transaction import Protected
    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.effects import GraphConnection
    from graphtide.rules.model import EventType, Rule


class Action(Protocol):
    """What a rule does when it fires."""

    def carry_out(self, firing: PendingFiring) -> None:
        """Do it."""


@dataclass(slots=True, eq=False)
class RuleEntry:
    """A rule of an engine: its number in order of declaration, matcher, facts and action."""

    number: int
    matcher: Matcher
    facts: Query | None
    action: Action | None

    def savepoint(self) -> MatcherSavepoint:
        """A piece of input comes: what `roll_back` needs."""
        return self.matcher.restart()

    def roll_back(self, to: MatcherSavepoint) -> None:
        """A piece of input was interrupted: restore the memories."""
        self.matcher.rollback(to)


RuleSavepoints = dict[str, "MatcherSavepoint"]
"""A savepoint of each rule, by name."""


class RuleSet:
    """Rules by name, with the types of their events.

    `order` counts the events so far.
    """

    def __init__(self, graph: GraphConnection, max_duration: int) -> None:
        self.order = 0
        self.max_duration = max_duration
        self._graph = graph
        self._protect = graph.schedule.protect
        """Called before the memories of a rule change."""
        self._rules: dict[str, RuleEntry] = {}
        self._types = TypeIndex()
        self._numbers: dict[EventType, int] = {}
        self._by_type: list[list[RuleEntry]] = []
        self._waiting: list[RuleEntry] = []
        self._added = 0
        self._seen = -1
        self._journaling = False

    def __iter__(self) -> Iterator[RuleEntry]:
        return iter(self._rules.values())

    def __getitem__(self, name: str) -> RuleEntry:
        return self._rules[name]

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids that the memories of all rules hold."""
        for each in self:
            yield from each.matcher.held_ids()

    def names(self) -> list[str]:
        """The names of all rules."""
        return list(self._rules)

    @property
    def type_ids(self) -> list[int]:
        """The ids of the types of events that rules have conditions on."""
        return [type_.id for type_ in self._numbers]

    @property
    def retained(self) -> int:
        """How many events and pending matches all rules retain."""
        return sum(each.matcher.retained for each in self)

    @property
    def max_retained(self) -> int:
        """The sum of the most events that each rule has retained at once (without NO EVENT)."""
        return sum(each.matcher.max_retained for each in self)

    def add(self, rule: Rule, action: Action | None) -> None:
        """Add a rule; it sees the current facts, and the events from now on."""
        if rule.name in self._rules:
            raise GraphtideError(f"there is a rule named {rule.name} already")
        for condition in rule.events:
            if condition.type not in self._numbers:
                self._numbers[condition.type] = len(self._by_type)
                self._by_type.append([])
                self._types.add(TypeMatcher(condition.type, self._graph.terms))
        watch = None
        if rule.facts is not None:
            watch = self._graph.watch(rule.facts, f"facts of {rule.name}")
        schedule = self._graph.schedule
        facts = None if watch is None else _fact_memory(rule, watch, schedule.protect)
        matcher = Matcher(rule, facts, self._graph.terms, self._numbers, self.max_duration)
        entry = RuleEntry(self._added, matcher, watch, action)
        self._added += 1
        self._rules[rule.name] = entry
        self._waiting = [each for each in self if each.matcher.waits]
        for type_ in {self._numbers[condition.type] for condition in rule.events}:
            self._by_type[type_].append(entry)
        self._seen = -1

    def remove(self, name: str) -> None:
        """Remove a rule, and end the standing query of its facts."""
        if name not in self._rules:
            raise GraphtideError(f"there is no rule named {name}")
        entry = self._rules.pop(name)
        self._waiting = [each for each in self if each.matcher.waits]
        for concerned in self._by_type:
            if entry in concerned:
                concerned.remove(entry)
        if entry.facts is not None:
            entry.facts.close()

    def dump(self, since: Mapping[str, int]) -> dict[str, Any]:
        """The memories of all rules; see `Matcher.dump`."""
        rules = {
            name: each.matcher.dump(since.get(name, inf)) for name, each in self._rules.items()
        }
        return {"order": self.order, "rules": rules}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with saved memories."""
        self.order = saved["order"]
        for name, each in self._rules.items():
            each.matcher.load(saved["rules"][name])

    # --- events, facts and time ---

    def take(self, events: EventBatch, since: int) -> list[RuleMatches]:
        """Match events that came after a number of transactions; the matches that they complete."""
        many, order = len(events.ends), self.order
        self.order += many
        if not self._rules:
            return []
        hits = self._types.hits(events)
        if many > 1:
            columns = np.empty((many, 4), np.int64)
            columns[:, START], columns[:, END] = events.starts, events.ends
            columns[:, ORDER] = np.arange(order, order + many)
            columns[:, SINCE] = since
            concerned = list(self._rules.values())
        elif hits:
            start, end = events.starts.tolist(), events.ends.tolist()
            columns = np.array([[*start, *end, order, since]], np.int64)
            concerned = self._rules_of(hits)
        else:
            return []
        for each in concerned:
            self._protect(each)
        found = ((each, each.matcher.take(hits, columns)) for each in concerned)
        return [RuleMatches(each, matches) for each, matches in found if len(matches.rows)]

    def _rules_of(self, types: Collection[int]) -> list[RuleEntry]:
        """The rules that have conditions of some types."""
        if len(types) == 1:
            return self._by_type[next(iter(types))]
        found = {each.number: each for type_ in types for each in self._by_type[type_]}
        return [found[number] for number in sorted(found)]

    def catch_up(self) -> None:
        """Apply the changes that transactions made to the facts."""
        done = self._graph.position
        if done != self._seen:
            for each in self._rules.values():
                each.matcher.catch_up()
            self._seen = done

    def look_changed(self) -> bool:
        """Whether facts have changed since `catch_up`."""
        return any(each.matcher.looks_changed() for each in self._rules.values())

    def next_deadline(self) -> float:
        """The first time with which the wait of a match for NO EVENT ends."""
        return min((each.matcher.next_deadline() for each in self._waiting), default=inf)

    def advance(self, to: int) -> list[RuleMatches]:
        """Move time on; the matches whose NO EVENT can no longer happen."""
        for each in self._rules.values():
            self._protect(each)
        found = ((each, each.matcher.advance(to)) for each in self._rules.values())
        return [RuleMatches(each, matches) for each, matches in found if len(matches.rows)]

    def pass_time(self, now: int) -> None:
        """Let all rules evict the events that nothing from a time on can match."""
        for each in self._rules.values():
            each.matcher.pass_time(now)

    def retract(self, order: int) -> None:
        """Remove an event from all memories."""
        for each in self._rules.values():
            self._protect(each)
            each.matcher.retract(order)

    # --- savepoints ---

    def begin(self) -> None:
        """A cascade begins: what facts were at the last one is not needed any more."""
        if self._journaling:
            for each in self._rules.values():
                each.matcher.begin()
            self._journaling = False

    def roll_back(self, order: int) -> None:
        """A piece of input was interrupted before which `order` events had come."""
        self.order, self._seen = order, -1

    def track(self) -> None:
        """Journal the changes of facts from here on."""
        for each in self._rules.values():
            each.matcher.track()
        self._journaling = True

    def savepoint(self) -> RuleSavepoints:
        """A savepoint of the memories; facts are not part of it."""
        for each in self._rules.values():
            self._protect(each)
        return {name: each.matcher.savepoint() for name, each in self._rules.items()}

    def rollback(self, states: RuleSavepoints, order: int) -> None:
        """Restore the memories of a savepoint, at which `order` events had come."""
        for name, state in states.items():
            if name in self._rules:
                self._rules[name].matcher.rollback(state)
        self.order = order

    def rollback_all(self, states: RuleSavepoints) -> None:
        """Restore memories and facts, after the graph itself was rolled back."""
        for name, state in states.items():
            if name in self._rules:
                self._rules[name].matcher.rollback_all(state)


def _fact_memory(rule: Rule, watch: Query, protect: Callable[[Protected], None]) -> FactMemory:
    """The facts of a rule, looked up by the variables that they share with its events."""
    bound = {v for condition in rule.positive for v in condition.variables}
    variables = () if rule.facts is None else rule.facts.variables
    shared = [v for v in variables if v in bound]
    alone = [v for v in variables if v not in bound]
    return FactMemory(watch, [*shared, *alone], len(shared), protect)
