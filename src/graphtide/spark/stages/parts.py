"""Parts: what the last stage of a job writes itself, because it is too large for the driver.

A partition writes its rows to files and sends their names. The driver commits them with the
micro-batch; files of attempts that failed have other names, and are never committed.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext

from graphtide.errors import GraphtideError
from graphtide.spark.output import QUARANTINE_NAME, OutputFile, batch_name, write_table
from graphtide.spark.stages.unpack import emitted_deltas
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.spark.job import JobSpec
    from graphtide.spark.partition.program import ProgramSpec


def write_parts(job: JobSpec, partition: int, rows: list[msg.StageRow]) -> list[msg.StageRow]:
    """Write what a partition emits, if it is much; firings go to the driver all the same."""
    spec = job.output
    if spec is None or not rows:
        return rows
    messages = msg.from_chunks((row.chunk for row in rows), msg.MESSAGES)
    rejected = msg.from_chunks((row.rejected for row in rows), msg.REJECTED)
    if messages.nbytes + rejected.nbytes <= spec.inline_bytes // job.partitions:
        return rows
    batch = spec.first_batch + micro_batch()
    written: list[OutputFile] = []
    for name, table in {**output_tables(messages, job), QUARANTINE_NAME: rejected}.items():
        if len(table):
            folder = f"{name}/{batch_name(batch)}"
            file = f"{folder}/part-{partition:04}-{uuid4().hex[:8]}.{spec.format}"
            try:
                (spec.out / folder).make_directory()
                written.append(write_table(spec.out, name, file, table, spec.format))
            except OSError as error:
                raise cannot_write(batch, spec.out, error) from error
    named = msg.file_messages([json.dumps(asdict(each)).encode() for each in written])
    rest = pa.concat_tables([msg.of_kind(messages, msg.MessageKind.FIRING), named])
    return [msg.StageRow(*rows[0][:5], msg.to_chunk(rest))]


def written_parts(messages: pa.Table) -> list[OutputFile]:
    """The files that partitions have written."""
    found: Any = msg.of_kind(messages, msg.MessageKind.FILE)["state"].to_pylist()
    return [OutputFile.from_json(json.loads(each)) for each in found]


def micro_batch() -> int:
    """The number of the micro-batch that a task belongs to; a bounded input is the first."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return int(found or 0)


def cannot_write(batch: int, out: object, error: OSError) -> GraphtideError:
    """The error of an output that is full, or not ours to write."""
    return GraphtideError(
        f"batch {batch} cannot be written to {out}: {error.strerror or error}",
        hint="make room, or let this user write there, and start again: nothing is lost, "
        "the micro-batch is run again",
    )


def output_tables(messages: pa.Table, job: JobSpec) -> dict[str, pa.Table]:
    """The deltas of each named query and the complex events of each pattern, as columns, sorted."""
    deltas = emitted_deltas(messages, job)
    found = {}
    for number, query in enumerate(job.shown_queries):
        names = [variable.name for variable in query.query.variables[: query.shown]]
        part = msg.of_kind(deltas, msg.MessageKind.DELTA, number)
        stamps: dict[str, Any] = {name: part[name] for name in ("time", "tx", "diff")}
        found[query.name] = _sorted(pa.table({**stamps, **msg.value_columns(part, names)}))
    if job.program is not None:
        found |= complex_events(messages, job.program)
    return found


def complex_events(messages: pa.Table, spec: ProgramSpec) -> dict[str, pa.Table]:
    """The complex events of each pattern: when, and the values of its parameters."""
    found = {}
    for pattern in spec.source.patterns:
        events = msg.of_kind(
            messages, msg.MessageKind.EVENT, spec.types[spec.complex[pattern.name]]
        )
        lines: list[dict[str, Any]] = events.to_pylist()
        columns: dict[str, list[Any]] = {
            "time": [line["time"] for line in lines],
            "tx": [None if line["tx"] == msg.AFTER_ALL else line["tx"] for line in lines],
            "diff": [1] * len(lines),
        }
        for column, parameter in enumerate(pattern.parameters):
            columns[parameter.name] = [line["values"][column] for line in lines]
        kinds = [pa.int64()] * 3 + [pa.string()] * len(pattern.parameters)
        arrays: list[Any] = [pa.array(c, k) for c, k in zip(columns.values(), kinds, strict=True)]
        found[pattern.name] = _sorted(pa.table(dict(zip(columns, arrays, strict=True))))
    return found


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several files of a query, in order."""
    return _sorted(pa.concat_tables(tables)) if len(tables) > 1 else tables[0]
