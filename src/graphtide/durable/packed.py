"""Packed form: a header and columns of integers or bytes, in as few bytes as these need.

A row of a journal often holds a single change. An Arrow stream takes 2,000 bytes for one, since it
describes its columns; this form takes two bytes for each column, and for each integer as many as
the largest of its column needs.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NOTHING: Final[NDArray[Any]] = np.empty(0, np.int8)

KINDS: Final = tuple(map(np.dtype, ("<i1", "<i2", "<i4", "<i8", "u1")))
BYTES: Final = 4
"""How the numbers of a column are stored; the last is for bytes, which are stored as they are."""

WORTH: Final = 512
"""Bytes from which a form is compressed."""

CODEC: Final[Any] = pa.Codec("lz4")

AT_ONCE: Final = 1 << 20
"""Numbers or bytes of a column in a file that are packed together."""


def pack(header: bytes, columns: Sequence[NDArray[Any]]) -> bytes:
    """Return a header and columns as bytes.

    >>> data = pack(b"two columns", [np.array([1, -300]), np.array([7, 8], np.uint8)])
    >>> header, columns = unpack(data)
    >>> header, [column.tolist() for column in columns], len(data)
    (b'two columns', [[1, -300], [7, 8]], 24)
    """
    parts = [_length(len(header)), header, bytes([len(columns)])]
    for column in columns:
        kind = BYTES if column.dtype == np.uint8 else _kind(column)
        stored = column if kind == BYTES else column.astype(KINDS[kind])
        parts += [bytes([kind]), _length(len(column)), stored.tobytes()]
    body = b"".join(parts)
    if len(body) >= WORTH:
        compressed: bytes = CODEC.compress(body, asbytes=True)
        if len(compressed) < len(body):
            return b"\1" + _length(len(body)) + compressed
    return b"\0" + body


def unpack(data: bytes | memoryview) -> tuple[bytes, list[NDArray[Any]]]:
    """Return the header and the columns that were packed; numbers as they are stored."""
    body: bytes | memoryview = data
    at = 1
    if data[0]:
        size, at = _read_length(data, at)
        body, at = CODEC.decompress(data[at:], size, asbytes=True), 0
    length, at = _read_length(body, at)
    header = bytes(body[at : at + length])
    at += length
    columns = []
    many, at = body[at], at + 1
    for _ in range(many):
        kind = KINDS[body[at]]
        length, at = _read_length(body, at + 1)
        columns.append(np.frombuffer(body, kind, length, at))
        at += length * kind.itemsize
    return header, columns


def write(file: IO[bytes], header: bytes, columns: Sequence[NDArray[Any]]) -> None:
    """Write a header and large columns to a file, a part of them at a time."""
    _write_part(file, pack(header, []))
    for number, column in enumerate(columns):
        for first in range(0, len(column), AT_ONCE):
            _write_part(file, pack(bytes([number]), [column[first : first + AT_ONCE]]))


def _write_part(file: IO[bytes], part: bytes) -> None:
    file.write(len(part).to_bytes(8, "little"))
    file.write(part)


def read(data: memoryview, many: int) -> tuple[bytes, list[NDArray[Any]]]:
    """Return the header of a file and its columns, of which there are `many`."""
    header: bytes | None = None
    columns: list[list[NDArray[Any]]] = [[] for _ in range(many)]
    at = 0
    while at < len(data):
        end = at + 8 + int.from_bytes(data[at : at + 8], "little")
        name, parts = unpack(data[at + 8 : end])
        if header is None:
            header = name
        else:
            columns[name[0]] += parts
        at = end
    return header or b"", [np.concatenate(parts) if parts else NOTHING for parts in columns]


def _kind(column: NDArray[Any]) -> int:
    """The place of the smallest type that holds all numbers of a column."""
    if not len(column):
        return 0
    bound = max(int(column.max()), -1 - int(column.min()))
    return next(kind for kind, bits in enumerate((7, 15, 31, 63)) if not bound >> bits)


def _length(number: int) -> bytes:
    """A length in as many bytes as it needs, seven bits in each."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _read_length(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A length, and the place after it."""
    number = shift = 0
    while data[at] > 127:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return number | data[at] << shift, at + 1
