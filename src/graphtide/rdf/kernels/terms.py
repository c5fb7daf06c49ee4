"""`KernelTermTable`: a hash table of term texts in NumPy arrays, and its compiled loops.

Texts lie one after the other in `blob`; text of id i is `blob[starts[i]:starts[i + 1]]` (id 0 is
empty). `slots` is an open-addressing table of int64: the high half of an entry is 31 bits of the
text's hash, the low half its id, and 0 is a free slot. Terms are never removed, so there are no
tombstones. The twin is `term_tables.PlainTermTable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from graphtide.errors import GraphtideError, TermError
from graphtide.jit import allocating
from graphtide.prefetch import prefetch
from graphtide.rdf import kinds
from graphtide.rdf.kernels.texts import ODD, check_texts
from graphtide.rdf.kernels.values import PENDING, typed_values
from graphtide.rdf.term_tables import BadRow, Strings, TextColumn, buffer_of, grown, text_column
from graphtide.rdf.terms import canonical_text, typed_value

if TYPE_CHECKING:
    from collections.abc import Callable


# ruff: noqa: ANN401 - what Numba hands to an intrinsic has no types of its own.


Bytes = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

_BLOCK: Final = 64
"""Rows that are prefetched together."""


def _load64_code(_typing: Any, array: Any, _index: Any) -> tuple[Any, Callable[..., Any]]:
    """Read eight bytes from an index on as one integer, aligned or not."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(view.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(array, types.int64), code


_load64: Any = intrinsic(_load64_code)


@allocating
def _hash(data: Bytes, at: int, end: int) -> Any:
    """Return 31 mixed bits of data[at:end]: shifted to the high half they stay positive."""
    value = np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(end - at)
    prime = np.uint64(0xFF51AFD7ED558CCD)
    while at + 8 <= end:
        value = (value ^ _load64(data, at)) * prime
        value ^= value >> np.uint64(32)
        at += 8
    word = np.uint64(0)
    while at < end:
        word = (word << np.uint64(8)) | np.uint64(data[at])
        at += 1
    value = (value ^ word) * prime
    value ^= value >> np.uint64(29)
    value *= np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64(value >> np.uint64(33))


@allocating
def _find(
    data: Bytes, at: int, end: int, code: Any, slots: Int64, blob: Bytes, starts: Int64
) -> tuple[int, int]:
    """Return (id, its slot) of a text, or (0, the free slot where it belongs)."""
    mask = slots.size - 1
    slot = code & mask
    size = end - at
    while True:
        entry = slots[slot]
        if entry == 0:
            return 0, slot
        if entry >> 32 == code:
            candidate = entry & 0x7FFFFFFF
            start = starts[candidate]
            if starts[candidate + 1] - start == size:
                index = 0
                while index + 8 <= size and _load64(blob, start + index) == _load64(
                    data, at + index
                ):
                    index += 8
                while index < size and blob[start + index] == data[at + index]:
                    index += 1
                if index == size:
                    return candidate, slot
        slot = (slot + 1) & mask


@allocating
def find_rows(
    data: Bytes, offsets: Int64, slots: Int64, blob: Bytes, starts: Int64, ids: Int32
) -> int:
    """Look every text up; ids[row] is its id or 0. Return how many are absent."""
    absent = 0
    mask = slots.size - 1
    codes = np.empty(_BLOCK, np.int64)
    for first in range(0, ids.size, _BLOCK):
        last = min(first + _BLOCK, ids.size)
        # A probe reads memory three times in sequence; the reads of a block of rows overlap.
        for row in range(first, last):
            codes[row - first] = _hash(data, offsets[row], offsets[row + 1])
            prefetch(slots, codes[row - first] & mask)
        for row in range(first, last):
            ids[row] = slots[codes[row - first] & mask] & 0x7FFFFFFF
            prefetch(starts, ids[row])
        for row in range(first, last):
            prefetch(blob, starts[ids[row]])
        for row in range(first, last):
            at, end = offsets[row], offsets[row + 1]
            found, _ = _find(data, at, end, codes[row - first], slots, blob, starts)
            ids[row] = found
            absent += found == 0
    return absent


