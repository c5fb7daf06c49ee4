"""Counted rows by definition: the answer before a transaction, after it, and their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import DIFF, TX, VALUES, Ints
from graphtide.kernel.twin.recomputed import Bag, Recomputed, add, bag_ids, transactions

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answer:
    """The twin of `graphtide.kernel.counts.Answer`.

    >>> from graphtide.kernel.batch import make_batch
    >>> answer = Answer(1)
    >>> answer.step(make_batch([(0, 1, 7), (0, -1, 7), (0, 2, 8), (1, -1, 8)], 1)).tolist()
    [[0, 2, 0, 8], [1, -1, 2, 8]]
    >>> answer.rows().tolist()
    [[8, 1]]
    """

    def __init__(self, width: int) -> None:
        self._bag: Bag = {}
        self._width = width
        self.total = 0

    def step(self, batch: Ints, columns: Ints | None = None) -> Ints:
        """Apply a batch; its consolidated rows `[transaction, diff, count before, values…]`.

        With `columns`, only those of the batch, in this order.
        """
        out: list[tuple[int, ...]] = []
        if columns is not None:
            batch = batch[:, [TX, DIFF, *columns.tolist()]]
        for tx, changes in transactions(batch):
            total: Bag = {}
            for diff, row in changes:
                total[row] = total.get(row, 0) + diff
            for row, diff in total.items():
                if diff != 0:
                    out.append((tx, diff, self._bag.get(row, 0), *row))
                    add(self._bag, row, diff)
        self.total = sum(self._bag.values())
        return np.array(out, np.int32).reshape(len(out), 3 + self._width)

    def rows(self) -> Ints:
        """The current rows `[values…, count]`."""
        rows = [(*row, count) for row, count in self._bag.items()]
        return np.array(rows, np.int32).reshape(len(rows), self._width + 1)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        yield bag_ids(self._bag)

    def __len__(self) -> int:
        return len(self._bag)

    @property
    def nbytes(self) -> int:
        """Bytes of the values held, without Python's overhead."""
        return len(self._bag) * 4 * (VALUES + self._width)


class DistinctKernel(Recomputed):
    """The twin of `graphtide.kernel.counts.DistinctKernel`: every row that occurs, once.

    >>> from graphtide.kernel.batch import make_batch
    >>> DistinctKernel(1).step(
    ...     make_batch([(0, 1, 7), (0, 1, 7), (1, -1, 7), (2, -1, 7)], 1)
    ... ).tolist()
    [[0, 1, 7], [2, -1, 7]]
    """

    def __init__(self, width: int) -> None:
        super().__init__(1, width)

    def answer(self) -> Bag:
        """The rows with a count above 0."""
        return {row: 1 for row, count in self._inputs[0].items() if count > 0}

    def step(self, batch: Ints) -> Ints:
        """The change of the set of rows for a change of their counts."""
        return self._advance(batch)

    def sizes(self) -> dict[str, int]:
        """Distinct rows held."""
        return {"rows": len(self._inputs[0])}
