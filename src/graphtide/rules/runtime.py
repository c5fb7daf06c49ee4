"""RuleEngine: matches events with rules, and fires what they complete.

Events come in order of time. Each event goes to every rule. The matches that it completes fire in
order of priority, then of declaration, then of values. What an action changes or emits is queued in
the scheduler, and matched when its turn comes.

Events that come at once are matched in batches, as if no action changed what rules match. If one
does, the rules are rolled back to the event that caused it, and go on from there.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.engine.events import EventBatch, make_events
from graphtide.engine.ingest import ObjectLike, TermLike, quad_ids
from graphtide.engine.timers import Due, Phase
from graphtide.errors import ActionError, GraphtideError
from graphtide.limits import MAX_FIRINGS, Allowance
from graphtide.patterns.complex_events import complex_batch
from graphtide.rules.agenda import Agenda, ChosenFiring, PendingFiring, RuleMatches, in_firing_order
from graphtide.rules.firing import Cascade, FiringLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from graphtide.engine.transaction import Protected
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.patterns.complex_events import ExpandedEvents
    from graphtide.rules.conflicts import Activation, ConflictSet
    from graphtide.rules.detection import Detection
    from graphtide.rules.effects import Effects, GraphConnection
    from graphtide.rules.firing import EngineSavepoint, Firing
    from graphtide.rules.matching.types import MatchedEvent
    from graphtide.rules.rule_set import RuleSavepoints, RuleSet
    from graphtide.rules.running.tracing import Tracer

FIRST_BATCH = 1024
MAX_BATCH = 1 << 16
"""Events that are matched together at first, and at most."""


class RuleEngine:
    """Follows a graph: matches its events with rules and fires what they complete.

    `batch_size` adapts to how often actions change what rules match.
    """

    def __init__(
        self,
        graph: GraphConnection,
        rules: RuleSet,
        effects: Effects,
        detection: Detection | None = None,
        *,
        max_firings: int = MAX_FIRINGS,
        log: FiringLog | None = None,
    ) -> None:
        self.name = "program"
        self.rules = rules
        self.detection = detection
        self.conflicts: ConflictSet | None = None
        self.manual = False
        self.log = log or FiringLog(graph.terms.holders, settle=graph.settle)
        self.batch_size = FIRST_BATCH
        self.taken = 0
        self.tracer: Tracer | None = None
        """Told of every step, if somebody listens; events are then matched one by one."""
        self.observed = False
        """Whether somebody holds a detector, and may look at it at any time."""
        self._graph = graph
        self._schedule = graph.schedule
        self._effects = effects
        self._cascade = Cascade(rules, self.log, detection, max_firings)
        self._entered = -1
        self._retracted: list[int] = []
        self._waited: int | None = None
        """With what time the absence ended whose firing was the last of a batch, if one was."""
        graph.terms.holders.add(self)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids in the memories of rules and patterns, and in the conflict set."""
        for part in (self.rules, self.detection, self.conflicts):
            if part is not None:
                yield from part.held_ids()

    @property
    def clock(self) -> int:
        """The current time."""
        return self._schedule.clock

    def dump(self) -> dict[str, Any]:
        """The state between two cascades: memories, tokens, activations, and numbers."""
        conflicts, detection = self.conflicts, self.detection
        return {
            "fired": self.log.total,
            "ids": self.log.ids.dump(),
            "ended": self._cascade.ended,
            "conflicts": None if conflicts is None else conflicts.dump(),
            "rules": self.rules.dump({} if conflicts is None else conflicts.first_since()),
            "detection": None if detection is None else detection.dump(),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state; firings from before are not retained."""
        self.log.start_at(saved["fired"])
        self.log.ids.load(saved["ids"])
        self._cascade.ended = {kind: (time, many) for kind, (time, many) in saved["ended"].items()}
        self.rules.load(saved["rules"])
        if self.conflicts is not None:
            self.conflicts.load(saved["conflicts"], self.rules, self._graph.terms)
        if self.detection is not None:
            self.detection.load(saved["detection"])

    def take_over(self, other: RuleEngine) -> None:
        """Go on in the place of another engine, with its name."""
        self.name, self.observed = other.name, other.observed
        self._cascade.ended = other._cascade.ended

    # --- a piece of input happens wholly, or not at all ---

    def protect(self, part: Protected) -> None:
        """Something of the program takes part in the piece of input under way."""
        self._schedule.protect(part)

    def savepoint(self) -> tuple[EngineSavepoint, int]:
        """What `roll_back` needs."""
        waiting = self.conflicts
        self.log.ids.forget_before(
            self.clock, lambda: inf if waiting is None else waiting.first_time()
        )
        return self._cascade.protect(self._effects, self.conflicts), self.batch_size

    def roll_back(self, to: tuple[EngineSavepoint, int]) -> None:
        """A piece of input was interrupted: go back to before it."""
        self._cascade.roll_back(to[0], self._effects, self.conflicts)
        self.batch_size, self._entered = to[1], -1
        if self.tracer is not None:
            self.tracer.roll_back()

    # --- what the scheduler asks for ---

    def next_due(self, to: int, cause: object) -> Due | None:  # noqa: ARG002 - a follower
        """The next timer of a pattern, or end of an absence, that is before a time."""
        time = self.rules.next_deadline()
        if self.detection is not None:
            time = min(time, self.detection.next_time())
        return Due(int(time), Phase.END) if time < to else None

    def run_due(self, due: Due, cause: object) -> None:  # noqa: ARG002 - a follower
        """Match the complex events that timers complete; else fire the matches that have waited.

        Complex events of a time come before the absences that end with it, and may deny them.
        """
        self._enter(0)
        if self.detection is not None and self.detection.next_time() <= due.time:
            with self._allowed():
                found = self.detection.pass_time(due.time + 1)
            if self.tracer is not None and not found:
                self.tracer.settle()
            if found:
                names = list(self.detection.patterns)
                self._cascade.count_end("timer", due.time, [names[each.pattern] for each in found])
                self._take_part(replace(complex_batch(found), simultaneous=True))
            return
        if self.detection is not None:  # for what RETRACT brings back, that time is over
            self.detection.pass_time(due.time + 1)
        with self._allowed():
            waited = self.rules.advance(due.time + 1)
        if waited:
            fired = [s.entry.matcher.rule.name for s in waited for _ in range(len(s.matches))]
            self._cascade.count_end("absence", due.time, fired)
            self._fire_now(waited, 0)
        if self.tracer is not None:
            self.tracer.settle()

    def time_passed(self, to: int, cause: object) -> None:  # noqa: ARG002 - a follower
        """Evict the events that no partner can follow any more.

        Inside a cascade only watermarks rise: the memories may still be rolled back.
        """
        if not self._schedule.running:
            self.rules.pass_time(self.clock)  # absences that end before were due before

    def after_transaction(self) -> None:
        """A transaction was applied: the events that it caused are matched when it is through."""
        self.collect()

    def admit(self, events: EventBatch) -> EventBatch:
        """The events that are new to the rules; those that last too long are refused."""
        events = self._effects.without_emitted(events)
        if events.starts is not events.ends and len(events.ends):
            length = int((events.ends - events.starts).max())
            max_duration = self.rules.max_duration
            if length > max_duration:  # their partners may have been evicted
                raise GraphtideError(
                    f"an event lasts for {length} ticks, but {max_duration} is the most",
                    hint="say how long events may last: run(…, max_event_duration=…)",
                )
        return events

    def can_wait(self) -> bool:
        """Whether its actions only insert what no rule reads, and nobody follows its tokens."""
        return self.conflicts is None and not self.observed and self._is_independent()

    def take_events(self, events: EventBatch) -> int:
        """Match the first of some events, as many at a time as actions allow, and fire."""
        self.taken, self._waited = 0, None
        self._enter(events.depth)
        part = events.slice(0, self._end(events))
        if self.detection is None:
            return self._take_part(part)
        if len(part.ends) == 1 or part.simultaneous:
            self.taken = 1
            self._take_with_complex(part, self.detection)
            return len(part.ends)
        return self._take_together(part, self.detection)

    def take_all(self, events: EventBatch) -> None:
        """Match events that an action caused, one after the other."""
        at = 0
        while at < len(events.ends):
            at += self.take_events(events.slice(at, len(events.ends)))

    def go_on(self) -> bool:
        """Push emitted events to their streams, or fire the next activation."""
        if self.conflicts is not None:
            self._schedule.protect(self)
        return self._effects.publish() or self._fire_next()

    def abort(self) -> None:
        """The cascade has no end: drop its events and activations, restore the memories."""
        self._schedule.protect(self)
        self._effects.discard()
        if self.conflicts is not None:
            self.conflicts.clear()
        if self._entered == self._schedule.cascade:
            self._cascade.rollback()
        if self.tracer is not None:
            self.tracer.roll_back()

    def call(self, firing: str, function: Callable[[], object], *, writes: bool) -> None:
        """Call a function for an action; only some `writes` the graph."""
        self._schedule.call(firing, function, writes=writes)

    def id_of(self, firing: Firing) -> str:
        """Returns the id of a firing, by which a function of CALL can tell that it comes again."""
        return self.log.ids.of(firing, self.clock)

    def fire(self, activation: Activation) -> None:
        """Fire an activation of the conflict set, with all that it causes."""
        self._schedule.perform(lambda: self._fire_activation(activation), (self, activation))

    # --- what actions cause ---

    def emit(self, triples: Iterable[tuple[TermLike, TermLike, ObjectLike]]) -> None:
        """Queue an event of an action for the rules of this program."""
        self.collect()
        ids = [quad_ids(self._graph.terms, s, p, o, None)[:3] for s, p, o in triples]
        self._cause(make_events([ids], [self.clock]))

    def retract(self, event: MatchedEvent) -> None:
        """Remove an event from the memories of rules, the conflict set and the patterns."""
        self._retracted.append(event.order)
        self.rules.retract(event.order)
        if self.conflicts is not None:
            self.conflicts.retract(event.order)
        if self.detection is not None:
            self.detection.retract(event.order)

    def collect(self) -> None:
        """Queue the events that changes of the graph have caused, transaction by transaction."""
        self._schedule.protect(self)
        if self.conflicts is not None:
            self.conflicts.catch_up()
        for events in self._effects.collect(self.clock):
            self._cause(events)

    def _cause(self, events: EventBatch) -> None:
        depth = self._schedule.depth
        caused = replace(events, depth=depth) if depth else events
        self._schedule.cause(lambda: self.take_all(caused))

    # --- cascades ---

    def _enter(self, depth: int) -> None:
        """Take part in the cascade under way; `depth` actions have led to this."""
        self._schedule.protect(self)
        if self._entered != self._schedule.cascade:
            self._entered = self._schedule.cascade
            self._cascade.begin()
        if depth:
            self._savepoint()

    def _begin(self) -> None:
        """Begin another cascade, with the next event of a batch."""
        self._schedule.begin()
        self._entered = self._schedule.cascade
        self._cascade.begin()

    # --- batches of events ---

    def _end(self, events: EventBatch) -> int:
        """Up to where events can be matched together."""
        many = len(events.ends)
        if events.simultaneous or many == 1:
            return many
        if self.conflicts is not None or self.tracer is not None or self._graph.takes_events_apart:
            return 1
        patterns = self.detection
        if patterns and (patterns.retracts or events.depth) and not self._is_independent():
            return 1
        return min(many, self.batch_size)

    def _take_together(self, events: EventBatch, detection: Detection) -> int:
        """Match several events and the complex events that they complete; how many are through.

        If an action changes what rules match, the patterns are rolled back to the event that caused
        it, as the rules are. If that is the end of an absence, the timers of its time come before
        it. What timers complete for rules is left to the scheduler.
        """
        free, order = self._is_independent(), self.rules.order
        tokens, done, at, self.taken = detection.savepoint(), 0, 0, 0
        try:
            with self._allowed():
                expanded = detection.expand(events, order, self._read(detection))
            every, causes = expanded.events, expanded.places // 4
            many = len(every) if free else self._first_timer(expanded)
            while at < many and (free or not at):
                taken = self._take_part(every.slice(at, many), causes[at:many])
                at, self.taken = at + taken, 0
            many = many if free else expanded.end_of(at)
            while at < many:
                self._take_part(every.slice(at, at + 1))
                at, self.taken = at + 1, 0
            done = expanded.after(at)
        except BaseException:
            if not free and at + self.taken:
                done = self.taken = expanded.after(at + self.taken)
            raise
        finally:
            if done < len(events):
                detection.rollback(tokens)
                if done:
                    detection.expand(events.slice(0, done), order, self._read(detection))
                if self._waited is not None:
                    detection.pass_time(self._waited + 1)
                self._cascade.save_tokens()
        return done

    def _read(self, detection: Detection) -> list[int]:
        """The types of events that rules have conditions on; a tracer reads all complex events."""
        if self.tracer is None:
            return self.rules.type_ids
        return [each.type_id for each in detection.patterns.values()]

    def _first_timer(self, expanded: ExpandedEvents) -> int:
        """The index of the first complex event for a rule that a timer completes, or the end."""
        found = np.flatnonzero(expanded.places % 4 == 0)
        return int(found[0]) if len(found) else len(expanded.places)

    def _take_with_complex(self, events: EventBatch, detection: Detection) -> None:
        """Match events, each with the complex events that it completes right after it."""
        read = self._read(detection)
        if len(events.ends) == 1 and not events.simultaneous:
            with self._allowed():
                every = detection.expand_one(events, self.rules.order, read)
            for one in every:
                self._take_part(one.scheduled_as(events))
            return
        with self._allowed():
            expanded, at = detection.expand(events, self.rules.order, read).events, 0
        while at < len(expanded):
            at += self._take_part(expanded.slice(at, len(expanded)))

    def _take_part(self, events: EventBatch, causes: Longs | None = None) -> int:
        """Match events and fire; the number of events that are through.

        All events of a transaction come before any action. Of others, those after an action that
        changes what rules match have to wait. `causes` has the number of the event that each comes
        with: a complex event is in the cascade of the one that completes it.
        """
        self.rules.catch_up()
        many = len(events.ends)
        if self.tracer is not None:
            self.tracer.take(events)
        if events.simultaneous or many == 1:
            self.taken = 1
            shares = self._match(events)
            if shares and many > 1:
                shares = [RuleMatches(each, found.at_one_moment()) for each, found in shares]
            if shares:
                self._fire_now(shares, events.depth)
            elif not events.depth:
                self.batch_size = max(self.batch_size, 2)
            if self.tracer is not None:
                self.tracer.settle()
            return many
        taken = self.taken = self._take_many(events, causes)
        if taken == many:
            self._set_clock(int(events.ends[-1]))
            self.batch_size = min(2 * self.batch_size, MAX_BATCH)
        return taken

    def _set_clock(self, time: int) -> None:
        """Move the clock on within a batch: nobody else has anything due before its last event."""
        self._schedule.clock = max(self._schedule.clock, time)

    def _match(self, events: EventBatch) -> list[RuleMatches]:
        before = events.transactions
        with self._allowed():
            return self.rules.take(events, self._graph.position if before is None else before)

    def _allowed(self) -> Allowance:
        """What matching events may take; actions are not part of it, which may call users' code."""
        return Allowance(self._graph.limits, "flush")

    def _take_many(self, events: EventBatch, causes: Longs | None) -> int:
        """Match several events, and fire what they complete; how many of them are through."""
        if events.transactions is None:  # actions commit more of them
            events = replace(events, transactions=self._graph.position)
        saved, order = self.rules.savepoint(), self.rules.order
        states = None if self._is_independent() else saved
        try:
            self.taken = 0
            agenda = Agenda(self._match(events), self._graph.terms, self.log.total)
            if len(agenda) and (events.depth or not self._apply_all(agenda)):
                return self._fire_each(agenda, events, states, causes)
        except BaseException:
            if not self.taken:
                self.rules.rollback(saved, order)
            raise
        return len(events.ends)

    def _apply_all(self, agenda: Agenda) -> bool:
        """Fire all at once, if that makes no difference; whether so."""
        applied = self._effects.apply_all(agenda)
        if applied:
            self.log.add(agenda)
        return applied

    def _fire_each(
        self,
        agenda: Agenda,
        events: EventBatch,
        states: RuleSavepoints | None,
        causes: Longs | None,
    ) -> int:
        """Fire event by event until an action changes what rules match; the events done.

        If it was not the last one, the rules are rolled back to it: they forget those after it.
        """
        queued = self._schedule.queued
        cascade: tuple[int, int | None] | None = None
        begun = fired = 0  # events and firings at the first firing of the cascade
        for moment, time, places in agenda.groups():
            event, complete = divmod(moment, 2)
            taken, waited = event + complete, None if complete else time
            cause = event if causes is None else int(causes[event]), waited
            if waited is not None:
                self._cascade.count_end("absence", waited, ())
            self._retracted.clear()
            self.taken = taken
            self._set_clock(int(events.ends[event]) if waited is None else waited)
            if cause != cascade:
                cascade, begun, fired = cause, taken, self.log.total
                if not events.depth:
                    self._begin()
                    self.rules.track()
            try:
                self._fire(agenda.pending(places), events.depth)
            except BaseException:
                if states is not None:
                    self._roll_back_to(events, states, taken, waited)
                    self._waited = waited
                    self._retract_again()
                raise
            if states is not None and self._has_changed(queued):
                self._roll_back_to(events, states, begun, waited)
                if not events.depth:
                    self._cascade.save(fired)
                if begun < taken:
                    self._match(events.slice(begun, taken))
                self._waited = waited
                self._retract_again()
                return taken
        return len(events.ends)

    def _has_changed(self, queued: int) -> bool:
        """Whether actions have changed what rules match; `queued` effects were there before."""
        changed = self.rules.look_changed()
        return bool(self._retracted) or self._schedule.queued > queued or changed

    def _roll_back_to(
        self, events: EventBatch, states: RuleSavepoints, taken: int, waited: int | None
    ) -> None:
        """Roll the rules back to the first events, as if the others had not come yet.

        `waited` is the time until which a match with NO EVENT waited, if that fired.
        """
        self.rules.rollback(states, self.rules.order - len(events))
        if taken:
            self._match(events.slice(0, taken))
        if waited is not None:
            self.rules.advance(waited + 1)
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
        self._schedule.depth = depth + 1
        for firing in firings:
            if self.conflicts is not None:
                self.conflicts.add(firing.firing(), firing.entry, depth)
                if self.tracer is not None:
                    self.tracer.activate(firing.firing())
            else:
                self._carry_out(firing, depth)

    def _carry_out(self, firing: PendingFiring, depth: int) -> None:
        if self.tracer is not None:
            self.tracer.fire(firing.firing())
        self.log.add_pending(firing)
        if depth and not self._cascade.count(firing.rule):
            raise self._cascade.endless(self._effects.undo())
        if firing.entry.action is not None:
            try:
                firing.entry.action.carry_out(firing)
            except ActionError as error:  # it has changed nothing: the other firings go on
                self._schedule.report(error)
            self.collect()

    def _fire_next(self) -> bool:
        """Fire the first activation of the conflict set, unless firing is manual."""
        if self.conflicts is None or self.manual:
            return False
        activation = self.conflicts.first()
        if activation is not None:
            self._fire_activation(activation)
        return activation is not None

    def _fire_activation(self, activation: Activation) -> None:
        self._enter(0)
        assert self.conflicts is not None  # noqa: S101 - there was an activation
        self.conflicts.take(activation)
        self._savepoint()
        self._schedule.depth = activation.depth + 1
        firing = replace(activation.firing, number=self.log.total)
        self._carry_out(ChosenFiring(firing, activation.entry), activation.depth)
        self.conflicts.fired(activation)
