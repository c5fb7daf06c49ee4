"""ORDER BY a number with LIMIT: the first rows are kept as `top_rows` does, all others in a kernel.

The first rows of the order, a few more than the range needs, are Python objects: all rows up to a
bound, a number. A row after the bound changes nothing that is seen. The next rows are read from the
kernel when there are too few before the bound, and those too many are dropped from the first ones.
`top_rows` takes over, for good, when a value comes that the kernel cannot order.
"""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from math import inf, nextafter
from typing import TYPE_CHECKING

import numpy as np
from sortedcontainers import SortedList

from graphtide.engine.dataflow.sums import LearnedIds
from graphtide.engine.dataflow.top_rows import (
    ENTRY_BYTES,
    Entry,
    Row,
    RowKeys,
    RowRange,
    TopRows,
    sort_columns,
)
from graphtide.kernel import JIT
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.kernel.counts import consolidate
from graphtide.kernel.groups import NOT_LEARNED
from graphtide.kernel.sorted_rows import BEFORE_ALL, SortedRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.engine.dataflow.operators import Operator
    from graphtide.plan.physical import TopK
    from graphtide.rdf.dictionary import TermDictionary

SPARE = 64
"""First rows that are read beyond those that the range needs."""

MANY = 1000
"""Rows of a transaction from which on the first rows are read anew."""


def make_top(node: TopK, terms: TermDictionary) -> Operator:
    """The operator of a node: with the rows in the kernel, if it is one range of one order."""
    plain = JIT and node.limit is not None and not node.distinct and not node.per
    return TopNumbers(node, terms) if plain and sort_columns(node) else TopRows(node, terms)


class TopNumbers:
    """The rows in the order of numbers, those of equal ones by what else they are sorted by."""

    def __init__(self, node: TopK, terms: TermDictionary) -> None:
        self._node, self._terms = node, terms
        self._column, self._descending = sort_columns(node)[0]
        self._keys = RowKeys(node, terms, skipped=1)
        self._end = node.offset + (node.limit or 0)
        self._range = RowRange(node.offset, self._end)
        self._width = len(node.schema)
        self._rows = self._no_rows()
        self._ids = LearnedIds(terms, [self._column])
        self._first = SortedList()
        self._bound = inf
        self._most = 2 * (self._end + SPARE)
        self._exact: TopRows | None = None

    def _no_rows(self) -> SortedRows:
        width = len(self._node.child.schema)
        return SortedRows(width, self._column - VALUES, descending=self._descending)

    def step(self, batch: Ints) -> Ints:
        """The rows that come into the range and leave it."""
        if self._exact is not None:
            return self._exact.step(batch)
        batch = consolidate(batch)
        anew = len(batch) > MANY and batch[0, TX] == batch[-1, TX]
        at = self._add_first(batch, BEFORE_ALL if anew else self._bound)
        if at < 0:
            return self._exactly().step(batch)
        if anew:
            return self._read_anew(int(batch[0, TX]))
        out: list[Row] = []
        while at < len(batch):
            self._change(batch[at].tolist(), out)
            at = self._add(batch, at + 1, self._bound)
        return make_batch(out, self._width)

    def _add_first(self, batch: Ints, bound: float) -> int:
        """Begin to add a batch to the kernel; negative if its values cannot be ordered there."""
        ids = self._ids
        if ids.generation != self._terms.generation:
            ids.forget(self._rows.ids())
        self._rows.reserve(batch)
        at = self._add(batch, 0, bound)
        if at == NOT_LEARNED and ids.learn(batch, []):
            at = self._add(batch, 0, bound)
        return at

    def _add(self, batch: Ints, begin: int, bound: float) -> int:
        """Add rows to the kernel, up to one that is not after the bound; its index."""
        ids = self._ids
        known = ids.ordered[self._column].bit
        return self._rows.step(batch, begin, known, ids.classes, self._terms.numbers, bound)

    def _change(self, line: list[int], out: list[Row]) -> None:
        """One of the first rows comes or goes."""
        entry = self._entry(line)
        for _ in range(line[DIFF]):
            self._range.add(line[TX], self._first, entry, out)
        for _ in range(-line[DIFF]):
            self._range.remove(line[TX], self._first, entry, out)
            self._read()
        if len(self._first) > self._most:
            self._cut()

    def _entry(self, line: list[int]) -> Entry:
        keys, row = self._keys.entry(line)
        return (self._rows.number(line[self._column], self._terms.numbers), *keys), row

    def _read(self) -> None:
        """Read more of the first rows, unless one is there beyond the range."""
        if len(self._first) > self._end or self._bound == inf:
            return
        rows, bound = self._rows.after(self._bound, self._end + 1 - len(self._first) + SPARE)
        self._first.update(
            entry
            for *values, count in rows.tolist()
            for entry in repeat(self._entry([0, count, *values]), count)
        )
        self._bound = bound
        self._allow_more()

    def _cut(self) -> None:
        """Drop what is far beyond the range, all rows of a number or none."""
        last = self._first[self._end + SPARE][0][0]
        index = self._first.bisect_left(((nextafter(last, inf),),)) if last < inf else None
        if index is not None and index < len(self._first):
            del self._first[index:]
            self._bound = last
        self._allow_more()

    def _allow_more(self) -> None:
        """Let as many of the first rows come as there are, so that a cut costs little for each."""
        self._most = 2 * max(len(self._first), self._end + SPARE)

    def _read_anew(self, tx: int) -> Ints:
        """The difference that all changes of a transaction make."""
        before = Counter(self._range.rows(self._first))
        self._first, self._bound = SortedList(), BEFORE_ALL
        self._read()
        after = Counter(self._range.rows(self._first))
        gone = [(tx, -n, *row) for row, n in (before - after).items()]
        return make_batch(
            [*gone, *((tx, n, *row) for row, n in (after - before).items())], self._width
        )

    def _exactly(self) -> TopRows:
        """Hand all rows over to the exact order."""
        rows = self._rows.rows()
        lines = np.zeros((len(rows), rows.shape[1] + 1), np.int32)
        lines[:, DIFF], lines[:, VALUES:] = rows[:, -1], rows[:, :-1]
        exact = TopRows(self._node, self._terms)
        exact.load(lines)
        self._exact = exact
        self._first, self._rows = SortedList(), self._no_rows()
        return exact

    def in_order(self) -> list[Row]:
        """The rows of the range now, from the first to the last."""
        return self._range.rows(self._first) if self._exact is None else self._exact.in_order()

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of all rows."""
        return (self._rows if self._exact is None else self._exact).held_ids()

    def sizes(self) -> dict[str, int]:
        """Rows held."""
        return {"rows": len(self._rows)} if self._exact is None else self._exact.sizes()

    @property
    def nbytes(self) -> int:
        """Bytes held; about, of the first rows."""
        if self._exact is not None:
            return self._exact.nbytes
        return self._rows.nbytes + self._ids.nbytes + ENTRY_BYTES * len(self._first)
