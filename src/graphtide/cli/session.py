"""A session: queries that watch one graph, and what they tell of as changes are applied."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from graphtide.algebra.nodes import SelectQuery
from graphtide.cli.feed import Feed
from graphtide.cli.reports import Heard
from graphtide.cli.told import NamedRow, ReportTally, Tally
from graphtide.engine.ingest import pieces_of
from graphtide.engine.live_graph import LiveGraph
from graphtide.engine.watch import Delta
from graphtide.lang.sparql.parse import parse_standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from graphtide.cli.told import Told
    from graphtide.engine.ingest import Piece
    from graphtide.engine.watch import Watch
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.changes import ChangeBatch
    from graphtide.streams.query import WindowQuery

UNBOUNDED = 2**62
"""Deltas are taken out after every piece: nothing must be forgotten before."""


class Session:
    """Watches a graph with named queries; counts what happens and how long it takes.

    Queries over windows report. An insert into a graph that has the name of one of their streams is
    an event of it.

    >>> from graphtide.rdf.changes import ChangeBatch
    >>> session = Session(LiveGraph(), {"all": "SELECT * { ?s ?p ?o }"})
    >>> batch = ChangeBatch.of([(17, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None)])
    >>> [str(found.row) for rows in session.apply([batch]) for found in rows]
    ['+ s=<ex:a> p=<ex:p> o=<ex:b>']
    >>> session.tallies["all"].answer, session.transactions
    (1, 1)
    """

    def __init__(
        self,
        graph: LiveGraph,
        queries: Mapping[str, str],
        strategy: Strategy | None = None,
        *,
        forgiving: bool = False,
    ) -> None:
        self.graph = graph
        self.expected: int | None = None
        self.changes = 0
        self.transactions = 0
        self.busy = 0.0
        self.feed = Feed(graph, forgiving=forgiving)
        self._watches: dict[str, tuple[Watch, Tally]] = {}
        self._heard: dict[str, Heard] = {}
        self.queries = {name: self._add(name, text, strategy) for name, text in queries.items()}

    def _add(self, name: str, text: str, strategy: Strategy | None) -> Watch | WindowQuery:
        parsed = parse_standing(text)
        if isinstance(parsed, SelectQuery):
            watch = self.graph.watch(parsed, name=name, strategy=strategy, history=UNBOUNDED)
            self._watches[name] = watch, Tally()
            return watch
        query = self.graph.register(parsed, name=name, strategy=strategy)
        self._heard[name] = Heard(query)
        self.feed.add(parsed)
        return query

    @property
    def tallies(self) -> dict[str, Tally | ReportTally]:
        """By query, what it has told of."""
        found: dict[str, Tally | ReportTally] = {}
        found |= {name: tally for name, (_, tally) in self._watches.items()}
        found |= {name: heard.tally for name, heard in self._heard.items()}
        return {name: found[name] for name in self.queries}

    @property
    def rate(self) -> float:
        """Changes per second of work."""
        return self.changes / self.busy if self.busy else 0.0

    def first_rows(self) -> list[Told]:
        """The answers on what the graph held at the start, as delta rows."""
        return list(self._new_rows())

    def apply(self, batches: Iterable[ChangeBatch]) -> Iterator[list[Told]]:
        """Apply whole transactions; what is told in their order, piece by piece."""
        start = perf_counter()
        for piece in pieces_of(batches, self.graph.terms):
            for part in self.feed.parts(piece):
                told = self._apply_part(part)
                self.busy += perf_counter() - start
                yield told
                start = perf_counter()
        self.busy += perf_counter() - start

    def _apply_part(self, part: Piece) -> list[Told]:
        changes, times, txs = part
        self.feed.apply(part)
        self.changes += len(changes)
        self.transactions += len(times)
        stamps = zip(times.tolist(), txs.tolist(), strict=True)
        return self._told({stamp: place for place, stamp in enumerate(stamps)})

    def push(self, times: Longs, quads: Ints, events: Longs) -> list[Told]:
        """Take in events of the only stream, in order of time."""
        start = perf_counter()
        self.feed.push(times, quads, events)
        self.changes += len(times)
        self.transactions += len(set(events.tolist()))
        told = self._told({})
        self.busy += perf_counter() - start
        return told

    def end(self, until: int | None) -> list[Told]:
        """There are no more changes; time goes on up to a time, or for a moment."""
        self.feed.end(until)
        return self._told({})

    def _told(self, order: Mapping[tuple[int, int], int]) -> list[Told]:
        """What is new, by time: a window closes before changes of its time are made."""
        reports = [found for heard in self._heard.values() for found in heard.take()]
        rows = list(self._new_rows())
        if len(self._watches) > 1:
            rows.sort(key=lambda found: order[found.row.time, found.row.tx])
        told: list[Told] = [*reports, *rows]
        if len(self._heard) > 1 or (reports and rows):
            told.sort(key=lambda each: each.row.time if isinstance(each, NamedRow) else each.time)
        return told

    def _new_rows(self) -> Iterator[NamedRow]:
        """The deltas since the last look."""
        for watch, tally in self._watches.values():
            for net, stamps in watch.drain():
                for row in Delta(net, stamps, watch.variables, self.graph.terms):
                    tally.add(row.diff)
                    yield NamedRow(watch.name, row)
