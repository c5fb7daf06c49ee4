"""EventBatch: graph events and typed events in columns; EventBuffer: single ones that wait."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.ticks import ticks, ticks_or_none

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.engine.ingest import Ids
    from graphtide.kernel.batch import Ints, Longs

GRAPH_EVENT = -1
"""The type id of an event that is given by its triples."""

NO_NUMBER = -1
"""The number of an event that is of no stream."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events in order of time, in columns; and how they are scheduled.

    Event i lasts from `starts[i]` to `ends[i]`. A graph event is a set of triples: those of event i
    are `triples[offsets[i]:offsets[i + 1]]`. A typed event (a row of a query that changed, a
    complex event) has no triples, but a type id and a row of values, ids of terms padded with 0;
    `types` and `values` are None if all events are graph events. `numbers` identify the events of
    a graph's streams.

    `simultaneous` events are of one transaction: all are matched before any action. `transactions`
    is the number of transactions before the events, None for all so far. `depth` is 0 for input,
    and for what an action causes one more than for what the action reacts to. With
    `begins_cascade`, the batch is input that was queued again.

    >>> events = make_events([[(1, 2, 3), (1, 4, 5)], [(6, 2, 3)]], ends=[10, 12])
    >>> len(events), events.slice(1, 2).triples.tolist()
    (2, [[6, 2, 3]])
    """

    triples: Ints
    offsets: Longs
    starts: Longs
    ends: Longs
    numbers: Longs
    types: Ints | None = None
    values: Ints | None = None
    depth: int = 0
    transactions: int | None = None
    simultaneous: bool = False
    begins_cascade: bool = False

    def __len__(self) -> int:
        return len(self.ends)

    def slice(self, first: int, last: int) -> EventBatch:
        """The events from one index up to another."""
        if first == 0 and last == len(self.ends):
            return self
        offsets = self.offsets[first : last + 1]
        at = slice(first, last)
        return EventBatch(
            self.triples[offsets[0] : offsets[-1]],
            offsets - offsets[0],
            self.starts[at],
            self.ends[at],
            self.numbers[at],
            None if self.types is None else self.types[at],
            None if self.values is None else self.values[at],
            self.depth,
            self.transactions,
            self.simultaneous,
            self.begins_cascade,
        )

    def take(self, indices: Longs) -> EventBatch:
        """Some of the events, in the order of their indices.

        >>> events = make_events([[(1, 2, 3), (1, 4, 5)], [(6, 2, 3)]], ends=[10, 12])
        >>> events.take(np.array([1, 0])).triples.tolist()
        [[6, 2, 3], [1, 2, 3], [1, 4, 5]]
        """
        sizes = np.diff(self.offsets)[indices]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.offsets[indices] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return replace(
            self,
            triples=np.ascontiguousarray(self.triples[rows]),
            offsets=offsets,
            starts=self.starts[indices],
            ends=self.ends[indices],
            numbers=self.numbers[indices],
            types=None if self.types is None else self.types[indices],
            values=None if self.values is None else self.values[indices],
        )

    def without(self, numbers: set[int]) -> EventBatch:
        """The events that have none of some numbers."""
        retained = [at for at, n in enumerate(self.numbers.tolist()) if n not in numbers]
        if len(retained) == len(self.ends):
            return self
        return self.take(np.array(retained, np.int64)) if retained else self.slice(0, 0)

    def scheduled_as(self, other: EventBatch) -> EventBatch:
        """The same events, scheduled as those of another batch."""
        if self is other:
            return self
        return replace(
            self,
            depth=other.depth,
            transactions=other.transactions,
            simultaneous=other.simultaneous,
            begins_cascade=other.begins_cascade,
        )


def make_events(
    triples: Sequence[Sequence[Sequence[int]]], ends: Sequence[int], duration: int = 0
) -> EventBatch:
    """Graph events from rows of ids, with the time at which each ends."""
    if len(triples) == 1:
        rows = np.array(triples[0], np.int32).reshape(-1, 3)
        end = np.array(ends, np.int64)
        start = end - duration if duration else end
        return EventBatch(rows, np.array([0, len(rows)], np.int64), start, end, _OF_NO_STREAM)
    parts = [list(each) for each in triples]
    offsets = np.array([0, *map(len, parts)], np.int64).cumsum()
    rows = np.array([row for part in parts for row in part], np.int32).reshape(-1, 3)
    last = np.array(ends, np.int64)
    numbers = np.full(len(last), NO_NUMBER, np.int64)
    return EventBatch(rows, offsets, last - duration, last, numbers)


def event_end(
    time: int | None, start: int | None, end: int | None, duration: int
) -> tuple[int | None, int]:
    """The end of an event (None: now) and its duration, from what is given of them.

    >>> event_end(None, 3, 8, 0), event_end(None, 3, None, 5), event_end(8, None, None, 5)
    ((8, 5), (8, 5), (8, 5))
    """
    time, duration = ticks_or_none(time), ticks(duration, "duration")
    start, end = ticks_or_none(start, "start"), ticks_or_none(end, "end")
    if time is not None and not (start is None and end is None):
        raise GraphtideError(
            "an event has a time, or a start and an end", hint="leave time= or start= and end= out"
        )
    last = time if end is None else end
    if start is not None:
        last = start + duration if last is None else last
        if duration not in (0, last - start):
            raise GraphtideError(
                f"from {start} to {last} are {last - start} ticks, not {duration}",
                hint="give two of start=, end= and duration=",
            )
        duration = last - start
    if duration < 0:
        raise GraphtideError(
            f"an event cannot last for {duration} ticks", hint="it ends at its start, or later"
        )
    return last, duration


def typed_events(
    types: Sequence[int],
    values: Sequence[Sequence[int]],
    times: Sequence[int],
    starts: Sequence[int] | None = None,
) -> EventBatch:
    """Typed events, each with its type id, its row of values and its time; perhaps its start.

    >>> typed_events([0, 3], [(7, 8), (9,)], [10, 10]).values.tolist()
    [[7, 8], [9, 0]]
    """
    width = max(map(len, values), default=0)
    rows = [[*row, *[0] * (width - len(row))] for row in values]
    ends = np.array(times, np.int64)
    return typed_batch(
        np.array(types, np.int32),
        np.array(rows, np.int32).reshape(len(rows), width),
        ends,
        ends if starts is None else np.array(starts, np.int64),
    )


def typed_batch(types: Ints, values: Ints | Longs, ends: Longs, starts: Longs) -> EventBatch:
    """Typed events from columns."""
    many = len(types)
    return EventBatch(
        _NO_TRIPLES,
        np.zeros(many + 1, np.int64),
        starts,
        ends,
        np.full(many, NO_NUMBER, np.int64),
        types,
        values.astype(np.int32),
    )


def concat_events(one: EventBatch, two: EventBatch) -> EventBatch:
    """The events of two batches, scheduled as the first.

    >>> graph_events = make_events([[(1, 2, 3)]], [5])
    >>> both = concat_events(graph_events, typed_events([4], [(7, 8)], [6]))
    >>> both.types.tolist(), both.values.tolist(), both.offsets.tolist()
    ([-1, 4], [[0, 0], [7, 8]], [0, 1, 1])
    """
    parts = one, two
    width = max(0 if part.values is None else part.values.shape[1] for part in parts)
    types = np.full(len(one) + len(two), GRAPH_EVENT, np.int32)
    values = np.zeros((len(types), width), np.int32)
    for part, first in zip(parts, (0, len(one)), strict=True):
        if part.types is not None and part.values is not None:
            types[first : first + len(part)] = part.types
            values[first : first + len(part), : part.values.shape[1]] = part.values
    return replace(
        one,
        triples=np.concatenate([one.triples, two.triples]),
        offsets=np.concatenate([one.offsets, one.offsets[-1] + two.offsets[1:]]),
        starts=np.concatenate([one.starts, two.starts]),
        ends=np.concatenate([one.ends, two.ends]),
        numbers=np.concatenate([one.numbers, two.numbers]),
        types=types,
        values=values,
    )


def group_events(times: Longs, quads: Ints, numbers: Longs) -> EventBatch:
    """Graph events from rows in order of time: rows of one number are one event.

    >>> rows = np.array([[1, 2, 3, 0], [4, 2, 3, 0], [1, 5, 6, 0]], np.int32)
    >>> group_events(np.array([7, 7, 7]), rows, np.array([0, 1, 0])).triples.tolist()
    [[1, 2, 3], [1, 5, 6], [4, 2, 3]]
    """
    if len(numbers) == 1:
        end = times.copy()  # of the caller, who may change it
        return EventBatch(quads[:, :3].copy(), _ONE_TRIPLE, end, end, numbers)
    begins = first_rows_of(numbers)
    own = numbers[begins]
    if (own[1:] < own[:-1]).any() and len(np.unique(own)) < len(own):  # rows of one event are apart
        _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        order = np.argsort(first[inverse], kind="stable")
        times, quads, numbers = times[order], quads[order], numbers[order]
        begins = first_rows_of(numbers)
    ends = times[begins]
    triples = np.ascontiguousarray(quads[:, :3])
    bounds = np.append(begins, len(times)).astype(np.int64)
    return EventBatch(triples, bounds, ends, ends, numbers[begins])


def first_rows_of(numbers: Longs) -> Longs:
    """The places at which another number begins.

    >>> first_rows_of(np.array([4, 4, 7, 4])).tolist()
    [0, 2, 3]
    """
    found = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=found[1:])
    return found.nonzero()[0]


_ONE_TRIPLE = np.array([0, 1], np.int64)
_OF_NO_STREAM = np.array([NO_NUMBER], np.int64)
_NO_TRIPLES = np.empty((0, 3), np.int32)


# --- single events that wait until somebody looks ---

MAX_WAITING: Final = 4096
"""Events that a buffer holds."""


class EventSink(Protocol):
    """Where buffered events go: a stream, or the running programs."""

    def can_wait(self, time: int) -> bool:
        """Whether nobody could tell if events from that time on were passed on later, together."""

    def pass_on(self, buffer: EventBuffer) -> None:
        """Take the events out of the buffer, by emptying its `times`, and pass them on.

        If that was interrupted, it is called again, and goes on.
        """

    def reclaim(self) -> None:
        """The end of what a user has called: terms may be freed here."""


class EventBuffer:
    """Single events in order of time, all for one sink; empty if there is no sink.

    >>> buffer = EventBuffer()
    >>> buffer.begin(None, 5)
    >>> buffer.add(5, [(1, 2, 3, 0), (1, 4, 5, 0)]), buffer.add(7, [(6, 2, 3, 0)])
    (1, 2)
    >>> [column.tolist() for column in buffer.columns()]
    [[5, 7], [2, 1], [[1, 2, 3, 0], [1, 4, 5, 0], [6, 2, 3, 0]]]
    """

    __slots__ = ("_quads", "_sizes", "newest", "sink", "times")

    def __init__(self) -> None:
        self.sink: EventSink | None = None
        self.begin(None, 0)

    def begin(self, sink: EventSink | None, time: int) -> None:
        """Begin again with events for a sink, from a time on."""
        self.times: list[int] = []
        self._sizes: list[int] = []
        self._quads: list[int] = []
        self.newest = time
        self.sink = sink

    def add(self, time: int, quads: Sequence[Ids]) -> int:
        """Add an event that is not older than the others; how many there are."""
        self.newest = time
        try:
            for quad in quads:
                self._quads.extend(quad)
            self._sizes.append(len(quads))
            self.times.append(time)
        except BaseException:  # an interrupt: only whole events stay
            del self._sizes[len(self.times) :]
            del self._quads[4 * sum(self._sizes) :]
            raise
        return len(self.times)

    def columns(self) -> tuple[Longs, Longs, Ints]:
        """The times of the events, how many quads each has, and the quads."""
        times, many = np.array(self.times, np.int64), len(self.times)
        whole = self._sizes[:many]
        sizes = np.array(whole, np.int64)
        quads = np.array(self._quads, np.int32).reshape(-1, 4)
        return times, sizes, quads[: sum(whole)]

    def events(self) -> EventBatch:
        """The events as a batch."""
        times, sizes, quads = self.columns()
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        numbers = np.full(len(times), NO_NUMBER, np.int64)
        return EventBatch(np.ascontiguousarray(quads[:, :3]), offsets, times, times, numbers)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of the quads that wait."""
        if self.sink is not None:
            yield np.array(self._quads, np.int32)
