"""Loops that copy texts of terms: to pack them when others are freed, and to hand them out."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from graphtide.jit import compiled
from graphtide.prefetch import prefetch
from graphtide.rdf.kernels.words import copy_bytes

Bytes = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

_AHEAD: Final = 16
"""Rows by which copying prefetches ahead."""


@compiled
def pack_texts(blob: Bytes, spans: Int64, live: Bools, packed: Bytes) -> int:
    """Move the texts of live ids to `packed`, empty the others; return the bytes in use."""
    used = 0
    for term in range(live.size):
        start, end = spans[term, 0], spans[term, 1]
        spans[term, 0] = used
        if live[term]:
            copy_bytes(blob, start, packed, used, end - start)
            used += end - start
        spans[term, 1] = used
    return used


@compiled
def live_size(spans: Int64, live: Bools) -> int:
    """The bytes of the texts of live ids."""
    total = 0
    for term in range(live.size):
        if live[term]:
            total += spans[term, 1] - spans[term, 0]
    return total


@compiled
def text_sizes(ids: Int32, spans: Int64, offsets: Int64) -> int:
    """Fill in where each text begins when the texts of `ids` are laid end to end."""
    total = 0
    for row in range(ids.size):
        offsets[row] = total
        total += spans[ids[row], 1] - spans[ids[row], 0]
    offsets[ids.size] = total
    return total


@compiled
def copy_texts(ids: Int32, blob: Bytes, spans: Int64, offsets: Int64, out: Bytes) -> None:
    """Copy the texts of `ids` to the places that `text_sizes` gave them."""
    for row in range(ids.size):
        if row + _AHEAD < ids.size:
            prefetch(blob, spans[ids[row + _AHEAD], 0])
        start, place = spans[ids[row], 0], offsets[row]
        copy_bytes(blob, start, out, place, offsets[row + 1] - place)
