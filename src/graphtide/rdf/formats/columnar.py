"""The columnar change log `changes(time, tx, diff, s, p, o, g)`: Parquet and Arrow IPC."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphtide.errors import DataError
from graphtide.rdf.changes import CHANGE_SCHEMA, ChangeBatch, bad_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.rdf.formats.registry import Family
    from graphtide.rdf.problems import BrokenLines

BATCH_ROWS = 65_536


def read_columnar(file: IO[bytes], family: Family, broken: BrokenLines) -> Iterator[ChangeBatch]:
    """Read a file of the family parquet, arrow (a file) or arrows (a stream), piece by piece.

    With `on_error="collect"` bad rows (a diff that is not +1 or -1, a text that is no term or
    cannot stand there) are reported with their row number, and left out.
    """
    row = 0
    for piece in _pieces(file, family, broken.source):
        table = pa.table(piece)
        yield from read_table(table, broken, first_row=row)
        row += table.num_rows


def read_table(
    table: pa.Table, broken: BrokenLines, *, first_row: int = 0
) -> Iterator[ChangeBatch]:
    """Read a table of changes; see `read_columnar`.

    >>> from graphtide.rdf.problems import BrokenLines
    >>> table = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', None)]).to_arrow()
    >>> [len(batch) for batch in read_table(table, BrokenLines("table"))]
    [1]
    """
    if broken.on_error == "collect":
        bad = bad_rows(table)
        for row, (column, text, reason) in bad.items():
            broken.report(first_row + row, column, text, reason)
        if bad:
            keep = np.ones(table.num_rows, np.bool_)
            keep[list(bad)] = False
            table = table.filter(pa.array(keep))
    for piece in table.to_batches(BATCH_ROWS):
        if piece.num_rows:
            yield _batch(piece, broken.source)


def _batch(piece: pa.RecordBatch, source: str) -> ChangeBatch:
    try:
        return ChangeBatch.from_arrow(piece)
    except DataError as error:
        error.source = source
        raise


def _pieces(file: IO[bytes], family: Family, source: str) -> Iterator[pa.RecordBatch]:
    handle: Any = file
    if family != "arrows" and not file.seekable():
        handle = pa.BufferReader(file.read())
    if file.seekable() and not file.read(1):
        return
    if file.seekable():
        file.seek(0)
    try:
        match family:
            case "parquet":
                yield from pq.ParquetFile(handle).iter_batches(BATCH_ROWS)
            case "arrow":
                reader = pa.ipc.open_file(handle)
                yield from (reader.get_batch(index) for index in range(reader.num_record_batches))
            case _:
                yield from pa.ipc.open_stream(handle)
    except (pa.ArrowException, OSError) as error:
        what = "a Parquet file" if family == "parquet" else "an Arrow file"
        raise DataError(f"is not {what} that can be read: {error}", source=source) from None


def write_columnar(
    batches: Iterable[ChangeBatch], file: IO[bytes], family: Literal["parquet", "arrow", "arrows"]
) -> None:
    """Write batches as they are, one row group or record batch each.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_columnar([ChangeBatch.of([])], file, "arrows")
    >>> pa.ipc.open_stream(file.getvalue()).schema.names
    ['time', 'tx', 'diff', 's', 'p', 'o', 'g']
    """
    target: Any = file
    match family:
        case "parquet":
            writer: Any = pq.ParquetWriter(target, CHANGE_SCHEMA, compression="zstd")
        case "arrow":
            writer = pa.ipc.new_file(target, CHANGE_SCHEMA)
        case "arrows":
            writer = pa.ipc.new_stream(target, CHANGE_SCHEMA)
    with writer:
        for batch in batches:
            writer.write_table(batch.to_arrow())
