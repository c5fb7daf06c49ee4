"""Changes and events of one log: an insert into a graph with the name of a stream is an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.ingest import check_order
from graphtide.errors import DataError, GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.engine.ingest import Piece
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.streams.stream import Stream

GRAPH = 5
"""The column of a change that has its graph."""


class Feed:
    """Lets changes of a log happen to a graph, and events to the streams of queries over it.

    What comes is in order of time, over all streams: with a row, all before its time are here.

    >>> from graphtide import LiveGraph
    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> feed = Feed(LiveGraph())
    >>> window = "FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE 5]"
    >>> feed.add(parse_standing(f"SELECT * {window} {{ WINDOW <ex:w> {{ ?a ?b ?c }} }}"))
    >>> feed.streams
    ['<ex:s>']
    """

    def __init__(self, graph: LiveGraph, *, forgiving: bool = False) -> None:
        self._graph = graph
        self._forgiving = forgiving
        self._streams: dict[int, Stream] = {}
        self.deletes = 0
        """How many deletes of events were set aside."""

    @property
    def streams(self) -> list[str]:
        """The names of the streams that queries ask of."""
        return [self._graph.terms.text(number) for number in self._streams]

    def add(self, query: WindowedQuery) -> None:
        """Take in the streams of a query."""
        for clause in query.windows:
            number = self._graph.terms.encode(clause.stream)
            self._streams[number] = self._graph.stream(str(clause.stream))

    def parts(self, piece: Piece) -> Iterator[Piece]:
        """Transactions that can happen at once: changes only, events only, or one of both."""
        changes, times, txs = piece
        events = self._are_events(changes)
        if not events.any():
            yield piece
            return
        happens = np.bincount(changes[events, 0], minlength=len(times)) > 0
        changed = np.bincount(changes[~events, 0], minlength=len(times)) > 0
        both = happens & changed
        begins = np.ones(len(times), np.bool_)
        begins[1:] = (happens[1:] != happens[:-1]) | both[1:] | both[:-1]
        starts = np.flatnonzero(begins)
        for begin, end in zip(starts, [*starts[1:], len(times)], strict=True):
            part = changes[slice(*np.searchsorted(changes[:, 0], (begin, end)))].copy()
            part[:, 0] -= begin
            yield part, times[begin:end], txs[begin:end]

    def _are_events(self, changes: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isin(changes[:, GRAPH], list(self._streams))

    def apply(self, part: Piece) -> None:
        """Let transactions happen that `parts` has put together."""
        changes, times, txs = part
        mask = self._are_events(changes)
        events, rest = changes[mask], changes[~mask]
        if len(events):
            check_order(self._graph.clock, times)
            events = self._without_deletes(events, times)
        if len(rest):
            number, diff, s, p, o, g = rest.T
            self._graph.apply_ids(s, p, o, g, diff=diff, time=times[number], tx=txs[number])
        for number, stream in self._streams.items():
            rows = events[events[:, GRAPH] == number]
            if len(rows):
                quads = rows[:, 2:].copy()
                quads[:, 3] = 0
                stream.push_ids(times[rows[:, 0]], quads, events=rows[:, 0].astype(np.int64))
        if self._streams:
            self._graph.advance(int(times[-1]))

    def _without_deletes(self, events: Ints, times: Longs) -> Ints:
        deletes = events[:, 1] < 0
        if deletes.any() and not self._forgiving:
            row = events[np.argmax(deletes)]
            stream, time = self._graph.terms.text(int(row[GRAPH])), int(times[row[0]])
            raise DataError(
                f"at time {time} something is deleted from the stream {stream}, but events only "
                "happen",
                hint="leave deletes out, as windows forget by themselves; or set them aside with "
                "--on-error skip",
            )
        self.deletes += int(deletes.sum())
        return events[~deletes]

    def push(self, times: Longs, quads: Ints, events: Longs) -> None:
        """Let events of the only stream happen."""
        if len(self._streams) != 1:
            names = ", ".join(self.streams)
            raise GraphtideError(
                f"the events of this file could be of any of the streams {names}",
                hint="use a change log (.rdfp), where the graph of an insert names its stream",
            )
        if len(times):
            check_order(self._graph.clock, times)
            (stream,) = self._streams.values()
            stream.push_ids(times, quads, events=events)
            self._graph.advance(int(times[-1]))

    def end(self, until: int | None) -> None:
        """Nothing more comes: what has happened at the last time is complete."""
        clock = self._graph.clock
        if until is not None and until < clock:
            raise GraphtideError(
                f"--until {until} is over: the changes go up to {clock}",
                hint="give a later time, or none",
            )
        if self._streams:
            self._graph.advance(clock + 1 if until is None else until)
