"""StatementLog: the quads of named event graphs in a window, as triples that GRAPH asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.algebra.windows import GRAPH, OBJECT, PREDICATE, SUBJECT
from graphtide.kernel import DistinctKernel
from graphtide.kernel.batch import VALUES, Ints, Longs
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.dictionary import TermDictionary

FIRST_STATEMENT: Final = 1 << 29
"""Ids from here up to those of hidden graphs are statements, not terms."""


class StatementLog:
    """Reifies the quads of named event graphs in one window, so that GRAPH can ask for them.

    Each quad in the window is a node with four triples: its subject, predicate, object and graph.
    The ids of these nodes are no terms and are reused.
    """

    def __init__(self, graph: int, terms: TermDictionary) -> None:
        self.graph = graph
        self._counts = DistinctKernel(4)
        self._ids: dict[tuple[int, ...], int] = {}
        self._free: list[int] = []
        self._predicates = _predicates(terms)
        self._rows: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return 4 * len(self._ids)

    def take(self, arrivals: Ints) -> None:
        """Apply quads that enter the window or leave it."""
        named = np.ascontiguousarray(arrivals[arrivals[:, VALUES + 3] != 0])
        for tx, diff, *quad in self._counts.step(named).tolist():
            node = self._id(tuple(quad), diff)
            for predicate, part in zip(self._predicates, quad, strict=True):
                self._rows.append((tx, diff, node, predicate, part, self.graph))

    def _id(self, quad: tuple[int, ...], diff: int) -> int:
        if diff < 0:
            node = self._ids.pop(quad)
            self._free.append(node)
            return node
        node = self._free.pop() if self._free else FIRST_STATEMENT + len(self._ids)
        self._ids[quad] = node
        return node

    def quads(self) -> Ints:
        """The different quads in the window."""
        return np.array(list(self._ids), np.int32).reshape(-1, 4)

    def load(self, quads: Ints, held: Ints) -> None:
        """Begin with the quads of a window, of which `held` has every copy.

        Nodes are numbered as `statement_rows` does: nobody sees their ids.
        """
        self._counts.step(np.ascontiguousarray(held[held[:, VALUES + 3] != 0]))
        self._ids = {tuple(q): FIRST_STATEMENT + n for n, q in enumerate(quads.tolist())}

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of the quads in the window, and of changes that nobody has asked for yet."""
        yield from self._counts.held_ids()
        yield flat_ids(self._ids)
        yield flat_ids(self._rows)

    def changes(self) -> Ints:
        """The changes since last asked; their `tx` is the index of a close."""
        rows, self._rows = self._rows, []
        return np.array(rows, np.int32).reshape(-1, VALUES + 4)


def _predicates(terms: TermDictionary) -> list[int]:
    return [terms.encode(p) for p in (SUBJECT, PREDICATE, OBJECT, GRAPH)]


def statement_rows(quads: Ints, graph: int, terms: TermDictionary) -> Ints:
    """The content of the graph of a window that begins with some quads."""
    rows = np.empty((len(quads), 4, 4), np.int32)
    rows[:, :, 0] = np.arange(FIRST_STATEMENT, FIRST_STATEMENT + len(quads))[:, None]
    rows[:, :, 1] = _predicates(terms)
    rows[:, :, 2] = quads
    rows[:, :, 3] = graph
    return rows.reshape(-1, 4)
