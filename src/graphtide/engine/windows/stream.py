"""Stream: graph events in order of time, put in order within a declared lateness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.quads import quad_ids
from graphtide.engine.windows.read_events import GENERATED_AT, read_events
from graphtide.engine.windows.summary import Summary
from graphtide.engine.windows.timelist import Timelist
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from graphtide.engine.quads import ObjectLike, TermLike
    from graphtide.engine.windows.hearers import Hearers, Lines
    from graphtide.engine.windows.read_events import Events
    from graphtide.engine.windows.summary import Mask
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary

LARGEST = 2**61
"""Times beyond this leave no room for window arithmetic."""

MOST_LATE = 10_000
"""Late events that are kept to be looked at; all are counted."""


class Stream:
    """Made by `LiveGraph.stream`. Events may come late by up to `lateness` ticks.

    Of the triples `received` in time, those that no registered query can match are `pruned` before
    anything is stored. Triples that are older than the graph's clock when they come are `untold` to
    rules, though they may be in time for windows.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> stream = graph.stream("<http://example.org/s>", lateness=5)
    >>> for time in (10, 7, 4):
    ...     stream.push([("<http://example.org/a>", "<http://example.org/p>", time)], time=time)
    >>> stream.late_count
    1
    """

    def __init__(
        self,
        name: str,
        terms: TermDictionary,
        lateness: int,
        tick_ms: int,
        moved: Callable[[], None],
        hearers: Hearers,
    ) -> None:
        if lateness < 0:
            raise GraphtideError(f"lateness {lateness} is negative", hint="use 0 or more ticks")
        self.name = name
        self.lateness = lateness
        self.events = Timelist()
        self.late_count = 0
        self.late: list[tuple[int, tuple[int, ...]]] = []
        self.complete = -LARGEST
        self.received = 0
        self.pruned = 0
        self.untold = 0
        self.summary = Summary(frozenset())
        self._terms = terms
        self._tick_ms = tick_ms
        self._moved = moved
        self._hearers = hearers
        self._newest = -LARGEST
        self._waiting: list[Lines] = []

    def push(
        self, triples: Iterable[tuple[TermLike, TermLike, ObjectLike]], *, time: int,
        graph: TermLike | None = None,
    ) -> None:  # fmt: skip
        """One graph event: triples that happen together at a time."""
        quads = [quad_ids(self._terms, s, p, o, graph) for s, p, o in triples]
        times = np.full(len(quads), time, np.int64)
        events = np.zeros(len(quads), np.int64)
        rows = np.array(quads, np.int32).reshape(-1, 4)
        self.push_ids(times, rows, newest=time, events=events)

    def push_ids(
        self, times: Longs, quads: Ints, *, newest: int | None = None, events: Longs | None = None
    ) -> None:
        """Many events at once: rows of ids of `graph.terms`, with their times.

        Rows with the same number in `events` are one event; without it, rows of one time and graph
        that stand together.
        """
        if len(times):
            newest = int(times.max()) if newest is None else newest
            if newest > LARGEST or int(times.min()) < -LARGEST:
                raise GraphtideError(f"time {newest} is out of bounds", hint=f"use up to {LARGEST}")
            numbers = self._hearers.number(times, quads, events)
            lines = times, quads, numbers
            late = times < self.complete
            self._waiting.append(self._without_late(lines, late) if late.any() else lines)
        if newest is not None:
            self._newest = max(self._newest, newest)
        self._release(self._newest - self.lateness)

    def feed(self, source: Events, *, timestamp: str = GENERATED_AT) -> None:
        """Events from a file or from batches: RDF Patch, Parquet, Arrow, or TriG and N-Quads.

        In TriG and N-Quads each named graph is an event, and the default graph says when it
        happened, by a triple with the predicate `timestamp`.
        """
        found = read_events(source, self._terms, timestamp=timestamp, tick_ms=self._tick_ms)
        for times, quads, events in found:
            self.push_ids(times, quads, events=events)

    def advance(self, to: int) -> None:
        """All events before a time are here: let go what waited for them."""
        self._newest = max(self._newest, to)
        self._release(to)

    def _without_late(self, lines: Lines, late: Mask) -> Lines:
        times, quads, numbers = lines
        self.late_count += int(late.sum())
        room = MOST_LATE - len(self.late)
        found = zip(times[late].tolist(), quads[late].tolist(), strict=True)
        self.late += [(time, tuple(quad)) for time, quad in found][:room]
        return times[~late], quads[~late], numbers[~late]

    def _release(self, complete: int) -> None:
        """Pass on, in order, the events that none before can come any more."""
        ready = None
        if self._waiting:
            self._order()
            times, quads, numbers = self._waiting[0]
            end = int(np.searchsorted(times, complete, side="right"))
            if end:
                ready = times[:end], quads[:end], numbers[:end]
                rest = times[end:], quads[end:], numbers[end:]
                self._waiting = [rest] if end < len(times) else []
        if ready is None or not self._hearers.listening:
            self._pass_on(ready, complete)
            return
        for lines, time in self._hearers.parts(ready, complete):
            self._pass_on(lines, time)
            self.untold += self._hearers.tell(lines)
        self._pass_on(None, complete)

    @property
    def next_number(self) -> int:
        """The number that the next event will have among those of all streams."""
        return self._hearers.numbers

    @property
    def waiting(self) -> bool:
        """Whether events wait for others that may be earlier."""
        return bool(self._waiting)

    def _pass_on(self, lines: Lines | None, complete: int) -> None:
        """To the windows: some events, and that there are no others up to a time."""
        if lines is not None:
            self._append(lines[0], lines[1])
        if complete > self.complete:
            self.complete = complete
            self._moved()

    def _append(self, times: Longs, quads: Ints) -> None:
        held = self.summary.mask(quads)
        self.received += len(quads)
        if held is not None:
            self.pruned += len(quads) - int(np.count_nonzero(held))
        self.events.append(times, quads, held)

    def _order(self) -> None:
        """What waits as one run of events in order of time; equal times as they came."""
        times, quads, numbers = self._waiting[0]
        if len(self._waiting) > 1:
            times = np.concatenate([part for part, _, _ in self._waiting])
            quads = np.concatenate([part for _, part, _ in self._waiting])
            numbers = np.concatenate([part for _, _, part in self._waiting])
        if len(times) > 1 and (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, quads, numbers = times[order], quads[order], numbers[order]
        self._waiting = [(times, quads, numbers)]
