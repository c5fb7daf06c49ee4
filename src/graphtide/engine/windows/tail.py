"""Tail: the last part of a long sequence of rows, added at the end, dropped from the front."""

from __future__ import annotations

from typing import Any

import numpy as np

Rows = np.ndarray[Any, Any]

SMALLEST = 1024


class Tail:
    """Rows of numbers. Places count from the first row ever, and stay valid.

    >>> tail = Tail(np.int64)
    >>> tail.append(np.array([3, 5, 8]))
    >>> tail.drop_before(1)
    >>> tail.begin, tail.end, tail.rows(1, 3).tolist()
    (1, 3, [5, 8])
    """

    def __init__(self, kind: type[np.generic], width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._rows: Rows = np.empty((SMALLEST, *self._shape), kind)
        self._first = 0  # places in the array, of what is held
        self._last = 0
        self._moved = 0

    @property
    def begin(self) -> int:
        """The place of the first row that is still held."""
        return self._moved + self._first

    @property
    def end(self) -> int:
        """The place after the last row."""
        return self._moved + self._last

    def append(self, rows: Rows) -> None:
        """Add rows at the end."""
        end = self._last + len(rows)
        if end > len(self._rows):
            self._make_room(len(rows))
            end = self._last + len(rows)
        self._rows[self._last : end] = rows
        self._last = end

    def _make_room(self, more: int) -> None:
        """Move what is held to the front, of a larger array if need be."""
        held = self._last - self._first
        size = len(self._rows)
        while size < 2 * (held + more):
            size *= 2
        larger = np.empty((size, *self._shape), self._rows.dtype)
        larger[:held] = self._rows[self._first : self._last]
        self._rows = larger
        self._moved += self._first
        self._first, self._last = 0, held

    def rows(self, first: int, last: int) -> Rows:
        """The rows from one place up to another."""
        return self._rows[first - self._moved : last - self._moved]

    def drop_before(self, place: int) -> None:
        """Forget the rows before a place."""
        self._first = min(max(self._first, place - self._moved), self._last)

    def __len__(self) -> int:
        return self._last - self._first

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._rows.nbytes
