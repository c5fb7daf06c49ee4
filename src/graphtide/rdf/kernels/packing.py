"""Loops over all terms: texts are packed and slots rebuilt when others are freed, or handed out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from graphtide.jit import compiled
from graphtide.prefetch import prefetch
from graphtide.rdf.kernels.stems import PLACE, copy_text, pack_stems, rest_size, text_size
from graphtide.rdf.kernels.words import copy_bytes

if TYPE_CHECKING:
    from graphtide.arrays import Bools1, Bytes1, Ints1, Longs1, Longs2

Bytes = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

_AHEAD: Final = 16
"""Rows by which copying prefetches ahead."""


@compiled
def pack_texts(blob: Bytes1, spans: Longs2, stems: Longs1, live: Bools1, packed: Bytes1) -> int:
    """Move the texts of live ids to `packed`, empty the others; return the bytes in use."""
    used = pack_stems(blob, stems, packed)
    for term in range(live.size):
        first, size = spans[term, 0], rest_size(spans, term)
        spans[term, 0] = used
        if live[term]:
            copy_bytes(blob, first & PLACE, packed, used, size)
            spans[term, 0] |= first & ~PLACE
            used += size
        spans[term, 1] = used
    return used  # type: ignore[no-any-return] # compiled, it is an integer


@compiled
def live_size(spans: Longs2, live: Bools1) -> int:
    """The bytes of the texts of live ids, but for their stems."""
    total = 0
    for term in range(live.size):
        if live[term]:
            total += rest_size(spans, term)
    return total


@compiled
def text_sizes(ids: Ints1, spans: Longs2, stems: Longs1, offsets: Longs1) -> int:
    """Fill in where each text begins when the texts of `ids` are laid end to end."""
    total = 0
    for row in range(ids.size):
        offsets[row] = total
        total += text_size(spans, ids[row], stems)
    offsets[ids.size] = total
    return total


@compiled
def copy_texts(
    ids: Ints1, blob: Bytes1, spans: Longs2, stems: Longs1, offsets: Longs1, out: Bytes1
) -> None:
    """Copy the texts of `ids` to the places that `text_sizes` gave them."""
    for row in range(ids.size):
        if row + _AHEAD < ids.size:
            prefetch(blob, spans[ids[row + _AHEAD], 0] & PLACE)
        copy_text(spans, ids[row], stems, blob, out, offsets[row])


@compiled
def rehash(old: Longs1, new: Longs1, live: Bools1) -> None:
    """Move the entries of the old slots to the new ones, which are all free; of `live` ids, if any.

    `live` is empty if all are.
    """
    mask = new.size - 1
    for index in range(old.size):
        entry = old[index]
        if entry != 0 and (live.size == 0 or live[entry & 0x7FFFFFFF]):
            slot = (entry >> 32) & mask
            while new[slot] != 0:
                slot = (slot + 1) & mask
            new[slot] = entry


@compiled
def mark_ids(ids: Ints1, live: Bools1) -> None:
    """Mark each id; what is outside the range of ids is none."""
    for index in range(ids.size):
        if 0 < ids[index] < live.size:
            live[ids[index]] = True
