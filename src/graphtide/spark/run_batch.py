"""The output of a micro-batch: a table of deltas per query, in order, and what was set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.spark.chunk import from_chunks
from graphtide.spark.quarantine import set_aside
from graphtide.spark.schemas import DELTAS, REJECTS

if TYPE_CHECKING:
    from graphtide.spark.task import Task


def unpacked(matched: pa.Table, task: Task) -> tuple[dict[str, pa.Table], pa.Table]:
    """Matched rows (`MATCHED`) as deltas by query and quarantine."""
    deltas = from_chunks(_chunks(matched, "deltas"), DELTAS)
    rejects = from_chunks(_chunks(matched, "rejects"), REJECTS)
    numbers: Any = deltas["query"]
    by_name = {}
    for number, query in enumerate(task.cell_queries):
        names = [variable.name for variable in query.query.variables[: query.shown]]
        part: Any = deltas.filter(pc.equal(numbers, number))  # type: ignore[call-overload]
        by_name[query.name] = delta_columns(part, names)
    return by_name, set_aside(rejects)


def delta_columns(deltas: pa.Table, names: list[str]) -> pa.Table:
    """Deltas of one query with a column per variable, sorted by time, transaction and row."""
    rows: Any = deltas["row"].combine_chunks()
    values = rows.flatten()
    at = np.arange(len(deltas)) * len(names)
    columns: dict[str, Any] = {name: deltas[name] for name in ("time", "tx", "diff")}
    for place, name in enumerate(names):
        columns[name] = values.take(pa.array(at + place, pa.int64()))
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _chunks(matched: pa.Table, column: str) -> list[bytes]:
    chunks: list[bytes | None] = matched[column].to_pylist()
    return [bytes(chunk) for chunk in chunks if chunk is not None]
