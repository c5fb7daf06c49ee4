"""Matcher: the matches of one rule, found incrementally.

Each condition has a memory of the events that may still find partners. An event that matches a
condition is joined with the memories of the other conditions, one after the other, and then with
the facts that have held since before the first of these events. It is the last event of the
matches that it completes, so each match is found once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphtide.kernel.batch import Ints, Longs, longer
from graphtide.limits import allowance
from graphtide.rules import temporal
from graphtide.rules.expiry import rule_retentions
from graphtide.rules.kernel import layout
from graphtide.rules.kernel.join import take_hits
from graphtide.rules.kernel.types import direct
from graphtide.rules.matching.absence import Absence
from graphtide.rules.matching.memory import FactMemory, RuleMemory, Savepoint, make_facts, make_work
from graphtide.rules.matching.no_events import NoEvents
from graphtide.rules.matching.types import ConditionMatcher, MatchedEvent, Matches, Shape, completed
from graphtide.rules.temporal import Span

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.matching.types import Binding, Match
    from graphtide.rules.model import EventCondition, EventType, Rule


MAX_RETAINED = 1 << 16
"""Rows of output space that are retained from one call to the next."""

Steps = list[tuple["EventCondition", tuple["Var", ...]]]
"""Conditions in join order, each with the variables of its index."""


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule's variables in order (those of facts alone come last), and the arrays of its plan.

    `checks` are the tests that read values, `denied` the tests of each NO EVENT. No event lasts for
    more than `max_duration` ticks.
    """

    variables: tuple[Var, ...]
    plan: layout.PlanArrays
    depth: int
    checks: temporal.Test
    denied: dict[str, temporal.Test]
    max_duration: int = 0


@lru_cache(maxsize=1024)
def make_plan(rule: Rule, max_duration: int = 0) -> RulePlan:
    """Plan a rule: number its variables and conditions, order its joins.

    Nobody writes to the arrays: many graphs may run the rule.
    """
    conditions = rule.positive
    event_variables = tuple(dict.fromkeys(v for c in conditions for v in c.variables))
    facts = () if rule.facts is None else rule.facts.variables
    shared = tuple(v for v in facts if v in event_variables)
    alone = tuple(v for v in facts if v not in event_variables)
    number = {v: at for at, v in enumerate((*event_variables, *alone))}
    orders = [join_order(c, rule) for c in conditions]
    place = {c.name: at for at, c in enumerate(conditions)}
    indexes = list(dict.fromkeys((place[c.name], key) for order in orders for c, key in order))
    plain, denied = _divided(rule)
    timed = [part for part in plain if not temporal.has_check(part)]
    ready, tests = _ready(timed, orders, conditions)
    code = [temporal.instructions(part, place) for part in timed]
    ends = np.cumsum([0, *map(len, code)])
    retained = rule_retentions(rule, max_duration)
    plan = layout.PlanArrays(
        steps=layout.table([[place[c.name] for c, _ in order] for order in orders]),
        lookups=layout.table([[indexes.index((place[c.name], k)) for c, k in o] for o in orders]),
        keys=layout.lists([[number[v] for v in key] for _, key in indexes]),
        indexes=layout.lists([[i for i, (c, _) in enumerate(indexes) if c == at]
                        for at in range(len(conditions))]),
        bound=layout.lists([[number[v] for v in c.variables] for c in conditions]),
        ready=ready,
        tests=tests,
        parts=np.column_stack([ends[:-1], ends[1:]]).astype(np.int32),
        code=np.array([step for part in code for step in part], np.int64).reshape(-1, 5),
        retention=np.array(
            [layout.whole_ticks(retained[c.name].ticks) for c in conditions], np.int64
        ),
        fact_key=np.array([number[v] for v in shared], np.int32),
        fact_columns=np.array([number[v] for v in (*shared, *alone)], np.int32),
        variables=len(event_variables),
    )  # fmt: skip
    checks = temporal.AllTests(tuple(part for part in plain if temporal.has_check(part)))
    depth = 1 + max(map(len, code), default=0)
    return RulePlan((*event_variables, *alone), plan, depth, checks, denied, max_duration)


def join_order(first: EventCondition, rule: Rule) -> Steps:
    """The other conditions, greedily by shared variables, with those of their indexes."""
    known = set(first.variables)
    rest = [condition for condition in rule.positive if condition is not first]
    order: Steps = []
    while rest:
        following = max(rest, key=lambda c: len(known.intersection(c.variables)))
        rest.remove(following)
        order.append((following, tuple(v for v in following.variables if v in known)))
        known.update(following.variables)
    return order


