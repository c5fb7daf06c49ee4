"""Unpack: deltas from chunks to rows and columns that Spark users know what to do with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.spark.chunk import from_chunk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.spark.task import Task


def unpack_deltas(
    batches: Iterable[pa.RecordBatch], task: Task, *, single: bool
) -> Iterator[pa.RecordBatch]:
    """Rows `query, time, tx, diff` and a column per variable, or a map of them for many queries."""
    for batch in batches:
        for chunk in batch.column("deltas"):
            if not chunk.is_valid:
                continue
            deltas = from_chunk(chunk.as_py())
            table = in_columns(deltas, task) if single else in_map(deltas, task)
            yield from table.to_batches()


def in_columns(deltas: pa.Table, task: Task) -> pa.Table:
    """The deltas of a task's only query, one column per variable."""
    query = task.cell_queries[0]
    rows = deltas["row"].combine_chunks()
    width = query.shown
    values = rows.flatten() if len(rows) else pa.array([], pa.string())
    at = np.arange(len(deltas)) * width
    named = {
        var.name: values.take(pa.array(at + i))
        for i, var in enumerate(query.query.variables[:width])
    }
    return pa.table({**_front(deltas, task), **named})


def in_map(deltas: pa.Table, task: Task) -> pa.Table:
    """The deltas of several queries, their rows as maps from variable to term; unbound: absent."""
    names = [[v.name for v in q.query.variables[: q.shown]] for q in task.cell_queries]
    rows = [
        [(name, value) for name, value in zip(names[query], row, strict=True) if value is not None]
        for query, row in zip(deltas["query"].to_pylist(), deltas["row"].to_pylist(), strict=True)
    ]
    kind = pa.map_(pa.string(), pa.string())
    return pa.table({**_front(deltas, task), "row": pa.array(rows, kind)})


def _front(deltas: pa.Table, task: Task) -> dict[str, pa.Array | pa.ChunkedArray]:
    names = pa.array([q.name for q in task.cell_queries])
    return {
        "query": names.take(deltas["query"].combine_chunks()),
        "time": deltas["time"],
        "tx": deltas["tx"],
        "diff": deltas["diff"],
    }


def columns_sql(task: Task, *, single: bool) -> str:
    """The Spark schema of unpacked deltas."""
    front = "query string, time bigint, tx bigint, diff bigint"
    if not single:
        return f"{front}, row map<string, string>"
    query = task.cell_queries[0]
    names = [v.name for v in query.query.variables[: query.shown]]
    return ", ".join([front, *(f"`{name}` string" for name in names)])
