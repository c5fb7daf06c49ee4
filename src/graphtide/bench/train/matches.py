"""The matches of a query, kept in step with its watch, in the order that selections start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.bench.train.vocabulary import vertex_numbers
from graphtide.kernel.batch import DIFF, Ints, Longs
from graphtide.kernel.counts import DELTA_VALUES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.engine.watch import Watch
    from graphtide.rdf.dictionary import TermDictionary


class VertexNumbers:
    """The numbers of vertices by the ids of their terms, read from their IRIs once each.

    >>> from graphtide.bench.train.vocabulary import vertex
    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> terms = TermDictionary()
    >>> ids = terms.encode_column([vertex(17), vertex(4)])
    >>> VertexNumbers(terms).of(ids)
    array([17,  4])
    """

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._numbers = np.zeros(1024, np.int64)

    def of(self, ids: Ints) -> Longs:
        """The numbers of these vertices."""
        if ids.size and int(ids.max()) >= len(self._numbers):
            more = np.zeros(max(int(ids.max()), len(self._numbers)), np.int64)
            self._numbers = np.concatenate([self._numbers, more])
        numbers = self._numbers[ids]
        new = np.unique(ids[numbers == 0])
        if len(new):
            self._numbers[new] = vertex_numbers(self._terms.decode_column(new))
            numbers = self._numbers[ids]
        return numbers


class Matches:
    """The rows of a watch as ids, sorted by the vertices in their first columns.

    The watch must keep its whole history: what it has not handed over is lost here. A round changes
    few rows of many, so these are put into their places; the rest is not sorted again.
    """

    def __init__(self, watch: Watch, keys: int, vertices: VertexNumbers) -> None:
        self.watch = watch
        self._keys = keys
        self._vertices = vertices
        self._rows: Ints = np.empty((0, len(watch.variables)), np.int32)
        self._packed = packed(self._rows)
        self._waiting: list[Ints] = []

    def take(self) -> int:
        """Bring the watch up to date and take over what changed; the number of its rows."""
        self._waiting += [net for net, _ in self.watch.drain()]
        return self.watch.count()

    def rows(self) -> Ints:
        """The rows as ids of terms, in order."""
        self.take()
        if self._waiting:
            changed = np.concatenate(self._waiting)
            self._waiting = []
            self._put(changed[:, DELTA_VALUES:], changed[:, DIFF])
        return self._rows

    def _put(self, rows: Ints, diffs: Ints) -> None:
        """Add up what changed, take out what has gone and put in what is new."""
        # Values besides the vertices (the old and the new length) tell rows apart as well.
        numbers = rows.astype(np.int64)
        for at in range(self._keys):
            numbers[:, at] = self._vertices.of(rows[:, at])
        order = np.lexsort(numbers.T[::-1])
        rows, diffs, keys = rows[order], diffs[order], packed(numbers[order])
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        total = np.add.reduceat(diffs, starts)
        gone = np.searchsorted(self._packed, keys[starts[total < 0]])
        self._rows = np.delete(self._rows, gone, axis=0)
        self._packed = np.delete(self._packed, gone)
        new = starts[total > 0]
        places = np.searchsorted(self._packed, keys[new])
        self._rows = np.insert(self._rows, places, rows[new], axis=0)
        self._packed = np.insert(self._packed, places, keys[new])


def packed(rows: Ints | Longs) -> NDArray[np.bytes_]:
    """Rows of numbers as texts of bytes that are in the same order.

    >>> keys = packed(np.array([[1, 256], [1, 255], [300, 0]]))
    >>> np.argsort(keys).tolist()
    [1, 0, 2]
    """
    wide = np.ascontiguousarray(rows, ">i4")
    return wide.view(f"S{4 * rows.shape[1]}").reshape(len(rows))