def _divided(rule: Rule) -> tuple[list[temporal.Test], dict[str, temporal.Test]]:
    """The tests between events, and those of each NO EVENT."""
    parts = temporal.conjuncts(rule.test)
    denied = [condition.name for condition in rule.negative]
    plain = [part for part in parts if not temporal.named(part).intersection(denied)]
    return plain, {
        name: temporal.AllTests(tuple(part for part in parts if name in temporal.named(part)))
        for name in denied
    }


def _ready(
    tests: Sequence[temporal.Test], orders: Sequence[Steps], conditions: Sequence[EventCondition]
) -> tuple[Ints, Ints]:
    """Which tests can be evaluated after the event itself, and after each further join."""
    ranges = np.zeros((len(conditions), len(conditions), 2), np.int32)
    listed: list[int] = []
    for at, (first, order) in enumerate(zip(conditions, orders, strict=True)):
        known: set[str] = set()
        for joined, condition in enumerate([first, *(c for c, _ in order)]):
            before = set(known)
            known.add(condition.name)
            begin = len(listed)
            listed += [
                number
                for number, test in enumerate(tests)
                if temporal.named(test) <= known
                and (not joined or not temporal.named(test) <= before)
            ]
            ranges[at, joined] = begin, len(listed)
    return ranges, np.array(listed, np.int32)


Hits = Mapping[int, "Ints"]
"""By number of a type, the indices of its events, with their parameters."""


class MatcherSavepoint(NamedTuple):
    """A savepoint of the memory, and of NO EVENT."""

    memory: Savepoint
    absence: int


