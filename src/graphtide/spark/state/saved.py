"""Saved logs: the log of a partition as one file, from which another state store can begin.

A checkpoint whose partitions or queries change gets a new state store. Its logs are made from those
of the old one (`graphtide.spark.restore`) and saved. A partition that finds no head loads its
saved log, in whichever micro-batch it first runs; an attempt that fails has loaded nothing.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa

from graphtide.spark.state.log import Head, Log, LogEntry, MemoryLog, appended
from graphtide.spark.state.messages import from_chunk, from_chunks, to_chunk

if TYPE_CHECKING:
    from graphtide.spark.files import Location

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("version", pa.int64()),
    ("token", pa.string()),
    ("chunk", pa.large_binary()),
]
_SAVED = pa.schema(_FIELDS)
"""A row per chunk outside the head. That of version 0 is the head: its fields, and its data."""


def save_log(log: MemoryLog) -> bytes:
    """A log as bytes.

    >>> log = new_log(Head(held=b"held"), pa.table({"a": [1, 2]}))
    >>> load_log(save_log(log)) == log
    True
    """
    head = log.current or Head()
    rows = [LogEntry(0, head.fields(), head.data()), *log.chunks.values()]
    columns = zip(*rows, strict=True)
    return to_chunk(pa.Table.from_arrays([pa.array(each) for each in columns], schema=_SAVED))


def load_log(data: bytes) -> MemoryLog:
    """The log of bytes."""
    first, *rest = from_chunk(data).to_pylist()
    entries = [LogEntry(row["version"], row["token"], row["chunk"]) for row in rest]
    head = Head.of(first["token"], first["chunk"])
    return MemoryLog(head, {entry.version: entry for entry in entries})


def new_log(head: Head, rows: pa.Table) -> MemoryLog:
    """A log that begins with rows, and with what is in a head beside its log."""
    log = MemoryLog()
    begin = Head(
        version=1,
        token=uuid.uuid4().hex,
        frontier=head.frontier,
        held=head.held,
        unreported=head.unreported,
        shards=head.shards,
    )
    log.put_head(appended(log, begin, to_chunk(rows)))
    return log


def logged_rows(log: Log, schema: pa.Schema) -> pa.Table:
    """All rows of a log, in order; of an empty one, none with the columns of a schema."""
    head = log.head() or Head()
    stored = (log.chunk(each.version) for each in head.stored)
    entries = [*(entry for entry in stored if entry is not None), *head.tail]
    return from_chunks((entry.chunk for entry in entries), schema)


def saved_log(folder: Location, stage: str, partition: int) -> Location:
    """Where the log of a partition of a stage is saved, below a folder."""
    return folder / stage.replace(" ", "-") / f"{partition:05}.log"


class RestoredLog:
    """A log that begins with a saved one, if there is one."""

    def __init__(self, log: Log, saved: Location) -> None:
        self._log = log
        self._saved = saved

    def head(self) -> Head | None:
        """The head; before the first batch, that of the saved log, whose chunks are copied."""
        found = self._log.head()
        if found is not None or not self._saved.exists():
            return found
        with self._saved.open() as file:
            loaded = load_log(file.read())
        self._log.clear()
        for entry in loaded.chunks.values():
            self._log.put_chunk(entry)
        if loaded.current is not None:
            self._log.put_head(loaded.current)
        return loaded.current

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self._log.put_head(head)

    def chunk(self, version: int) -> LogEntry | None:
        """A chunk outside the head, if there is one."""
        return self._log.chunk(version)

    def put_chunk(self, entry: LogEntry) -> None:
        """Add a chunk outside the head."""
        self._log.put_chunk(entry)

    def drop_chunk(self, version: int) -> None:
        """Drop a chunk outside the head."""
        self._log.drop_chunk(version)

    def clear(self) -> None:
        """Drop all chunks outside the head."""
        self._log.clear()
