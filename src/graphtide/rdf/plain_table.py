"""The plain-Python twin of `KernelTermTable`: a dict and a list."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.errors import TermError
from graphtide.rdf.term_table import BadRow, grown
from graphtide.rdf.term_text import canonical_text
from graphtide.rdf.typed_value import typed_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.rdf.text_column import Strings, TextColumn


class PlainTermTable:
    """A `TermTable` that handles one text at a time."""

    def __init__(self) -> None:
        self.count = 0
        self.kinds = np.zeros(64, np.int8)
        self.numbers = np.zeros(64, np.float64)
        self._ids: dict[str, int] = {}
        self._texts: list[str] = [""]

    def encode(self, column: TextColumn) -> tuple[NDArray[np.int32], list[BadRow]]:
        """Give every text its id, adding new terms; a bad text gets 0 and is reported."""
        ids = np.zeros(len(column), np.int32)
        bad: list[BadRow] = []
        for row in range(len(column)):
            if column.valid is None or column.valid[row]:
                text = column.text(row)
                try:
                    ids[row] = self._ids.get(text) or self.add(canonical_text(text))
                except TermError as error:
                    bad.append((row, error.message))
        return ids, bad

    def find(self, text: str) -> int:
        """Return the id of a canonical text, or 0."""
        return self._ids.get(text, 0)

    def add(self, text: str) -> int:
        """Return the id of a canonical text, adding it when it is new."""
        found = self._ids.get(text)
        if found is not None:
            return found
        self.count += 1
        if self.count + 1 >= self.kinds.size:
            self.kinds = grown(self.kinds, 2 * self.count)
            self.numbers = grown(self.numbers, 2 * self.count)
        self.kinds[self.count], self.numbers[self.count] = typed_value(text)
        self._texts.append(text)
        self._ids[text] = self.count
        return self.count

    def extend(self, texts: list[str]) -> None:
        """Add canonical texts that are all new, so that their ids follow each other."""
        for text in texts:
            self.add(text)

    def text(self, term: int) -> str:
        """Return the canonical text of an id."""
        return self._texts[term]

    def texts(self, ids: NDArray[np.int32]) -> Strings:
        """Return the texts of many ids; null for id 0."""
        return pa.array([self._texts[term] if term else None for term in ids.tolist()], pa.string())

    @property
    def nbytes(self) -> int:
        """The bytes that the table holds."""
        texts = sum(map(sys.getsizeof, self._texts)) + sys.getsizeof(self._ids)
        return self.kinds.nbytes + self.numbers.nbytes + texts
