"""EventPublisher: numbers the events of all streams, and publishes them to running programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.events import EventBuffer, first_rows_of, group_events
from graphtide.engine.ingest import ObjectLike, TermLike, quad_ids
from graphtide.engine.transaction import is_unsettled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphtide.engine.runtime import Runtime
    from graphtide.engine.transaction import Protected
    from graphtide.kernel.batch import Ints, Longs

Lines = tuple["Longs", "Ints", "Longs"]
"""Times, quads, and the number of the event that each quad is of."""


class EventPublisher:
    """Numbers the events of all streams, and publishes them to the runtime's subscribers.

    Events of a stream go to the windows first, then to the subscribers. Where there are windows, or
    other streams hold events back, that happens time by time; else many are published at once.
    """

    def __init__(self, runtime: Runtime, apart: Callable[[], bool], streams: Protected) -> None:
        self.schedule = runtime.schedule
        self.lock = runtime.lock
        self._runtime = runtime
        self._terms = runtime.terms
        self._apart = apart
        self._streams = streams
        self.numbers = 0

    @property
    def listening(self) -> bool:
        """Whether there are subscribers."""
        return bool(self._runtime.eager)

    @property
    def calls_back(self) -> bool:
        """Whether there are callbacks, which see the graph after each single event."""
        return bool(self._runtime.queries.with_callbacks)

    def release(self, stream: object, pass_on: Callable[[], None]) -> None:
        """Let a stream pass events on; terms may be freed after that, but not meanwhile.

        What an interrupt or an error leaves is passed on by the next call.
        """
        self._pass_on(stream, pass_on)
        self.reclaim()

    @property
    def apart(self) -> bool:
        """True if events are taken time by time: windows close, or events of a stream wait."""
        return self._apart()

    def _pass_on(self, stream: object, pass_on: Callable[[], None]) -> None:
        reclaimer, schedule = self._runtime.reclaimer, self.schedule
        reclaimer.busy += 1
        schedule.releasing += 1
        try:
            pass_on()
        finally:
            reclaimer.busy -= 1
            schedule.releasing -= 1
        if schedule.item is None:  # what a cascade emits leaves the rest of a batch where it is
            schedule.unreleased.pop(stream, None)

    def begin_release(self, stream: object, pass_on: Callable[[], None]) -> None:
        """A stream is about to take in events, which are to be passed on also if interrupted."""
        self.schedule.settled = None
        if self.schedule.item is None:
            # The next call passes the events on, in its middle: it may hold ids, so none is freed.
            self.schedule.unreleased[stream] = lambda: self._pass_on(stream, pass_on)

    def protect(self) -> None:
        """Streams or windows take part in the piece of input under way, if there is one."""
        self.schedule.protect(self._streams)

    def settle(self) -> None:
        """Take in what waits in the buffer, and what an interrupt has left."""
        if is_unsettled(self._runtime):
            self._runtime.flush()

    def reclaim(self, *, in_call: bool = False) -> None:
        """A safe point, see `Runtime.reclaim`."""
        self._runtime.reclaim(in_call=in_call)

    def number(self, times: Longs, quads: Ints, events: Longs | None) -> Longs:
        """A number for the event of each quad that no other event has."""
        if len(times) == 1:
            self.numbers += 1
            return np.array([self.numbers - 1], np.int64)
        if events is None:
            events = _by_time_and_graph(times, quads)
        elif (events[1:] >= events[:-1]).all():
            events = np.concatenate([[0], np.cumsum(events[1:] > events[:-1])])
        else:
            _, events = np.unique(events, return_inverse=True)
        numbers: Longs = events + self.numbers
        self.numbers = int(numbers.max()) + 1
        return numbers

    def parts(self, lines: Lines) -> Iterator[Lines]:
        """Events that can be published at once: all; or one by one, if others see them too."""
        times, quads, numbers = lines
        if len(times) == 1 or not (self.apart or len(self._runtime.eager) > 1):
            yield lines
            return
        begins = first_rows_of(numbers).tolist()
        for begin, end in zip(begins, [*begins[1:], len(times)], strict=True):
            at = slice(begin, end)
            yield times[at], quads[at], numbers[at]

    def is_patient(self) -> bool:
        """Whether nobody could tell if events were published later, together."""
        runtime = self._runtime
        waits = all(follower.can_wait() for follower in self.schedule.followers)
        return waits and len(runtime.eager) <= 1 and not runtime.queries.with_callbacks

    def can_wait(self, time: int) -> bool:
        """Whether events that are not of a stream may wait in the buffer of the scheduler."""
        on_time = self.listening and time >= self._runtime.clock
        return on_time and not self.apart and self.is_patient()

    def defer(
        self, triples: Sequence[tuple[TermLike, TermLike, ObjectLike]], time: int | None
    ) -> bool:
        """Buffer an event that is not of a stream; False if it has to be published at once."""
        schedule = self.schedule
        if schedule.buffer.sink is not self or schedule.draining:
            schedule.drain()
            if not self.can_wait(schedule.clock if time is None else time):
                return False
        elif time is None:
            time = schedule.buffer.newest
        terms = self._terms
        if len(triples) == 1:
            ((s, p, o),) = triples
            quads = [quad_ids(terms, s, p, o, None)]
        else:
            quads = [quad_ids(terms, s, p, o, None) for s, p, o in triples]
        return schedule.defer(self, schedule.clock if time is None else time, quads)

    def pass_on(self, _: EventBuffer) -> None:
        """Publish buffered events."""
        self.schedule.pass_on(self._runtime.eager)

    @property
    def in_order(self) -> bool:
        """True if what is due happens at its time: somebody sees each close, or NOW() is asked."""
        return self._runtime.one_by_one or bool(self._runtime.queries.plans.network.timed)

    def reach(self, time: int, stream: object) -> None:
        """Raise the watermark of a stream, and the clock: what is due comes before that time."""
        if self.in_order:
            self.schedule.advance(time, stream)

    def move_clock(self, to: int) -> None:
        """Move the clock to a watermark for which nothing is due any more."""
        self.schedule.clock = max(self.schedule.clock, to)

    def publish(self, lines: Lines) -> int:
        """Publish events; how many quads were too late, being older than the graph's clock."""
        runtime, (times, quads, numbers) = self._runtime, lines
        if not len(times) or int(times[-1]) < runtime.clock:
            return len(times)
        late = int(np.searchsorted(times, runtime.clock))
        runtime.publish(group_events(times[late:], quads[late:], numbers[late:]))
        return late


def _by_time_and_graph(times: Longs, quads: Ints) -> Longs:
    """Number rows: those of one time and graph that stand together are one event."""
    begins = (times[1:] != times[:-1]) | (quads[1:, 3] != quads[:-1, 3])
    return np.concatenate([[0], np.cumsum(begins)])


def each_event(times: Longs, quads: Ints, events: Longs | None) -> list[Longs]:
    """Return the places of the rows of each event, in the order of their numbers.

    >>> [at.tolist() for at in each_event(np.arange(3), np.zeros((3, 4)), np.array([7, 2, 7]))]
    [[1], [0, 2]]
    """
    numbers = _by_time_and_graph(times, quads) if events is None else events
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
