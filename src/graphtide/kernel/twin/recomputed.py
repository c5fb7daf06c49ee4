"""`Recomputed`: an operator by its definition alone, d(Q) = Q(after) - Q(before)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import TX, VALUES, Ints, make_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


Row = tuple[int, ...]
Bag = dict[Row, int]
"""How often each row occurs; never 0 times."""


def add(bag: Bag, row: Row, count: int) -> None:
    """Add `count` to the multiplicity of a row.

    >>> bag = {(7,): 1}
    >>> add(bag, (7,), -1)
    >>> add(bag, (8,), -2)
    >>> bag
    {(8,): -2}
    """
    bag[row] = bag.get(row, 0) + count
    if bag[row] == 0:
        del bag[row]


def bag_ids(rows: Iterable[Row]) -> Ints:
    """The ids of some rows, one after the other.

    >>> bag_ids({(7, 8): 1, (9,): 2}).tolist()
    [7, 8, 9]
    """
    return np.fromiter(chain.from_iterable(rows), np.int32)


def difference(after: Bag, before: Bag) -> Bag:
    """The difference of two bags.

    >>> difference({(7,): 3, (8,): 1}, {(7,): 1, (8,): 1, (9,): 1})
    {(9,): -1, (7,): 2}
    """
    out = {row: -count for row, count in before.items() if row not in after}
    for row, count in after.items():
        add(out, row, count - before.get(row, 0))
    return out


def transactions(batch: Ints) -> Iterator[tuple[int, Iterable[tuple[int, Row]]]]:
    """The transactions of a batch in order, each with its diffs and rows.

    >>> from graphtide.kernel.batch import make_batch
    >>> [(tx, list(rows)) for tx, rows in transactions(make_batch([(0, 1, 7), (2, -1, 7)], 1))]
    [(0, [(1, (7,))]), (2, [(-1, (7,))])]
    """
    for tx, lines in groupby(batch.tolist(), key=itemgetter(TX)):
        yield tx, [(diff, tuple(row)) for _, diff, *row in lines]


class Recomputed(ABC):
    """The input bags of an operator and its answer as of the last transaction."""

    def __init__(self, inputs: int, width: int) -> None:
        self._inputs: list[Bag] = [{} for _ in range(inputs)]
        self._answer: Bag = {}
        self._width = width

    @abstractmethod
    def answer(self) -> Bag:
        """The whole answer for the inputs as they are now."""

    def _advance(self, *batches: Ints) -> Ints:
        """Apply each transaction; the changes of the answer."""
        changes = [dict(transactions(batch)) for batch in batches]
        out = []
        for tx in sorted(set().union(*changes)):
            for bag, change in zip(self._inputs, changes, strict=True):
                for diff, row in change.get(tx, ()):
                    add(bag, row, diff)
            before, self._answer = self._answer, self.answer()
            out += [(tx, diff, *row) for row, diff in difference(self._answer, before).items()]
        return make_batch(out, self._width)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        for bag in self._inputs:
            yield bag_ids(bag)

    @property
    def nbytes(self) -> int:
        """Bytes of the values held, without Python's overhead."""
        return sum(4 * (VALUES + len(row)) for bag in self._inputs for row in bag)
