"""EventBatch: graph events and typed events in columns, as programs take them in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        retained = ~np.isin(self.numbers, list(numbers))
        return self if retained.all() else self.take(np.flatnonzero(retained))

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


def typed_events(
    types: Sequence[int], values: Sequence[Sequence[int]], times: Sequence[int]
) -> EventBatch:
    """Typed events, each with its type id, its row of values and its time.

    >>> typed_events([0, 3], [(7, 8), (9,)], [10, 10]).values.tolist()
    [[7, 8], [9, 0]]
    """
    many, width = len(types), max(map(len, values), default=0)
    rows = [[*row, *[0] * (width - len(row))] for row in values]
    ends = np.array(times, np.int64)
    return EventBatch(
        _NO_TRIPLES,
        np.zeros(many + 1, np.int64),
        ends,
        ends,
        np.full(many, NO_NUMBER, np.int64),
        np.array(types, np.int32),
        np.array(rows, np.int32).reshape(many, width),
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
    """Events from rows in order of time: rows of one number are one event.

    >>> rows = np.array([[1, 2, 3, 0], [4, 2, 3, 0], [1, 5, 6, 0]], np.int32)
    >>> group_events(np.array([7, 7, 7]), rows, np.array([0, 1, 0])).triples.tolist()
    [[1, 2, 3], [1, 5, 6], [4, 2, 3]]
    """
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    own = numbers[begins]
    if (own[1:] < own[:-1]).any() and len(np.unique(own)) < len(own):  # rows stand apart
        _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        order = np.argsort(first[inverse], kind="stable")
        times, quads, numbers = times[order], quads[order], numbers[order]
        begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    ends = times[begins]
    triples = np.ascontiguousarray(quads[:, :3])
    bounds = np.append(begins, len(times)).astype(np.int64)
    return EventBatch(triples, bounds, ends, ends, numbers[begins])


_OF_NO_STREAM = np.array([NO_NUMBER], np.int64)
_NO_TRIPLES = np.empty((0, 3), np.int32)
