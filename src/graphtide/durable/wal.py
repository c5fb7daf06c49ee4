"""The end of a journal: whether rows that were written are missing there.

SQLite takes the first frame without its checksum for the end of its write-ahead log. That is right
for a write that was cut short, and wrong for a byte that has changed since: all frames after it
would be lost without a word. So the log is read before SQLite sees it; its layout is that of
https://www.sqlite.org/fileformat2.html#the_write_ahead_log. And a file beside it has the number of
the last row that is on disk, which is written after each commit: a log that was cut is found, too.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

MAGIC: Final = 0x377F0682
HEADER: Final = 32
FRAME: Final = 24
LAST: Final = struct.Struct(">QI")


class LastRow:
    """The number of the last row of a journal that is on disk, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    @staticmethod
    def of(path: Path) -> int:
        """The number in a file, which is only read; 0 if there is none."""
        try:
            return _number_in(path.read_bytes())
        except OSError:
            return 0

    def read(self) -> int:
        """The number; 0 if none was written, or not as a whole."""
        return _number_in(os.pread(self._file, LAST.size, 0))

    def write(self, number: int) -> None:
        """Set the number."""
        data = number.to_bytes(8, "big")
        os.pwrite(self._file, data + zlib.crc32(data).to_bytes(4, "big"), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _number_in(data: bytes) -> int:
    if len(data) < LAST.size:
        return 0
    number, crc = LAST.unpack_from(data)
    return int(number) if zlib.crc32(data[:8]) == crc else 0


def damage_in_wal(path: Path) -> str | None:
    """What is wrong with a log in its middle, with the place; None if it is sound to its end."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < HEADER:
        return None  # nothing was committed to it
    magic, _, page, _, *_ = struct.unpack_from(">8I", data)
    order = ">" if magic & 1 else "<"
    sums = _checksum(data[:24], order, (0, 0))
    if magic & ~1 != MAGIC or sums != struct.unpack_from(">2I", data, 24):
        return f"{path}: the header of the write-ahead log is damaged"
    salts, size = data[16:24], FRAME + page
    for at in range(HEADER, len(data) - size + 1, size):
        frame = data[at : at + size]
        if frame[8:16] != salts:
            return _committed_after(path, data, at, size, salts)
        sums = _checksum(frame[FRAME:], order, _checksum(frame[:8], order, sums))
        if sums != struct.unpack_from(">2I", frame, 16):
            return _committed_after(path, data, at, size, salts)
    return None


def _committed_after(path: Path, data: bytes, at: int, size: int, salts: bytes) -> str | None:
    """The problem, if a commit of the same log comes after a frame that is not sound."""
    for later in range(at + size, len(data) - size + 1, size):
        commits = struct.unpack_from(">I", data, later + 4)[0]
        if data[later + 8 : later + 16] == salts and commits:
            return f"{path}: the write-ahead log is damaged at byte {at:,}, and goes on after it"
    return None


def _checksum(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """The checksum of SQLite: two sums that run over pairs of 32-bit words.

    >>> _checksum(bytes([1, 0, 0, 0, 2, 0, 0, 0]), "<", (0, 0))
    (1, 3)
    """
    first, second = sums
    words = np.frombuffer(data, f"{order}u4").tolist()
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
