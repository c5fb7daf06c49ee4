"""RuleEngine: rules on a live graph, the events that come, and what happens then.

Events come in order of time; the clock is theirs, or is moved on by the caller. Each event goes to
every rule. The matches it completes are fired in order of priority, then of declaration, then of
values. What an action changes or emits is taken in before the next event, until nothing happens.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from graphtide.engine.ingest import quad_ids
from graphtide.errors import GraphtideError
from graphtide.rules.agenda import Agenda, ChosenFiring, RuleMatches, in_turn
from graphtide.rules.firing import FiringLog
from graphtide.rules.rule_set import FunctionAction, RuleSet
from graphtide.streams.events import GraphEvents, make_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from graphtide.engine.ingest import ObjectLike, TermLike
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.rules.agenda import Activation, ConflictSet, PendingFiring
    from graphtide.rules.detection import Detection, TokenMark
    from graphtide.rules.firing import Firing
    from graphtide.rules.matching.types import MatchedEvent
    from graphtide.rules.model import Rule
    from graphtide.rules.rule_set import States


# --- Cascades: firing what matched, and all that actions cause in turn, up to a limit.
#
# If a cascade goes on without end, the rules come back to where it began.


class CascadeStart(NamedTuple):
    """What to come back to if a cascade has no end."""

    states: States
    fired: int
    tokens: list[TokenMark]


class Cascades:
    """Fires matches, counts what they cause, and knows the way back.

    A program adds what actions do to the graph: `collect`, `undo`, `is_quiet`, `fire_at_once`.
    """

    def __init__(self, graph: LiveGraph, most_firings: int, longest: int) -> None:
        self.graph = graph
        self.firings = FiringLog()
        self.fired = 0
        self.depth = 0
        self.detection: Detection | None = None
        self.conflicts: ConflictSet | None = None
        self.by_hand = False
        self._most = most_firings
        self._rules = RuleSet(graph, longest)
        self._due: deque[Moment] = deque()
        self._caused: deque[str] = deque(maxlen=100)
        self._count = 0
        self._retracted: list[int] = []
        self._before: CascadeStart | None = None
        self._endless = False

    # --- what a program adds ---

    def collect(self) -> None:
        """Note the events that changes of the graph have caused (nothing, without a program)."""

    def undo(self) -> str:
        """Take back what a cascade has changed, and say so (nothing, without a program)."""
        return ""

    def is_quiet(self) -> bool:
        """Whether no action of any rule can concern the rules."""
        return all(each.action is None for each in self._rules)

    def fire_at_once(self, agenda: Agenda) -> bool:
        """Fire all that is on an agenda, if its actions cannot concern the rules; else nothing."""
        if any(share.registered.action for share in agenda.shares):
            return False
        self.note(agenda)
        return True

    # --- the way back ---

    def begin(self) -> None:
        """A cascade begins: what comes from outside, and all that it causes."""
        self._count = 0
        self._caused.clear()
        self._before = None
        self._rules.begin()
        if self.detection is not None:
            self.detection.begin()

    def _remember(self) -> None:
        """Note what to come back to if actions go on without end."""
        self._retracted.clear()
        if self._before is None and not self.is_quiet():
            self._begin_at(self.fired)
            self._rules.track()

    def _begin_at(self, fired: int) -> None:
        """The cascade begins here: so many firings were before it."""
        tokens = [] if self.detection is None else self.detection.mark()
        self._before = CascadeStart(self._rules.mark(), fired, tokens)

    def forget(self) -> None:
        """Drop what is due: a cascade has failed."""
        self._due.clear()
        if self.conflicts is not None:
            self.conflicts.forget()
        if self._endless and self._before is not None:
            states, fired, tokens = self._before
            self._rules.take_back(states)
            self.firings.cut(self.fired - fired)
            self.fired = fired
            if self.detection is not None:
                self.detection.back_to(tokens)
        self._endless = False

    def retract(self, event: MatchedEvent) -> None:
        """Forget an event that has happened: no rule matches it any more."""
        self._retracted.append(event.order)
        self._rules.retract(event.order)

    # --- firing ---

    def _fire_now(self, shares: list[RuleMatches], depth: int) -> None:
        """Fire what was completed at one moment."""
        self._remember()
        self._fire(in_turn(shares, self.graph.terms, self.fired), depth)

    def _fire(self, turns: Iterable[PendingFiring], depth: int) -> None:
        """Carry out what matched, in turn; or let it wait for that."""
        self.depth = depth + 1
        for turn in turns:
            if self.conflicts is not None:
                self.conflicts.add(turn.firing(), turn.registered, depth)
            else:
                self._carry_out(turn, depth)

    def _carry_out(self, turn: PendingFiring, depth: int) -> None:
        self.firings.add_turn(turn)
        self.fired += 1
        if depth:
            self._caused.append(turn.rule)
            self._count += 1
            self._check_limit()
        if turn.registered.action is not None:
            turn.registered.action.carry_out(turn)
            self.collect()

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
        self._carry_out(ChosenFiring(firing, activation.registered), activation.depth)
        assert self.conflicts is not None  # noqa: S101 - there was an activation
        self.conflicts.fired(activation)

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


# --- Moment: events that are due.


@dataclass(slots=True)
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

    def part(self, first: int, last: int) -> Moment:
        """The events from one place up to another."""
        if first == 0 and last == len(self.events.ends):
            return self
        return self.of(self.events.part(first, last))

    def of(self, events: GraphEvents) -> Moment:
        """Other events in the place of these."""
        return Moment(events, self.depth, self.since, self.together, self.begins)


# --- Batches: events that come at once are matched together, as if no action concerned the rules.
#
# If one does, the rules come back to the event that caused it, and go on from there.

LONGEST = 1 << 16
"""Events that are matched together at most."""


class Batches(Cascades):
    """Matches events and fires what they complete, one event or many at a time."""

    def __init__(self, graph: LiveGraph, most_firings: int, longest: int) -> None:
        super().__init__(graph, most_firings, longest)
        self._clock = 0
        self._stride = 1024

    def move_to(self, time: int) -> None:
        """Events have moved the clock on."""
        self._clock = time

    def _take_part(self, moment: Moment) -> int:
        """Match some events and fire; how many of them are through.

        All events of a transaction come before any action. Of others, those after an action that
        concerns the rules have to wait.
        """
        self._rules.catch_up()
        many = len(moment.events.ends)
        if moment.together or many == 1:
            shares = self._match(moment)
            if shares and many > 1:
                shares = [RuleMatches(each, found.at_one_moment()) for each, found in shares]
            if shares:
                self._fire_now(shares, moment.depth)
            return many
        taken = self._take_many(moment)
        if taken == many:
            self._stride = min(2 * self._stride, LONGEST)
            self.move_to(max(self._clock, int(moment.events.ends[-1])))
        return taken

    def _match(self, moment: Moment) -> list[RuleMatches]:
        since = self.graph.transactions if moment.since is None else moment.since
        return self._rules.take(moment.events, since)

    def _take_many(self, moment: Moment) -> int:
        """Match several events, and fire what they complete; how many of them are through."""
        since = self.graph.transactions if moment.since is None else moment.since
        moment = Moment(moment.events, moment.depth, since)
        states = None if self.is_quiet() else self._rules.mark()
        self._rules.held += 1
        try:
            shares = self._match(moment)
            agenda = Agenda(shares, self.graph.terms, self.fired)
            if len(agenda) and (moment.depth or not self.fire_at_once(agenda)):
                return self._fire_each(agenda, moment, states)
        finally:
            self._rules.held -= 1
        return len(moment.events)

    def _fire_each(self, agenda: Agenda, moment: Moment, states: States | None) -> int:
        """Fire event by event until an action concerns the rules; how many events are through.

        If it was not the last one, the rules come back to it: they do not know those after it.
        """
        events, due = moment.events, len(self._due)
        for at, places in agenda.groups():
            event, complete = divmod(at, 2)
            taken, fired = event + complete, self.fired
            self._retracted.clear()
            self._clock = max(self._clock, int(events.ends[event]))
            if complete:
                self.move_to(self._clock)
            if not moment.depth:
                self.begin()
                self._rules.track()
            try:
                self._fire(agenda.turns(places), moment.depth)
            except BaseException:
                if states is not None:
                    self._come_back(moment, states, event, taken)
                    self._forget_events()
                raise
            if states is not None and self._is_concerned(due):
                self._come_back(moment, states, event, taken)
                if not moment.depth:
                    self._begin_at(fired)
                self._forget_events()
                return taken
        return len(events)

    def _is_concerned(self, due: int) -> bool:
        """Whether actions have changed what rules look at; so much was due before them."""
        changed = self._rules.look_changed()
        return bool(self._retracted) or len(self._due) > due or changed

    def _come_back(self, moment: Moment, states: States, event: int, taken: int) -> None:
        """Let the rules know the first events only, as if the others had not come yet."""
        self._rules.back_to(states, self._rules.order - len(moment.events))
        if taken:
            self._match(moment.part(0, taken))
        if taken == event:  # what had waited has fired, but its event has not come yet
            self._rules.advance(int(moment.events.ends[event]))
        self._stride = max(1, self._stride // 2)

    def _forget_events(self) -> None:
        """Those that were retracted are known again, now that the rules have come back."""
        for order in self._retracted:
            self._rules.retract(order)


MOST_FIRINGS = 10_000
"""Firings that actions of one event may cause in turn, before that is called a loop."""


class RuleEngine(Batches):
    """Rules over the facts of a graph and over events.

    >>> from graphtide import LiveGraph
    >>> engine = RuleEngine(LiveGraph())
    >>> engine.clock
    0
    """

    def __init__(
        self, graph: LiveGraph, *, most_firings: int = MOST_FIRINGS, longest: int = 0
    ) -> None:
        super().__init__(graph, most_firings, longest)
        self._running = False

    @property
    def clock(self) -> int:
        """The time of now."""
        return self._clock

    @property
    def kept(self) -> int:
        """How many events are kept, over all conditions of all rules."""
        return sum(each.matcher.kept for each in self._rules)

    @property
    def most_kept(self) -> int:
        """How many events the rules have kept at once, each at its worst (without NO EVENT)."""
        return sum(each.matcher.most_kept for each in self._rules)

    def add(self, rule: Rule, action: Callable[[Firing], object] | None = None) -> None:
        """Put a rule to work; it sees the facts of now, and the events from now on."""
        self._rules.add(rule, None if action is None else FunctionAction(action))

    def remove(self, name: str) -> None:
        """End a rule."""
        self._rules.remove(name)

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
        many = len(events.ends)
        if not many:
            return
        first = int(events.ends[0])
        mixed = many > 1 and (events.ends[1:] < events.ends[:-1]).any()
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
        length, longest = int((events.ends - events.starts).max()), self._rules.longest
        if length > longest:
            raise GraphtideError(
                f"an event lasts for {length} ticks, but {longest} is the most",
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

    def finish(self) -> bool:
        """All that was due is through; whether anything is left to do (not without a program)."""
        return False

    # --- what is due ---

    def _run(self, to: int | None = None) -> None:
        """Take in what is due, event by event; those of an action wait their turn."""
        if not self._running:
            self._run_with(None if to is None else lambda: self._pass_to(to))

    def _pass_to(self, to: int) -> None:
        self._pass_time(to)
        self._tick(to)

    def _run_with(self, first: Callable[[], None] | None) -> None:
        """Do something, and then all that is due."""
        self._running = True
        self.begin()
        try:
            if first is not None:
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

    # --- time goes on ---

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
        waited = [share for share in self._rules.advance(to) if len(share.found)]
        if waited:
            self._fire_now(waited, 0)

    def _take(self, moment: Moment) -> None:
        """Take in what is due, as many events at a time as actions allow."""
        events, many = moment.events, len(moment.events.ends)
        at = 0
        while at < many:
            time = int(events.ends[at])
            if time > self._clock:
                self._pass_time(time)
                self._tick(time)
                self.move_to(time)
                if self._due and not moment.together:
                    self._put_back(moment, at)
                    return
                if not moment.depth:
                    self.begin()
            part = moment.part(at, self._end(moment, at, many))
            if self.detection is None:
                at += self._take_part(part)
            else:
                self._take_with_complex(part, self.detection)
                at += len(part.events.ends)
            if at < many and self.conflicts is not None:
                self._drain()
            elif at < many and self._due:
                self._put_back(moment, at)
                return

    def _end(self, moment: Moment, at: int, many: int) -> int:
        """Up to where events can be taken together."""
        if moment.together or at + 1 == many:
            return many
        if self.conflicts is not None or (self.detection is not None and not self.is_quiet()):
            return at + 1
        return min(many, at + self._stride)

    def _take_with_complex(self, moment: Moment, detection: Detection) -> None:
        """Take in events, each with the complex events that it completes right after it."""
        if len(moment.events.ends) == 1 and not moment.together:
            for one in detection.expand_one(moment.events):
                self._take_part(moment.of(one))
            return
        events, at = detection.expand(moment.events, together=moment.together), 0
        while at < len(events):
            rest = events if at == 0 else events.part(at, len(events))
            at += self._take_part(moment.of(rest))

    def _put_back(self, moment: Moment, at: int) -> None:
        """The rest of some events: after what the others caused, unless it was due before that."""
        rest = moment.part(at, len(moment.events))
        if moment.depth:
            self._due.appendleft(rest)
        else:
            rest.begins = True
            self._due.append(rest)
