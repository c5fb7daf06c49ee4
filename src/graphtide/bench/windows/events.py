"""The stream of a cell: so many triples of a data set, in pieces, with their times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphtide.bench.windows.cell import RATE
from graphtide.datasets.lubm import Lubm
from graphtide.datasets.seas import PREDICATES, SAMPLES_PER_DAY, Seas
from graphtide.datasets.triples import IndexedTriples, StreamRate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.bench.windows.cell import Cell
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf import TermDictionary

A_UNIVERSITY = 90_000
"""A university has more triples than this."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Triples that lie next to each other in the stream, and their times."""

    triples: IndexedTriples
    times: Longs

    def __len__(self) -> int:
        return len(self.times)

    def part(self, first: int, last: int | None = None) -> Piece:
        """The triples from one place up to another."""
        return self.only(slice(first, last))

    def only(self, which: slice | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Piece:
        """Some of the triples."""
        return Piece(replace(self.triples, rows=self.triples.rows[which]), self.times[which])

    def quads(self, terms: TermDictionary) -> Ints:
        """The triples as quads of ids."""
        rows = np.zeros((len(self), 4), np.int32)
        rows[:, :3] = self.triples.ids(terms)
        return rows

    def lines(self) -> bytes:
        """The triples as N-Triples."""
        return bytes(self.triples.columns().lines()) if len(self) else b""


def pieces(cell: Cell, first: int, last: int, size: int) -> Iterator[Piece]:
    """The triples of a cell's stream from one place up to another, at most so many in a piece.

    >>> from graphtide.bench.windows.cell import Cell
    >>> cell = Cell("figure7", "seas", "Q1", window=50, slide=1, mode="incremental", event=20)
    >>> [(len(piece), piece.times[[0, -1]].tolist()) for piece in pieces(cell, 10, 70, 40)]
    [(40, [0, 40]), (20, [40, 60])]
    """
    pace = StreamRate(RATE, cell.event, ticks=RATE)
    place = 0
    for block in _blocks(cell, last):
        begin, end = max(first - place, 0), min(last - place, len(block))
        for at in range(begin, end, size):
            rows = block.rows[at : min(at + size, end)]
            times, _ = pace.timestamps(place + at, len(rows))
            yield Piece(IndexedTriples(block.terms, rows), times)
        place += len(block)
        if place >= last:
            return


def _blocks(cell: Cell, count: int) -> Iterator[IndexedTriples]:
    if cell.data == "lubm":
        return Lubm(count // A_UNIVERSITY + 1, repeats=True).indexed_blocks()
    a_day = SAMPLES_PER_DAY * PREDICATES * Seas().meters
    return Seas(days=count // a_day + 1).indexed_blocks()
