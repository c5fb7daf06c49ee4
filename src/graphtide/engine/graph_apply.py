"""ApplyingGraph: changes that come in batches, tables and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.engine.ingest import (
    Piece,
    check_order,
    cut,
    encode,
    first_backwards,
    first_transactions,
    id_rows,
    integers,
    one_by_one,
    pieces_of,
)
from graphtide.engine.runtime import GraphCore, first_redundant
from graphtide.errors import DataError, GraphtideError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.registry import find_format

if TYPE_CHECKING:
    from graphtide.engine.ingest import Lines
    from graphtide.kernel.batch import Ints, Longs

Changes = ChangeBatch | Iterable[ChangeBatch] | pa.Table | str | Path


class ApplyingGraph(GraphCore):
    """A graph that takes in many changes at once."""

    def apply(self, changes: Changes, *, time: int | None = None) -> None:
        """Apply changes: a batch, several, an Arrow table, or the path of a file of changes.

        Rows that share one `(time, tx)` are one transaction. With `time`, everything is one
        transaction at that time; so is a file of plain RDF, at the current time if none is given.

        One batch is applied whole or, if there is something wrong with it, not at all. Of several,
        and of a file, the transactions before an error are applied.
        """
        self.settle()
        if isinstance(changes, ChangeBatch) and time is None:
            rows, bad = encode(changes, self.terms)
            if bad:
                raise DataError(f"row {bad[0]}: {bad[1]}")
            self._apply_whole((rows, changes.time, changes.tx))
            return
        batches = _batches(changes)
        if time is not None or _is_plain_rdf(changes):
            batches = _restamped(batches, self._stamp(time), self._last_tx + 1)
        for piece in pieces_of(batches, self.terms):
            self.apply_piece(piece)

    def apply_ids(
        self,
        s: Ints,
        p: Ints,
        o: Ints,
        g: Ints | None = None,
        *,
        diff: Ints | None = None,
        time: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
        tx: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
    ) -> None:
        """Apply changes given as ids of `graph.terms`; without `tx`, each is a transaction.

        All are applied or, if there is something wrong with one of them, none.
        """
        self.settle()
        rows = id_rows(len(self.terms), s, p, o, g, diff)
        if time is None:
            time = np.full(len(rows), self.clock, np.int64)
        if tx is None:
            tx = np.arange(self._last_tx + 1, self._last_tx + 1 + len(rows), dtype=np.int64)
        times, txs = integers("time", time, len(rows)), integers("tx", tx, len(rows))
        self._apply_whole((rows, times, txs))

    def insert_for(self, quads: Ints, places: Longs, times: Longs) -> None:
        """Insert what a follower's actions insert: a transaction for each of its firings.

        `places` tells the firing of each quad, `times` the time of each firing. Quads that are
        there already are left out, and firings of which nothing is left.
        """
        self.settle()
        order = np.argsort(places, kind="stable")
        quads, places = quads[order], places[order]
        new = ~self._store.contains(quads)
        quads, places = quads[new], places[new]
        first = first_places(quads)
        quads, places = quads[first], places[first]
        changes = np.zeros((len(quads), 6), np.int32)
        changes[:, 1] = 1
        changes[:, 2:] = quads
        numbers = np.cumsum(np.diff(places, prepend=-1) > 0) + self._last_tx
        for piece in cut(changes, np.maximum(times[places], self.clock), numbers):
            self._run(piece)
            self._last_tx = int(piece[2][-1])
            self.clock = int(piece[1][-1])

    def apply_piece(self, piece: Piece) -> None:
        """Apply whole transactions of ids; those before one that has to be refused are applied."""
        changes, times, _ = piece
        problem = self._first_problem(changes, times[changes[:, 0]])
        if problem:
            piece = first_transactions(piece, int(changes[problem[0], 0]))
        if len(piece[1]):
            self._apply_checked(piece)
        if problem:
            raise problem[1]

    def _apply_whole(self, lines: Lines) -> None:
        """Apply changes with a time and a number each, unless something is wrong with them."""
        rows, times, txs = lines
        problem = self._first_problem(rows, times)
        if problem:
            raise problem[1]
        for piece in cut(rows, times, txs):
            self._apply_checked(piece)

    def _first_problem(self, changes: Ints, times: Longs) -> tuple[int, GraphtideError] | None:
        """The place of the first change that has to be refused, given a time for each."""
        backwards = first_backwards(self.clock, times)
        if not self.strict:
            return backwards
        listed = [(row[1], tuple(row[2:])) for row in changes.tolist()]
        redundant = first_redundant(listed, self._store, self.terms)
        problems = [problem for problem in (backwards, redundant) if problem]
        return min(problems, key=lambda problem: problem[0], default=None)

    def _apply_checked(self, piece: Piece) -> None:
        _, times, txs = piece
        self._last_tx = max(self._last_tx, int(txs.max()))
        if self._running:  # called by a callback
            self._due.extend(one_by_one(self._pending.take()))
            self._due.extend(one_by_one(piece))
        elif self.callbacks or self._streams:
            self._apply_each(piece)
            return
        else:
            self._run(piece)
        self.clock = int(times[-1])

    def _apply_each(self, piece: Piece) -> None:
        """Whoever is called back sees the graph as of that transaction, not of the whole batch."""
        for one in one_by_one(piece):
            check_order(self.clock, one[1])  # a callback may have advanced the clock
            if self._streams and one[1][0] > self.clock:  # windows never see the future
                self._streams.advance(int(one[1][0]))
            self.followers.before(int(one[1][0]), self.clock)
            self.clock = int(one[1][0])
            self._run(one)
            self.settle()


def first_places(quads: Ints) -> Longs:
    """The place at which each quad comes first, in order.

    >>> first_places(np.array([[1, 2, 3, 0], [4, 2, 3, 0], [1, 2, 3, 0]], np.int32)).tolist()
    [0, 1]
    """
    wide = quads.astype(np.int64)
    one, two = (wide[:, 0] << 32) | wide[:, 2], (wide[:, 1] << 32) | wide[:, 3]
    order = np.lexsort((one, two))
    same = (one[order][1:] == one[order][:-1]) & (two[order][1:] == two[order][:-1])
    repeated = np.zeros(len(quads), np.bool_)
    repeated[order[1:][same]] = True
    return np.flatnonzero(~repeated)


def _batches(changes: Changes) -> Iterable[ChangeBatch]:
    if isinstance(changes, ChangeBatch):
        return (changes,)
    if isinstance(changes, (str, Path, pa.Table)):
        return read_changes(changes)
    return changes


def _is_plain_rdf(changes: Changes) -> bool:
    return isinstance(changes, (str, Path)) and find_format(changes).rdf is not None


def _restamped(batches: Iterable[ChangeBatch], time: int, tx: int) -> Iterator[ChangeBatch]:
    for batch in batches:
        n = len(batch)
        yield ChangeBatch(
            np.full(n, time, np.int64), np.full(n, tx, np.int64), batch.diff,
            batch.s, batch.p, batch.o, batch.g,
        )  # fmt: skip
