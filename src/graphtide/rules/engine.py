"""RuleEngine: rules on a live graph, the events that come, and what happens then.

Events come in order of time; the clock is theirs, or is moved on by the caller. Each event goes to
every rule. The matches it completes are fired in order of priority, then of declaration, then of
values. What an action changes or emits is taken in before the next event, until nothing happens.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from graphtide.engine.graph_events import GraphEvents, make_events
from graphtide.engine.quads import quad_ids
from graphtide.errors import GraphtideError
from graphtide.rules.batches import Batches
from graphtide.rules.moment import Moment
from graphtide.rules.registered import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.quads import ObjectLike, TermLike
    from graphtide.rules.detection import Detection
    from graphtide.rules.firing import Firing
    from graphtide.rules.model import Rule

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
        self._rules.add(rule, None if action is None else Told(action))

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
