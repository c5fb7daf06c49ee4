"""Statements: the quads of event graphs written down as triples, so that GRAPH can ask for them.

Each quad that is in a window is a node of the engine's own with four triples: its subject, its
predicate, its object, its graph. The numbers of these nodes are no terms and are used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.algebra.windows import GRAPH, OBJECT, PREDICATE, SUBJECT
from graphtide.kernel import Distinct
from graphtide.kernel.batch import VALUES, Ints

if TYPE_CHECKING:
    from graphtide.rdf.dictionary import TermDictionary

FIRST = 1 << 29
"""Numbers from here up to the hidden graphs are quads, not terms."""


class StatementLog:
    """The quads of named event graphs in one window, and the triples that write them down."""

    def __init__(self, graph: int, terms: TermDictionary) -> None:
        self.graph = graph
        self._counts = Distinct(4)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._free: list[int] = []
        self._predicates = [terms.encode(p) for p in (SUBJECT, PREDICATE, OBJECT, GRAPH)]
        self._rows: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return 4 * len(self._numbers)

    def take(self, arrivals: Ints) -> None:
        """Take in quads that come into the window or leave it."""
        named = np.ascontiguousarray(arrivals[arrivals[:, VALUES + 3] != 0])
        for tx, diff, *quad in self._counts.step(named).tolist():
            number = self._number(tuple(quad), diff)
            for predicate, part in zip(self._predicates, quad, strict=True):
                self._rows.append((tx, diff, number, predicate, part, self.graph))

    def _number(self, quad: tuple[int, ...], diff: int) -> int:
        if diff < 0:
            number = self._numbers.pop(quad)
            self._free.append(number)
            return number
        number = self._free.pop() if self._free else FIRST + len(self._numbers)
        self._numbers[quad] = number
        return number

    def changes(self) -> Ints:
        """The changes since last asked; their `tx` is the place of a close."""
        rows, self._rows = self._rows, []
        return np.array(rows, np.int32).reshape(-1, VALUES + 4)
