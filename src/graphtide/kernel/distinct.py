"""Distinct: +1 where a row's count rises above 0, -1 where it falls back to 0."""

from __future__ import annotations

import numpy as np

from graphtide.jit import compiled
from graphtide.kernel.batch import DIFF, VALUES, Int, Ints
from graphtide.kernel.rowtable import RowTable, Table, add_to_row


@compiled
def distinct_step(t: Table, batch: Ints, out: Ints) -> Int:
    """Count each row; pass on the crossings of zero; the number passed on."""
    n = 0
    for i in range(len(batch)):
        after = add_to_row(t, batch[i, DIFF], batch, i, VALUES)
        turned = np.int64(after > 0) - np.int64(after - batch[i, DIFF] > 0)
        if turned != 0:
            for k in range(batch.shape[1]):
                out[n, k] = batch[i, k]
            out[n, DIFF] = turned
            n += 1
    return n


class Distinct:
    """The counts of all rows seen.

    >>> from graphtide.kernel.batch import make_batch
    >>> Distinct(1).step(make_batch([(0, 1, 7), (0, 1, 7), (1, -1, 7), (2, -1, 7)], 1)).tolist()
    [[0, 1, 7], [2, -1, 7]]
    """

    def __init__(self, width: int) -> None:
        self._table = RowTable(width)

    def step(self, batch: Ints) -> Ints:
        """The change of the set of rows for a change of their counts."""
        self._table.reserve(len(batch))
        out = np.empty_like(batch)
        return out[: distinct_step(self._table.arrays, batch, out)]

    def sizes(self) -> dict[str, int]:
        """Distinct rows held."""
        return {"rows": len(self._table)}

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes
