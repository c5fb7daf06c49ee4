"""Loops over a hash table of term texts, which is kept by `rdf.kernels.table`.

Texts lie one after the other in `blob`, without what they share (`stems`); `spans` says where, by
id. The text of id 0, and of an id that no term has, is empty. `slots` is an open-addressing table
of int64: the high half of an entry is 31 bits of the text's hash, the low half its id, and 0 is a
free slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphtide.arrays import bundle
from graphtide.jit import compiled, inlined, subroutine
from graphtide.prefetch import prefetch
from graphtide.rdf import kinds
from graphtide.rdf.kernels.numerals import write_number
from graphtide.rdf.kernels.stems import PLACE, add_text, is_text
from graphtide.rdf.kernels.texts import (
    ODD,
    TYPED,
    note_start,
    plain_rest,
    shares_start,
    term_code,
    typed_literal,
)
from graphtide.rdf.kernels.words import hash_bytes
from graphtide.views import Block, bytes1, floats1, ints1, longs1, longs2, tiny1

if TYPE_CHECKING:
    from graphtide.arrays import Bools1, Bytes1, Floats1, Ints1, Kinds1, Longs1, Longs2, ReadBytes1

Bytes = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Int8 = NDArray[np.int8]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BLOCK: Final = 64
"""Rows that are prefetched together."""


TOP, LEFT, USED, COUNT = 0, 1, 2, 3
"""Cells of `state`: the highest id in use, how many ids are in `free`, bytes of the blob in use,
and the number of terms."""


@bundle
class TextArrays(NamedTuple):
    """The arrays of a table."""

    slots: Longs1
    blob: Bytes1
    spans: Longs2
    stems: Longs1
    free: Ints1
    state: Longs1


@inlined
def text_arrays(block: Block) -> TextArrays:
    """The arrays in a block of `KernelTermTable`."""
    return TextArrays(
        longs1(block, 0), bytes1(block, 1), longs2(block, 2), longs1(block, 3), ints1(block, 4),
        longs1(block, 5),
    )  # fmt: skip


@subroutine
def _find(data: ReadBytes1, at: int, end: int, code: int, t: TextArrays) -> tuple[int, int]:
    """Return (id, its slot) of a text, or (0, the free slot where it belongs)."""
    mask = t.slots.size - 1
    slot = code & mask
    while True:
        entry = t.slots[slot]
        if entry == 0:
            return 0, slot
        if entry >> 32 == code:
            candidate = entry & 0x7FFFFFFF
            if is_text(t.spans, candidate, t.stems, t.blob, data, at, end - at):
                return candidate, slot
        slot = (slot + 1) & mask


@compiled
def find_one(data: ReadBytes1, t: TextArrays) -> int:
    """Return the id of the text that `data` holds, or 0."""
    found, _ = _find(data, 0, data.size, hash_bytes(data, 0, data.size), t)
    return found


@subroutine
def _append(data: ReadBytes1, at: int, end: int, code: int, slot: int, t: TextArrays) -> int:
    """Append a new text to the blob and store its entry; its id: a free one, or the next."""
    state = t.state
    if state[LEFT] > 0:
        state[LEFT] -= 1
        term: Any = np.int64(t.free[state[LEFT]])
    else:
        state[TOP] += 1
        term = state[TOP]
    first, last = add_text(data, at, end, t.stems, t.blob, state[USED])
    t.spans[term, 0], t.spans[term, 1], state[USED] = first, last, last
    state[COUNT] += 1
    t.slots[slot] = code << 32 | term
    return term  # type: ignore[no-any-return] # compiled, it is an integer


@inlined
def _has_room(t: TextArrays, terms: int, size: int) -> bool:
    """Whether so many more terms and bytes fit."""
    top, used, count = t.state[TOP], t.state[USED], t.state[COUNT]
    if top + terms + 2 > t.spans.shape[0] or used + size > t.blob.size:
        return False
    return bool((count + terms) * 5 <= t.slots.size * 3)


@compiled
def add_one(data: ReadBytes1, t: TextArrays) -> tuple[int, bool]:
    """Return the id of the text that `data` holds, and whether it is new."""
    code = hash_bytes(data, 0, data.size)
    found, slot = _find(data, 0, data.size, code, t)
    if found != 0:
        return found, False
    return _append(data, 0, data.size, code, slot, t), True


ODD_TEXT, NO_ROOM = 0, -1
"""Instead of an id: a text that is left to Python, and one that does not fit."""


@compiled
def add_plain(block: Block, size: int) -> int:
    """Return the id of a text of so many bytes, adding it if it is new, plain, and fits.

    The block is that of `KernelTermTable`, and has the text.
    """
    t, data = text_arrays(block), bytes1(block, 8)
    code = hash_bytes(data, 0, size)
    found, slot = _find(data, 0, size, code, t)
    if found != 0:
        return found
    kind, close = term_code(data, 0, size)
    number = 0.0
    if kind >= TYPED:
        kind, number = typed_literal(data, 1, close, kind)
    if kind < 0:
        return ODD_TEXT
    if not _has_room(t, 1, size):
        return NO_ROOM
    found = _append(data, 0, size, code, slot, t)
    tiny1(block, 6)[found] = kind
    floats1(block, 7)[found] = number
    return found


@compiled
def take_rows(
    data: ReadBytes1,
    offsets: Longs1,
    valid: Bools1,
    first: int,
    t: TextArrays,
    kinds_: Kinds1,
    numbers: Floats1,
    ids: Ints1,
    odd: Longs1,
    many: int,
    codes: Longs1,
    like: Longs1,
) -> tuple[int, int]:
    """Give the texts from row `first` on their ids, and add those that are new and plain.

    Rows with other texts are noted in `odd`, which has `many` so far. It stops where there is no
    room for a block of rows, or for an odd one. Returns the row to resume with, and how many are
    odd. `codes` is for the hashes of a block; `like` is what IRIs of these texts begin with.
    """
    slots, blob, spans = t.slots, t.blob, t.spans
    mask = slots.size - 1
    while first < ids.size:
        last = min(first + BLOCK, ids.size)
        if not _has_room(t, last - first, offsets[last] - offsets[first]):
            break
        # A probe reads memory three times in sequence; the reads of a block of rows overlap.
        for row in range(first, last):
            codes[row - first] = hash_bytes(data, offsets[row], offsets[row + 1])
            prefetch(slots, codes[row - first] & mask)
        for row in range(first, last):
            ids[row] = slots[codes[row - first] & mask] & 0x7FFFFFFF
            prefetch(spans, 2 * ids[row])
        for row in range(first, last):
            prefetch(blob, spans[ids[row], 0] & PLACE)
            prefetch(blob, spans[ids[row], 1])
        for row in range(first, last):
            at, end = offsets[row], offsets[row + 1]
            found = 0
            if valid.size == 0 or valid[row]:
                code = codes[row - first]
                found, slot = _find(data, at, end, code, t)
                if found == 0:
                    number, close = 0.0, at
                    if shares_start(data, at, end, like):
                        kind = kinds.IRI if plain_rest(data, at, end, like) else ODD
                    else:
                        kind, close = term_code(data, at, end)
                        if kind == kinds.IRI:
                            note_start(data, at, end, like)
                    if kind >= TYPED:
                        kind, number = typed_literal(data, at + 1, close, kind)
                    if kind < 0:  # odd, or a number that is left to Python
                        if many == odd.size:
                            return row, many
                        odd[many] = row
                        many += 1
                    else:
                        found = _append(data, at, end, code, slot, t)
                        kinds_[found] = kind
                        if data[at] == 0x22:  # other terms have none: that memory is not touched
                            numbers[found] = number
            ids[row] = found
        first = last
    return first, many


@compiled
def take_numbers(pairs: Longs2, first: int, block: Block, ids: Ints1) -> int:
    """Write the ids of totals (`write_number`), from row `first` on; the row to resume with.

    It stops where there is no room, or at a number that is left to Python. The block is that of
    `KernelTermTable`; in it, `recent` has integers and their ids.
    """
    t, text, recent = text_arrays(block), bytes1(block, 8), longs2(block, 9)
    kinds_, numbers = tiny1(block, 6), floats1(block, 7)
    for row in range(first, pairs.shape[0]):
        total, count = pairs[row, 0], pairs[row, 1]
        place = (total * 0x9E3779B1) & (recent.shape[0] - 1)
        if count == 0 and recent[place, 1] != 0 and recent[place, 0] == total:
            ids[row] = recent[place, 1]
            continue
        size, fraction = write_number(total, count, text)
        code = hash_bytes(text, 0, size)
        found, slot = _find(text, 0, size, code, t)
        if found == 0:
            if not _has_room(t, 1, size):
                return row
            kind, close = term_code(text, 0, size)
            kind, number = typed_literal(text, 1, close, kind)
            if kind < 0:
                if not fraction:
                    return row
                kind, number = kinds.OTHER, 0.0  # it has too many digits
            found = _append(text, 0, size, code, slot, t)
            kinds_[found] = kind
            numbers[found] = number
        ids[row] = found
        if count == 0:
            recent[place, 0], recent[place, 1] = total, found
    return len(pairs)
