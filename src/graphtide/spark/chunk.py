"""Chunks: Arrow tables as bytes, the form in which rows travel and are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable


SMALL = 500
"""Tables of fewer rows are not worth compressing."""


def to_chunk(table: pa.Table) -> bytes:
    """A table as the bytes of an Arrow stream, compressed if it is not small."""
    sink = pa.BufferOutputStream()
    # A worker has one core; handing buffers to other threads would only cost.
    compression: Literal["lz4"] | None = None if len(table) < SMALL else "lz4"
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_chunk(chunk: bytes) -> pa.Table:
    """The table of a chunk.

    >>> from_chunk(to_chunk(pa.table({"a": [1, 2]}))).to_pydict()
    {'a': [1, 2]}
    """
    options = pa.ipc.IpcReadOptions(use_threads=False)
    with pa.ipc.open_stream(chunk, options=options) as reader:
        return reader.read_all()


def merged(chunks: Iterable[bytes]) -> bytes:
    """Several chunks as one.

    >>> one, two = (to_chunk(pa.table({"a": [number]})) for number in (1, 2))
    >>> from_chunk(merged([one, two])).to_pydict()
    {'a': [1, 2]}
    """
    return to_chunk(pa.concat_tables([from_chunk(chunk) for chunk in chunks]).combine_chunks())


def from_chunks(chunks: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """The tables of several chunks as one."""
    tables = [from_chunk(chunk) for chunk in chunks]
    return pa.concat_tables(tables) if tables else schema.empty_table()
