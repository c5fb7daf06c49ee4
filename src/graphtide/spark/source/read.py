"""Read a slice of a log: changes, rejected rows, and a row that ends its last transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphtide.errors import DataError
from graphtide.limits import Limits
from graphtide.rdf.changes import ChangeBatch, RejectedRow
from graphtide.rdf.formats.lines import BLOCK_BYTES, LineBuffer
from graphtide.rdf.formats.read import statement_lines
from graphtide.rdf.formats.registry import find_format
from graphtide.spark.source.plan import UNREADABLE, LogSlice, open_log
from graphtide.spark.source.scan import ResumedPatch, count_lines, read_rows, read_statements

_FIELDS: list[pa.Field[Any]] = [
    pa.field("time", pa.int64()),
    pa.field("tx", pa.int64()),
    pa.field("diff", pa.int32()),
    pa.field("s", pa.string()),
    pa.field("p", pa.string()),
    pa.field("o", pa.string()),
    pa.field("g", pa.string()),
    pa.field("seq", pa.int64()),
    pa.field("reason", pa.string()),
    pa.field("file", pa.string()),
    pa.field("line", pa.int64()),
    pa.field("column", pa.int32()),
    pa.field("text", pa.string()),
]
SCHEMA: Final = pa.schema(_FIELDS)
"""A change; or, with a `reason`, rejected input and where it was; or the end of a transaction."""

Lines = Mapping[tuple[int, int], int]


def read_slice(slice_: LogSlice, limits: Limits | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, the same ones whenever it is read."""
    limits = Limits() if limits is None else limits
    if slice_.reason is not None:
        yield _rejected([RejectedRow(str(slice_.path), 0, 0, "", slice_.reason)])
        return
    rejected: list[RejectedRow] = []
    latest = slice_.start.time or 0
    last: tuple[int, int] | None = None
    seq = 0
    try:
        for batch, lines in _batches(slice_, rejected, limits):
            late = _late(batch, latest)
            rejected += _late_lines(batch, late, slice_, lines)
            good = np.flatnonzero(~late)
            if len(good):
                yield _rows(batch, good, slice_.shift, seq)
                latest = int(batch.time[good[-1]])
                tx = int(batch.tx[good][batch.time[good] == latest].max()) + slice_.shift
                last = latest, max(tx, last[1] if last and last[0] == latest else tx)
            seq += len(batch)
            if rejected:
                yield _rejected(rejected)
                rejected.clear()
    except UNREADABLE as error:
        reason = error.message if isinstance(error, DataError) else f"cannot be read: {error}"
        rejected.append(RejectedRow(str(slice_.path), slice_.start.line, 0, "", reason))
    if rejected:
        yield _rejected(rejected)
    if last:
        yield _table(1, time=[last[0]], tx=[last[1]], diff=[0], seq=[seq])


def _batches(
    slice_: LogSlice, rejected: list[RejectedRow], limits: Limits
) -> Iterator[tuple[ChangeBatch, Lines]]:
    """The changes of a slice with the file's own numbers; lines of transactions that are late."""
    path, start = slice_.path, slice_.start
    found = find_format(path.name)
    if found.family == "parquet":
        yield from ((b, {}) for b in read_rows(path, start.offset, slice_.stop, rejected))
        return
    if found.family == "lines":
        for data in _blocks(slice_, limits):
            named: list[RejectedRow] = []
            batches = read_statements(data, start, found.name, named, limits)
            yield from ((b, {}) for b in batches)
            rejected += [replace(line, file=str(path)) for line in named]
            start = replace(start, line=start.line + count_lines(data))
        yield from _nothing()
        return
    reader = ResumedPatch(start, str(path), rejected, limits)
    for data in _blocks(slice_, limits):
        yield from ((batch, reader.late) for batch in reader.feed(data))
    rest = reader.finish() if slice_.finished else reader.flush()
    yield from ((batch, reader.late) for batch in rest)


def _nothing() -> Iterator[tuple[ChangeBatch, Lines]]:
    return iter(())


def _blocks(slice_: LogSlice, limits: Limits) -> Iterator[bytes]:
    """The text of a slice in blocks of whole lines; the last line is ended if it is not."""
    lines, left = LineBuffer(limits), slice_.stop - slice_.start.offset
    with open_log(slice_.path, slice_.start.offset, limits) as file:
        while left and (data := file.read(min(BLOCK_BYTES, left))):
            left -= len(data)
            if block := lines.feed(data):
                yield block
    if left:
        raise DataError("became shorter after it was read")
    if rest := lines.rest():
        yield rest + b"\n"


def _late(batch: ChangeBatch, latest: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which changes have an earlier time than one before them."""
    before = np.maximum.accumulate(np.concatenate([[latest], batch.time]))[:-1]
    return np.asarray(batch.time < before)


def _late_lines(
    batch: ChangeBatch, late: np.ndarray[Any, np.dtype[np.bool_]], slice_: LogSlice, lines: Lines
) -> list[RejectedRow]:
    chosen = np.flatnonzero(late)
    if not len(chosen):
        return []
    texts = statement_lines(batch, pa.array(np.where(batch.diff > 0, "A", "D"), pa.string()))
    keys = [(int(batch.time[row]), int(batch.tx[row])) for row in chosen]
    latest = np.maximum.accumulate(np.concatenate([[slice_.start.time or 0], batch.time]))
    return [
        RejectedRow(
            str(slice_.path),
            lines.get(key, slice_.start.line),
            0,
            str(texts[int(row)].as_py()),
            f"too late: its time is {key[0]}, and the log is already at {latest[row]}",
        )
        for row, key in zip(chosen, keys, strict=True)
    ]


def _rows(
    batch: ChangeBatch, chosen: np.ndarray[Any, np.dtype[np.intp]], shift: int, seq: int
) -> pa.RecordBatch:
    if len(chosen) == len(batch):
        terms: list[Any] = [batch.s, batch.p, batch.o, batch.g]
    else:
        positions: Any = pa.array(chosen)
        terms = [column.take(positions) for column in (batch.s, batch.p, batch.o, batch.g)]
    s, p, o, g = terms
    return _table(
        len(chosen),
        time=batch.time[chosen],
        tx=batch.tx[chosen] + shift,
        diff=batch.diff[chosen].astype(np.int32),
        s=s,
        p=p,
        o=o,
        g=g,
        seq=chosen + seq,
    )


def _rejected(lines: Sequence[RejectedRow]) -> pa.RecordBatch:
    return _table(
        len(lines),
        reason=[line.reason for line in lines],
        file=[line.file for line in lines],
        line=[line.line for line in lines],
        column=[line.column for line in lines],
        text=[line.text for line in lines],
    )


def _table(count: int, **columns: Iterable[Any]) -> pa.RecordBatch:
    arrays: list[Any] = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in SCHEMA
    ]
    return pa.record_batch(arrays, schema=SCHEMA)
