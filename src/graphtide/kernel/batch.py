"""Batches: int32 arrays of rows `[transaction, diff, values…]` in transaction order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.limits import allowance

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
Int = int | np.signedinteger[Any]
"""An integer inside a compiled loop: Python's or NumPy's."""

Longs = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

Array = TypeVar("Array", bound="np.ndarray[Any, Any]")

TX = 0
DIFF = 1
VALUES = 2
"""The columns of a batch: transaction index, diff, and where the values begin."""


MOST_COPIES = np.iinfo(np.int32).max
"""How often a row can occur: a count is an int32."""


def too_many_copies() -> GraphtideError:
    """The error for a row that would occur more often."""
    return GraphtideError(
        f"a row of an intermediate result occurs more than {MOST_COPIES:,} times",
        hint="use DISTINCT in the parts that are joined",
    )


def empty_batch(width: int) -> Ints:
    """A batch without rows, for `width` value columns.

    >>> empty_batch(3).shape
    (0, 5)
    """
    return np.empty((0, VALUES + width), np.int32)


def make_batch(rows: Sequence[Sequence[int]], width: int) -> Ints:
    """A batch from Python rows `(transaction, diff, value, …)`.

    >>> make_batch([(0, 1, 7, 8), (1, -1, 7, 8)], width=2).tolist()
    [[0, 1, 7, 8], [1, -1, 7, 8]]
    """
    return np.array(rows, np.int32).reshape(len(rows), VALUES + width)


def merge_batches(parts: Sequence[Ints], width: int) -> Ints:
    """All rows of several batches as one batch in transaction order.

    >>> merge_batches([make_batch([(1, 1, 7)], 1), make_batch([(0, 1, 8)], 1)], 1).tolist()
    [[0, 1, 8], [1, 1, 7]]
    """
    full = [part for part in parts if len(part)]
    if not full:
        return empty_batch(width)
    if len(full) == 1:
        return full[0]
    joined = np.concatenate(full)
    return joined[np.argsort(joined[:, TX], kind="stable")]


def longer(rows: Array) -> Array:
    """A copy of an array with room for twice as many rows; an error if that is not allowed.

    >>> longer(np.ones((2, 3), np.int32)).shape
    (4, 3)
    """
    allowance().allow(2 * rows.nbytes)
    return as_long(rows, 2 * len(rows))


def as_long(array: Array, rows: int) -> Array:
    """An array, or a longer copy with room for this many rows.

    >>> as_long(np.ones((1, 2), np.int64), 2).tolist()
    [[1, 1], [0, 0]]
    """
    if len(array) >= rows:
        return array
    grown: Any = np.zeros((rows, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def first_rows(quads: Ints) -> Longs:
    """The index at which each distinct quad comes first, in order.

    >>> first_rows(np.array([[1, 2, 3, 0], [4, 2, 3, 0], [1, 2, 3, 0]], np.int32)).tolist()
    [0, 1]
    """
    wide = quads.astype(np.int64)
    one, two = (wide[:, 0] << 32) | wide[:, 2], (wide[:, 1] << 32) | wide[:, 3]
    order = np.lexsort((one, two))
    same = (one[order][1:] == one[order][:-1]) & (two[order][1:] == two[order][:-1])
    repeated = np.zeros(len(quads), np.bool_)
    repeated[order[1:][same]] = True
    return np.flatnonzero(~repeated)


def first_of_each(quads: Ints, owners: Longs) -> tuple[Ints, Longs]:
    """Each quad once, with the first of its owners, in order of owners.

    >>> quads = np.array([[1, 2, 3, 0], [4, 5, 6, 0], [1, 2, 3, 0]], np.int32)
    >>> first_of_each(quads, np.array([7, 3, 5]))[1].tolist()
    [3, 5]
    """
    order = np.argsort(owners, kind="stable")
    quads, owners = quads[order], owners[order]
    first = first_rows(quads)
    return quads[first], owners[first]
