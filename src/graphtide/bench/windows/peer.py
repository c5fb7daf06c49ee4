"""pyoxigraph on a cell: after every batch of events the query is evaluated anew.

It gets what the query's summary leaves, as all engines did in the paper, and the window's content
is kept for it: what leaves is removed before what comes is added.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from pyoxigraph import RdfFormat, Store, parse

from graphtide.bench.windows.cell import BATCH, PUSH, Cell
from graphtide.bench.windows.events import Piece, pieces
from graphtide.bench.windows.ours import (
    ENOUGH_S,
    FEWEST_EVALUATIONS,
    MOST_EVALUATIONS,
    Figures,
    Window,
    check_matches,
)

if TYPE_CHECKING:
    from pyoxigraph import Quad


def peer(cell: Cell) -> Figures:
    """Fill the window, then measure some batches of events."""
    window = PeerWindow(cell)
    window.fill()
    figures = Figures()
    end = min(cell.before + MOST_EVALUATIONS * BATCH, cell.next_tumble)
    for number, piece in enumerate(pieces(cell, cell.before, end, BATCH), start=1):
        window.take(piece, figures)
        if figures.seconds > ENOUGH_S and number >= FEWEST_EVALUATIONS:
            break
    check_matches(cell, cell.before + figures.triples, figures.matches)
    return figures


class PeerWindow:
    """The content of a window in a pyoxigraph store.

    >>> cell = Cell("figure7", "seas", "Q1", window=1_000, slide=1, mode="pyoxigraph")
    >>> window = PeerWindow(cell)
    >>> window.fill()
    >>> window.take(next(pieces(cell, cell.before, 2_000, 500)), Figures()).matches
    100
    """

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._ours = Window(cell)  # for its summary
        self._store = Store()
        self._held: deque[Piece] = deque()

    def fill(self) -> None:
        """Put in what the window holds before the measured part."""
        cell = self._cell
        begin = max(int(cell.shape.begin(np.array([cell.before - 1]))[0]), 0)
        for piece in pieces(cell, begin, cell.before, PUSH):
            kept = self._summarised(piece)
            self._held.append(kept)
            self._store.bulk_load(kept.lines(), format=RdfFormat.N_TRIPLES)

    def take(self, piece: Piece, figures: Figures) -> Figures:
        """Let a batch come and what is too old go, evaluate, and add up what it took."""
        kept = self._summarised(piece)
        begin = int(self._cell.shape.begin(piece.times[-1:])[0])
        come, gone = _parsed(kept), self._leaving(begin)
        self._held.append(kept)
        start = perf_counter()
        for quad in gone:
            self._store.remove(quad)
        self._store.extend(come)
        # An answer to SELECT is an iterator; to go through it is to evaluate it.
        figures.matches = sum(1 for _ in self._store.query(self._cell.plain))  # type: ignore[union-attr, misc]
        figures.seconds += perf_counter() - start
        figures.triples += len(piece)
        return figures

    def _summarised(self, piece: Piece) -> Piece:
        mask = self._ours.stream.summary.mask(piece.quads(self._ours.graph.terms))
        return piece if mask is None else piece.only(mask)

    def _leaving(self, begin: int) -> list[Quad]:
        """The quads that are older than the window. No triple of a sliding one comes twice."""
        leaving: list[Quad] = []
        while self._held and (not len(self._held[0]) or self._held[0].times[0] < begin):
            oldest = self._held.popleft()
            many = int(np.searchsorted(oldest.times, begin))
            leaving += _parsed(oldest.part(0, many))
            if many < len(oldest):
                self._held.appendleft(oldest.part(many))
        return leaving


def _parsed(piece: Piece) -> list[Quad]:
    return list(parse(piece.lines(), format=RdfFormat.N_TRIPLES))
