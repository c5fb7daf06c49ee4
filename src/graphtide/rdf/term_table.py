"""TermTable: where a `TermDictionary` keeps its terms.

A table knows texts as bytes and hands out ids; `TermDictionary` adds the single-term fast path and
terms as objects. `KernelTermTable` keeps them in arrays, `PlainTermTable` is its twin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.rdf.text_column import Strings, TextColumn

T = TypeVar("T", bound=np.generic)

BadRow = tuple[int, str]
"""A row of a column and why its text is not a term."""


class TermTable(Protocol):
    """Texts to ids and back, with the typed side columns."""

    count: int
    kinds: NDArray[np.int8]
    numbers: NDArray[np.float64]

    def encode(self, column: TextColumn) -> tuple[NDArray[np.int32], list[BadRow]]:
        """Give every text its id, adding new terms; a bad text gets 0 and is reported."""

    def find(self, text: str) -> int:
        """Return the id of a canonical text, or 0."""

    def add(self, text: str) -> int:
        """Return the id of a canonical text, adding it when it is new."""

    def extend(self, texts: list[str]) -> None:
        """Add canonical texts that are all new, so that their ids follow each other."""

    def text(self, term: int) -> str:
        """Return the canonical text of an id."""

    def texts(self, ids: NDArray[np.int32]) -> Strings:
        """Return the texts of many ids; null for id 0."""

    @property
    def nbytes(self) -> int:
        """The bytes that the table holds."""


def grown(array: NDArray[T], capacity: int) -> NDArray[T]:
    """Return a longer copy of the array, zeros at its end."""
    larger = np.zeros(capacity, array.dtype)
    larger[: array.size] = array
    return larger
