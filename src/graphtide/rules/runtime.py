"""RuleEngine: the event loop of the rules, with its clock, its queue and its cascades.

Events come in order of time and move the clock. Each event goes to every rule. The matches that it
completes fire in order of priority, then of declaration, then of values. What an action changes or
emits is matched before the next event, until nothing is left.

Events that come at once are matched in batches, as if no action changed what rules match. If one
does, the rules are rolled back to the event that caused it, and go on from there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from graphtide.engine.events import EventBatch, make_events
from graphtide.engine.ingest import ObjectLike, TermLike, quad_ids
from graphtide.errors import GraphtideError
from graphtide.rules.agenda import (
    Activation,
    Agenda,
    ChosenFiring,
    ConflictSet,
    PendingFiring,
    RuleMatches,
    in_firing_order,
)
from graphtide.rules.detection import Detection, complex_batch
from graphtide.rules.firing import Cascade, FiringLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.effects import Effects, GraphConnection
    from graphtide.rules.matching.types import MatchedEvent
    from graphtide.rules.rule_set import RuleSavepoints, RuleSet

MAX_FIRINGS = 10_000
"""Firings that the actions of one cascade may cause."""

FIRST_BATCH = 1024
MAX_BATCH = 1 << 16
"""Events that are matched together at first, and at most."""


class RuleEngine:
    """Matches events with rules and fires what they complete.

    `batch_size` adapts to how often actions change what rules match. `depth` is that of the batches
    to be queued, as in `EventBatch`.
    """

    def __init__(
        self,
        graph: GraphConnection,
        rules: RuleSet,
        effects: Effects,
        detection: Detection | None = None,
        *,
        max_firings: int = MAX_FIRINGS,
    ) -> None:
        self.rules = rules
        self.detection = detection
        self.conflicts: ConflictSet | None = None
        self.manual = False
        self.log = FiringLog(graph.terms.holders)
        self.clock = graph.clock
        self.running = False
        self.batch_size = FIRST_BATCH
        self.depth = 0
        self._graph = graph
        self._effects = effects
        self._cascade = Cascade(rules, self.log, detection, max_firings)
        self._queue: deque[EventBatch] = deque()
        self._retracted: list[int] = []
        graph.terms.holders.add(self)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids in the memories of rules and patterns, the conflict set and the queue."""
        for part in (self.rules, self.detection, self.conflicts):
            if part is not None:
                yield from part.held_ids()
        for events in self._queue:
            yield events.triples
            if events.values is not None:
                yield events.values

    # --- input: events, transactions, time, activations ---

    def assert_event(
        self,
        triples: Iterable[tuple[TermLike, TermLike, ObjectLike]],
        *,
        time: int | None = None,
        duration: int = 0,
    ) -> None:
        """Publish one graph event, by default at the current time, with a duration in ticks."""
        ids = [quad_ids(self._graph.terms, s, p, o, None)[:3] for s, p, o in list(triples)]
        self.take_events(make_events([ids], [self.clock if time is None else time], duration))

    def take_events(self, events: EventBatch) -> None:
        """Queue and match events, in order of time and not before the clock."""
        many = len(events.ends)
        if not many:
            return
        first = int(events.ends[0])
        mixed = many > 1 and (events.ends[1:] < events.ends[:-1]).any()
        if first < self.clock or mixed:
            raise GraphtideError(
                f"time runs backwards: {first} is before the clock, {self.clock}"
                if first < self.clock
                else "time runs backwards among these events",
                hint="give events in order of their times",
            )
        if events.starts is not events.ends:
            self._check_durations(events)
        self._enqueue(events)
        self._run()

    def _enqueue(self, events: EventBatch) -> None:
        self._queue.append(replace(events, depth=self.depth) if self.depth else events)

    def _check_durations(self, events: EventBatch) -> None:
        """Refuse events that last too long: their partners may have been evicted."""
        length = int((events.ends - events.starts).max())
        max_duration = self.rules.max_duration
        if length > max_duration:
            raise GraphtideError(
                f"an event lasts for {length} ticks, but {max_duration} is the most",
                hint="say how long events may last: run(…, max_event_duration=…)",
            )

    def react(self, clock: int) -> None:
        """A transaction was committed: match the events that it caused."""
        self.collect()
        self._run(max(clock, self.clock))

    def advance(self, to: int) -> None:
        """Move the clock on without an event."""
        if to < self.clock:
            raise GraphtideError(f"time runs backwards: {to} is before the clock, {self.clock}")
        self._run(to)

    def fire(self, activation: Activation) -> None:
        """Fire an activation of the conflict set, with all that it causes."""
        self._run_with(lambda: self._fire_activation(activation))

    # --- what actions do to the rules ---

    def retract(self, event: MatchedEvent) -> None:
        """Remove an event from the memories of all rules."""
        self._retracted.append(event.order)
        self.rules.retract(event.order)

    def collect(self) -> None:
        """Queue the events that changes of the graph have caused, transaction by transaction."""
        if self.conflicts is not None:
            self.conflicts.catch_up()
        for events in self._effects.collect(self.clock):
            self._enqueue(events)

    # --- the event loop ---

    def _run(self, to: int | None = None) -> None:
        """Work off the queue, unless an action called: then that is done after it."""
        if not self.running:
            self._run_with(None if to is None else lambda: self._move_on(to))

    def _run_with(self, first: Callable[[], None] | None) -> None:
        """Do something, then work off the queue."""
        self.running = True
        self._begin()
        self._graph.begin_operation()
        try:
            if first is not None:
                first()
            self._drain()
        except BaseException:
            self.abort()
            raise
        finally:
            self.running = False
            self.depth = 0
            self._graph.end_operation()

    def _drain(self) -> None:
        while self._queue or self._publish() or self._fire_next():
            if self._queue:
                events = self._queue.popleft()
                if events.begins_cascade:
                    self._begin()
                self._take(events)

    def _publish(self) -> bool:
        """Push emitted events to their streams; whether that caused events for the rules."""
        if self._effects.publish():
            self.collect()
        return bool(self._queue)

    def _begin(self) -> None:
        """A cascade begins."""
        self._cascade.begin()
        self._effects.begin()

    def abort(self) -> None:
        """A cascade has failed: clear the queue; roll back, if it had no end."""
        self._publish()
        self._effects.discard()
        self._queue.clear()
        if self.conflicts is not None:
            self.conflicts.clear()
        self._cascade.abort()

    # --- time ---

    def _move_on(self, to: int) -> None:
        self._pass_time(to)
        self._tick(to)

    def _pass_time(self, to: int) -> None:
        """Match the complex events that timers complete before a time, with their cascades.

        The rest of the queue has to wait for them.
        """
        while self.detection is not None and (time := self.detection.next_time()) < to:
            if time > self.clock:
                self._tick(time)
                self._set_clock(time)
            found = self.detection.pass_time(time + 1)
            if found:
                waiting, self._queue = self._queue, deque()
                events = complex_batch(found)
                self._queue.append(replace(events, simultaneous=True, begins_cascade=True))
                self._drain()
                self._queue = waiting

    def _tick(self, to: int) -> None:
        """Fire the matches whose absence (NO EVENT) is certain before a time."""
        self.clock = to
        waited = [share for share in self.rules.advance(to) if len(share.matches)]
        if waited:
            self._fire_now(waited, 0)

    def _set_clock(self, time: int) -> None:
        self.clock = time
        self._effects.advance(time)

    # --- batches of events ---

    def _take(self, events: EventBatch) -> None:
        """Match queued events, as many at a time as actions allow."""
        many = len(events.ends)
        at = 0
        while at < many:
            time = int(events.ends[at])
            if time > self.clock:
                self._move_on(time)
                self._set_clock(time)
                if self._queue and not events.simultaneous:
                    self._put_back(events.slice(at, many))
                    return
                if not events.depth:
                    self._begin()
            part = events.slice(at, self._end(events, at))
            if self.detection is None:
                at += self._take_part(part)
            else:
                self._take_with_complex(part, self.detection)
                at += len(part.ends)
            if at < many and self.conflicts is not None:
                self._drain()
            elif at < many and self._queue:
                self._put_back(events.slice(at, many))
                return

    def _end(self, events: EventBatch, at: int) -> int:
        """Up to where events can be matched together."""
        many = len(events.ends)
        if events.simultaneous or at + 1 == many:
            return many
        if self.conflicts is not None or (
            self.detection is not None and not self._is_independent()
        ):
            return at + 1
        return min(many, at + self.batch_size)

    def _put_back(self, rest: EventBatch) -> None:
        """Queue the rest of a batch: behind what the others caused, unless it was caused itself."""
        if rest.depth:
            self._queue.appendleft(rest)
        else:
            self._queue.append(replace(rest, begins_cascade=True))

    def _take_with_complex(self, events: EventBatch, detection: Detection) -> None:
        """Match events, each with the complex events that it completes right after it."""
        if len(events.ends) == 1 and not events.simultaneous:
            for one in detection.expand_one(events):
                self._take_part(one.scheduled_as(events))
            return
        expanded, at = detection.expand(events), 0
        while at < len(expanded):
            at += self._take_part(expanded.slice(at, len(expanded)))

    def _take_part(self, events: EventBatch) -> int:
        """Match events and fire; the number of events that are through.

        All events of a transaction come before any action. Of others, those after an action that
        changes what rules match have to wait.
        """
        self.rules.catch_up()
        many = len(events.ends)
        if events.simultaneous or many == 1:
            shares = self._match(events)
            if shares and many > 1:
                shares = [RuleMatches(each, found.at_one_moment()) for each, found in shares]
            if shares:
                self._fire_now(shares, events.depth)
            return many
        taken = self._take_many(events)
        if taken == many:
            self.batch_size = min(2 * self.batch_size, MAX_BATCH)
            self._set_clock(max(self.clock, int(events.ends[-1])))
        return taken

    def _match(self, events: EventBatch) -> list[RuleMatches]:
        before = events.transactions
        return self.rules.take(events, self._graph.transactions if before is None else before)

    def _take_many(self, events: EventBatch) -> int:
        """Match several events, and fire what they complete; how many of them are through."""
        if events.transactions is None:  # actions commit more of them
            events = replace(events, transactions=self._graph.transactions)
        states = None if self._is_independent() else self.rules.savepoint()
        self.rules.held += 1
        try:
            agenda = Agenda(self._match(events), self._graph.terms, self.log.total)
            if len(agenda):
                if events.depth or not self._effects.apply_all(agenda):
                    return self._fire_each(agenda, events, states)
                self.log.add(agenda)
        finally:
            self.rules.held -= 1
        return len(events)

    def _fire_each(self, agenda: Agenda, events: EventBatch, states: RuleSavepoints | None) -> int:
        """Fire event by event until an action changes what rules match; the events done.

        If it was not the last one, the rules are rolled back to it: they forget those after it.
        """
        queued = len(self._queue)
        for at, places in agenda.groups():
            event, complete = divmod(at, 2)
            taken, fired = event + complete, self.log.total
            self._retracted.clear()
            self.clock = max(self.clock, int(events.ends[event]))
            if complete:
                self._set_clock(self.clock)
            if not events.depth:
                self._begin()
                self.rules.track()
            try:
                self._fire(agenda.pending(places), events.depth)
            except BaseException:
                if states is not None:
                    self._roll_back_to(events, states, event, taken)
                    self._retract_again()
                raise
            if states is not None and self._has_changed(queued):
                self._roll_back_to(events, states, event, taken)
                if not events.depth:
                    self._cascade.save(fired)
                self._retract_again()
                return taken
        return len(events)

    def _has_changed(self, queued: int) -> bool:
        """Whether actions have changed what rules match; `queued` batches were there before."""
        changed = self.rules.look_changed()
        return bool(self._retracted) or len(self._queue) > queued or changed

    def _roll_back_to(
        self, events: EventBatch, states: RuleSavepoints, event: int, taken: int
    ) -> None:
        """Roll the rules back to the first events, as if the others had not come yet."""
        self.rules.rollback(states, self.rules.order - len(events))
        if taken:
            self._match(events.slice(0, taken))
        if taken == event:  # a match with NO EVENT fired before its event came
            self.rules.advance(int(events.ends[event]))
        self.batch_size = max(1, self.batch_size // 2)

    def _retract_again(self) -> None:
        """Retract again what the rollback brought back."""
        for order in self._retracted:
            self.rules.retract(order)

    # --- firing ---

    def _is_independent(self) -> bool:
        """Whether no action can change what rules match."""
        return self._effects.are_independent(self.rules)

    def _savepoint(self) -> None:
        """Save what to roll back to if the cascade has no end."""
        self._retracted.clear()
        if not self._cascade.saved and not self._is_independent():
            self._cascade.save(self.log.total)
            self.rules.track()

    def _fire_now(self, shares: list[RuleMatches], depth: int) -> None:
        """Fire the matches of one event, or of one transaction."""
        self._savepoint()
        self._fire(in_firing_order(shares, self._graph.terms, self.log.total), depth)

    def _fire(self, firings: Iterable[PendingFiring], depth: int) -> None:
        """Fire matches in order, or put them into the conflict set."""
        self.depth = depth + 1
        for firing in firings:
            if self.conflicts is not None:
                self.conflicts.add(firing.firing(), firing.entry, depth)
            else:
                self._carry_out(firing, depth)

    def _carry_out(self, firing: PendingFiring, depth: int) -> None:
        self.log.add_pending(firing)
        if depth and not self._cascade.count(firing.rule):
            raise self._cascade.endless(self._effects.undo(self.clock))
        if firing.entry.action is not None:
            firing.entry.action.carry_out(firing)
            self.collect()

    def _fire_next(self) -> bool:
        """Fire the first activation of the conflict set, unless firing is manual."""
        if self.conflicts is None or self.manual:
            return False
        activation = self.conflicts.next()
        if activation is not None:
            self._fire_activation(activation)
        return activation is not None

    def _fire_activation(self, activation: Activation) -> None:
        self._savepoint()
        self.depth = activation.depth + 1
        firing = replace(activation.firing, number=self.log.total)
        self._carry_out(ChosenFiring(firing, activation.entry), activation.depth)
        assert self.conflicts is not None  # noqa: S101 - there was an activation
        self.conflicts.fired(activation)
