"""Matches: the rows that a fix can be applied to, kept in step with the answer of its query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.batch import DIFF
from graphtide.kernel.net import NET_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.fixes.state import Row
    from graphtide.kernel.batch import Ints


class Matches:
    """Rows of a query seen through some of its columns, each once.

    >>> import numpy as np
    >>> matches = Matches((1,))
    >>> matches.take(np.array([[0, 1, 0, 7, 8], [0, 1, 0, 9, 8]], np.int32))
    >>> list(matches)
    [(8,)]
    >>> matches.take(np.array([[1, -1, 1, 7, 8], [1, -1, 1, 9, 8]], np.int32))
    >>> list(matches)
    []
    """

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._places = [NET_VALUES + column for column in columns]
        self._counts: dict[Row, int] = {}

    def take(self, net: Ints) -> None:
        """Take in a delta, as a watch keeps it."""
        for line in net.tolist():
            row = tuple(line[place] for place in self._places)
            count = self._counts.get(row, 0) + line[DIFF]
            if count:
                self._counts[row] = count
            else:
                self._counts.pop(row, None)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._counts)

    def __contains__(self, row: Row) -> bool:
        return row in self._counts
