"""`KernelTermTable`: a hash table of term texts in NumPy arrays, filled by `rdf.kernels.terms`.

Terms are removed all at once, by `sweep`, which packs the texts and rebuilds the slots: so there
are no tombstones. The twin is `term_tables.PlainTermTable`.
"""

from __future__ import annotations

from copy import copy
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphtide.errors import GraphtideError, TermError
from graphtide.rdf import kinds
from graphtide.rdf import term_tables as tables
from graphtide.rdf.kernels import stems
from graphtide.rdf.kernels.numerals import LONGEST, classify_numbers
from graphtide.rdf.kernels.packing import copy_texts, live_size, pack_texts, rehash, text_sizes
from graphtide.rdf.kernels.terms import (
    BLOCK,
    COUNT,
    LEFT,
    ODD_TEXT,
    TOP,
    USED,
    TextArrays,
    add_one,
    add_plain,
    find_one,
    take_numbers,
    take_rows,
)
from graphtide.rdf.terms import canonical_text, typed_value
from graphtide.views import Block, make_block

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_TERMS: Final = 2**31 - 2
"""Ids are int32."""


class KernelTermTable:
    """A `TermTable` in NumPy arrays, filled and searched by the loops above."""

    def __init__(self) -> None:
        self._state = np.zeros(4, np.int64)
        self._free = np.empty(0, np.int32)
        self.kinds = np.zeros(64, np.int8)
        self.numbers = np.zeros(64, np.float64)
        self._spans = np.zeros((64, 2), np.int64)
        self._blob = np.zeros(4096, np.uint8)
        self._slots = np.zeros(128, np.int64)
        self._stems = np.zeros(stems.CELLS, np.int64)
        self._text = np.zeros(_ROOM, np.uint8)  # a single text
        self._bytes = self._text.data
        self._codes = np.zeros(BLOCK, np.int64)
        self._recent = np.zeros((1, 2), np.int64)
        self._block: Block = None

    @property
    def count(self) -> int:
        """How many terms there are."""
        return int(self._state[COUNT])

    @property
    def top(self) -> int:
        """The highest id in use."""
        return int(self._state[TOP])

    def encode(self, column: tables.TextColumn) -> tuple[NDArray[np.int32], list[tables.BadRow]]:
        """Return the id of every text, adding new terms; 0 and a `BadRow` for an invalid one."""
        count, offsets = len(column), column.offsets
        ids, odd = np.zeros(count, np.int32), np.empty(count, np.int64)
        row = many = 0
        while row < count:
            row, many = self._take(column, row, ids, odd, many)
            # Nobody knows how many of the rest are new: the table at most doubles.
            more = min(count - row, max(self.count, BLOCK))
            self._make_room(more, int(offsets[row + more] - offsets[row]))
        return ids, self._encode_odd(column, odd[:many], ids)

    def _take(
        self, column: tables.TextColumn, row: int, ids: Int32, odd: Int64, many: int
    ) -> tuple[int, int]:
        """Call `take_rows` for a column, from a row on."""
        valid = _ALL if column.valid is None else column.valid
        typed, data, offsets = (self.kinds, self.numbers), column.data, column.offsets
        like = np.zeros(3, np.int64)
        return take_rows(
            data, offsets, valid, row, self._arrays(), *typed, ids, odd, many, self._codes, like
        )

    def _encode_odd(
        self, column: tables.TextColumn, rows: NDArray[np.int64], ids: NDArray[np.int32]
    ) -> list[tables.BadRow]:
        """Encode texts that the kernel did not recognise, each distinct one once."""
        known: dict[str, int | str] = {}
        bad: list[tables.BadRow] = []
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
        return find_one(data, self._arrays())

    def add(self, text: str) -> int:
        """Return the id of a canonical text, adding it when it is new."""
        data = np.frombuffer(text.encode(), np.uint8)
        kind, number = typed_value(text)  # before anything is changed: it may be interrupted
        self._make_room(1, data.size)
        found, new = add_one(data, self._arrays())
        if new:
            self.kinds[found], self.numbers[found] = kind, number
        return found

    def add_text(self, text: str) -> int:
        """Return the id of the term with a text in any spelling, adding it when it is new."""
        try:
            data = text.encode()
        except UnicodeEncodeError:  # half a surrogate pair: which makes it no term
            return self.add(canonical_text(text))
        size = len(data)
        if size > _ROOM:
            return self.add(canonical_text(text))
        while True:
            self._bytes[:size] = data
            found = add_plain(self._laid_out(), size)
            if found > 0:
                return found
            if found == ODD_TEXT:
                return self.add(canonical_text(text))
            self._make_room(1, size)

    def add_numbers(self, pairs: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ids of integers, with a second number 0, and of means: sums and counts."""
        many, row = len(pairs), 0
        if many > len(self._recent):
            self._recent, self._block = np.zeros((_RECENT, 2), np.int64), None
        ids = np.empty(many, np.int32)
        while True:
            row = take_numbers(pairs, row, self._laid_out(), ids)
            if row == many:
                return ids
            ids[row] = self.add(tables.number_text(*pairs[row].tolist()))
            self._make_room(BLOCK, BLOCK * LONGEST)
            row += 1

    def _arrays(self) -> TextArrays:
        return TextArrays(
            self._slots, self._blob, self._spans, self._stems, self._free, self._state
        )

    def _laid_out(self) -> Block:
        """The arrays as a block, which is made again when one of them was replaced."""
        if self._block is None:
            own = self.kinds, self.numbers, self._text, self._recent
            self._block = make_block((*self._arrays(), *own))
        return self._block

    def classify(self, rows: NDArray[np.int32], at: int, classes: NDArray[np.int32]) -> None:
        """Note for each id in a column of some rows whether it is a number (`kernels.numerals`)."""
        classify_numbers(rows, at, self._laid_out(), classes)

    def text(self, term: int) -> str:
        """Return the canonical text of an id; empty if no term has it."""
        first, last = self._spans.item(term, 0), self._spans.item(term, 1)
        text = self._blob[first & stems.PLACE : last].tobytes()
        if first > stems.PLACE:
            at = stems.SPANS + 2 * (first >> stems.SHIFT & stems.MOST)
            shared = self._blob[self._stems.item(at) : self._stems.item(at + 1)].tobytes()
            text = text + shared if first & stems.TAIL else shared + text
        return text.decode()

    def texts(self, ids: NDArray[np.int32]) -> tables.Strings:
        """Return the texts of many ids; null for id 0, empty for an id that no term has."""
        offsets = np.empty(ids.size + 1, np.int64)
        total = text_sizes(ids, self._spans, self._stems, offsets)
        out = np.empty(total, np.uint8)
        copy_texts(ids, self._blob, self._spans, self._stems, offsets, out)
        nulls = int(np.count_nonzero(ids == 0))
        valid = tables.buffer_of(np.packbits(ids != 0, bitorder="little")) if nulls else None
        # One Arrow string array holds 2 GiB; beyond that the offsets must be wide.
        wide = total > np.iinfo(np.int32).max
        starts = offsets if wide else offsets.astype(np.int32)
        return pa.Array.from_buffers(
            pa.large_string() if wide else pa.string(),
            ids.size,
            [valid, tables.buffer_of(starts), tables.buffer_of(out)],
            nulls,
        )

    @property
    def nbytes(self) -> int:
        """The size of the table in bytes, without room that was not used yet."""
        each: int = self.kinds.itemsize + self.numbers.itemsize + self._spans[0].nbytes
        fixed = self._slots.nbytes + self._free.nbytes
        return (self.top + 1) * each + int(self._state[USED]) + fixed

    def _make_room(self, terms: int, size: int) -> None:
        """Grow, by doubling, until this many more terms and bytes fit."""
        needed = self.top + terms
        used = int(self._state[USED]) + size
        if needed > MAX_TERMS:
            raise GraphtideError(f"a dictionary holds at most {MAX_TERMS} terms")
        if needed + 2 > len(self._spans):
            self._resize(_roomy(needed, self._spans[0].nbytes) + 64)
        if used > self._blob.size:
            self._block = None
            self._blob = tables.resized(self._blob, _roomy(used, 1), int(self._state[USED]))
        live = self.count + terms
        if live * 5 > self._slots.size * 3:  # at most 60 % full, to keep probes short
            self._rehash(live, _ALL)

    def _resize(self, capacity: int) -> None:
        """Give the arrays by id another size, at which all ids in use still fit."""
        used, self._block = self.top + 1, None
        typed = (
            tables.resized(self.kinds, capacity, used),
            tables.resized(self.numbers, capacity, used),
        )
        spans = tables.resized(self._spans, capacity, used)
        # One assignment: loops tell by the spans how many ids there is room for.
        (self.kinds, self.numbers), self._spans = typed, spans

    def _rehash(self, live: int, chosen: Bools) -> None:
        slots = np.zeros(max(128, 1 << (live * 2).bit_length()), np.int64)
        rehash(self._slots, slots, chosen)
        self._slots, self._block = slots, None

    def __deepcopy__(self, _memo: object) -> KernelTermTable:
        """A copy to be swept, which replaces texts and slots: these are not copied."""
        other = copy(self)
        other._state, other._free = self._state.copy(), self._free.copy()  # noqa: SLF001
        other._text, other._codes = self._text.copy(), self._codes.copy()  # noqa: SLF001
        other._bytes, other._block = other._text.data, None  # noqa: SLF001
        other._recent, other._stems = self._recent.copy(), self._stems.copy()  # noqa: SLF001
        other._resize(self.top + 64)  # noqa: SLF001
        return other

    def sweep(self, live: NDArray[np.bool_], *, reuse: bool) -> None:
        """Free the terms of all ids that are not `live`; unless `reuse`, their ids stay unused."""
        self._recent[:] = 0
        size = live_size(self._spans, live) + stems.MOST * stems.LONGEST
        packed = np.zeros(max(4096, 2 * size), np.uint8)
        self._state[USED] = pack_texts(self._blob, self._spans, self._stems, live, packed)
        self._blob, self._block = packed, None
        gone = np.flatnonzero(~live)
        self.kinds[gone], self.numbers[gone] = kinds.UNBOUND, 0.0
        terms = np.flatnonzero(live)
        self._rehash(len(terms), live)
        self._state[COUNT] = len(terms)
        if not reuse:
            return
        top = int(terms[-1]) if len(terms) else 0
        self._free, self._block = tables.unused_ids(live, top), None
        self._state[TOP], self._state[LEFT] = top, len(self._free)
        if 4 * (top + 64) < len(self._spans):  # the largest ids are gone: so is their room
            self._resize(2 * top + 64)


_SMALL, _LARGE = 1 << 20, 1 << 28
"""Bytes between which arrays grow by four: what is not used yet takes no memory."""


def _roomy(needed: int, width: int) -> int:
    """How many rows, so many bytes wide, to make room for."""
    return needed * (4 if _SMALL < needed * width < _LARGE else 2)


_ROOM: Final = 4096
"""Bytes of a single text that compiled loops add at most."""

_RECENT: Final = 1 << 15
"""Integers whose ids are remembered, from the second one on that is asked for."""

_ALL: Final[Bools] = np.empty(0, np.bool_)
