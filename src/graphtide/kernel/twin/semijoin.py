"""SemiJoin and antijoin by definition: left rows whose key is, or is not, among the right rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.twin.recomputed import Recomputed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints
    from graphtide.kernel.twin.bag import Bag


class SemiJoin(Recomputed):
    """The twin of `graphtide.kernel.semijoin.SemiJoin`.

    >>> from graphtide.kernel.batch import make_batch
    >>> antijoin = SemiJoin(2, columns=[1], negated=True)
    >>> left, right = make_batch([(0, 1, 5, 6)], 2), make_batch([(1, 1, 6), (2, -1, 6)], 1)
    >>> antijoin.step(left, right).tolist()
    [[0, 1, 5, 6], [1, -1, 5, 6], [2, 1, 5, 6]]
    """

    def __init__(self, width: int, *, columns: Sequence[int], negated: bool) -> None:
        super().__init__(2, width)
        self._columns = tuple(columns)
        self._negated = negated

    def answer(self) -> Bag:
        """The left rows that pass, with their counts."""
        left, right = self._inputs
        there = {key for key, count in right.items() if count > 0}
        return {
            row: count
            for row, count in left.items()
            if (tuple(row[k] for k in self._columns) in there) != self._negated
        }

    def step(self, left: Ints, right: Ints) -> Ints:
        """The change of the answer for changes of its inputs; right rows are keys."""
        return self._advance(left, right)

    def sizes(self) -> dict[str, int]:
        """Rows held on the left, keys held on the right."""
        return {"left": len(self._inputs[0]), "right": len(self._inputs[1])}
