"""Distinct by definition: every row that occurs, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.twin.recomputed import Recomputed

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.kernel.twin.bag import Bag


class Distinct(Recomputed):
    """The twin of `graphtide.kernel.distinct.Distinct`.

    >>> from graphtide.kernel.batch import make_batch
    >>> Distinct(1).step(make_batch([(0, 1, 7), (0, 1, 7), (1, -1, 7), (2, -1, 7)], 1)).tolist()
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
