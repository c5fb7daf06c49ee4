"""Stems: what many texts have in common is stored once, and a text has only the rest.

The stem of an IRI is its beginning, up to the last `#` or `/`; that of a typed literal is its end,
from the closing quote on. A stem is added when it comes for the second time, and there are a few
hundred at most: so texts that share nothing cost nothing but a look. The first number of a term's
span has the stem in its high bits, the second one is where the rest of the text ends.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from graphtide.jit import inlined
from graphtide.rdf.kernels.words import copy_bytes, equal_bytes, hash_bytes

Bytes = NDArray[np.uint8]
Int64 = NDArray[np.int64]

MOST: Final = 255
"""Stems that there may be."""

LEAST, LONGEST = 10, 255
"""Bytes that a stem has."""

_COUNT, _LAST, _SEEN, _SLOTS, SPANS = 0, 1, 2, 66, 66 + 1024
"""Cells of `stems`: their number, the one that was used last, hashes of what came once, numbers of
stems by hash, and where in the blob each stem begins and ends; stem 0 is empty."""

CELLS: Final = SPANS + 2 * (MOST + 1)

SHIFT: Final = 40
"""Below are the bits of a place in the blob."""

PLACE: Final = (1 << SHIFT) - 1
TAIL: Final = 1 << SHIFT + 8
"""Set if the stem is the end of the text."""


@inlined
def stem_span(stems: Int64, first: int) -> tuple[int, int]:
    """Where in the blob the stem of a text lies, given the first number of its span."""
    at = SPANS + 2 * (first >> SHIFT & MOST)
    return stems[at], stems[at + 1]


@inlined
def rest_size(spans: Int64, term: int) -> Any:  # noqa: ANN401 - compiled, it is an integer
    """The bytes of a term's text, but for the stem."""
    return spans[term, 1] - (spans[term, 0] & PLACE)


@inlined
def text_size(spans: Int64, term: int, stems: Int64) -> Any:  # noqa: ANN401
    """The bytes of a term's text."""
    begin, end = stem_span(stems, spans[term, 0])
    return rest_size(spans, term) + end - begin


@inlined
def is_text(
    spans: Int64, term: int, stems: Int64, blob: Bytes, data: Bytes, at: int, size: int
) -> bool:
    """Whether a term's text is that of so many bytes."""
    first = spans[term, 0]
    rest = rest_size(spans, term)
    if first <= PLACE:
        return rest == size and equal_bytes(blob, first, data, at, size)
    begin, end = stem_span(stems, first)
    shared = end - begin
    if rest + shared != size:
        return False
    tail = first & TAIL != 0
    own = at if tail else at + shared
    return equal_bytes(blob, first & PLACE, data, own, rest) and equal_bytes(
        blob, begin, data, at + rest if tail else at, shared
    )


@inlined
def copy_text(spans: Int64, term: int, stems: Int64, blob: Bytes, out: Bytes, at: int) -> None:
    """Copy a term's text."""
    first = spans[term, 0]
    rest = rest_size(spans, term)
    begin, end = stem_span(stems, first)
    tail = first & TAIL != 0
    copy_bytes(blob, first & PLACE, out, at if tail else at + end - begin, rest)
    copy_bytes(blob, begin, out, at + rest if tail else at, end - begin)


@inlined
def ends_with(spans: Int64, term: int, stems: Int64, blob: Bytes, end: Bytes) -> bool:
    """Whether a literal's text ends with the end of one, which is its stem, or is not divided."""
    first, last = spans[term, 0], spans[term, 1]
    if first & TAIL:
        begin, last = stem_span(stems, first)
        return last - begin == end.size and equal_bytes(blob, begin, end, 0, end.size)
    begin = last - end.size
    return begin >= first & PLACE and equal_bytes(blob, begin, end, 0, end.size)


@inlined
def shared_part(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The part of a text that others may share; an empty one if there is none."""
    place = end - 2
    if data[at] == 0x3C:  # <
        while place > at and data[place] != 0x23 and data[place] != 0x2F:  # # /
            place -= 1
        return at, place + 1
    if data[at] == 0x22 and data[end - 1] == 0x3E:  # " >
        while data[place] != 0x22:
            place -= 1
        return place, end
    return at, at


@inlined
def is_stem(stems: Int64, number: int, blob: Bytes, data: Bytes, begin: int, stop: int) -> bool:
    """Whether a part of a text is a stem."""
    start = stems[SPANS + 2 * number]
    size = stems[SPANS + 2 * number + 1] - start
    return size == stop - begin and equal_bytes(blob, start, data, begin, size)


@inlined
def add_text(
    data: Bytes, at: int, end: int, stems: Int64, blob: Bytes, used: int
) -> tuple[int, int]:
    """Write a text into the blob, from a place on, without its stem; its span.

    Room for the whole text is enough: also a new stem is a part of it.
    """
    begin, stop = shared_part(data, at, end)
    number = np.int64(0)
    if LEAST <= stop - begin <= LONGEST:
        number = stems[_LAST]
        if not is_stem(stems, number, blob, data, begin, stop):
            code = hash_bytes(data, begin, stop)
            number = stems[_SLOTS + (code & 1023)]
            if number == 0 and stems[_SEEN + (code & 63)] != code:
                stems[_SEEN + (code & 63)] = code
            elif number == 0 and stems[_COUNT] < MOST:
                copy_bytes(data, begin, blob, used, stop - begin)
                stems[_COUNT] += 1
                number = stems[_COUNT]
                stems[SPANS + 2 * number] = used
                used += stop - begin
                stems[SPANS + 2 * number + 1] = used
                stems[_SLOTS + (code & 1023)] = number
            elif not is_stem(stems, number, blob, data, begin, stop):
                number = np.int64(0)
            if number != 0:
                stems[_LAST] = number
    first: Any = used | number << SHIFT
    if number != 0 and begin > at:
        first |= TAIL
        end = begin
    elif number != 0:
        at = stop
    copy_bytes(data, at, blob, used, end - at)
    return first, used + end - at


@inlined
def pack_stems(blob: Bytes, stems: Int64, packed: Bytes) -> Any:  # noqa: ANN401
    """Move all stems to `packed`; return the bytes in use."""
    used: Any = np.int64(0)
    for number in range(1, stems[_COUNT] + 1):
        at = SPANS + 2 * number
        size = stems[at + 1] - stems[at]
        copy_bytes(blob, stems[at], packed, used, size)
        stems[at] = used
        used += size
        stems[at + 1] = used
    return used
