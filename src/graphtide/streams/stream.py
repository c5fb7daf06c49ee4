"""Stream: events in order of time, sorted within a declared lateness; what comes later is late."""

from __future__ import annotations

from functools import partial
from logging import getLogger
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from graphtide.arguments import check_type, iterable, listed_triples, wrong_type
from graphtide.engine.ingest import ObjectLike, TermLike, event_rows, quad_ids
from graphtide.engine.locking import synchronized
from graphtide.errors import GraphtideError
from graphtide.rdf.holders import flat_ids
from graphtide.streams.pruning import Mask, PruningFilter
from graphtide.streams.publisher import each_event
from graphtide.streams.read import GENERATED_AT, Events, read_events
from graphtide.streams.timelist import Timelist
from graphtide.ticks import ticks, ticks_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from graphtide.engine.events import EventBuffer
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.streams.publisher import EventPublisher, Lines
    from graphtide.streams.timelist import TailSavepoint

log = getLogger(__name__)

LARGEST = 2**61
"""Times beyond this leave no room for window arithmetic."""

MAX_LATE = 10_000
"""Late events that are retained for inspection; all are counted."""


NUMBERS: Final = (
    "lateness", "watermark", "_newest", "late_count", "received", "pruned", "unpublished",
)  # fmt: skip
"""What a stream counts, by the names of its attributes."""


COUNTS: Final = (
    "_watermark", "_newest", "late_count", "_received", "_pruned", "_unpublished", "_releasing",
)  # fmt: skip
"""What of that a piece of input may change."""


class StreamSavepoint(NamedTuple):
    """A stream before a piece of input: its numbers, what waits, how many came late, its events."""

    counts: dict[str, Any]
    waiting: tuple[Lines, ...]
    unpublished: tuple[Lines, ...]
    early: frozenset[int]
    late: int
    events: tuple[TailSavepoint, TailSavepoint, TailSavepoint]


class Counted:
    """A number of a stream; who reads it sees all events that were pushed before."""

    def __set_name__(self, owner: type[Stream], name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, stream: Stream, owner: type[Stream]) -> int:
        stream.drain()
        number: int = getattr(stream, self._name)
        return number

    def __set__(self, stream: Stream, number: int) -> None:
        setattr(stream, self._name, number)


