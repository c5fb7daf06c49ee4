"""Matcher: one rule at work. Events come, and complete matches with those that came before.

Each condition has a memory of the events that may still find partners. An event that matches a
condition is joined with the memories of the others, one after the other, and then with the facts
that have held since before the first of these events. It is the last event of the matches that it
completes; so each match is found once, and depends on nothing but the rule's own conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import longer
from graphtide.rules.absence import Absence
from graphtide.rules.fact_memory import make_facts
from graphtide.rules.found import Found, Shape, completed
from graphtide.rules.happening import ConditionMatcher
from graphtide.rules.kernel.direct import direct
from graphtide.rules.kernel.join import take_hits
from graphtide.rules.kernel.layout import END, ENOUGH, EVENT, ROOM
from graphtide.rules.memory import RuleMemory, make_work
from graphtide.rules.rule_plan import make_plan
from graphtide.rules.temporal import Both, holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.fact_memory import FactMemory
    from graphtide.rules.memory import Mark
    from graphtide.rules.model import EventType, Rule

Hits = Mapping[int, "Ints"]
"""By number of a type, the places of the events that match it, with their parameters."""

State = tuple["Mark", int]


class Matcher:
    """The memories of a rule's conditions."""

    def __init__(
        self, rule: Rule, facts: FactMemory | None, terms: TermDictionary,
        types: Mapping[EventType, int], longest: int = 0,
    ) -> None:  # fmt: skip
        planned = make_plan(rule, longest)
        self.rule = rule
        self.facts = facts
        self.shape = Shape(rule, planned.variables)
        self._terms = terms
        self._plan = planned.plan
        self._checks = planned.checks
        self._has_checks = planned.checks != Both(())
        self._memory = RuleMemory(self._plan)
        self._work = make_work(self._plan, len(planned.variables), planned.depth)
        self._no_facts = make_facts(1, 0)
        number = {v: at for at, v in enumerate(planned.variables)}
        width = self._plan.variables
        self._conditions = [
            (types[c.type], ConditionMatcher(c, at, number, width, terms))
            for at, c in enumerate(rule.positive)
        ]
        self._rows: Ints = np.empty((16, 1 + len(planned.variables)), np.int32)
        self._spans: Longs = np.empty((16, 4 * len(rule.positive)), np.int64)
        self._state = np.zeros(3, np.int64)
        self._loop: Callable[..., None] | None = None
        self._absence = None
        if rule.negative:
            self._absence = Absence(self.shape, planned, facts, terms, types)
        self._nothing = completed(self._rows[:0], self._spans[:0], np.empty(0, np.int64))

    @property
    def kept(self) -> int:
        """How many events wait, over all conditions."""
        return self._memory.live + (self._absence.kept if self._absence else 0)

    @property
    def most_kept(self) -> int:
        """How many of the events that have to happen have waited at once."""
        return self._memory.peak

    def mark(self) -> State:
        """What is remembered, to come back to: from here on, changes are noted."""
        return self._memory.mark(), self._absence.mark() if self._absence else 0

    def back_to(self, state: State) -> None:
        """Come back to what was remembered."""
        self._memory.back_to(state[0])
        if self._absence is not None:
            self._absence.back_to(state[1])

    def release(self) -> None:
        """Nobody comes back to any state: note no more."""
        self._memory.release()
        if self._absence is not None:
            self._absence.release()

    def begin(self) -> None:
        """A cascade begins: the facts of now are those to come back to."""
        if self.facts is not None:
            self.facts.begin()

    def track(self) -> None:
        """Note from here on how the facts change."""
        if self.facts is not None:
            self.facts.track()

    def take_back(self, state: State) -> None:
        """Come back to a state in which the graph was as it is again, and so were the facts."""
        self.back_to(state)
        if self.facts is not None:
            self.facts.take_back()

    def catch_up(self) -> bool:
        """Take in what has changed in the facts; whether anything has."""
        return self.facts is not None and self.facts.catch_up()

    def looks_changed(self) -> bool:
        """Whether the facts have changed; they are taken in later."""
        return self.facts is not None and self.facts.looks_changed()

    def advance(self, now: int) -> Found:
        """Time goes on: let go the events that nothing from now on can need.

        The matches that waited for nothing to happen, and for which nothing can any more.
        """
        self._memory.pass_time(now)
        if self._absence is None:
            return self._nothing
        self.catch_up()
        return self._absence.advance(now, self._nothing)

    def take(self, hits: Hits, events: Longs) -> Found:
        """Take in events; the matches that they complete, in the order in which they are found."""
        rows = self._hits(hits)
        if not len(rows) and self._absence is None:
            return self._nothing
        written = self._join(rows, events)
        found = self._nothing
        if written:
            joined, spans = self._rows[:written].copy(), self._spans[:written].copy()
            found = completed(joined, spans, events[:, END])
            if self._has_checks:
                found = self._checked(found)
        return found if self._absence is None else self._absence.take(hits, events, found)

    def retract(self, order: int) -> None:
        """Forget an event: nothing matches it any more."""
        self._memory.remove(order)
        if self._absence is not None:
            self._absence.retract(order)

    def _hits(self, hits: Hits) -> Ints:
        """The hits of all conditions, in order of events, then of conditions."""
        found = [matcher.rows(hits[type_]) for type_, matcher in self._conditions if type_ in hits]
        parts = [rows for rows in found if len(rows)]
        if len(parts) < 2:
            return parts[0] if parts else self._rows[:0]
        rows = np.concatenate(parts)
        return rows[np.argsort(rows[:, EVENT], kind="stable")]

    def _join(self, hits: Ints, events: Longs) -> int:
        """Join hits with what waits, and let them wait; how many matches were written."""
        state = self._state
        state[:] = 0
        while True:
            facts = self._no_facts if self.facts is None else self.facts.facts
            given = (
                self._plan, self._memory.arrays, facts, self._work, hits, events, self._rows,
                self._spans, state,
            )  # fmt: skip
            if self._loop is None:
                self._loop = direct(take_hits, *given)
            self._loop(*given)
            position, written, room = state.tolist()
            if position == len(hits):
                return int(written)
            if room:
                self._memory.make_room(room)
                state[ROOM] = ENOUGH
            else:
                self._rows = longer(self._rows)
                spans = np.empty((2 * len(self._spans), self._spans.shape[1]), np.int64)
                spans[: len(self._spans)] = self._spans
                self._spans = spans

    def _checked(self, found: Found) -> Found:
        """The matches whose values pass the tests, too."""
        decode = self._terms.decode
        kept = []
        for place in range(len(found)):
            match = self.shape.match(found, place)
            spans = {name: event.span for name, event in match.events.items()}
            values = {v: decode(i) for v, i in match.binding.items() if i}
            if holds(self._checks, spans, values):
                kept.append(place)
        return found.chosen(np.array(kept, np.int64))
