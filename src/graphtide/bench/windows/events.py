"""The stream of a cell: so many triples of a data set, in pieces, with their times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphtide.bench.coded import Coded
from graphtide.bench.lubm.model import Lubm
from graphtide.bench.lubm.texts import coded_blocks as lubm_blocks
from graphtide.bench.pace import Pace
from graphtide.bench.seas.model import SAMPLES_A_DAY, Seas
from graphtide.bench.seas.texts import coded_blocks as seas_blocks
from graphtide.bench.seas.vocabulary import PREDICATES
from graphtide.bench.windows.cell import RATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.bench.windows.cell import Cell
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary

A_UNIVERSITY = 90_000
"""A university has more triples than this."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Triples that lie next to each other in the stream, and their times."""

    coded: Coded
    times: Longs

    def __len__(self) -> int:
        return len(self.times)

    def part(self, first: int, last: int | None = None) -> Piece:
        """The triples from one place up to another."""
        return self.only(slice(first, last))

    def only(self, which: slice | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Piece:
        """Some of the triples."""
        return Piece(replace(self.coded, rows=self.coded.rows[which]), self.times[which])

    def quads(self, terms: TermDictionary) -> Ints:
        """The triples as quads of ids."""
        rows = np.zeros((len(self), 4), np.int32)
        rows[:, :3] = self.coded.ids(terms)
        return rows

    def lines(self) -> bytes:
        """The triples as N-Triples."""
        return bytes(self.coded.texts().lines()) if len(self) else b""


def pieces(cell: Cell, first: int, last: int, size: int) -> Iterator[Piece]:
    """The triples of a cell's stream from one place up to another, at most so many in a piece.

    >>> from graphtide.bench.windows.cell import Cell
    >>> cell = Cell("figure7", "seas", "Q1", window=50, slide=1, mode="incremental", event=20)
    >>> [(len(piece), piece.times[[0, -1]].tolist()) for piece in pieces(cell, 10, 70, 40)]
    [(40, [0, 40]), (20, [40, 60])]
    """
    pace = Pace(RATE, cell.event, ticks=RATE)
    place = 0
    for block in _blocks(cell, last):
        begin, end = max(first - place, 0), min(last - place, len(block))
        for at in range(begin, end, size):
            rows = block.rows[at : min(at + size, end)]
            times, _ = pace.stamps(place + at, len(rows))
            yield Piece(Coded(block.terms, rows), times)
        place += len(block)
        if place >= last:
            return


def _blocks(cell: Cell, count: int) -> Iterator[Coded]:
    if cell.data == "lubm":
        return lubm_blocks(Lubm(count // A_UNIVERSITY + 1, repeats=True))
    a_day = SAMPLES_A_DAY * PREDICATES * Seas().meters
    return seas_blocks(Seas(days=count // a_day + 1))
