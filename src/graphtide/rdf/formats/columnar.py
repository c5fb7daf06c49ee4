"""The columnar change log `changes(time, tx, diff, s, p, o, g)`: Parquet and Arrow IPC."""

from __future__ import annotations

from io import BufferedReader
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphtide.errors import DataError, TermError
from graphtide.rdf import changes, term_tables
from graphtide.rdf.terms import POSITIONS, canonical_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.rdf.formats.registry import Family

BATCH_ROWS = 65_536


def read_columnar(
    file: IO[bytes], family: Family, rejected: changes.RejectedRows
) -> Iterator[changes.ChangeBatch]:
    """Read a file of the family parquet, arrow (IPC file) or arrows (IPC stream), batch by batch.

    With `on_error="skip"` invalid rows (a diff that is not +1 or -1, an invalid or misplaced term)
    are reported with their row number, and left out.
    """
    row = 0
    for piece in _pieces(file, family, rejected.source):
        table = pa.table(piece)
        yield from read_table(table, rejected, first_row=row)
        row += table.num_rows


def read_table(
    table: pa.Table, rejected: changes.RejectedRows, *, first_row: int = 0
) -> Iterator[changes.ChangeBatch]:
    """Read a table of changes; see `read_columnar`.

    >>> from graphtide.rdf.changes import RejectedRows
    >>> table = changes.ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', None)]).to_arrow()
    >>> [len(batch) for batch in read_table(table, changes.RejectedRows("table"))]
    [1]
    """
    long = _long_rows(table, rejected.limits.literal_length)
    for row in long:
        rejected.report_long(first_row + row, "a term")
    bad: dict[int, InvalidCell] = {}
    if rejected.on_error == "skip":
        bad = invalid_rows(table)
        for row, (column, text, reason) in bad.items():
            if row not in long:
                rejected.report(first_row + row, column, text, reason)
    if bad or long:
        keep = np.ones(table.num_rows, np.bool_)
        keep[[*bad, *long]] = False
        table = table.filter(pa.array(keep))
    for piece in table.to_batches(BATCH_ROWS):
        if piece.num_rows:
            yield _batch(piece, rejected.source)


def _long_rows(table: pa.Table, most: int | None) -> list[int]:
    """The rows with a term of more than so many bytes."""
    compute: Any = pc
    found: set[int] = set()
    for name in POSITIONS:
        if most is not None and name in table.schema.names:
            lengths = compute.binary_length(changes.column_of_strings(table, name)).fill_null(0)
            found.update(np.flatnonzero(lengths.to_numpy(zero_copy_only=False) > most).tolist())
    return sorted(found)


def _batch(piece: pa.RecordBatch, source: str) -> changes.ChangeBatch:
    try:
        return changes.ChangeBatch.from_arrow(piece)
    except DataError as error:
        error.source = source
        raise


def _pieces(file: IO[bytes], family: Family, source: str) -> Iterator[pa.RecordBatch]:
    handle: Any = file
    if isinstance(file, BufferedReader) and not file.peek(1):
        return
    if file.seekable():
        if not file.read(1):
            return
        file.seek(0)
    elif family != "arrows":
        handle = pa.BufferReader(file.read())
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
    batches: Iterable[changes.ChangeBatch],
    file: IO[bytes],
    family: Literal["parquet", "arrow", "arrows"],
) -> None:
    """Write batches as they are, one row group or record batch each.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_columnar([changes.ChangeBatch.of([])], file, "arrows")
    >>> pa.ipc.open_stream(file.getvalue()).schema.names
    ['time', 'tx', 'diff', 's', 'p', 'o', 'g']
    """
    target: Any = file
    match family:
        case "parquet":
            writer: Any = pq.ParquetWriter(target, changes.CHANGE_SCHEMA, compression="zstd")
        case "arrow":
            writer = pa.ipc.new_file(target, changes.CHANGE_SCHEMA)
        case "arrows":
            writer = pa.ipc.new_stream(target, changes.CHANGE_SCHEMA)
    with writer:
        for batch in batches:
            writer.write_table(batch.to_arrow())


class InvalidCell(NamedTuple):
    """Why a row of a table is rejected: a column (from 1), its text, the reason."""

    column: int
    text: str
    reason: str


def invalid_rows(table: pa.Table) -> dict[int, InvalidCell]:
    """Return the invalid rows of a table: nulls, wrong diffs, misplaced and invalid terms.

    >>> rows = {"time": [0, 0], "tx": [0, 0], "diff": [1, 3], "s": ["<a b>", "<ex:a>"]}
    >>> invalid_rows(pa.table(rows | {"p": ["<ex:p>"] * 2, "o": ['"x"'] * 2}))[1].reason
    'diff is 3, not +1 or -1'
    """
    found: dict[int, InvalidCell] = {}
    for number, name in enumerate(changes.CHANGE_SCHEMA.names, 1):
        if name not in table.schema.names:
            continue
        if name in {"time", "tx", "diff"}:
            for row in np.flatnonzero(table.column(name).is_null()).tolist():
                found.setdefault(row, InvalidCell(number, "null", f"{name} has no value"))
        else:
            for row, text, reason in _invalid_terms(table, name):
                found.setdefault(row, InvalidCell(number, text, reason))
    if "diff" in table.schema.names and pa.types.is_integer(table.column("diff").type):
        column: Any = table.column("diff")
        diffs = column.fill_null(1).to_numpy()
        for row in np.flatnonzero(abs(diffs) != 1).tolist():
            reason = f"diff is {diffs[row]}, not +1 or -1"
            found.setdefault(row, InvalidCell(3, str(diffs[row]), reason))
    return dict(sorted(found.items()))


def _invalid_terms(table: pa.Table, name: str) -> list[tuple[int, str, str]]:
    column: Any = changes.column_of_strings(table, name)
    misplaced = term_tables.wrong_rows(column, name)
    found = [
        (row, column[row].as_py() or "null", POSITIONS[name].rule)
        for row in np.flatnonzero(misplaced).tolist()
    ]
    encoded = column.dictionary_encode()
    reasons = _reasons(encoded.dictionary.to_pylist())
    if reasons:
        codes = encoded.indices.fill_null(-1).to_pylist()
        found += [
            (row, *reasons[code])
            for row, code in enumerate(codes)
            if code in reasons and not misplaced[row]
        ]
    return found


def _reasons(texts: list[str]) -> dict[int, tuple[str, str]]:
    """Return the texts that are not terms, by index, with the reason."""
    found = {}
    for index, text in enumerate(texts):
        if text:
            try:
                canonical_text(text)
            except TermError as error:
                found[index] = (text, error.message)
    return found
