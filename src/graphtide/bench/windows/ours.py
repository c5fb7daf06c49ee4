"""Our engine on a cell: incremental, or with the answer worked out anew at every event."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

from graphtide.bench.windows.cell import PUSH, Cell
from graphtide.bench.windows.events import Piece, pieces
from graphtide.engine.live_graph import LiveGraph
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.streams.query import WindowQuery

STREAM: Final = "<ex:s>"

ENOUGH_S: Final = 2.0
"""Re-evaluation is measured for about so long, or for `MOST_EVALUATIONS`."""

FEWEST_EVALUATIONS: Final = 3
MOST_EVALUATIONS: Final = 300

FEW: Final = 20_000
"""Events that are pushed one by one, where that is measured: after the window is full."""


@dataclass(slots=True)
class Figures:
    """What was measured: so many triples in so many seconds, and the matches of the last report.

    Reading texts into ids takes `encode_s` more. `pruned` is the share of triples that the query
    cannot match.
    """

    triples: int = 0
    seconds: float = 0.0
    matches: int = 0
    encode_s: float = 0.0
    pruned: float | None = None


class Window:
    """A live graph with the query of a cell over its stream.

    >>> window = Window(Cell("table1", "lubm", "Q2", 5_000, 5_000, "incremental"))
    >>> window.take(pieces(window.cell, 0, 12_500, 1_000), Figures()).triples
    12500
    """

    def __init__(self, cell: Cell, *, store_all: bool = False) -> None:
        self.cell = cell
        self.graph = LiveGraph(store="all" if store_all else "matched")
        self.stream = self.graph.stream(STREAM)
        self.query: WindowQuery = self.graph.register(cell.text, report="change", name="maintained")

    def take(self, stream: Iterator[Piece], figures: Figures) -> Figures:
        """Let a part of the stream come, and add up what it took."""
        last = 0
        for piece in stream:
            start = perf_counter()
            quads = piece.quads(self.graph.terms)
            figures.encode_s += perf_counter() - start
            start = perf_counter()
            self.stream.push_ids(piece.times, quads)
            figures.seconds += perf_counter() - start
            figures.triples += len(piece)
            last = int(piece.times[-1])
        start = perf_counter()
        self.graph.advance(last + 1)
        figures.seconds += perf_counter() - start
        figures.matches = self.query.count()
        figures.pruned = self.stream.pruned / max(self.stream.received, 1)
        return figures

    def evaluate_anew(self) -> None:
        """From now on, work the answer out anew at every event. The window stays as it is."""
        maintained = self.query
        self.query = self.graph.register(self.cell.text, report="change", reevaluate=True, name="q")
        self.graph.unwatch(maintained)


def incremental(cell: Cell) -> Figures:
    """Measure incremental evaluation, in bulk: every event has its report all the same."""
    return Window(cell).take(pieces(cell, 0, cell.length, PUSH), Figures())


def one_by_one(cell: Cell) -> Figures:
    """Measure incremental evaluation of events that are pushed one by one."""
    window = Window(cell)
    window.take(pieces(cell, 0, cell.before, PUSH), Figures())
    end = cell.before + min(FEW, cell.length)
    return window.take(_singles(cell, cell.before, end), Figures())


def _singles(cell: Cell, first: int, last: int) -> Iterator[Piece]:
    for piece in pieces(cell, first, last, PUSH):
        for at in range(0, len(piece), cell.event):
            yield piece.part(at, at + cell.event)


def reevaluation(cell: Cell) -> Figures:
    """Fill the window, then measure some events after each of which the query is evaluated."""
    window = Window(cell, store_all=True)
    window.take(pieces(cell, 0, cell.before, PUSH), Figures())
    window.evaluate_anew()
    figures = Figures()
    end = cell.before + MOST_EVALUATIONS * cell.event
    for number, piece in enumerate(_singles(cell, cell.before, end), start=1):
        window.take(iter([piece]), figures)
        if figures.seconds > ENOUGH_S and number >= FEWEST_EVALUATIONS:
            break
    check_matches(cell, cell.before + figures.triples, figures.matches)
    return figures


def check_matches(cell: Cell, end: int, matches: int) -> None:
    """Raise unless incremental evaluation has as many matches at some place of the stream."""
    found = Window(cell).take(pieces(cell, 0, end, PUSH), Figures()).matches
    if found != matches:
        raise GraphtideError(
            f"{cell}: {matches} matches, but incremental evaluation finds {found}",
            hint="this is a bug: please report it",
        )