class Stream:
    """Made by `LiveGraph.stream`. Events may come late by up to `lateness` ticks.

    Of the triples `received` in time, those that no registered query can match are `pruned` before
    anything is stored. Triples that are older than the graph's clock when they come are counted as
    `unpublished`: rules do not see them, though they may be in time for windows.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> stream = graph.stream("<http://example.org/s>", lateness=5)
    >>> for time in (10, 7, 4):
    ...     stream.push([("<http://example.org/a>", "<http://example.org/p>", time)], time=time)
    >>> stream.late_count
    1
    """

    watermark = Counted()
    received = Counted()
    pruned = Counted()
    unpublished = Counted()
    reached = property(attrgetter("_watermark"))
    """The watermark as far as events have been taken in: others may wait in the buffer."""
    _watermark: int
    _received: int
    _pruned: int

    def __init__(
        self,
        name: str,
        terms: TermDictionary,
        lateness: int,
        tick_ms: int,
        moved: Callable[[], None],
        publisher: EventPublisher,
    ) -> None:
        if lateness < 0:
            raise GraphtideError(f"lateness {lateness} is negative", hint="use 0 or more ticks")
        self.name = name
        self.lateness = lateness
        self.events = Timelist()
        self.late_count = 0
        self.late: list[tuple[int, tuple[int, ...]]] = []
        self.filter = PruningFilter(frozenset())
        self._terms = terms
        self._tick_ms = tick_ms
        self._moved = moved
        self._publisher = publisher
        self.lock = publisher.lock
        self.watermark = -LARGEST
        self.received = self.pruned = self.unpublished = 0
        self._newest = -LARGEST
        self._releasing = False
        self._waiting: list[Lines] = []
        self._left: list[Lines] = []
        """What an interrupt has left of a batch that was on its way to windows and rules."""
        self._unpublished_lines: list[Lines] = []
        self._early: set[int] = set()
        """The numbers of events that wait for windows, and that rules have seen already."""
        terms.holders.add(self)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of events that windows need, that wait, and that came late."""
        yield from self.events.held_ids()
        yield flat_ids(quad for _, quad in self.late)
        for _, quads, _ in (*self._waiting, *self._left, *self._unpublished_lines):
            yield quads

    def savepoint(self) -> StreamSavepoint:
        """What `roll_back` needs."""
        return StreamSavepoint(
            {name: getattr(self, name) for name in COUNTS},
            tuple(self._waiting),
            tuple(self._unpublished_lines),
            frozenset(self._early),
            len(self.late),
            self.events.savepoint(),
        )

    def roll_back(self, to: StreamSavepoint) -> None:
        """A piece of input was interrupted: go back to before it."""
        for name, value in to.counts.items():
            setattr(self, name, value)
        self._waiting, self._unpublished_lines = list(to.waiting), list(to.unpublished)
        self._early = set(to.early)
        del self.late[to.late :]
        self.events.roll_back(to.events)

    def push(
        self, triples: Iterable[tuple[TermLike, TermLike, ObjectLike]], *, time: int,
        graph: TermLike | None = None,
    ) -> None:  # fmt: skip
        """Push one event: triples that happen together at a time.

        Where nobody could tell, it waits until somebody looks: many are then taken in at once.
        """
        time = ticks(time)
        with self.lock:
            # Triples that are computed on the way may use the graph: they are taken before any id.
            listed, terms = listed_triples(triples), self._terms
            if len(listed) == 1:
                ((s, p, o),) = listed
                quads = [quad_ids(terms, s, p, o, graph)]
            else:
                quads = [quad_ids(terms, s, p, o, graph) for s, p, o in listed]
            schedule = self._publisher.schedule
            if quads and time <= LARGEST and schedule.defer(self, time, quads):
                return
            times, events = np.full(len(quads), time, np.int64), np.zeros(len(quads), np.int64)
            rows = np.array(quads, np.int32).reshape(-1, 4)
            self._take_in(times, rows, newest=time, events=events)

    @synchronized
    def push_ids(
        self, times: Longs, quads: Ints, *, newest: int | None = None, events: Longs | None = None
    ) -> None:
        """Push many events: rows of ids of `graph.terms`, with their times.

        Rows with the same number in `events` are one event; without it, rows of one time and graph
        that stand together.
        """
        times, quads, events = event_rows(self._terms, times, quads, events)
        newest = ticks_or_none(newest, "newest")
        self._take_in(times, quads, newest=newest, events=events)

    def _take_in(
        self, times: Longs, quads: Ints, *, newest: int | None = None, events: Longs | None = None
    ) -> None:
        schedule = self._publisher.schedule
        if schedule.calling_back:
            schedule.defer_to_next(
                lambda: self._take_in(times, quads, newest=newest, events=events)
            )
            return
        self._publisher.settle()
        if len(times):
            newest = int(times.max()) if newest is None else newest
            if newest > LARGEST or int(times.min()) < -LARGEST:
                raise GraphtideError(f"time {newest} is out of bounds", hint=f"use up to {LARGEST}")
        times = times.astype(np.int64, copy=False)
        if len(times) > 1 and self._publisher.calls_back and schedule.is_between_inputs:
            each = each_event(times, quads, events)
            if len(each) > 1:
                parts = [(times[at], quads[at], np.zeros(len(at), np.int64)) for at in each]
                schedule.take_each(
                    [partial(self._take_in, *part[:2], events=part[2]) for part in parts]
                )
                return
        what = times, quads, newest, events
        self._publisher.schedule.take_input(lambda: self._push(*what), "push", self.name, *what)

    def _push(self, times: Longs, quads: Ints, newest: int | None, events: Longs | None) -> None:
        self._publisher.protect()
        self._publisher.begin_release(self, self._release_rest)
        if len(times):
            numbers = self._publisher.number(times, quads, events)
            lines = times, quads, numbers
            late = times < self.watermark
            self._waiting.append(self._without_late(lines, late) if late.any() else lines)
            self._publisher.schedule.accepted += 1
        if newest is not None:
            self._newest = max(self._newest, newest)
        watermark, schedule = self._newest - self.lateness, self._publisher.schedule
        latest = LARGEST
        if schedule.running:  # an action emits: what is due before the watermark is on its way
            # The watermark is after the clock where that comes to a close: later events still wait.
            latest = schedule.clock
            watermark = min(watermark, latest)
        self._publisher.release(self, lambda: self._release(watermark, latest))

    @synchronized
    def push_many(
        self, events: Iterable[tuple[Iterable[tuple[TermLike, TermLike, ObjectLike]], int]]
    ) -> None:
        """Push events one after the other, each given by its triples and its time.

        >>> from graphtide import LiveGraph
        >>> stream = LiveGraph().stream("<ex:s>")
        >>> stream.push_many([([("<ex:a>", "<ex:p>", "<ex:b>")], time) for time in (1, 2)])
        >>> stream.received
        2
        """
        listed = [(listed_triples(triples), ticks(time)) for triples, time in _pairs(events)]
        times = [time for _, time in listed]
        if times != sorted(times) or not all(triples for triples, _ in listed):
            for triples, time in listed:
                self.push(triples, time=time)
            return
        quads = [quad_ids(self._terms, *t, None) for triples, _ in listed for t in triples]
        sizes = [len(triples) for triples, _ in listed]
        number = np.repeat(np.arange(len(listed)), sizes)
        rows = np.array(quads, np.int32).reshape(-1, 4)
        self._take_in(np.array(times, np.int64)[number], rows, events=number)

    # --- single events wait in the buffer of the scheduler ---

    def can_wait(self, time: int) -> bool:
        """Whether nobody could tell if events from a time on were released later, together."""
        return not self._releasing and time >= self._newest and self._publisher.is_patient()

    def pass_on(self, buffer: EventBuffer) -> None:
        """Release buffered events."""
        times, sizes, quads = buffer.columns()
        if len(times):
            number = np.repeat(np.arange(len(times)), sizes) if len(quads) > 1 else None
            rows = times if number is None else times[number]
            numbers = self._publisher.number(rows, quads, number)
            self._waiting.append((rows, quads, numbers))
            self._newest, buffer.times = times.item(-1), []
        self._publisher.release(self, lambda: self._release(self._newest - self.lateness))
        if not len(times):  # windows may have been interrupted
            self._moved()
        if self._publisher.listening:
            self._publisher.schedule.pass_time()

    def reclaim(self) -> None:
        """A safe point, see `Runtime.reclaim`."""
        self._publisher.reclaim()

    def drain(self) -> None:
        """Take in the events that wait in the buffer."""
        if self._publisher.schedule.buffer.sink is not None:
            with self.lock:
                self._publisher.schedule.drain()

    @synchronized
    def feed(self, source: Events, *, timestamp: str = GENERATED_AT) -> None:
        """Push the events of a file or of batches: RDF Patch, Parquet, Arrow, TriG or N-Quads.

        In TriG and N-Quads each named graph is an event, and the default graph says when it
        happened, by a triple with the predicate `timestamp`.
        """
        check_type(timestamp, "timestamp", str)
        found = read_events(source, self._terms, timestamp=timestamp, tick_ms=self._tick_ms)
        with self._publisher.schedule, self._publisher.schedule.one_call:
            for times, quads, events in found:
                self.push_ids(times, quads, events=events)
                self._publisher.reclaim(in_call=True)
        self._publisher.reclaim()

    @synchronized
    def advance(self, to: int) -> None:
        """Raise the watermark: no event before that time comes any more."""
        to = ticks(to, "to")
        if self._publisher.schedule.calling_back:
            self._publisher.schedule.defer_to_next(lambda: self.advance(to))
            return
        self._publisher.settle()
        self._publisher.schedule.take_input(lambda: self._raise_to(to), "watermark", self.name, to)

    def _raise_to(self, to: int) -> None:
        self._publisher.protect()
        self._newest = max(self._newest, to)
        self._publisher.release(self, lambda: self._release(to))

    def _without_late(self, lines: Lines, late: Mask) -> Lines:
        times, quads, numbers = lines
        self.late_count += int(late.sum())
        log.info(
            "stream %s: late quads are left out, %d in all: older than the watermark %d",
            self.name, self.late_count, self.watermark,
        )  # fmt: skip
        room = MAX_LATE - len(self.late)
        found = zip(times[late].tolist(), quads[late].tolist(), strict=True)
        self.late += [(time, tuple(quad)) for time, quad in found][:room]
        return times[~late], quads[~late], numbers[~late]

    def _release(self, watermark: int, latest: int = LARGEST) -> None:
        """Pass on, in order, the events up to the new watermark, and to the `latest` time."""
        if self._releasing:  # an action emits an event, and later ones of a batch are on their way
            watermark = min(watermark, self._publisher.schedule.clock)
        before = self._watermark
        # What an action emits at the time of a watermark that has risen is a part of its cascade.
        watermark = max(watermark, before)
        self._hand_over(min(watermark, latest))
        if watermark > self._watermark:
            self._publisher.reach(watermark, self)
            self._watermark = watermark
        if self._watermark > before:
            self._moved()
            self._publisher.move_clock(watermark)

    def _release_rest(self) -> None:
        """Pass on what an interrupt has left."""
        self._release(self._newest - self.lateness)
        self._moved()

    def _hand_over(self, watermark: int) -> None:
        """Hand the events up to the watermark to windows and rules, or the first of them.

        What an interrupt leaves comes before the next input. A cascade that emits an event does not
        pass it on: the event of the batch that the cascade follows from is done again first.
        """
        if not self._publisher.schedule.running:
            while self._unpublished_lines:
                self._publish(0)
            self._waiting, self._left = [*self._left, *self._waiting], []
        if not self._waiting:
            return
        self._order()
        times, quads, numbers = self._waiting[0]
        end = int(times.searchsorted(watermark, side="right"))
        if not end:
            return
        self._waiting = [(times[end:], quads[end:], numbers[end:])] if end < len(times) else []
        releasing, done = self._releasing, 0
        try:
            if not self._publisher.listening:
                self._append(times[:end], quads[:end])
                done = end
                return
            self._releasing = True
            with self._publisher.schedule, self._publisher.schedule.one_call:
                for lines in self._publisher.parts((times[:end], quads[:end], numbers[:end])):
                    self._publisher.reach(int(lines[0][0]), self)
                    unseen = self._without_early(lines)
                    self._append(lines[0], lines[1])
                    self._unpublished_lines.append(unseen)
                    done += len(lines[0])
                    self._early.difference_update(lines[2].tolist() if self._early else ())
                    self._publish(-1)
        finally:
            self._releasing = releasing
            if done < end:
                self._left.insert(0, (times[done:end], quads[done:end], numbers[done:end]))

    def _publish(self, place: int) -> None:
        """Publish events that windows have; if an interrupt prevents it, later."""
        before = self._publisher.schedule.published
        lines = self._unpublished_lines.pop(place)
        try:
            self.unpublished += self._publisher.publish(lines)
        except BaseException as error:
            if not isinstance(error, Exception) and before == self._publisher.schedule.published:
                self._unpublished_lines.insert(0, lines)
            raise

    def first_waiting(self) -> int | None:
        """The time of the first event that waits for late ones."""
        return min((int(times.min()) for times, _, _ in self._waiting if len(times)), default=None)

    def first_unseen(self) -> int | None:
        """The time of the first event that waits for late ones, and that rules are still to see."""
        unseen = (lines[0][self._unseen(lines)] for lines in self._waiting)
        return min((int(times.min()) for times in unseen if len(times)), default=None)

    def _unseen(self, lines: Lines) -> Mask:
        times, _, numbers = lines
        return (times >= self._publisher.schedule.clock) & ~np.isin(numbers, list(self._early))

    def publish_until(self, time: int) -> None:
        """Publish to the rules what waits for late events, but is older than the clock will be.

        Rules see all streams in the order of one clock, windows a stream as far as its watermark.
        """
        self._order()
        times, quads, numbers = self._waiting[0]
        shown = self._unseen(self._waiting[0]) & (times <= time)
        self._early.update(numbers[shown].tolist())
        self.unpublished += self._publisher.publish((times[shown], quads[shown], numbers[shown]))

    def _without_early(self, lines: Lines) -> Lines:
        """Return the events that rules have not seen yet."""
        if not self._early:
            return lines
        times, quads, numbers = lines
        unseen = ~np.isin(numbers, list(self._early))
        return times[unseen], quads[unseen], numbers[unseen]

    def pass_time(self, to: int) -> None:
        """The clock has moved on to a time, and all that was due has been done."""
        self._newest = max(self._newest, to)
        self.watermark = max(self.watermark, to)

    def dump(self) -> dict[str, Any]:
        """Numbers, and the events that windows need, that wait, and that came late."""
        self.drain()
        return {
            "numbers": {name: getattr(self, name) for name in NUMBERS},
            "next": self.next_number,
            "events": self.events.dump(),
            "waiting": [list(lines) for lines in self._waiting],
            "early": np.array(sorted(self._early), np.int64),
            "late": [
                np.array([time for time, _ in self.late], np.int64),
                np.array([quad for _, quad in self.late], np.int32).reshape(-1, 4),
            ],
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state."""
        for name, value in saved["numbers"].items():
            setattr(self, name, value)
        self._publisher.numbers = saved["next"]
        self.events.load(saved["events"])
        self._waiting = [(times, quads, numbers) for times, quads, numbers in saved["waiting"]]
        self._early = set(saved["early"].tolist() if "early" in saved else ())
        times, quads = (part.tolist() for part in saved["late"])
        self.late = [(time, tuple(quad)) for time, quad in zip(times, quads, strict=True)]

    @property
    def next_number(self) -> int:
        """The number that the next event will have among those of all streams."""
        return self._publisher.numbers

    @property
    def waiting(self) -> bool:
        """Whether events wait for earlier ones that may still come."""
        self.drain()
        return bool(self._waiting or self._left)

    def _append(self, times: Longs, quads: Ints) -> None:
        held = self.filter.mask(quads)
        self.events.append(times, quads, held)
        self._received += len(quads)
        if held is not None:
            self._pruned += len(quads) - int(np.count_nonzero(held))

    def _order(self) -> None:
        """Sort the waiting events by time, stably."""
        times, quads, numbers = self._waiting[0]
        if len(self._waiting) == len(times) == 1:
            return
        if len(self._waiting) > 1:
            times, quads, numbers = map(np.concatenate, zip(*self._waiting, strict=True))
        if len(times) > 1 and (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, quads, numbers = times[order], quads[order], numbers[order]
        self._waiting = [(times, quads, numbers)]


def _pairs(events: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield events with their times; raise a TypeError if something else is among them."""
    for each in iterable(events, "events", "an iterable of tuples (triples, time)"):
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            raise wrong_type(each, "an event", "a tuple (triples, time)")
        yield each[0], each[1]
