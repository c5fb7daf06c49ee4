"""Recomputed: an operator by its definition alone, d(Q) = Q(after) - Q(before)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from graphtide.kernel.batch import VALUES, make_batch
from graphtide.kernel.twin.bag import add, difference, transactions

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.kernel.twin.bag import Bag


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
        """Take in each transaction; how it changed the answer."""
        changes = [dict(transactions(batch)) for batch in batches]
        out = []
        for tx in sorted(set().union(*changes)):
            for bag, change in zip(self._inputs, changes, strict=True):
                for diff, row in change.get(tx, ()):
                    add(bag, row, diff)
            before, self._answer = self._answer, self.answer()
            out += [(tx, diff, *row) for row, diff in difference(self._answer, before).items()]
        return make_batch(out, self._width)

    @property
    def nbytes(self) -> int:
        """Bytes of the values held, leaving aside what Python adds to them."""
        return sum(4 * (VALUES + len(row)) for bag in self._inputs for row in bag)
