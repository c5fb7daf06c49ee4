"""RuleEngine: rules on a live graph, the events that come, and what happens then.

Events come in order of time; the clock is theirs, or is moved on by the caller. Each event goes to
every rule. The matches it completes are fired in order of priority, then of declaration, then of
values. What an action changes or emits is taken in before the next event, until nothing happens.

Many events that come at once are matched together, as if no action concerned the rules. If one
does, the rules come back to the event that caused it, and go on from there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.graph_events import GraphEvents, make_events
from graphtide.engine.quads import quad_ids
from graphtide.errors import GraphtideError
from graphtide.rules.agenda import Agenda, Share
from graphtide.rules.fact_memory import FactMemory
from graphtide.rules.firing_log import FiringLog
from graphtide.rules.happening import TypeMatcher
from graphtide.rules.kernel.layout import END, ORDER, SINCE, START
from graphtide.rules.matcher import Matcher
from graphtide.rules.registered import Registered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.quads import ObjectLike, TermLike
    from graphtide.rules.conflicts import Activation, ConflictSet
    from graphtide.rules.detection import Detection, SavedTokens
    from graphtide.rules.firing import Firing
    from graphtide.rules.happening import Happening
    from graphtide.rules.matcher import State
    from graphtide.rules.model import EventType, Rule

MOST_FIRINGS = 10_000
"""Firings that actions of one event may cause in turn, before that is called a loop."""

LONGEST = 1 << 16
"""Events that are matched together at most."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Events that are due: one after the other, or all `together`, as those of one transaction.

    `since` is the number of transactions before them, if not all. `depth` is 0 for what comes from
    outside, and one more for what is caused by an action than for the cause of that.
    """

    events: GraphEvents
    depth: int
    since: int | None = None
    together: bool = False
    begins: bool = False
    """Whether a cascade of its own begins with them."""


class RuleEngine:
    """Rules over the facts of a graph and over events.

    >>> from graphtide import LiveGraph
    >>> engine = RuleEngine(LiveGraph())
    >>> engine.clock
    0
    """

    def __init__(
        self, graph: LiveGraph, *, most_firings: int = MOST_FIRINGS, longest: int = 0
    ) -> None:
        self.graph = graph
        self.firings = FiringLog()
        self.fired = 0
        self.depth = 0
        self._most = most_firings
        self._longest = longest
        self._caused: deque[str] = deque(maxlen=100)
        self._count = 0
        self._rules: dict[str, Registered] = {}
        self._types: list[TypeMatcher] = []
        self._numbers: dict[EventType, int] = {}
        self._clock = 0
        self._order = 0
        self._due: deque[Moment] = deque()
        self._running = False
        self._retracted: list[int] = []
        self._before: tuple[dict[str, State], int] | None = None
        self._endless = False
        self._stride = 1024
        self.detection: Detection | None = None
        self.conflicts: ConflictSet | None = None
        self.by_hand = False
        self._tokens: SavedTokens | None = None

    @property
    def clock(self) -> int:
        """The time of now."""
        return self._clock

    @property
    def kept(self) -> int:
        """How many events are kept, over all conditions of all rules."""
        return sum(each.matcher.kept for each in self._rules.values())

    @property
    def most_kept(self) -> int:
        """How many events the rules have kept at once, each at its worst (without NO EVENT)."""
        return sum(each.matcher.most_kept for each in self._rules.values())

    def add(self, rule: Rule, action: Callable[[Firing], object] | None = None) -> None:
        """Put a rule to work; it sees the facts of now, and the events from now on."""
        if rule.name in self._rules:
            raise GraphtideError(f"there is a rule named {rule.name} already")
        for condition in rule.events:
            if condition.type not in self._numbers:
                self._numbers[condition.type] = len(self._types)
                self._types.append(TypeMatcher(condition.type, self.graph.terms))
        facts = None
        if rule.facts is not None:
            bound = {v for condition in rule.positive for v in condition.variables}
            shared = [v for v in rule.facts.variables if v in bound]
            alone = [v for v in rule.facts.variables if v not in bound]
            watch = self.graph.watch(rule.facts, name=f"facts of {rule.name}", history=2**62)
            facts = FactMemory(watch, [*shared, *alone], len(shared))
        matcher = Matcher(rule, facts, self.graph.terms, self._numbers, self._longest)
        self._rules[rule.name] = Registered(len(self._rules), matcher, action)

    def remove(self, name: str) -> None:
        """End a rule."""
        if name not in self._rules:
            raise GraphtideError(f"there is no rule named {name}")
        del self._rules[name]
        for watch in self.graph.watches:
            if watch.name == f"facts of {name}":
                self.graph.unwatch(watch)

    # --- what comes ---

    def assert_event(
        self,
        triples: Iterable[tuple[TermLike, TermLike, ObjectLike]],
        *,
        time: int | None = None,
        duration: int = 0,
    ) -> None:
        """Something happens, now or at a time that is not past; it may last for some ticks."""
        ids = [quad_ids(self.graph.terms, s, p, o, None)[:3] for s, p, o in triples]
        self.take_events(make_events([ids], [self._clock if time is None else time], duration))

    def take_events(self, events: GraphEvents) -> None:
        """Things happen, one after the other; none of them is past."""
        if not len(events):
            return
        first = int(events.ends[0])
        mixed = len(events) > 1 and (events.ends[1:] < events.ends[:-1]).any()
        if first < self._clock or mixed:
            raise GraphtideError(
                f"time runs backwards: {first} is before the clock, {self._clock}"
                if first < self._clock
                else "time runs backwards among these events",
                hint="give events in order of their times",
            )
        if events.starts is not events.ends:
            self._check_lengths(events)
        self.happen(Moment(events, self.depth))

    def _check_lengths(self, events: GraphEvents) -> None:
        """Partners of events that last too long may have been forgotten: better to say so."""
        length = int((events.ends - events.starts).max())
        if length > self._longest:
            raise GraphtideError(
                f"an event lasts for {length} ticks, but {self._longest} is the most",
                hint="say how long events may last: run(…, longest=…)",
            )

    def happen(self, moment: Moment) -> None:
        """Take in events, after those that are due already."""
        self._due.append(moment)
        self._run()

    def advance(self, to: int) -> None:
        """Let time pass in which nothing happens."""
        if to < self._clock:
            raise GraphtideError(f"time runs backwards: {to} is before the clock, {self._clock}")
        self._run(to)

    def retract(self, event: Happening) -> None:
        """Forget an event that has happened: no rule matches it any more."""
        self._retracted.append(event.order)
        self._forget_events()

    def _forget_events(self) -> None:
        for each in self._rules.values():
            for order in self._retracted:
                each.matcher.retract(order)

    # --- what a program adds ---

    def collect(self) -> None:
        """Note the events that changes of the graph have caused (nothing, without a program)."""

    def begin(self) -> None:
        """A cascade begins: what comes from outside, and all that it causes."""
        self._count = 0
        self._caused.clear()
        self._before = None
        for each in self._rules.values():
            each.matcher.begin()

    def undo(self) -> str:
        """Take back what a cascade has changed, and say so (nothing, without a program)."""
        return ""

    def finish(self) -> bool:
        """All that was due is through; whether anything is left to do (not without a program)."""
        return False

    def forget(self) -> None:
        """Drop what is due: a cascade has failed."""
        self._due.clear()
        if self.conflicts is not None:
            self.conflicts.forget()
        if self._endless and self._before is not None:
            states, fired = self._before
            for name, state in states.items():
                self._rules[name].matcher.take_back(state)
            self.firings.cut(self.fired - fired)
            self.fired = fired
            if self.detection is not None and self._tokens is not None:
                self.detection.load(self._tokens)
        self._endless = False

    def is_quiet(self) -> bool:
        """Whether no action of any rule can concern the rules."""
        return all(each.action is None for each in self._rules.values())

    def fire_at_once(self, agenda: Agenda) -> bool:
        """Fire all that is on an agenda, if its actions cannot concern the rules; else nothing."""
        if any(share.registered.action for share in agenda.shares):
            return False
        self.note(agenda)
        return True

    def move_to(self, time: int) -> None:
        """Events have moved the clock on."""
        self._clock = time

    # --- the machinery ---

    def _run(self, to: int | None = None) -> None:
        """Take in what is due, event by event; those of an action wait their turn."""
        if not self._running:
            self._run_with(lambda: self._pass_to(to))

    def _pass_to(self, to: int | None) -> None:
        if to is not None:
            self._pass_time(to)
            self._tick(to)

    def _run_with(self, first: Callable[[], None]) -> None:
        """Do something, and then all that is due."""
        self._running = True
        self.begin()
        try:
            first()
            self._drain()
        except BaseException:
            self.forget()
            raise
        finally:
            self._running = False
            self.depth = 0

    def _drain(self) -> None:
        while self._due or self.finish() or self._fire_next():
            if self._due:
                moment = self._due.popleft()
                if moment.begins:
                    self.begin()
                self._take(moment)

    def _fire_next(self) -> bool:
        """Fire the activation whose turn it is, if they wait and are not fired by hand."""
        if self.conflicts is None or self.by_hand:
            return False
        activation = self.conflicts.next()
        if activation is not None:
            self._fire_activation(activation)
        return activation is not None

    def _fire_activation(self, activation: Activation) -> None:
        self._remember()
        self.depth = activation.depth + 1
        firing = replace(activation.firing, number=self.fired)
        self._carry_out(firing, activation.registered, activation.depth)
        assert self.conflicts is not None  # noqa: S101 - there was an activation
        self.conflicts.fired(activation)

    def _pass_time(self, to: int) -> None:
        """Complex events that are complete because time has passed come first, with all they cause.

        What else is due has to wait for them.
        """
        while self.detection is not None and (time := self.detection.next_time()) < to:
            if time > self._clock:
                self._tick(time)
                self.move_to(time)
            found = self.detection.pass_time(time + 1)
            if found:
                waiting, self._due = self._due, deque()
                events = make_events([told for _, told in found], [t for t, _ in found])
                self._due.append(Moment(events, 0, together=True, begins=True))
                self._drain()
                self._due = waiting

    def _tick(self, to: int) -> None:
        """Time goes on: what waited for nothing to happen fires."""
        self._clock = to
        waited = [Share(each, each.matcher.advance(to)) for each in self._rules.values()]
        if any(len(share.found) for share in waited):
            agenda = self._agenda(waited)
            self._remember()
            self._fire(agenda, range(len(agenda)), 0)

    def _take(self, moment: Moment) -> None:
        """Take in what is due, as many events at a time as actions allow."""
        events = moment.events
        at = 0
        while at < len(events):
            if events.ends[at] > self._clock:
                self._pass_time(int(events.ends[at]))
                self._tick(int(events.ends[at]))
                self.move_to(int(events.ends[at]))
                if self._due and not moment.together:
                    self._put_back(moment, at)
                    return
                if not moment.depth:
                    self.begin()
            end = len(events) if moment.together else min(len(events), at + self._stride)
            if self.conflicts is not None or (self.detection is not None and not self.is_quiet()):
                end = len(events) if moment.together else at + 1
            whole = at == 0 and end == len(events)
            part = moment if whole else replace(moment, events=events.part(at, end))
            if self.detection is None:
                at += self._take_part(part)
            else:
                self._take_with_complex(part, self.detection)
                at = end
            if self.conflicts is not None and at < len(events):
                self._drain()
            elif self._due and at < len(events):
                self._put_back(moment, at)
                return

    def _take_with_complex(self, moment: Moment, detection: Detection) -> None:
        """Take in events, each with the complex events that it completes right after it."""
        events, at = detection.expand(moment.events, together=moment.together), 0
        while at < len(events):
            rest = events if at == 0 else events.part(at, len(events))
            at += self._take_part(replace(moment, events=rest))

    def _put_back(self, moment: Moment, at: int) -> None:
        """The rest of some events: after what the others caused, unless it was due before that."""
        rest = replace(moment, events=moment.events.part(at, len(moment.events)))
        if moment.depth:
            self._due.appendleft(rest)
        else:
            self._due.append(replace(rest, begins=True))

    def _take_part(self, moment: Moment) -> int:
        """Match some events and fire; how many of them are through.

        All events of a transaction come before any action. Of others, those after an action that
        concerns the rules have to wait.
        """
        events = moment.events
        alone = moment.together or len(events) == 1
        states = None if alone or self.is_quiet() else self._states()
        if moment.since is None:
            moment = replace(moment, since=self.graph.transactions)
        for each in self._rules.values():
            each.matcher.catch_up()
        shares = self._match(moment)
        if moment.together:
            shares = [Share(each, found.at_one_moment()) for each, found in shares]
        taken = len(events)
        if any(len(share.found) for share in shares):
            taken = self._fire_all(self._agenda(shares), moment, states)
        if taken == len(events) > 1 and not moment.together:
            self._stride = min(2 * self._stride, LONGEST)
            self.move_to(max(self._clock, int(events.ends[-1])))
        return taken

    def _fire_all(self, agenda: Agenda, moment: Moment, states: dict[str, State] | None) -> int:
        """Fire what some events have completed; how many of them are through."""
        if moment.together or len(moment.events) == 1:
            self._remember()
            self._fire(agenda, range(len(agenda)), moment.depth)
        elif moment.depth or not self.fire_at_once(agenda):
            return self._fire_each(agenda, moment, states)
        return len(moment.events)

    def _states(self) -> dict[str, State]:
        return {name: each.matcher.mark() for name, each in self._rules.items()}

    def _match(self, moment: Moment) -> list[Share]:
        """Let all rules take in some events."""
        events = moment.events
        found = ((type_, matcher.hits(events)) for type_, matcher in enumerate(self._types))
        hits = {type_: rows for type_, rows in found if len(rows)}
        columns = np.empty((len(events), 4), np.int64)
        columns[:, START], columns[:, END] = events.starts, events.ends
        columns[:, ORDER] = np.arange(self._order, self._order + len(events))
        columns[:, SINCE] = moment.since or 0
        self._order += len(events)
        if not hits and len(events) == 1:
            return []
        return [Share(each, each.matcher.take(hits, columns)) for each in self._rules.values()]

    def _agenda(self, shares: list[Share]) -> Agenda:
        return Agenda(shares, self.graph.terms, self.fired)

    def _remember(self) -> None:
        """Note what to come back to if actions go on without end."""
        self._retracted.clear()
        if self._before is None and not self.is_quiet():
            self._before = self._states(), self.fired
            self._tokens = None if self.detection is None else self.detection.save()
            self._track()

    def _track(self) -> None:
        for each in self._rules.values():
            each.matcher.track()

    def _fire_each(self, agenda: Agenda, moment: Moment, states: dict[str, State] | None) -> int:
        """Fire event by event until an action concerns the rules; how many events are through.

        If it was not the last one, the rules come back to it: they do not know those after it.
        """
        events, order = moment.events, self._order - len(moment.events)
        due = len(self._due)
        for at, places in agenda.groups():
            event, complete = divmod(at, 2)
            taken, fired = event + complete, self.fired
            self._retracted.clear()
            self._clock = max(self._clock, int(events.ends[event]))
            if complete:
                self.move_to(self._clock)
            if not moment.depth:
                self.begin()
                self._track()
            try:
                self._fire(agenda, places, moment.depth)
            except BaseException:
                if states is not None:
                    self._come_back(moment, states, order, event, taken)
                    self._forget_events()
                raise
            if states is not None and self._is_concerned(due):
                self._come_back(moment, states, order, event, taken)
                if not moment.depth:
                    self._before = self._states(), fired
                self._forget_events()
                return taken
        return len(events)

    def _is_concerned(self, due: int) -> bool:
        """Whether actions have changed what rules look at; so much was due before them."""
        changed = [each.matcher.looks_changed() for each in self._rules.values()]
        return bool(self._retracted) or len(self._due) > due or any(changed)

    def _come_back(
        self, moment: Moment, states: dict[str, State], order: int, event: int, taken: int
    ) -> None:
        """Let the rules know the first events only, as if the others had not come yet."""
        for name, state in states.items():
            if name in self._rules:
                self._rules[name].matcher.back_to(state)
        self._order = order
        if taken:
            self._match(replace(moment, events=moment.events.part(0, taken)))
        if taken == event:  # what had waited has fired, but its event has not come yet
            for each in self._rules.values():
                each.matcher.advance(int(moment.events.ends[event]))
        self._stride = max(1, self._stride // 2)

    def _fire(self, agenda: Agenda, places: range, depth: int) -> None:
        """Carry out some of what matched."""
        self.depth = depth + 1
        for place in places:
            registered = agenda.shares[agenda.which[place]].registered
            if self.conflicts is not None:
                self.conflicts.add(agenda[place], registered, depth)
            else:
                self._carry_out(agenda[place], registered, depth)

    def _carry_out(self, firing: Firing, registered: Registered, depth: int) -> None:
        self.firings.add([firing])
        self.fired += 1
        if depth:
            self._caused.append(firing.rule)
            self._count += 1
            self._check_limit()
        if registered.action is not None:
            registered.action(firing)
            self.collect()

    def note(self, agenda: Agenda) -> None:
        """All that is on an agenda has fired."""
        self.firings.add(agenda)
        self.fired += len(agenda)

    def _check_limit(self) -> None:
        if self._count <= self._most:
            return
        self._endless = True
        done = self.undo()
        raise GraphtideError(
            f"rules fire without end: {', '.join(sorted(set(self._caused)))}{done}",
            hint="an action causes the events that cause the action",
        )
