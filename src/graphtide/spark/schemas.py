"""Schemas: the tables that travel between the stages of the pipeline, in Arrow and for Spark."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

_CHANGES: Final[list[tuple[str, pa.DataType]]] = [
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("seq", pa.int64()),
    ("diff", pa.int8()),
    ("home", pa.bool_()),
    ("s", pa.string()),
    ("p", pa.string()),
    ("o", pa.string()),
    ("g", pa.string()),
]
CHANGES: Final = pa.schema(_CHANGES)
"""A change on its way: `seq` orders a transaction's changes, `home` marks one of its copies."""

EVENTS: Final = pa.schema([*_CHANGES, ("stream", pa.string())])
"""Changes, and events of streams. One without terms only tells that there was an event then."""

_PACKED: Final[list[tuple[str, pa.DataType]]] = [
    ("cell", pa.int32()),
    ("task", pa.int32()),
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("ended", pa.int32()),
    ("chunk", pa.binary()),
    ("rejects", pa.binary()),
]
PACKED: Final = pa.schema(_PACKED)
PACKED_SQL: Final = (
    "cell int, task int, time bigint, tx bigint, ended int, chunk binary, rejects binary"
)
"""One row per task and cell: the frontier that the task saw, changes, and input set aside."""

_MATCHED: Final[list[tuple[str, pa.DataType]]] = [
    ("cell", pa.int32()),
    ("deltas", pa.binary()),
    ("rejects", pa.binary()),
]
MATCHED: Final = pa.schema(_MATCHED)
MATCHED_SQL: Final = "cell int, deltas binary, rejects binary"
"""What comes out of a cell: chunks of deltas and of input set aside; `cell` is where they go."""

_DELTAS: Final[list[tuple[str, pa.DataType]]] = [
    ("query", pa.int32()),
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("diff", pa.int64()),
    ("row", pa.list_(pa.string())),
]
DELTAS: Final = pa.schema(_DELTAS)
"""Deltas on their way out: the query's number and the row's values in its order of variables."""

_REJECTS: Final[list[tuple[str, pa.DataType]]] = [
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("diff", pa.int32()),
    ("text", pa.string()),
    ("reason", pa.string()),
]
REJECTS: Final = pa.schema(_REJECTS)
REJECTS_SQL: Final = "time bigint, tx bigint, diff int, text string, reason string"
"""Input that could not be used, and why."""


def table_of(schema: pa.Schema, columns: list[Any]) -> pa.Table:
    """A table from columns of whatever kind Arrow can convert.

    >>> table_of(pa.schema({"a": pa.int64()}), [[1, 2]]).num_rows
    2
    """
    arrays: list[Any] = [
        column if isinstance(column, pa.ChunkedArray) else pa.array(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
