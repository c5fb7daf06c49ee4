"""Ids of terms that are stored: `flat_ids` for whoever holds some, and `IdCache`, which does not.

A dictionary frees the terms whose ids nobody holds (`Holders`, in `rdf/dictionary.py`). A cache
must not hold ids, or nothing would ever be freed: it is emptied instead.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary

Value = TypeVar("Value")

MOST_CACHED = 200_000
"""Entries of a cache by ids; a full one is emptied."""


def flat_ids(rows: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    """The ids of rows that are Python tuples, as an array.

    >>> flat_ids([(1, 2), (3,)]).tolist()
    [1, 2, 3]
    """
    return np.fromiter(chain.from_iterable(rows), np.int64)


class IdCache(Generic[Value]):
    """Results by ids of terms. It is emptied when terms were freed: an id may mean another term."""

    __slots__ = ("_generation", "_most", "_terms", "_values")

    def __init__(self, terms: TermDictionary, most: int = MOST_CACHED) -> None:
        self._terms = terms
        self._most = most
        self._generation = terms.generation
        self._values: dict[tuple[int, ...], Value] = {}

    def current(self) -> dict[tuple[int, ...], Value]:
        """The results that are still right. Look here again after each operation on the graph."""
        if self._generation != self._terms.generation or len(self._values) >= self._most:
            self._generation = self._terms.generation
            self._values = {}
        return self._values
