"""Parquet change logs from any row on that begins a transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch, RejectedRow, RejectedRows
from graphtide.rdf.formats.columnar import read_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from graphtide.spark.source_place import Place

STEP = 10_000
"""Rows from one place to the next, at least."""


def scan_table(path: Path, place: Place, stop: int | None) -> Iterator[Place]:
    """Places of a file from one on; `position` and `line` count rows."""
    columns: Any = _open(path).read(columns=["time", "tx"])
    if columns.column_names != ["time", "tx"]:
        raise DataError("a change log needs the columns time, tx, diff, s, p and o")
    time, tx = (_filled(columns[name])[place.position : stop] for name in ("time", "tx"))
    new = np.flatnonzero((np.diff(time) != 0) | (np.diff(tx) != 0)) + 1
    first, at = 0, place
    for end in [*new.tolist(), len(time)]:
        if end - first < STEP and end < len(time):
            continue
        if end > first:
            shift = at.shift_of(int(tx[first]))
            at = replace(
                at,
                position=place.position + end,
                line=place.line + end,
                shift=shift,
                tx=max(at.tx, int(tx[first:end].max()) + shift),
                time=max(int(time[first:end].max()), *([at.time] if at.time is not None else [])),
            )
            yield at
        first = end


def read_rows(
    path: Path, start: int, stop: int, rejected: list[RejectedRow]
) -> Iterator[ChangeBatch]:
    """The changes of rows; bad ones are collected with their row number."""
    table = _open(path).read().slice(start, stop - start)
    yield from read_table(table, RejectedRows(str(path), "skip", rejected), first_row=start)


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        reason = f"is not a Parquet file that can be read: {error}"
        raise DataError(reason, source=str(path)) from None


def _filled(column: pa.ChunkedArray[Any]) -> NDArray[np.int64]:
    """Numbers, with the one before where there is none: such a row is set aside when it is read."""
    try:
        whole = column.combine_chunks().cast(pa.int64())
    except pa.ArrowException as error:
        raise DataError(f"time and tx are whole numbers: {error}") from None
    filled: Any = pa.compute.fill_null_forward(whole)
    found: NDArray[np.int64] = filled.fill_null(0).to_numpy()
    return found