@allocating
def find_one(data: Bytes, slots: Int64, blob: Bytes, starts: Int64) -> int:
    """Return the id of the text that `data` holds, or 0."""
    found, _ = _find(data, 0, data.size, _hash(data, 0, data.size), slots, blob, starts)
    return found


@allocating
def _append(
    data: Bytes, at: int, end: int, entry: int, slot: int, slots: Int64, blob: Bytes, starts: Int64
) -> None:
    """Append a new text to the blob and store its entry."""
    term = entry & 0x7FFFFFFF
    start = starts[term]
    for place in range(end - at):
        blob[start + place] = data[at + place]
    starts[term + 1] = start + end - at
    slots[slot] = entry


@allocating
def add_one(data: Bytes, slots: Int64, blob: Bytes, starts: Int64, count: int) -> int:
    """Return the id of the text that `data` holds, which is count + 1 when it is new."""
    code = _hash(data, 0, data.size)
    found, slot = _find(data, 0, data.size, code, slots, blob, starts)
    if found == 0:
        found = count + 1
        _append(data, 0, data.size, code << 32 | found, slot, slots, blob, starts)
    return found


@allocating
def add_rows(
    data: Bytes,
    offsets: Int64,
    rows: Int64,
    slots: Int64,
    blob: Bytes,
    starts: Int64,
    count: int,
    ids: Int32,
    first_rows: Int64,
) -> int:
    """Give the texts of `rows` their ids, new ones after `count`; return the new count.

    first_rows[k] becomes the position in `rows` of the k-th new term. The caller has made room for
    every row to be new.
    """
    before = count
    for index in range(rows.size):
        row = rows[index]
        at, end = offsets[row], offsets[row + 1]
        code = _hash(data, at, end)
        found, slot = _find(data, at, end, code, slots, blob, starts)
        if found == 0:
            count += 1
            found = count
            _append(data, at, end, code << 32 | found, slot, slots, blob, starts)
            first_rows[found - before - 1] = index
        ids[row] = found
    return count


@allocating
def rehash(old: Int64, new: Int64) -> None:
    """Move every entry of the old slots to the (larger, all free) new ones."""
    mask = new.size - 1
    for index in range(old.size):
        entry = old[index]
        if entry != 0:
            slot = (entry >> 32) & mask
            while new[slot] != 0:
                slot = (slot + 1) & mask
            new[slot] = entry


@allocating
def text_sizes(ids: Int32, starts: Int64, offsets: Int64) -> int:
    """Fill in where each text begins when the texts of `ids` are laid end to end."""
    total = 0
    for row in range(ids.size):
        offsets[row] = total
        total += starts[ids[row] + 1] - starts[ids[row]]
    offsets[ids.size] = total
    return total


@allocating
def copy_texts(ids: Int32, blob: Bytes, starts: Int64, offsets: Int64, out: Bytes) -> None:
    """Copy the texts of `ids` to the places that `text_sizes` gave them."""
    for row in range(ids.size):
        start, place = starts[ids[row]], offsets[row]
        for index in range(offsets[row + 1] - place):
            out[place + index] = blob[start + index]


# --- the table ---

MAX_TERMS: Final = 2**31 - 2
"""Ids are int32."""


class KernelTermTable:
    """A `TermTable` in NumPy arrays, filled and searched by the loops above."""

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
        absent = find_rows(data, offsets, self._slots, self._blob, self._starts, ids)
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
        self.count = add_rows(
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
        return find_one(data, self._slots, self._blob, self._starts)

    def add(self, text: str) -> int:
        """Return the id of a canonical text, adding it when it is new."""
        data = np.frombuffer(text.encode(), np.uint8)
        self._make_room(1, data.size)
        found = add_one(data, self._slots, self._blob, self._starts, self.count)
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
        total = text_sizes(ids, self._starts, offsets)
        out = np.empty(total, np.uint8)
        copy_texts(ids, self._blob, self._starts, offsets, out)
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
            rehash(self._slots, slots)
            self._slots = slots
