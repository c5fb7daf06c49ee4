"""Route: to which cells each change of a batch goes."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph, MergedGraph, TriplePattern
from graphtide.spark.hashing import id_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.spark.partition import Leaf
    from graphtide.spark.shares import Grid


def route(
    quads: NDArray[np.int32], terms: TermDictionary, grids: Iterable[Grid]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (row, cell), each once and sorted by row: where each quad of ids has to go."""
    grids = tuple(grids)
    wanted = np.zeros((len(quads), max((grid.cells for grid in grids), default=0)), np.bool_)
    for grid in grids:
        for leaf in grid.leaves:
            matched = matching_rows(quads, terms, leaf.pattern)
            for cell in _cells(quads[matched], terms, grid, leaf):
                wanted[matched, cell] = True
    rows, cells = np.nonzero(wanted)
    return rows, cells


def matching_rows(
    quads: NDArray[np.int32], terms: TermDictionary, pattern: TriplePattern
) -> NDArray[np.int64]:
    """The rows that a pattern can match: equal constants, equal places of a repeated variable."""
    mask = np.ones(len(quads), np.bool_)
    places: dict[Var, int] = {}
    positions = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    for column, position in enumerate(positions):
        if isinstance(position, Var):
            mask &= quads[:, column] == quads[:, places.setdefault(position, column)]
            if column == 3:
                mask &= quads[:, 3] != 0
        elif isinstance(position, DefaultGraph):
            mask &= quads[:, column] == 0
        elif not isinstance(position, MergedGraph):  # a leaf is asked of one graph
            wanted = terms.lookup(position)
            mask &= (quads[:, column] == wanted) & (wanted != 0)
    return np.flatnonzero(mask)


def _cells(
    quads: NDArray[np.int32], terms: TermDictionary, grid: Grid, leaf: Leaf
) -> Iterable[NDArray[np.int64]]:
    """Per copy that has to be sent, the cell of each quad."""
    pattern = leaf.pattern
    positions = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    choices: list[list[NDArray[np.int64]]] = []
    for var, share in zip(grid.variables, grid.shares, strict=True):
        if var in leaf.divided_by:
            column = quads[:, positions.index(var)]
            choices.append([id_hashes(terms, column) % share])
        else:
            choices.append([np.full(len(quads), at, np.int64) for at in range(share)])
    for coordinates in product(*choices):
        cell = np.zeros(len(quads), np.int64)
        for coordinate, share in zip(coordinates, grid.shares, strict=True):
            cell = cell * share + coordinate
        yield cell
