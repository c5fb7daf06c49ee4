"""Registry: the streams of a graph, the windows on them, and the queries over those windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.windows.closes import Closes, unite
from graphtide.engine.windows.connect import connected
from graphtide.engine.windows.content import WindowContent
from graphtide.engine.windows.hearers import Hearers
from graphtide.engine.windows.shape import ElementWindow
from graphtide.engine.windows.stream import Stream
from graphtide.engine.windows.summary import EVERYTHING, Asked, Summary, covers
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import TX, VALUES, Ints, Longs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.windows.continuous import Continuous
    from graphtide.engine.windows.shape import WindowShape

GRAPH = VALUES + 3


@dataclass(slots=True)
class Placed:
    """A window at work: on a stream, into a graph, for some queries."""

    stream: Stream
    content: WindowContent
    graph: int
    pruned: int
    queries: list[Continuous] = field(default_factory=list)
    needed: tuple[Stream, ...] = ()

    def asked(self) -> Asked:
        """What its queries can match. Elements are counted, whether they match or not."""
        if isinstance(self.content.shape, ElementWindow):
            return EVERYTHING
        return frozenset().union(*(query.windows[self.graph] for query in self.queries))

    def serves(self, asked: Asked) -> bool:
        """Whether it holds all that a further query asks for."""
        return self.stream.pruned == self.pruned or covers(self.asked(), asked)

    def complete(self) -> int:
        """Up to when all events are here, on every stream that has to be waited for."""
        return min(stream.complete for stream in (self.stream, *self.needed))


class WindowRegistry:
    """Closes windows as streams move on, and lets queries report."""

    def __init__(self, graph: LiveGraph, tick_ms: int) -> None:
        self._graph = graph
        self._tick_ms = tick_ms
        self.streams: dict[str, Stream] = {}
        self._windows: dict[int, Placed] = {}
        self._moving = False
        self._hearers = Hearers(graph, self._is_apart)

    @property
    def has_windows(self) -> bool:
        """Whether there are windows."""
        return bool(self._windows)

    def _is_apart(self) -> bool:
        """Whether events have to be taken time by time: windows close, other streams wait."""
        return self.has_windows or any(stream.waiting for stream in self.streams.values())

    def stream(self, name: str, lateness: int | None) -> Stream:
        """The stream of that name, made if need be."""
        found = self.streams.get(name)
        if found is None:
            found = Stream(
                name, self._graph.terms, lateness or 0, self._tick_ms, self._move, self._hearers
            )
            self.streams[name] = found
        elif lateness is not None and lateness != found.lateness:
            raise GraphtideError(f"the stream {name} already has lateness {found.lateness}")
        return found

    def window(self, stream: Stream, shape: WindowShape, graph: int, asked: Asked) -> Placed | None:
        """The window of a shape on a stream, whose content is the graph of that id.

        None if there is one already, but without some of what is asked for.
        """
        placed = self._windows.get(graph)
        if placed is None:
            content = WindowContent(shape, stream.events, stream.name)
            placed = Placed(stream, content, graph, stream.pruned)
            self._windows[graph] = placed
        return placed if placed.serves(asked) else None

    def pruned(self) -> int:
        """How many triples streams have dropped, because no query can match them."""
        return sum(stream.pruned for stream in self.streams.values())

    def held(self) -> int:
        """How many quads windows have put into the store."""
        contents = [placed.content for placed in self._windows.values()]
        return sum(len(c) + (len(c.by_graph) if c.by_graph else 0) for c in contents)

    def add(self, query: Continuous) -> None:
        """Let a query report when one of its windows closes."""
        for number in query.windows:
            self._windows[number].queries.append(query)
        self._summarise()
        self._connect()

    def _summarise(self) -> None:
        """Tell each stream what its queries can match."""
        for stream in self.streams.values():
            placed = [p for p in self._windows.values() if p.stream is stream]
            stream.summary = Summary(frozenset().union(*(p.asked() for p in placed)))

    def remove(self, query: Continuous) -> None:
        """Let a query go, with the windows that only it had."""
        for number in query.windows:
            placed = self._windows[number]
            placed.queries.remove(query)
            if not placed.queries:
                del self._windows[number]
                self._graph.clear_graph(number)
                if placed.content.by_graph is not None:
                    self._graph.clear_graph(placed.content.by_graph.graph)
        self._summarise()
        self._connect()

    def _connect(self) -> None:
        """Tell each window which streams to wait for."""
        queries = dict.fromkeys(q for placed in self._windows.values() for q in placed.queries)
        for windows, streams in connected(queries):
            for number in windows:
                self._windows[number].needed = tuple(streams.values())

    def advance(self, to: int) -> None:
        """Nothing before a time comes any more, on any stream."""
        for stream in self.streams.values():
            stream.advance(to)

    def _move(self) -> None:
        """Close what can be closed; events that come in meanwhile wait their turn."""
        if self._moving:
            return
        self._moving = True
        try:
            while self._close():
                pass
        finally:
            self._moving = False
        for stream in self.streams.values():
            needed = [p.content for p in self._windows.values() if p.stream is stream]
            events, moments = stream.events, stream.events.moments
            events.drop_before(min((c.oldest for c in needed), default=events.end))
            moments.drop_before(min((c.oldest_moment for c in needed), default=moments.end))

    def _close(self) -> bool:
        """Close some windows, all that close at one time together; whether there were any."""
        # No window may go ahead of another that has too much to close for one step.
        reach = min((p.content.reach() for p in self._windows.values()), default=0)
        found = [(p, *p.content.advance(min(p.complete(), reach))) for p in self._windows.values()]
        moved = [(placed, closes, changes) for placed, closes, changes in found if len(closes)]
        if not moved:
            return False
        times, places = unite([closes for _, closes, _ in moved])
        changes = _merged(moved, places)
        queries = dict.fromkeys(q for placed, _, _ in moved for q in placed.queries)
        parts = [(placed, at) for (placed, _, _), at in zip(moved, places, strict=True)]
        own = {q: _united([at for placed, at in parts if q in placed.queries]) for q in queries}
        if any(query.one_by_one for query in queries):
            for place in range(len(times)):
                part = changes[_only(place, changes[:, TX])].copy()
                part[:, TX] = 0
                here = {query: at[_only(place, at)] - place for query, at in own.items()}
                self._report(times[place : place + 1], part, here)
        else:
            self._report(times, changes, own)
        return True

    def _report(self, times: Longs, changes: Ints, own: Mapping[Continuous, Longs]) -> None:
        """Take in what changed at some closes, and let each query report at its own of them."""
        first = self._graph.transactions
        self._graph.apply_window_changes(times, changes)
        for query, places in own.items():
            if len(places):
                query.take(first + places, times[places])


def _only(place: int, places: Longs | Ints) -> slice:
    """Where a place stands in a list of places in order."""
    return slice(*np.searchsorted(places, (place, place + 1)))


def _united(places: list[Longs]) -> Longs:
    """All places of some lists in order, each once; a single list is so already."""
    return places[0] if len(places) == 1 else np.unique(np.concatenate(places))


def _merged(moved: list[tuple[Placed, Closes, Ints]], places: list[Longs]) -> Ints:
    """The changes of several windows, with the place of their close among all as `tx`."""
    parts = []
    for (placed, _, changes), at in zip(moved, places, strict=True):
        changes[:, GRAPH] = placed.graph
        changes[:, TX] = at[changes[:, TX]]
        parts.append(changes)
        if placed.content.by_graph is not None:
            statements = placed.content.by_graph.changes()
            statements[:, TX] = at[statements[:, TX]]
            parts.append(statements)
    if len(parts) == 1:
        return parts[0]
    merged = np.concatenate(parts)
    return merged[np.argsort(merged[:, TX], kind="stable")]
