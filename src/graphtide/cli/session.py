"""A session: queries that watch one graph, and the delta rows that come as changes are applied."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from graphtide.engine import Delta, DeltaRow, LiveGraph
from graphtide.engine.feed import pieces_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from graphtide.engine import Watch
    from graphtide.engine.feed import Piece
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf import ChangeBatch

UNBOUNDED = 2**62
"""Deltas are taken out after every piece: nothing must be forgotten before."""


@dataclass(slots=True)
class Tally:
    """What a query's deltas have added up to."""

    answer: int = 0
    more: int = 0
    fewer: int = 0

    def add(self, diff: int) -> None:
        """Count a delta row."""
        self.answer += diff
        self.more += max(diff, 0)
        self.fewer += max(-diff, 0)


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A delta row, and the name of the query whose answer it changes."""

    query: str
    row: DeltaRow


class Session:
    """Watches a graph with named queries; counts what happens and how long it takes.

    >>> from graphtide.rdf import ChangeBatch
    >>> session = Session(LiveGraph(), {"all": "SELECT * { ?s ?p ?o }"})
    >>> batch = ChangeBatch.of([(17, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None)])
    >>> [str(found.row) for rows in session.apply([batch]) for found in rows]
    ['+ s=<ex:a> p=<ex:p> o=<ex:b>']
    >>> session.tallies["all"].answer, session.transactions
    (1, 1)
    """

    def __init__(
        self, graph: LiveGraph, queries: Mapping[str, str], strategy: Strategy | None = None
    ) -> None:
        self.graph = graph
        self.expected: int | None = None
        self.changes = 0
        self.transactions = 0
        self.busy = 0.0
        self._watches = [
            graph.watch(text, name=name, strategy=strategy, history=UNBOUNDED)
            for name, text in queries.items()
        ]
        self.tallies = {name: Tally() for name in queries}

    @property
    def rate(self) -> float:
        """Changes per second of work."""
        return self.changes / self.busy if self.busy else 0.0

    def first_rows(self) -> list[NamedRow]:
        """The answers on what the graph held at the start, as delta rows."""
        return [row for watch in self._watches for row in self._new_rows(watch)]

    def apply(self, batches: Iterable[ChangeBatch]) -> Iterator[list[NamedRow]]:
        """Apply whole transactions; delta rows in their order, piece by piece."""
        start = perf_counter()
        for piece in pieces_of(batches, self.graph.terms):
            rows = self._apply_piece(piece)
            self.busy += perf_counter() - start
            yield rows
            start = perf_counter()
        self.busy += perf_counter() - start

    def _apply_piece(self, piece: Piece) -> list[NamedRow]:
        changes, times, txs = piece
        number, diff, s, p, o, g = changes.T
        self.graph.apply_ids(s, p, o, g, diff=diff, time=times[number], tx=txs[number])
        self.changes += len(changes)
        self.transactions += len(times)
        rows = [row for watch in self._watches for row in self._new_rows(watch)]
        if len(self._watches) > 1:
            stamps = zip(times.tolist(), txs.tolist(), strict=True)
            order = {stamp: place for place, stamp in enumerate(stamps)}
            rows.sort(key=lambda found: order[found.row.time, found.row.tx])
        return rows

    def _new_rows(self, watch: Watch) -> Iterator[NamedRow]:
        """The deltas since the last look."""
        tally = self.tallies[watch.name]
        for net, stamps in watch.drain():
            for row in Delta(net, stamps, watch.variables, self.graph.terms):
                tally.add(row.diff)
                yield NamedRow(watch.name, row)
