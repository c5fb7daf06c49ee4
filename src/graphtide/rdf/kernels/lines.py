"""Find the terms in lines of N-Triples, N-Quads and RDF Patch, in bulk.

A line that is not obviously right gets the status `ODD`, and the readers parse it one by one.
Whether the terms are valid is checked by `rdf.kernels.texts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from graphtide.jit import compiled, subroutine

if TYPE_CHECKING:
    from graphtide.arrays import Bytes1, Ints1, Kinds1, Longs1, Longs2, ReadBytes1

# ruff: noqa: PLR1714 - a kernel is loops and comparisons over bytes, which Numba
# compiles best as they stand.


Bytes = NDArray[np.uint8]
Int64 = NDArray[np.int64]

ODD: Final = -1
BLANK: Final = 0
"""An empty line, or one with only a comment."""

ADD: Final = 1
"""A statement, or in RDF Patch an `A` row."""

DELETE: Final = 2
"""In RDF Patch a `D` row."""


@subroutine
def _skip_space(data: ReadBytes1, at: int, end: int) -> int:
    while at < end and (data[at] == 0x20 or data[at] == 0x09):
        at += 1
    return at


@subroutine
def _iri_end(data: ReadBytes1, at: int, end: int) -> int:
    at += 1
    while at < end and data[at] > 0x20 and data[at] != 0x3C and data[at] != 0x22:
        if data[at] == 0x3E:
            return at + 1
        at += 1
    return -1


@subroutine
def _literal_end(data: ReadBytes1, at: int, end: int) -> int:
    at += 1
    while at < end and data[at] != 0x22:
        at += 2 if data[at] == 0x5C else 1
    at += 1
    if at >= end:
        return -1
    if data[at] == 0x40:  # @ and a language tag
        at += 1
        while at < end and (
            0x61 <= data[at] | 0x20 <= 0x7A or 0x30 <= data[at] <= 0x39 or data[at] == 0x2D
        ):
            at += 1
        return at
    if data[at] == 0x5E:  # ^^ and a datatype
        if at + 2 < end and data[at + 1] == 0x5E and data[at + 2] == 0x3C:
            return _iri_end(data, at + 2, end)
        return -1
    return at


@subroutine
def _term_end(data: ReadBytes1, at: int, end: int, position: int) -> int:
    """Return where the term ends that stands as subject 0, predicate 1, object 2 or graph 3."""
    first = data[at] if at < end else 0
    if first == 0x3C:
        return _iri_end(data, at, end)
    if first == 0x5F and position != 1:
        while at < end and data[at] > 0x20:
            at += 1
        return at
    if first == 0x22 and position == 2:
        return _literal_end(data, at, end)
    return -1


@subroutine
def _split(data: ReadBytes1, at: int, end: int, positions: int, spans: Longs1) -> bool:
    """Fill in where the terms of one statement begin and end; False if it is odd."""
    for position in range(positions):
        at = _skip_space(data, at, end)
        if position == 3 and at < end and data[at] == 0x2E:
            spans[6], spans[7] = 0, 0
            break
        stop = _term_end(data, at, end, position)
        if stop < 0:
            return False
        spans[2 * position], spans[2 * position + 1] = at, stop
        at = stop
    at = _skip_space(data, at, end)
    if at >= end or data[at] != 0x2E:
        return False
    at = _skip_space(data, at + 1, end)
    return at >= end or data[at] == 0x23


@compiled
def split_lines(
    data: ReadBytes1, positions: int, patch: int, ends: Longs1, status: Kinds1, spans: Longs2
) -> int:
    """Split every line; return how many there are.

    ends[i] becomes the end of line i, without its line feed; status[i] one of `ODD`,
    `BLANK`, `ADD`, `DELETE`; spans[i] the begin and end of up to four terms (the graph's are 0
    when it is left out).
    """
    line, at = 0, 0
    while at < data.size:
        end = at
        while end < data.size and data[end] != 0x0A:
            end += 1
        start = _skip_space(data, at, end)
        ends[line] = end
        if start == end or data[start] == 0x23:
            status[line] = BLANK
        elif patch:
            row = data[start] if start + 1 < end and data[start + 1] == 0x20 else 0
            change = row == 0x41 or row == 0x44
            plain = change and _split(data, start + 1, end, positions, spans[line])
            status[line] = ODD if not plain else (ADD if row == 0x41 else DELETE)
        else:
            status[line] = ADD if _split(data, start, end, positions, spans[line]) else ODD
        line += 1
        at = end + 1
    return line


@compiled
def copy_spans(data: ReadBytes1, starts: Longs1, ends: Longs1, offsets: Ints1, out: Bytes1) -> None:
    """Copy the bytes between starts and ends, one after the other, and note their offsets."""
    place = 0
    for row in range(starts.size):
        offsets[row] = place
        for index in range(starts[row], ends[row]):
            out[place] = data[index]
            place += 1
    offsets[starts.size] = place
