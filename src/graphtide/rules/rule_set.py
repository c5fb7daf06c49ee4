"""RuleSet: the rules of an engine, side by side: events go to all of them, and so does time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.rules.agenda import RuleMatches
from graphtide.rules.kernel.layout import END, ORDER, SINCE, START
from graphtide.rules.matching.matcher import Matcher
from graphtide.rules.matching.memory import FactMemory
from graphtide.rules.matching.types import TypeIndex, TypeMatcher

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from graphtide.engine.events import EventBatch
    from graphtide.engine.watch import Query
    from graphtide.rules.agenda import PendingFiring
    from graphtide.rules.effects import GraphConnection
    from graphtide.rules.matching.matcher import State
    from graphtide.rules.model import EventType, Rule


# --- RuleEntry: a rule at work in an engine, and what to do when it fires.


class Action(Protocol):
    """What to do when a rule fires."""

    def carry_out(self, turn: PendingFiring) -> None:
        """Do it; it may look at as little of the match as it needs."""


@dataclass(slots=True, eq=False)
class RuleEntry:
    """A rule at work: its number in order of declaration, its memories, facts and action."""

    number: int
    matcher: Matcher
    facts: Query | None
    action: Action | None


RuleSavepoints = dict[str, "State"]
"""What each rule remembers, to come back to."""


class RuleSet:
    """Rules by name, with the types of events that they ask for.

    `order` counts the events that came. While `held`, states to come back to stay good.
    """

    def __init__(self, graph: GraphConnection, max_duration: int) -> None:
        self.order = 0
        self.held = 0
        self.max_duration = max_duration
        self._graph = graph
        self._rules: dict[str, RuleEntry] = {}
        self._types = TypeIndex()
        self._numbers: dict[EventType, int] = {}
        self._asking: list[list[RuleEntry]] = []
        self._added = 0
        self._seen = -1
        self._marked = False
        self._tracked = False

    def __iter__(self) -> Iterator[RuleEntry]:
        return iter(self._rules.values())

    def __getitem__(self, name: str) -> RuleEntry:
        return self._rules[name]

    def names(self) -> list[str]:
        """The names of all rules."""
        return list(self._rules)

    @property
    def retained(self) -> int:
        """How many events are kept, over all conditions of all rules."""
        return sum(each.matcher.retained for each in self)

    @property
    def max_retained(self) -> int:
        """How many events the rules have kept at once, each at its worst (without NO EVENT)."""
        return sum(each.matcher.max_retained for each in self)

    def add(self, rule: Rule, action: Action | None) -> None:
        """Put a rule to work; it sees the facts of now, and the events from now on."""
        if rule.name in self._rules:
            raise GraphtideError(f"there is a rule named {rule.name} already")
        for condition in rule.events:
            if condition.type not in self._numbers:
                self._numbers[condition.type] = len(self._asking)
                self._asking.append([])
                self._types.add(TypeMatcher(condition.type, self._graph.terms))
        watch = None
        if rule.facts is not None:
            watch = self._graph.watch(rule.facts, f"facts of {rule.name}")
        facts = None if watch is None else _fact_memory(rule, watch)
        matcher = Matcher(rule, facts, self._graph.terms, self._numbers, self.max_duration)
        entry = RuleEntry(self._added, matcher, watch, action)
        self._added += 1
        self._rules[rule.name] = entry
        for type_ in {self._numbers[condition.type] for condition in rule.events}:
            self._asking[type_].append(entry)
        self._seen = -1

    def remove(self, name: str) -> None:
        """End a rule."""
        if name not in self._rules:
            raise GraphtideError(f"there is no rule named {name}")
        gone = self._rules.pop(name)
        for asking in self._asking:
            if gone in asking:
                asking.remove(gone)
        if gone.facts is not None:
            gone.facts.close()

    # --- events, facts and time ---

    def take(self, events: EventBatch, since: int) -> list[RuleMatches]:
        """Let all rules take in events that came after so many transactions; what they complete."""
        many, order = len(events.ends), self.order
        self.order += many
        hits = self._types.hits(events)
        if many > 1:
            columns = np.empty((many, 4), np.int64)
            columns[:, START], columns[:, END] = events.starts, events.ends
            columns[:, ORDER] = np.arange(order, order + many)
            columns[:, SINCE] = since
            asking = list(self._rules.values())
        elif hits:
            start, end = events.starts.tolist(), events.ends.tolist()
            columns = np.array([[*start, *end, order, since]], np.int64)
            asking = self._asking_for(hits)
        else:
            return []
        found = ((each, each.matcher.take(hits, columns)) for each in asking)
        return [RuleMatches(each, matches) for each, matches in found if len(matches.rows)]

    def _asking_for(self, types: Collection[int]) -> list[RuleEntry]:
        """The rules that ask for some types: one event concerns no others."""
        if len(types) == 1:
            return self._asking[next(iter(types))]
        found = {each.number: each for type_ in types for each in self._asking[type_]}
        return [found[number] for number in sorted(found)]

    def catch_up(self) -> None:
        """Take in what transactions have changed in the facts."""
        done = self._graph.transactions
        if done != self._seen:
            for each in self._rules.values():
                each.matcher.catch_up()
            self._seen = done

    def look_changed(self) -> bool:
        """Whether facts have changed that were not taken in yet."""
        return any(each.matcher.looks_changed() for each in self._rules.values())

    def advance(self, to: int) -> list[RuleMatches]:
        """Time goes on: what waited for nothing to happen."""
        return [RuleMatches(each, each.matcher.advance(to)) for each in self._rules.values()]

    def retract(self, order: int) -> None:
        """Forget an event."""
        for each in self._rules.values():
            each.matcher.retract(order)

    # --- ways back ---

    def begin(self) -> None:
        """A cascade begins: the facts of now are those to come back to, states are not."""
        if self._tracked:
            for each in self._rules.values():
                each.matcher.begin()
            self._tracked = False
        if self._marked and not self.held:
            for each in self._rules.values():
                each.matcher.release()
            self._marked = False

    def track(self) -> None:
        """Note from here on how the facts change."""
        for each in self._rules.values():
            each.matcher.track()
        self._tracked = True

    def savepoint(self) -> RuleSavepoints:
        """What is remembered, to come back to; the facts are not part of it."""
        self._marked = True
        return {name: each.matcher.savepoint() for name, each in self._rules.items()}

    def rollback(self, states: RuleSavepoints, order: int) -> None:
        """Come back to what was remembered when so many events had come."""
        for name, state in states.items():
            if name in self._rules:
                self._rules[name].matcher.rollback(state)
        self.order = order

    def rollback_all(self, states: RuleSavepoints) -> None:
        """As `rollback`, where the graph is again as it was, and so the facts are, too."""
        for name, state in states.items():
            if name in self._rules:
                self._rules[name].matcher.rollback_all(state)


def _fact_memory(rule: Rule, watch: Query) -> FactMemory:
    """The facts of a rule, looked up by the variables that they share with its events."""
    bound = {v for condition in rule.positive for v in condition.variables}
    variables = () if rule.facts is None else rule.facts.variables
    shared = [v for v in variables if v in bound]
    alone = [v for v in variables if v not in bound]
    return FactMemory(watch, [*shared, *alone], len(shared))