class Matcher:
    """The memories of a rule's conditions, and the joins between them."""

    def __init__(
        self, rule: Rule, facts: FactMemory | None, terms: TermDictionary,
        types: Mapping[EventType, int], max_duration: int = 0,
    ) -> None:  # fmt: skip
        planned = make_plan(rule, max_duration)
        self.rule = rule
        self.facts = facts
        self.shape = Shape(rule, planned.variables)
        self._terms = terms
        self._plan = planned.plan
        self._checks = planned.checks
        self._has_checks = planned.checks != temporal.AllTests(())
        self._memory = RuleMemory(self._plan)
        self._work = make_work(self._plan, len(planned.variables), planned.depth)
        self._no_facts = make_facts(1, 0)
        number = {v: at for at, v in enumerate(planned.variables)}
        width = self._plan.variables
        self._conditions = [
            (types[c.type], ConditionMatcher(c, at, number, width, terms))
            for at, c in enumerate(rule.positive)
        ]
        self._out: tuple[Ints, Longs] = (
            np.empty((16, 1 + len(planned.variables)), np.int32),
            np.empty((16, 4 * len(rule.positive)), np.int64),
        )
        self._state = np.zeros(7, np.int64)
        self._loop: Callable[..., None] | None = None
        self.absence: Absence | None = None
        if rule.negative:
            no_events = NoEvents(self.shape, planned, terms, types)
            self.absence = Absence(no_events, facts, self._plan.fact_columns)
        self._nothing = completed(self._out[0][:0], self._out[1][:0], np.empty(0, np.int64))

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of events, facts and pending matches; constants are pinned."""
        yield from self._memory.held_ids()
        if self.facts is not None:
            yield from self.facts.held_ids()
        if self.absence is not None:
            yield from self.absence.held_ids()

    @property
    def retained(self) -> int:
        """How many events and pending matches are retained."""
        return self._memory.live + (self.absence.retained if self.absence else 0)

    @property
    def max_retained(self) -> int:
        """The most events that were retained at once (without NO EVENT)."""
        return self._memory.peak

    def dump(self, since: float) -> dict[str, Any]:
        """The memories; activations need facts that hold since before a number of transactions."""
        memory = self._memory.dump()
        since = min([since, *memory["when"][:, layout.SINCE].tolist()])
        if self.absence is not None:
            since = min(since, self.absence.first_since())
        return {
            "memory": memory,
            "facts": None if self.facts is None else self.facts.dump(since),
            "absence": None if self.absence is None else self.absence.dump(),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with saved memories."""
        self._memory.load(saved["memory"])
        if self.facts is not None:
            self.facts.load(saved["facts"])
        if self.absence is not None:
            self.absence.load(saved["absence"])

    def savepoint(self) -> MatcherSavepoint:
        """A savepoint of the memories: changes are journaled from here on."""
        absence = self.absence.savepoint() if self.absence else 0
        return MatcherSavepoint(self._memory.savepoint(), absence)

    def rollback(self, to: MatcherSavepoint) -> None:
        """Restore the memories of a savepoint."""
        self._memory.rollback(to.memory)
        if self.absence is not None:
            self.absence.rollback(to.absence)

    def restart(self) -> MatcherSavepoint:
        """Discard all savepoints; a new one."""
        absence = 0 if self.absence is None else self.absence.restart()
        return MatcherSavepoint(self._memory.restart(), absence)

    def begin(self) -> None:
        """A cascade begins."""
        if self.facts is not None:
            self.facts.begin()

    def track(self) -> None:
        """Journal the changes of facts from here on."""
        if self.facts is not None:
            self.facts.track()

    def rollback_all(self, to: MatcherSavepoint) -> None:
        """Restore memories and facts, after the graph itself was rolled back."""
        self.rollback(to)
        if self.facts is not None:
            self.facts.rollback()

    def catch_up(self) -> bool:
        """Apply the changes of the facts; whether there were any."""
        return self.facts is not None and self.facts.catch_up()

    def facts_hold(self, match: Match) -> bool:
        """Whether the facts of a match have held since before its first event, and still do."""
        self.catch_up()
        return self.facts is None or self.facts.hold_for(match)

    def looks_changed(self) -> bool:
        """Whether the facts have changed since `catch_up`."""
        return self.facts is not None and self.facts.looks_changed()

    @property
    def waits(self) -> bool:
        """Whether matches wait until a NO EVENT is certain."""
        return self.absence is not None

    def next_deadline(self) -> float:
        """The first time with which the wait of a match ends."""
        return inf if self.absence is None else self.absence.next_deadline()

    def pass_time(self, now: int) -> None:
        """Nothing of an earlier time comes any more."""
        self._memory.pass_time(now)
        if self.absence is not None:
            self.absence.pass_time(now)

    def advance(self, now: int) -> Matches:
        """Move time on; the matches whose NO EVENT can no longer happen.

        What their firings cause happens at the time before, so events of that are retained.
        """
        self._memory.pass_time(now - 1)
        if self.absence is None:
            return self._nothing
        self.catch_up()
        return self.absence.advance(now, self._nothing)

    def take(self, hits: Hits, events: Longs) -> Matches:
        """Match events; the matches that they complete, in the order in which they are found."""
        rows = self._hits(hits)
        if not len(rows) and self.absence is None:
            return self._nothing
        written = self._join(rows, events)
        found = self._nothing
        if written:
            joined, spans = self._out[0][:written].copy(), self._out[1][:written].copy()
            if written > MAX_RETAINED:
                self._out = joined[:16].copy(), spans[:16].copy()
            found = completed(joined, spans, events[:, layout.END])
            if self._has_checks:
                found = self._checked(found)
        return found if self.absence is None else self.absence.take(hits, events, found)

    def events(self, index: int) -> Iterator[tuple[MatchedEvent, Binding]]:
        """The retained events of a condition EVENT, given by its index, oldest first."""
        bound = self.rule.positive[index].variables
        for values, (start, end, order, since) in self._memory.events(index):
            every = dict(zip(self.shape.variables, values, strict=False))
            yield MatchedEvent(Span(start, end), order, since), {v: every[v] for v in bound}

    def retract(self, order: int) -> None:
        """Remove an event from the memories."""
        self._memory.remove(order)
        if self.absence is not None:
            self.absence.retract(order)

    def _hits(self, hits: Hits) -> Ints:
        """The hits of all conditions, in order of events, then of conditions."""
        found = [matcher.rows(hits[type_]) for type_, matcher in self._conditions if type_ in hits]
        parts = [rows for rows in found if len(rows)]
        if len(parts) < 2:
            return parts[0] if parts else self._out[0][:0]
        rows = np.concatenate(parts)
        return rows[np.argsort(rows[:, layout.EVENT], kind="stable")]

    def _join(self, hits: Ints, events: Longs) -> int:
        """Join hits with the memories, then retain them; the number of matches written."""
        state = self._state
        state[:] = 0
        state[layout.LEFT] = layout.STEPS
        while True:
            facts = self._no_facts if self.facts is None else self.facts.facts
            given = (
                self._plan, self._memory.arrays, facts, self._work, hits, events, *self._out, state,
            )  # fmt: skip
            if self._loop is None:
                self._loop = direct(take_hits, *given)
            self._loop(*given)
            position, written, room = state[:3].tolist()
            if position == len(hits):
                return int(written)
            if room in (layout.MEMORY_FULL, layout.JOURNAL_FULL):
                self._memory.make_room(room)
            elif room == layout.OUTPUT_FULL:
                rows, spans = self._out
                self._out = longer(rows), longer(spans)  # one assignment: the loop writes to both
            else:
                allowance().check_time()
                state[layout.LEFT] = layout.STEPS
            state[layout.ROOM] = layout.ENOUGH

    def _checked(self, found: Matches) -> Matches:
        """The matches whose values pass the checks."""
        decode = self._terms.decode
        passing = []
        for row in range(len(found)):
            match = self.shape.match(found, row)
            spans = {name: event.span for name, event in match.events.items()}
            values = {v: decode(i) for v, i in match.binding.items() if i}
            if temporal.holds(self._checks, spans, values):
                passing.append(row)
        return found.chosen(np.array(passing, np.int64))
