"""GraphEvents: things that happen, each a few triples that come together at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.term import Term


@dataclass(frozen=True, slots=True)
class GraphEvents:
    """Events in order of time. Those of event i are the triples from `begins[i]` to the next.

    `numbers` tell the events of a graph's streams apart; -1 for those of no stream.

    >>> events = make_events([[(1, 2, 3), (1, 4, 5)], [(6, 2, 3)]], ends=[10, 12])
    >>> len(events), events.part(1, 2).triples.tolist()
    (2, [[6, 2, 3]])
    """

    triples: Ints
    begins: Longs
    starts: Longs
    ends: Longs
    numbers: Longs

    def __len__(self) -> int:
        return len(self.ends)

    def part(self, first: int, last: int) -> GraphEvents:
        """The events from one place up to another."""
        begins = self.begins[first : last + 1]
        at = slice(first, last)
        triples = self.triples[begins[0] : begins[-1]]
        return GraphEvents(
            triples, begins - begins[0], self.starts[at], self.ends[at], self.numbers[at]
        )

    def without(self, numbers: set[int]) -> GraphEvents:
        """The events that have none of some numbers."""
        kept = ~np.isin(self.numbers, list(numbers))
        if kept.all():
            return self
        sizes = np.diff(self.begins)
        begins = np.concatenate([[0], np.cumsum(sizes[kept])])
        triples = self.triples[np.repeat(kept, sizes)]
        return GraphEvents(triples, begins, self.starts[kept], self.ends[kept], self.numbers[kept])


def make_events(
    triples: Sequence[Sequence[Sequence[int]]], ends: Sequence[int], duration: int = 0
) -> GraphEvents:
    """Events from rows of ids, with the time at which each ends."""
    if len(triples) == 1:
        rows = np.array(triples[0], np.int32).reshape(-1, 3)
        end = np.array(ends, np.int64)
        start = end - duration if duration else end
        return GraphEvents(rows, np.array([0, len(rows)], np.int64), start, end, NO_NUMBER)
    parts = [list(each) for each in triples]
    begins = np.array([0, *map(len, parts)], np.int64).cumsum()
    rows = np.array([row for part in parts for row in part], np.int32).reshape(-1, 3)
    last = np.array(ends, np.int64)
    return GraphEvents(rows, begins, last - duration, last, np.full(len(last), -1, np.int64))


def group_events(times: Longs, quads: Ints, numbers: Longs) -> GraphEvents:
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
    return GraphEvents(triples, bounds, ends, ends, numbers[begins])


NO_NUMBER = np.array([-1], np.int64)


class Fired(Protocol):
    """A rule that fired: when, with which values; `why()` tells the events and facts."""

    @property
    def rule(self) -> str:
        """Its name."""
        ...

    @property
    def time(self) -> int:
        """When it fired."""
        ...

    @property
    def values(self) -> dict[str, Term]:
        """The values of its variables."""
        ...

    def why(self) -> str:
        """The events and facts that matched, in words."""
        ...


class Listener(Protocol):
    """Hears of the events of a graph, such as a program of rules."""

    def take_events(self, events: GraphEvents) -> None:
        """Events have happened; none of them is earlier than what was heard before."""

    @property
    def firings(self) -> Sequence[Fired]:
        """What fired because of them, oldest first."""
        ...
