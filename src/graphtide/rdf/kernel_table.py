"""`KernelTermTable`: a hash table of term texts in NumPy arrays, filled and searched by kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from graphtide.errors import GraphtideError, TermError
from graphtide.rdf import kinds
from graphtide.rdf.kernels import terms as kernel
from graphtide.rdf.kernels.texts import ODD, check_texts
from graphtide.rdf.kernels.values import PENDING, typed_values
from graphtide.rdf.term_tables import BadRow, Strings, TextColumn, buffer_of, grown, text_column
from graphtide.rdf.terms import canonical_text
from graphtide.rdf.typed_values import typed_value

if TYPE_CHECKING:
    from numpy.typing import NDArray


MAX_TERMS: Final = 2**31 - 2
"""Ids are int32."""


class KernelTermTable:
    """A `TermTable` in NumPy arrays; `rdf.kernels.terms` describes their layout."""

    def __init__(self) -> None:
        self.count = 0
        self._used = 0  # bytes of the blob
        self.kinds = np.zeros(64, np.int8)
        self.numbers = np.zeros(64, np.float64)
        self._starts = np.zeros(65, np.int64)
        self._blob = np.zeros(4096, np.uint8)
        self._slots = np.zeros(128, np.int64)

    def encode(self, column: TextColumn) -> tuple[NDArray[np.int32], list[BadRow]]:
        """Return the id of every text, adding new terms; 0 and a `BadRow` for an invalid one."""
        data, offsets = column.data, column.offsets
        ids = np.zeros(len(column), np.int32)
        absent = kernel.find_rows(data, offsets, self._slots, self._blob, self._starts, ids)
        if column.valid is not None:
            ids[~column.valid] = 0
        if not absent:
            return ids, []
        rows = np.flatnonzero(ids == 0 if column.valid is None else (ids == 0) & column.valid)
        codes = np.empty(rows.size, np.int8)
        closes = np.empty(rows.size, np.int64)
        odd = check_texts(data, offsets, rows, codes, closes)
        bad: list[BadRow] = []
        if odd:
            plain = codes != ODD
            bad = self._encode_odd(column, rows[~plain], ids)
            rows, codes, closes = rows[plain], codes[plain], closes[plain]
        self._add_plain(column, rows, codes, closes, ids)
        return ids, bad

    def _add_plain(
        self,
        column: TextColumn,
        rows: NDArray[np.int64],
        codes: NDArray[np.int8],
        closes: NDArray[np.int64],
        ids: NDArray[np.int32],
    ) -> None:
        data, offsets = column.data, column.offsets
        numbers = np.empty(rows.size, np.float64)
        pending = typed_values(data, offsets, rows, codes, closes, numbers)
        self._make_room(rows.size, int((offsets[rows + 1] - offsets[rows]).sum()))
        first_rows = np.empty(rows.size, np.int64)
        before = self.count
        self.count = kernel.add_rows(
            data,
            offsets,
            rows,
            self._slots,
            self._blob,
            self._starts,
            before,
            ids,
            first_rows,
        )
        self._used = int(self._starts[self.count + 1])
        new = first_rows[: self.count - before]
        self.kinds[before + 1 : self.count + 1] = codes[new]
        self.numbers[before + 1 : self.count + 1] = numbers[new]
        if pending:
            added = self.kinds[before + 1 : self.count + 1]
            for term in (np.flatnonzero(added == PENDING) + before + 1).tolist():
                self.kinds[term], self.numbers[term] = typed_value(self.text(term))

    def _encode_odd(
        self, column: TextColumn, rows: NDArray[np.int64], ids: NDArray[np.int32]
    ) -> list[BadRow]:
        """Encode texts that the kernel did not recognise, each distinct one once."""
        known: dict[str, int | str] = {}
        bad: list[BadRow] = []
        for row in rows.tolist():
            text = column.text(row)
            if text not in known:
                try:
                    known[text] = self.add(canonical_text(text))
                except TermError as error:
                    known[text] = error.message
            result = known[text]
            if isinstance(result, int):
                ids[row] = result
            else:
                bad.append((row, result))
        return bad

    def find(self, text: str) -> int:
        """Return the id of a canonical text, or 0."""
        data = np.frombuffer(text.encode(), np.uint8)
        return kernel.find_one(data, self._slots, self._blob, self._starts)

    def add(self, text: str) -> int:
        """Return the id of a canonical text, adding it when it is new."""
        data = np.frombuffer(text.encode(), np.uint8)
        self._make_room(1, data.size)
        found = kernel.add_one(data, self._slots, self._blob, self._starts, self.count)
        if found > self.count:
            self.count = found
            self._used += data.size
            self.kinds[found], self.numbers[found] = typed_value(text)
        return found

    def extend(self, texts: list[str]) -> None:
        """Add canonical texts that are all new; their ids are consecutive."""
        column = text_column(pa.array(texts, pa.string()))
        rows = np.arange(len(texts))
        codes, closes = np.empty(len(texts), np.int8), np.empty(len(texts), np.int64)
        check_texts(column.data, column.offsets, rows, codes, closes)
        odd = np.flatnonzero(codes == ODD).tolist()
        codes[odd] = kinds.OTHER
        first = self.count + 1
        self._add_plain(column, rows, codes, closes, np.empty(len(texts), np.int32))
        for row in odd:
            self.kinds[first + row], self.numbers[first + row] = typed_value(texts[row])

    def text(self, term: int) -> str:
        """Return the canonical text of an id."""
        return self._blob[self._starts[term] : self._starts[term + 1]].tobytes().decode()

    def texts(self, ids: NDArray[np.int32]) -> Strings:
        """Return the texts of many ids; null for id 0."""
        offsets = np.empty(ids.size + 1, np.int64)
        total = kernel.text_sizes(ids, self._starts, offsets)
        out = np.empty(total, np.uint8)
        kernel.copy_texts(ids, self._blob, self._starts, offsets, out)
        nulls = int(np.count_nonzero(ids == 0))
        valid = buffer_of(np.packbits(ids != 0, bitorder="little")) if nulls else None
        # One Arrow string array holds 2 GiB; beyond that the offsets must be wide.
        wide = total > np.iinfo(np.int32).max
        starts = offsets if wide else offsets.astype(np.int32)
        return pa.Array.from_buffers(
            pa.large_string() if wide else pa.string(),
            ids.size,
            [valid, buffer_of(starts), buffer_of(out)],
            nulls,
        )

    @property
    def nbytes(self) -> int:
        """The size of the table in bytes."""
        arrays = (self.kinds, self.numbers, self._starts, self._blob, self._slots)
        return sum(array.nbytes for array in arrays)

    def _make_room(self, terms: int, size: int) -> None:
        """Grow, by doubling, until this many more terms and bytes fit."""
        needed = self.count + terms
        if needed > MAX_TERMS:
            raise GraphtideError(f"a dictionary holds at most {MAX_TERMS} terms")
        if needed + 2 > self._starts.size - 1:
            capacity = 2 * needed + 64
            self.kinds = grown(self.kinds, capacity)
            self.numbers = grown(self.numbers, capacity)
            self._starts = grown(self._starts, capacity + 1)
        if self._used + size > self._blob.size:
            self._blob = grown(self._blob, 2 * (self._used + size))
        if needed * 5 > self._slots.size * 3:  # at most 60 % full, to keep probes short
            slots = np.zeros(1 << (needed * 2).bit_length(), np.int64)
            kernel.rehash(self._slots, slots)
            self._slots = slots
