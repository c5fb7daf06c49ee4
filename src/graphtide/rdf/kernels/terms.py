"""The hash table of term texts: find many, add many, copy many, without a Python call per term.

Texts lie one after the other in `blob`; text of id i is `blob[starts[i]:starts[i + 1]]` (id 0 is
empty). `slots` is an open-addressing table of int64: the high half of an entry is 31 bits of the
text's hash, the low half its id, and 0 is a free slot. Terms are never removed, so there are no
tombstones. The twin is `term_tables.PlainTermTable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from graphtide.jit import allocating
from graphtide.prefetch import prefetch

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
