"""Scheduler: one clock and one queue for all that happens on a live graph.

Input comes one piece at a time: a transaction, an event, a move of the clock. What is due before
it comes first, in order of time. The input takes effect, and then everything that it causes (events
of queries, actions of rules, emitted events), in order of cause, until nothing is left: a cascade.
So answers do not depend on how input is divided into calls, or on the steps of the clock.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from graphtide.engine.events import MAX_WAITING, EventBuffer
from graphtide.engine.locking import Depth
from graphtide.engine.timers import ALL_STREAMS, Follower, Phase
from graphtide.engine.transaction import WorkItem
from graphtide.errors import CascadeError, GraphtideError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from graphtide.engine.events import EventBatch, EventSink
    from graphtide.engine.ingest import Ids
    from graphtide.engine.transaction import InputRecorder, ItemHost, MadeCalls, Protected


Result = TypeVar("Result")

NEVER: Final = 1 << 62
"""A time after those of all events."""


@dataclass(slots=True, eq=False)
class _Input:
    """Events that wait, for whom, and how many of them are through."""

    events: EventBatch
    followers: tuple[Follower, ...]
    taken: int = 0

    def savepoint(self) -> int:
        """How many are through."""
        return self.taken

    def roll_back(self, to: int) -> None:
        """Those since then wait again."""
        self.taken = to


FAILED: Final = object()
"""What `attempt` returns if something was raised."""


class Scheduler:
    """The clock, the effects that wait for their turn, and the followers in order.

    `cascade` is the number of the cascade under way, `journal` which quads it has changed, with
    whether each was present before. `depth` is that of what is caused now: 0 for effects of the
    input, and one more for each action in between.

    Inside `with scheduler, scheduler.one_call:` errors of cascades wait: all input of a call of a
    user is taken in, and then the first of them, `failure`, is raised.

    A `recorder` is given all input. `calling` is true while functions and callbacks of users run,
    `calling_back` while callbacks do; `read_only` while a function runs that has not asked for the
    graph, and so may not change it.

    Callbacks see the graph after the whole input that has led to them, with all that it made due.
    Until then they are in `notices`; what they write are inputs that come `next`.
    """

    def __init__(self) -> None:
        self.recorder: InputRecorder | None = None
        self.calling = False
        self.calling_back = False
        self.read_only = False
        self.notices: deque[Callable[[], object]] = deque()
        self.next: deque[Callable[[], None]] = deque()
        self.finish_input: Callable[[], None] = lambda: None
        """The runtime runs callbacks, and takes in what they have written."""
        self.one_call = Depth()
        self.inputs = self._written = 0
        """How many inputs are under way, each inside of the one before. Counted in place, with
        `finally`: the calls of a context manager may be interrupted. And what a callback wrote."""
        self.host: ItemHost | None = None
        """The runtime, if pieces of input are to happen wholly or not at all, for rules too."""
        self.item: WorkItem | None = None
        """The piece of input under way; it is committed when this is None again."""
        self.touched = False
        """Whether the function of a user that runs now has changed the graph."""
        self.known: Exception | None = None
        """The last error of a function of a user, or of a transaction that was not applied."""
        self._over: Exception | None = None
        """The last error of a limit that matching events was over."""
        self._made: dict[Hashable, MadeCalls] = {}
        self._reached: tuple[int, object] | None = None
        """The time that some followers may not know of yet, and the cause of the move."""
        self._passing = False
        self._recorded = 0
        self._called: int | None = None
        """While a function of CALL runs whose input is recorded: how deep it was called."""
        self.clock = 0
        self.raised = -NEVER
        """The time of the last change of the graph or move by the user: no watermark is lower."""
        self.depth = 0
        self.cascade = 0
        self.running = False
        self.journal: dict[Ids, bool] = {}
        self.followers: list[Follower] = []
        self._effects: deque[tuple[int, Callable[[], None]]] = deque()
        self.waiting: deque[_Input] = deque()
        """Events that wait for their turn."""
        self.unreleased: dict[object, Callable[[], None]] = {}
        """Streams that pass events on, or were interrupted in that, and what passes on the rest."""
        self.releasing = 0
        self.buffer = EventBuffer()
        self.draining = False
        self.published = self.accepted = 0
        """How often events were published, and input was taken in: an interrupt comes before the
        number changes, and has left the input to the caller, or after that."""
        self.settled: object = None
        """What was applied last, if nothing waits: while it is the same, answers are the same."""
        self.failure: Exception | None = None
        self._feeding = False

    def __enter__(self) -> None:
        """Nothing to do: `one_call` counts."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.failure is not None and not self.one_call and not self.running:
            self._raise_first(error)

    def raise_errors(self) -> None:
        """Raise the first error that waits, unless a cascade or a call is under way."""
        if self.failure is not None and not self.one_call and not self.running:
            self._raise_first(None)

    def _raise_first(self, error: BaseException | None) -> None:
        failure, self.failure = self.failure, None
        if error is None and failure is not None:
            raise failure
        if error is not None:
            error.add_note(f"before that: {failure}")

    @property
    def queued(self) -> int:
        """How many effects wait for their turn."""
        return len(self._effects)

    def is_idle(self, *, in_call: bool = False) -> bool:
        """Whether nothing runs or waits, outside of calls of users, or inside of one."""
        under_way = self.running or self._effects or self.waiting or self.item is not None
        return not (under_way or self.has_callbacks_due) and bool(self.one_call) == in_call

    # --- inputs and callbacks ---

    @property
    def is_between_inputs(self) -> bool:
        """Whether no input is under way, so that callbacks may run."""
        inside = self.inputs or self._recorded
        return not (self.running or inside or self.calling_back)

    @property
    def has_callbacks_due(self) -> bool:
        """Whether callbacks are to run, or what they have written is to be taken in."""
        return bool(self.notices or self.next)

    def call_back(self) -> None:
        """Run the first callback that is due; its error is raised at the end of the call."""
        before, self.calling, self.calling_back = self.calling, True, True
        try:
            self.attempt(self.notices[0])
            self.calling = before
            self.notices.popleft()
        finally:
            self.calling, self.calling_back = before, False

    def defer_to_next(self, work: Callable[[], None]) -> None:
        """Let what a callback writes be the next input, before those that wait already."""
        self.settled = None
        self.next.insert(self._written, work)
        self._written += 1

    def take_next(self) -> None:
        """Take in the first input that waits; its error is raised at the end of the call.

        If it is interrupted before it is accepted, it comes again.
        """
        self._written, before = 0, self.accepted
        self.inputs += 1
        try:
            self.attempt(self.next[0])
        except BaseException:
            if self.accepted != before:
                self.next.popleft()
            raise
        finally:
            self.inputs -= 1
        self.next.popleft()

    def take_each(self, inputs: Sequence[Callable[[], None]]) -> None:
        """Take in the inputs of one call, each with its callbacks; after an interrupt, later."""
        with self, self.one_call:
            self.next.extend(inputs)
            self.finish_input()

    def cause(self, effect: Callable[[], None]) -> None:
        """Queue an effect of what is under way."""
        self._effects.append((self.depth, effect))

    def begin(self) -> None:
        """Begin another cascade."""
        self.cascade += 1
        self.depth = 0
        if self.journal:
            self.journal = {}

    def report(self, error: Exception) -> None:
        """Something failed and changed nothing: `perform` raises the first error at its end."""
        self.failure = self.failure or error

    def perform(self, work: Callable[[], None], key: Hashable = None) -> None:
        """Do a piece of input, or what is due, and everything that it causes.

        Errors do not stop a cascade: what does not depend on them goes on, and then the first of
        them is raised. An interrupt undoes all of it; who has the input does it again, with the
        same `key`. Within a cascade, the work is a part of that.
        """
        self.settled = None
        if self.running:
            work()
            return
        self.recover()
        if self.waiting or self.buffer.sink is not None:
            self.resume()
        if self.host is not None:
            made, notices = self._made.get(key), len(self.notices)
            item = WorkItem(key, self.clock, self.raised, self.failure, made, notices)
            item.saved[self.host] = self.host.savepoint()
            self.item = item
            self._made.pop(key, None)
        self.running = True
        try:
            self.begin()
            self.attempt(work)
            self._drain()
            self.item = None
        except BaseException as error:
            self.running = False
            with suppress(Exception):  # the next call tries again, and raises it
                self.recover()
            self.interrupted(error)
            raise
        finally:
            self.running = False
            self.depth = 0
        self.raise_errors()

    def protect(self, part: Protected) -> None:
        """A part is about to take part in the piece of input under way."""
        item = self.item
        if item is not None and part not in item.saved:
            item.saved[part] = part.savepoint()

    @property
    def is_interrupted(self) -> bool:
        """Whether `recover` has something to do, if nothing runs."""
        return self.item is not None or self._reached is not None

    def recover(self) -> None:
        """Undo, or complete, what an interrupt has left half done."""
        if self.running:
            return
        item = self.item
        if item is not None:
            self._effects.clear()
            self.depth, self.failure = 0, item.failure
            self.clock, self.raised = item.clock, item.raised
            self._reached = None  # it was raised within the piece
            while len(self.notices) > item.notices:
                self.notices.pop()
            for part, saved in item.saved.items():
                part.roll_back(saved)
            if item.made and item.key is not None:
                self._made[item.key] = item.made
            self.item = None
        if self._reached is not None and not self._passing:
            self._pass_on_time(*self._reached)

    def once(self, label: object, function: Callable[[], object]) -> None:
        """Call a function of a user, unless that is finished, and the input is taken in again.

        One that has changed the graph is called again: its changes were undone.
        """
        if self.item is None:
            function()
        else:
            self.item.call(label, function, self)

    def _drain(self) -> None:
        while self._effects or self._goes_on():
            if self._effects:
                self.depth, effect = self._effects.popleft()
                self.attempt(effect)

    def _goes_on(self) -> bool:
        """Whether a follower had something left to do; what fails was something."""
        return any(self.attempt(follower.go_on) in (True, FAILED) for follower in self.followers)

    def attempt(self, work: Callable[[], object]) -> object:
        """Do something; an error, for which `FAILED` is returned, is raised at the end."""
        try:
            return work()
        except CascadeError as error:
            self._abort()
            self.report(error)
        except Exception as error:
            if self.item is not None and not self.is_known(error):
                raise
            self.report(error)
        return FAILED

    def is_known(self, error: Exception) -> bool:
        """Whether it is certain what has happened; if not, it is as after an interrupt."""
        if error is self.known:
            return True
        return not isinstance(error, MemoryError) and error is not self._over

    def not_applied(self, error: Exception, time: int, *, derived: bool) -> None:
        """A transaction failed. What a limit has prevented, a replay of its cause might not."""
        error.add_note(f"the transaction at time {time} was not applied")
        self.known = error
        if derived and isinstance(error, LimitError | MemoryError):
            self.interrupted(error)

    def interrupted(self, error: BaseException) -> None:
        """Input that is recorded may not be wholly in the graph."""
        if self.recorder is not None:
            self.recorder.interrupted(error)

    def _abort(self) -> None:
        """Drop all effects: the cascade has no end, and the graph has been rolled back."""
        self._effects.clear()
        for follower in self.followers:
            follower.abort()
        self._effects.clear()

    # --- recording ---

    @property
    def recording(self) -> InputRecorder | None:
        """The recorder, if what comes now is input and does not follow from other input.

        What a function of CALL does is input, too: the recorder keeps it with the call.
        """
        if self._called is not None:
            return self.recorder if self._recorded == self._called else None
        return None if self.running or self._recorded else self.recorder

    def admit(self, *, more: bool = False) -> InputRecorder | None:
        """Input comes, or `more` of a call: wait until it can be recorded; by whom."""
        self.touched = True
        if self.calling:
            self.check_input()
        recorder = self.recording
        if recorder is not None:
            recorder.admit(more=more)
        return recorder

    def take_input(self, work: Callable[[], Result], kind: str, *what: object) -> Result:
        """Record a piece of input and do it; what happens inside follows from it.

        A replay raises any `Exception` again. After an interrupt the recorder has all of the input,
        and the graph perhaps a part.
        """
        self.touched = True
        if self.calling:
            self.check_input()
        with self, self.one_call:
            if self.recorder is None:
                self.inputs += 1
                try:
                    result = work()
                finally:
                    self.inputs -= 1
            else:
                result = self._take_recorded(work, kind, *what)
            if self.notices and self.is_between_inputs:
                self.finish_input()
        return result

    def _take_recorded(self, work: Callable[[], Result], kind: str, *what: object) -> Result:
        recorder, underway = self.recording, False
        if recorder is not None:
            recorder.admit()
            underway = recorder.underway
            recorder.input(kind, *what)
        # Counted here and not by a context manager: its own calls may be interrupted, too.
        self._recorded += 1
        try:
            result = work()
        except Exception:
            if recorder is not None:
                recorder.underway = underway
            raise
        except BaseException as error:
            self.interrupted(error)
            raise
        finally:
            self._recorded -= 1
        if recorder is not None:
            recorder.underway = underway
        return result

    def call(self, firing: str, function: Callable[[], object], *, writes: bool) -> None:
        """Call a function of a user, for an action of a firing; only some `writes` the graph."""

        def guarded() -> None:  # not around a replay, which does what the function did then
            before, self.read_only = self.read_only, not writes
            try:
                function()
            finally:
                self.read_only = before

        before = self.calling, self._called
        self.calling = True
        try:
            if self.recorder is None:
                self.once(firing, guarded)
            else:
                self._called = self._recorded
                self.recorder.call(firing, guarded)
        finally:
            self.calling, self._called = before

    def accept(self) -> None:
        """Input comes: it may be refused, and what is buffered comes before it."""
        self.touched = True
        self.check_input()
        self.drain()

    def check_input(self) -> None:
        """Refuse input of a function that has not asked for the graph.

        Which rules may be matched in batches follows from reading the program and its functions.
        """
        if self.read_only:
            raise GraphtideError(
                "a function of CALL cannot change the graph unless it asks for it",
                hint="give it a keyword parameter graph: def f(x, *, graph)",
            )

    # --- events ---

    def publish(self, events: EventBatch, followers: tuple[Follower, ...]) -> None:
        """Pass events to followers, each with all that it causes before the next one.

        A single follower takes as many at a time as it can. Errors are raised when all events are
        through; after an interrupt, the rest of them comes before the next input.
        """
        self.settled = None
        if len(followers) == 1:
            events = followers[0].admit(events)
        if self.running:
            self.published += 1
            self._cause_events(events, followers)
            return
        self.waiting.append(_Input(events, followers))
        self.accepted += 1
        self.published += 1
        self.resume()

    def settle(self) -> None:
        """Undo what was interrupted, and work off the events that wait, unless something runs."""
        if not self.running:
            self.recover()
            if self.buffer.sink is not None:
                self.drain()
            if self.waiting:
                self.resume()
            if self.unreleased and not (self._feeding or self.releasing):
                for stream, release in list(self.unreleased.items()):
                    self.inputs += 1
                    try:
                        release()
                    finally:
                        self.inputs -= 1
                    self.unreleased.pop(stream, None)

    def resume(self) -> None:
        """Work off the events that wait, also those that an interrupt has left."""
        if self._feeding:
            return
        self.recover()
        if self.buffer.sink is not None:
            self.drain()
        self._feeding = True
        try:
            with self, self.one_call:
                while self.waiting:
                    self.inputs += 1
                    try:
                        self._take_first()
                    finally:
                        self.inputs -= 1
        finally:
            self._feeding = False

    def defer(self, sink: EventSink, time: int, quads: Sequence[Ids]) -> bool:
        """Buffer a single event until somebody looks; False if it has to be passed on at once.

        Whatever may change the answer of `can_wait`, or see a difference, drains the buffer first.
        """
        buffer = self.buffer
        if buffer.sink is not sink or time < buffer.newest:
            self.drain()
            self.settled = None
            idle = not (self._feeding or self.calling) and self.is_idle()
            if not idle or self.recorder is not None or not sink.can_wait(time):
                return False
            buffer.begin(sink, time)
        if buffer.add(time, quads) >= MAX_WAITING:
            self.drain()
            sink.reclaim()
        return True

    def drain(self) -> None:
        """Pass buffered events on."""
        sink = self.buffer.sink
        if sink is None or self.draining:
            return
        self.draining, self.buffer.newest = True, NEVER
        try:
            with self, self.one_call:
                sink.pass_on(self.buffer)
                if self.waiting:  # what an interrupt may have left
                    self.resume()
                self.buffer.sink = None
        finally:
            self.draining = False

    def pass_on(self, followers: tuple[Follower, ...]) -> None:
        """Pass buffered events to followers, and let all of them know how late it is then."""
        if self.buffer.times:
            waiting = _Input(self.buffer.events(), followers)
            self.waiting.append(waiting)
            self.buffer.times = []
        self.resume()
        self.pass_time()

    def pass_time(self) -> None:
        """Let followers know the time that a batch of events has led to."""
        for follower in self.followers:
            follower.time_passed(self.clock, None)

    def _take_first(self, most: int = NEVER) -> None:
        """Pass on the first event that waits, or several if one follower can take them.

        Of events that take too much time or memory together, half is passed on; a single one that
        does is refused, and nothing of it has happened.
        """
        waiting = self.waiting[0]
        followers, many = waiting.followers, min(len(waiting.events.ends), waiting.taken + most)
        if waiting.taken >= many or not followers:
            self.waiting.popleft()
            if not followers and many:
                self.advance(int(waiting.events.ends[-1]), None)
            return
        events = waiting.events.slice(waiting.taken, many)
        self.advance(int(events.ends[0]), None)

        def take() -> None:
            self.protect(waiting)
            taken = 1
            try:
                if len(followers) == 1:
                    taken = followers[0].take_events(events)
                else:
                    one = events.slice(0, 1)
                    _take_each([(follower, follower.admit(one)) for follower in followers])
            except BaseException:
                if len(followers) == 1:
                    taken = followers[0].taken
                raise
            finally:
                waiting.taken += taken

        try:
            self.perform(lambda: self._refusing(take), (waiting, waiting.taken))
        except (LimitError, MemoryError) as error:
            if self.item is not None:
                raise
            if len(followers) == 1 and len(events.ends) > 1:
                self._take_first(len(events.ends) // 2)
                return
            error.add_note(f"the event at time {int(events.ends[0])} was not taken in")
            waiting.taken += 1
            self.report(error)

    def _refusing(self, work: Callable[[], None]) -> None:
        """Take in events; what a limit stops there is undone, unless it is a transaction."""
        try:
            work()
        except LimitError as error:
            if error is not self.known:
                self._over = error
            raise

    def _cause_events(self, events: EventBatch, followers: tuple[Follower, ...]) -> None:
        """Events that an action or a callback publishes are effects, one by one."""
        for at in range(len(events.ends)):
            one = replace(events.slice(at, at + 1), depth=self.depth)
            admitted = [(follower, follower.admit(one)) for follower in followers]
            self.cause(partial(_take_each, admitted))

    # --- time ---

    def advance(self, to: int, cause: object = ALL_STREAMS) -> None:
        """Move the clock on, after everything that is due before that, in order of time.

        The `cause` is ALL_STREAMS, a stream whose watermark rises, also to a time that the clock
        has passed, or None for an event of no stream.
        """
        if not self.running:
            self.recover()
            if self.host is not None:
                self.host.flush()
            elif self.waiting or self.buffer.sink is not None:
                self.resume()
        if cause is ALL_STREAMS:
            if to == self.clock == self.raised:
                return
            self.check_time(to)
        elif cause is None and to <= self.clock:
            return
        if self.running and to > self.clock:
            raise GraphtideError(
                f"the clock cannot move to {to} inside an action",
                hint="leave out the time: what an action causes happens at the current time",
            )
        if not self.followers:
            if self.recording is not None and to > self.clock:
                self.recording.clock(to)
            self.clock = to
            if cause is ALL_STREAMS:
                self.raised = to
            return
        if cause is not ALL_STREAMS:  # what moves the clock is recorded, and moves it in a replay
            with self, self.one_call:
                self.inputs += 1
                try:
                    self._advance(to, cause)
                finally:
                    self.inputs -= 1
            return
        with self, self.one_call:
            self.take_input(lambda: self._advance(to, cause), "clock", to)

    def check_time(self, time: int) -> None:
        """Raise if a time is before the clock."""
        if time < self.clock:
            raise GraphtideError(
                f"time runs backwards: {time} is before the graph's clock, {self.clock}",
                hint="give times in order; equal times are allowed",
            )

    def _advance(self, to: int, cause: object) -> None:
        while self._do_next(to, cause):
            pass
        self._reached = to, cause
        self._pass_on_time(to, cause)

    def _pass_on_time(self, to: int, cause: object) -> None:
        """Let followers know how late it is; if that is interrupted, all of them once more."""
        self._passing = True
        try:
            self.clock = max(self.clock, to)
            if cause is ALL_STREAMS:
                self.raised = to
            for follower in self.followers:
                follower.time_passed(to, cause)
            self._reached = None
        finally:
            self._passing = False

    def _do_next(self, to: int, cause: object) -> bool:
        first, chosen = None, None
        for follower in self.followers:
            due = follower.next_due(to, cause)
            if due is not None and (first is None or due < first):
                first, chosen = due, follower
        if first is None or chosen is None:
            return False
        due, follower = first, chosen
        if cause is ALL_STREAMS and due.phase is Phase.END and due.time > self.raised:
            # All of that time has happened, so what its end causes waits for no late event: a step
            # of the clock to that time would have raised the watermarks, too.
            self._pass_on_time(due.time, cause)
        if due.phase is not Phase.CLOSE:
            self.clock = max(self.clock, due.time)
        self.perform(lambda: follower.run_due(due, cause), (follower, due))
        return True


def _take_each(admitted: list[tuple[Follower, EventBatch]]) -> None:
    """Let each follower take in one event; what they cause comes after all of them."""
    for follower, event in admitted:
        if len(event.ends):
            follower.take_events(event)


def inside_callback(what: str) -> GraphtideError:
    """The error of a call that needs the graph between two transactions."""
    return GraphtideError(
        f"{what} cannot be used inside a callback: its transaction is still under way",
        hint="use insert(), delete() or push(), which wait for their turn",
    )
