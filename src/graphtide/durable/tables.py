"""The tables of a journal: their layout with its version, their rows, the checksums of these."""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

FORMAT: Final = 5
"""The version of the layout of a store, in its journal and in each snapshot."""

SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER);
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,  -- from 1, without gaps
    tx INTEGER NOT NULL,         -- how many transactions there were before it
    time INTEGER NOT NULL,       -- the clock before it
    wall REAL NOT NULL,          -- when it was written, in seconds since 1970
    chunk BLOB NOT NULL,
    crc INTEGER NOT NULL         -- of all of these and of the row before
);
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY,  -- of the last row of the journal that it includes
    tx INTEGER NOT NULL, time INTEGER NOT NULL, wall REAL NOT NULL,
    file TEXT NOT NULL, bytes INTEGER NOT NULL, crc INTEGER NOT NULL,
    chain INTEGER NOT NULL,      -- the checksum of that row
    sum INTEGER                  -- of all of these
);
CREATE TABLE calls (
    number INTEGER NOT NULL, firing TEXT NOT NULL, error TEXT, caused BLOB, sum INTEGER
);
CREATE TABLE cursors (
    query TEXT NOT NULL, name TEXT NOT NULL, tx INTEGER NOT NULL, sum INTEGER,
    PRIMARY KEY (query, name)
);
"""

COLUMNS: Final = {
    "meta": ("key", "value"),
    "snapshots": ("number", "tx", "time", "wall", "file", "bytes", "crc", "chain"),
    "calls": ("number", "firing", "error", "caused"),
    "cursors": ("query", "name", "tx"),
}
"""The tables beside the journal; a row has the checksum of these columns."""


class JournalRow(NamedTuple):
    """A row of the journal."""

    number: int
    tx: int
    time: int
    wall: float
    chunk: bytes
    crc: int


class SnapshotRow(NamedTuple):
    """Where a snapshot is, up to which row of the journal it goes, and its checksum."""

    number: int
    tx: int
    time: int
    wall: float
    file: str
    bytes: int
    crc: int
    chain: int


def checksum(number: int, tx: int, time: int, wall: float, chunk: bytes, before: int) -> int:
    """The checksum of a row, given that of the row before."""
    fields = f"{number} {tx} {time} {wall!r} {before}".encode()
    return zlib.crc32(chunk, zlib.crc32(fields))


def row_sum(table: str, *values: object) -> int:
    """The checksum of a row of another table.

    >>> row_sum("cursors", "q", "mailer", 7) == row_sum("cursors", "q", "mailer", 6)
    False
    """
    return zlib.crc32(repr((table, *values)).encode())
