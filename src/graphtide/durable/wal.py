"""The write-ahead log of SQLite: whether it is damaged before its end.

SQLite takes the first frame without its checksum for the end of the log. That is right for a write
that was cut short, and wrong for a byte that has changed since: all frames after it would be lost
without a word. So the log is read before SQLite sees it. The layout is that of
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

MAGIC: Final = 0x377F0682
HEADER: Final = 32
FRAME: Final = 24


def damage_in_wal(path: Path) -> str | None:
    """What is wrong with a log in its middle, with the place; None if it is sound to its end."""
    if not path.exists():
        return None
    data = path.read_bytes()
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
