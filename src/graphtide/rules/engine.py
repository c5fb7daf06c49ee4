"""RuleEngine: rules on a live graph, the events that come, and what happens then.

Events come one after the other; the clock is theirs, or is moved on by the caller. Each event goes
to every rule. The matches it completes are fired in order of priority, then of declaration, then of
values. What an action changes or emits is taken in before the next event, until nothing happens.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.engine.quads import quad_ids
from graphtide.errors import GraphtideError
from graphtide.rules.fact_memory import FactMemory
from graphtide.rules.firing import Firing
from graphtide.rules.happening import Happening, TypeMatcher
from graphtide.rules.matcher import Match, Matcher
from graphtide.rules.temporal import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.quads import ObjectLike, TermLike
    from graphtide.rules.happening import Ids
    from graphtide.rules.model import EventType, Rule

MOST_FIRINGS = 10_000
"""Firings that actions of one event may cause in turn, before that is called a loop."""

MOST_LISTED = 100_000
"""Firings that are kept to be looked at; all are counted."""


@dataclass(slots=True)
class Registered:
    """A rule at work, and what to do when it fires."""

    number: int
    matcher: Matcher
    action: Callable[[Firing], object] | None


@dataclass(frozen=True, slots=True)
class Moment:
    """Events that happen together: one, or all that come of one transaction.

    `since` is the number of transactions before them, if not all. `depth` is 0 for what comes from
    outside, and one more for what is caused by an action than for the cause of that.
    """

    events: tuple[tuple[Ids, ...], ...]
    span: Span
    depth: int
    since: int | None = None


class RuleEngine:
    """Rules over the facts of a graph and over events.

    >>> from graphtide import LiveGraph
    >>> engine = RuleEngine(LiveGraph())
    >>> engine.clock
    0
    """

    def __init__(self, graph: LiveGraph, *, most_firings: int = MOST_FIRINGS) -> None:
        self.graph = graph
        self.firings: deque[Firing] = deque(maxlen=MOST_LISTED)
        self.fired = 0
        self.depth = 0
        self._most = most_firings
        self._caused: deque[str] = deque(maxlen=100)
        self._count = 0
        self._rules: dict[str, Registered] = {}
        self._types: dict[EventType, TypeMatcher] = {}
        self._clock = 0
        self._order = 0
        self._due: deque[Moment] = deque()
        self._running = False

    @property
    def clock(self) -> int:
        """The time of now."""
        return self._clock

    @property
    def kept(self) -> int:
        """How many events are kept, over all conditions of all rules."""
        memories = (m for each in self._rules.values() for m in each.matcher.memories.values())
        return sum(map(len, memories))

    def add(self, rule: Rule, action: Callable[[Firing], object] | None = None) -> None:
        """Put a rule to work; it sees the facts of now, and the events from now on."""
        if rule.name in self._rules:
            raise GraphtideError(f"there is a rule named {rule.name} already")
        for condition in rule.events:
            if condition.type not in self._types:
                self._types[condition.type] = TypeMatcher(condition.type, self.graph.terms)
        facts = None
        if rule.facts is not None:
            bound = {v for condition in rule.positive for v in condition.variables}
            shared = tuple(v for v in rule.facts.variables if v in bound)
            watch = self.graph.watch(rule.facts, name=f"facts of {rule.name}", history=2**62)
            facts = FactMemory(watch, rule.facts.variables, shared)
        matcher = Matcher(rule, facts, self.graph.terms)
        self._rules[rule.name] = Registered(len(self._rules), matcher, action)

    def remove(self, name: str) -> None:
        """End a rule."""
        if name not in self._rules:
            raise GraphtideError(f"there is no rule named {name}")
        del self._rules[name]
        for watch in self.graph.watches:
            if watch.name == f"facts of {name}":
                self.graph.unwatch(watch)

    def assert_event(
        self,
        triples: Iterable[tuple[TermLike, TermLike, ObjectLike]],
        *,
        time: int | None = None,
        duration: int = 0,
    ) -> None:
        """Something happens, now or at a time that is not past; it may last for some ticks."""
        ids = tuple(quad_ids(self.graph.terms, s, p, o, None)[:3] for s, p, o in triples)
        end = self._clock if time is None else time
        if end < self._clock:
            raise GraphtideError(
                f"time runs backwards: {end} is before the clock, {self._clock}",
                hint="give events in order of their times",
            )
        self.happen(Moment((ids,), Span(end - duration, end), self.depth))

    def happen(self, moment: Moment) -> None:
        """Take in events that happen together, after those that are due already."""
        self._due.append(moment)
        self._run()

    def advance(self, to: int) -> None:
        """Let time pass in which nothing happens."""
        if to < self._clock:
            raise GraphtideError(f"time runs backwards: {to} is before the clock, {self._clock}")
        self._run(to)

    def retract(self, event: Happening) -> None:
        """Forget an event that has happened: no rule matches it any more."""
        for each in self._rules.values():
            each.matcher.retract(event)

    def collect(self) -> None:
        """Note the events that changes of the graph have caused (nothing, without a program)."""

    def begin(self) -> None:
        """A cascade begins: what comes from outside, and all that it causes."""
        self._count = 0
        self._caused.clear()

    def undo(self) -> str:
        """Take back what a cascade has changed, and say so (nothing, without a program)."""
        return ""

    def forget(self) -> None:
        """Drop what is due: a cascade has failed."""
        self._due.clear()

    def _run(self, to: int | None = None) -> None:
        """Take in what is due, event by event; those of an action wait their turn."""
        if self._running:
            return
        self._running = True
        self.begin()
        try:
            if to is not None:
                self._tick(to)
            while self._due:
                moment = self._due.popleft()
                if moment.span.end > self._clock:
                    self._tick(moment.span.end)
                self._take(moment)
        except BaseException:
            self.forget()
            raise
        finally:
            self._running = False
            self.depth = 0

    def _tick(self, to: int) -> None:
        self._clock = to
        waited = [m for each in self._rules.values() for m in each.matcher.advance(to)]
        self._fire(waited, 0)

    def _take(self, moment: Moment) -> None:
        """All events of a moment come before any action."""
        since = self.graph.transactions if moment.since is None else moment.since
        matches: list[Match] = []
        for triples in moment.events:
            event = Happening(triples, moment.span, self._order, since)
            self._order += 1
            matched = {type_: matcher.matches(event) for type_, matcher in self._types.items()}
            values = {type_: found for type_, found in matched.items() if found}
            if values:
                for rule in self._rules.values():
                    matches += rule.matcher.take(event, values)
        self._fire(matches, moment.depth)

    def _fire(self, matches: list[Match], depth: int) -> None:
        """Carry out what matched: by priority, then as the rules were added, then by values."""
        named = [(self._rules[match.rule.name], match) for match in matches]
        named.sort(key=lambda pair: (-pair[1].rule.priority, pair[0].number, _values(pair[1])))
        self.depth = depth + 1
        for registered, match in named:
            firing = self._firing(match)
            self.firings.append(firing)
            self.fired += 1
            if depth:
                self._caused.append(firing.rule)
                self._count += 1
                self._check_limit()
            if registered.action is not None:
                registered.action(firing)
                self.collect()

    def _check_limit(self) -> None:
        if self._count <= self._most:
            return
        done = self.undo()
        raise GraphtideError(
            f"rules fire without end: {', '.join(sorted(set(self._caused)))}{done}",
            hint="an action causes the events that cause the action",
        )

    def _firing(self, match: Match) -> Firing:
        decode = self.graph.terms.decode
        spans = {n: (e.span.start, e.span.end) for n, e in match.events.items()}
        values = {v.name: decode(i) for v, i in match.binding.items() if i}
        return Firing(match.rule.name, match.time, values, spans, self.fired, match)


def _values(match: Match) -> tuple[int, ...]:
    return tuple(match.binding[v] for v in sorted(match.binding, key=lambda v: v.name))
