"""Unpack: chunks to rows and columns that Spark users know what to do with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.errors import GraphtideError
from graphtide.spark.chunk import from_chunk
from graphtide.spark.reports import put_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.spark.task import Task

FRONT = ("query", "time", "tx", "diff")


def unpack_deltas(
    batches: Iterable[pa.RecordBatch], task: Task, *, single: bool
) -> Iterator[pa.RecordBatch]:
    """Rows `query, time, tx, diff` and a column per variable, or a map of them for many queries."""
    for chunk in _chunks(batches, "deltas"):
        deltas = put_out(chunk, task)
        table = in_columns(deltas, task) if single else in_map(deltas, task)
        yield from table.to_batches()


def unpack_rejects(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows `time, tx, diff, text, reason` of the input that was set aside."""
    for rejects in _chunks(batches, "rejects"):
        yield from rejects.to_batches()


def _chunks(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[pa.Table]:
    for batch in batches:
        for chunk in batch.column(column):
            if chunk.is_valid:
                yield from_chunk(chunk.as_py())


def in_columns(deltas: pa.Table, task: Task) -> pa.Table:
    """The deltas of a task's only query, one column per variable."""
    query = task.cell_queries[0]
    rows: Any = deltas["row"].combine_chunks()
    values = rows.flatten()
    at = np.arange(len(deltas)) * query.shown
    named = {
        var.name: values.take(pa.array(at + i, pa.int64()))
        for i, var in enumerate(query.query.variables[: query.shown])
    }
    return pa.table({**_front(deltas, task), **named})


def in_map(deltas: pa.Table, task: Task) -> pa.Table:
    """The deltas of several queries, their rows as maps from variable to term; unbound: absent."""
    names = [[v.name for v in q.query.variables[: q.shown]] for q in task.cell_queries]
    queries: Any = deltas["query"].to_pylist()
    values: Any = deltas["row"].to_pylist()
    rows = [
        [(name, value) for name, value in zip(names[query], row, strict=True) if value is not None]
        for query, row in zip(queries, values, strict=True)
    ]
    kind = pa.map_(pa.string(), pa.string())
    return pa.table({**_front(deltas, task), "row": pa.array(rows, kind)})


def _front(deltas: pa.Table, task: Task) -> dict[str, Any]:
    names: Any = pa.array([q.name for q in task.cell_queries])
    numbers = [deltas[name] for name in FRONT[1:]]
    return dict(zip(FRONT, [names.take(deltas["query"].combine_chunks()), *numbers], strict=True))


def columns_sql(task: Task, *, single: bool) -> str:
    """The Spark schema of unpacked deltas."""
    front = "query string, time bigint, tx bigint, diff bigint"
    if not single:
        return f"{front}, row map<string, string>"
    query = task.cell_queries[0]
    names = [v.name for v in query.query.variables[: query.shown]]
    check_names(names)
    return ", ".join([front, *(f"`{name}` string" for name in names)])


def check_names(names: list[str]) -> None:
    """Columns of a DataFrame must differ, and Spark does not look at their case.

    >>> check_names(["x", "time"])
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: ?time cannot be a column beside query, time, tx, diff
      hint: rename the variable, or give the query a name: as in {"q": text}, rows are then maps
    """
    seen = set(FRONT)
    for name in names:
        if name.lower() in seen:
            before = FRONT if name.lower() in FRONT else [n for n in names if n != name]
            raise GraphtideError(
                f"?{name} cannot be a column beside {', '.join(before)}",
                hint="rename the variable, or give the query a name: "
                'as in {"q": text}, rows are then maps',
            )
        seen.add(name.lower())
