"""Unpack: the messages of the last stage as rows and columns for Spark users."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.errors import GraphtideError
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.spark.job import JobSpec

log = getLogger(__name__)

FRONT = ("query", "time", "tx", "diff")

REJECTS = "rejected"
"""The column of rejected input, if it is asked for."""

_REJECTED = pa.struct(list(msg.REJECTED))


def unpack_deltas(
    batches: Iterable[pa.RecordBatch], job: JobSpec, *, single: bool
) -> Iterator[pa.RecordBatch]:
    """Rows `query, time, tx, diff` and a column per variable, or a map of them for many queries."""
    for messages in _chunks(batches, "chunk"):
        deltas = emitted_deltas(messages, job)
        table = _in_columns(deltas, job) if single else _in_map(deltas, job)
        yield from table.to_batches()


def unpack_all(
    batches: Iterable[pa.RecordBatch], job: JobSpec, column: str, *, single: bool
) -> Iterator[pa.RecordBatch]:
    """As `unpack_deltas`, and rejected input as structs in a column of its own."""
    for batch in batches:
        for deltas in unpack_deltas([batch], job, single=single):
            nothing: Any = pa.nulls(len(deltas), _REJECTED)
            yield deltas.append_column(column, nothing)
        for rejected in unpack_rejected([batch]):
            log.warning("%d rows rejected; the first: %s", len(rejected), rejected["reason"][0])
            structs: Any = rejected.to_struct_array()
            names = [field.name for field in _deltas_schema(job, single=single)]
            nulls = [pa.nulls(len(rejected), f.type) for f in _deltas_schema(job, single=single)]
            yield pa.record_batch([*nulls, structs], names=[*names, column])


def _deltas_schema(job: JobSpec, *, single: bool) -> pa.Schema:
    """The columns of unpacked deltas."""
    empty = msg.empty(msg.MESSAGES)
    return (_in_columns(empty, job) if single else _in_map(empty, job)).schema


def unpack_rejected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rejected input (`REJECTED`)."""
    for rejected in _chunks(batches, "rejected"):
        yield from rejected.to_batches()


def _chunks(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[pa.Table]:
    for batch in batches:
        for chunk in batch.column(column):
            if chunk.is_valid:
                yield msg.from_chunk(chunk.as_py())


def emitted_deltas(messages: pa.Table, job: JobSpec) -> pa.Table:
    """The deltas that queries emit; over windows: added rows, removed ones, or the whole answer."""
    deltas = msg.of_kind(messages, msg.MessageKind.DELTA)
    if not job.windows:
        return deltas
    id_, diff = deltas["id"].to_numpy(), deltas["diff"].to_numpy().copy()
    emitted = np.ones(len(deltas), np.bool_)
    for number, query in enumerate(job.partition_queries):
        match query.windowed.output if query.windowed else None:
            case "ISTREAM":
                emitted &= (id_ != number) | (diff > 0)
            case "DSTREAM":
                emitted &= (id_ != number) | (diff < 0)
            case "RSTREAM" if query.distinct:
                diff[id_ == number] = 1
            case _:
                pass
    return msg.replaced(deltas, "diff", diff).filter(pa.array(emitted))


def _in_columns(deltas: pa.Table, job: JobSpec) -> pa.Table:
    """The deltas of a job's only query, one column per variable."""
    return pa.table({**_front(deltas, job), **msg.value_columns(deltas, _names(job)[0])})


def _in_map(deltas: pa.Table, job: JobSpec) -> pa.Table:
    """The deltas of several queries, their rows as maps from variable to term; unbound: absent."""
    names = _names(job)
    widths = np.array([len(each) for each in names])
    query = deltas["id"].to_numpy()
    rows: Any = deltas["values"].combine_chunks()
    width = widths[query]
    starts = np.cumsum(width) - width
    # The key of a value: the first one of its query, and its place in its row after that.
    firsts = (np.cumsum(widths) - widths)[query] - starts
    places = np.repeat(firsts, width) + np.arange(int(width.sum()))
    values = rows.flatten()
    bound = values.is_valid().to_numpy(zero_copy_only=False)
    ends = np.append(0, np.cumsum(bound))
    offsets: Any = pa.array(ends[np.append(starts, len(values))].astype(np.int32))
    keys: Any = pa.array([name for each in names for name in each], pa.string())
    maps = pa.MapArray.from_arrays(offsets, keys.take(places[bound]), values.drop_null())
    return pa.table({**_front(deltas, job), "row": maps})


def _names(job: JobSpec) -> list[list[str]]:
    """The names of the variables of each query."""
    return [[v.name for v in q.query.variables[: q.shown]] for q in job.partition_queries]


def _front(deltas: pa.Table, job: JobSpec) -> dict[str, Any]:
    names: Any = pa.array([query.name for query in job.partition_queries])
    numbers = [deltas[name] for name in FRONT[1:]]
    return dict(zip(FRONT, [names.take(deltas["id"].combine_chunks()), *numbers], strict=True))


def columns_sql(job: JobSpec, *, single: bool, rejected: str | None = None) -> str:
    """The Spark schema of unpacked deltas, perhaps with a column of rejected input."""
    columns = ["query string, time bigint, tx bigint, diff bigint"]
    if single:
        names = _names(job)[0]
        check_names([*([REJECTS] if rejected == REJECTS else []), *names])
        columns += [f"`{name}` string" for name in names]
    else:
        columns.append("row map<string, string>")
    if rejected is not None:
        columns.append(f"`{rejected}` struct<{msg.REJECTED_SQL}>")
    return ", ".join(columns)


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
