"""Owner: which cell of a grid a row belongs to, so that every row comes out of exactly one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.spark.hashing import id_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.spark.shares import Grid


def owners(columns: NDArray[np.int32], terms: TermDictionary, grid: Grid) -> NDArray[np.int64]:
    """The cell of each row, from its values of the grid's variables."""
    cell = np.zeros(len(columns), np.int64)
    for i, share in enumerate(grid.shares):
        cell = cell * share + id_hashes(terms, columns[:, i]) % share
    return cell
