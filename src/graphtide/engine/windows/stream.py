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
    from graphtide.engine.windows.read_events import Events
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary

LARGEST = 2**61
"""Times beyond this leave no room for window arithmetic."""

MOST_LATE = 10_000
"""Late events that are kept to be looked at; all are counted."""


class Stream:
    """Made by `LiveGraph.stream`. Events may come late by up to `lateness` ticks.

    Of the triples `received` in time, those that no registered query can match are `pruned` before
    anything is stored.

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
        self.summary = Summary(frozenset())
        self._terms = terms
        self._tick_ms = tick_ms
        self._moved = moved
        self._newest = -LARGEST
        self._waiting: list[tuple[Longs, Ints]] = []

    def push(
        self, triples: Iterable[tuple[TermLike, TermLike, ObjectLike]], *, time: int,
        graph: TermLike | None = None,
    ) -> None:  # fmt: skip
        """One graph event: triples that happen together at a time."""
        quads = [quad_ids(self._terms, s, p, o, graph) for s, p, o in triples]
        times = np.full(len(quads), time, np.int64)
        self.push_ids(times, np.array(quads, np.int32).reshape(-1, 4), newest=time)

    def push_ids(self, times: Longs, quads: Ints, *, newest: int | None = None) -> None:
        """Many events at once: rows of ids of `graph.terms`, with their times."""
        if len(times):
            newest = int(times.max()) if newest is None else newest
            if newest > LARGEST or int(times.min()) < -LARGEST:
                raise GraphtideError(f"time {newest} is out of bounds", hint=f"use up to {LARGEST}")
            times, quads = self._without_late(times, quads)
            self._waiting.append((times, quads))
        if newest is not None:
            self._newest = max(self._newest, newest)
        self._release(self._newest - self.lateness)

    def feed(self, source: Events, *, timestamp: str = GENERATED_AT) -> None:
        """Events from a file or from batches: RDF Patch, Parquet, Arrow, or TriG and N-Quads.

        In TriG and N-Quads each named graph is an event, and the default graph says when it
        happened, by a triple with the predicate `timestamp`.
        """
        found = read_events(source, self._terms, timestamp=timestamp, tick_ms=self._tick_ms)
        for times, quads in found:
            self.push_ids(times, quads)

    def advance(self, to: int) -> None:
        """All events before a time are here: let go what waited for them."""
        self._newest = max(self._newest, to)
        self._release(to)

    def _without_late(self, times: Longs, quads: Ints) -> tuple[Longs, Ints]:
        late = times < self.complete
        if not late.any():
            return times, quads
        self.late_count += int(late.sum())
        room = MOST_LATE - len(self.late)
        found = zip(times[late].tolist(), quads[late].tolist(), strict=True)
        self.late += [(time, tuple(quad)) for time, quad in found][:room]
        return times[~late], quads[~late]

    def _release(self, complete: int) -> None:
        """Pass on, in order, the events that none before can come any more."""
        if self._waiting:
            self._order()
            times, quads = self._waiting[0]
            ready = int(np.searchsorted(times, complete, side="right"))
            if ready:
                self._append(times[:ready], quads[:ready])
                self._waiting = [(times[ready:], quads[ready:])] if ready < len(times) else []
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
        times, quads = self._waiting[0]
        if len(self._waiting) > 1:
            times = np.concatenate([part for part, _ in self._waiting])
            quads = np.concatenate([part for _, part in self._waiting])
        if len(times) > 1 and (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, quads = times[order], quads[order]
        self._waiting = [(times, quads)]
