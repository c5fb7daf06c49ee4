"""Pack: the changes of a Spark task, routed and put into one chunk per cell, before any shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.chunk import to_chunk
from graphtide.spark.frontier import START, Frontier, frontier_of
from graphtide.spark.hashing import cell_keys
from graphtide.spark.route import route

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.spark.task import Task

CHANGES = pa.schema(
    [
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
)
"""A change on its way: `seq` orders the changes of a transaction, `home` marks one of its copies."""

PACKED = pa.schema(
    [
        ("cell", pa.int32()),
        ("task", pa.int32()),
        ("time", pa.int64()),
        ("tx", pa.int64()),
        ("ended", pa.int32()),
        ("chunk", pa.binary()),
        ("rejects", pa.binary()),
    ]
)
"""One row per task and cell: the frontier that the task saw, changes, and input set aside."""

REJECTS = pa.schema(
    [
        ("time", pa.int64()),
        ("tx", pa.int64()),
        ("diff", pa.int32()),
        ("text", pa.string()),
        ("reason", pa.string()),
    ]
)
"""Input that could not be used, and why."""


def pack_task(
    batches: Iterable[pa.RecordBatch], task: Task, number: int
) -> Iterator[pa.RecordBatch]:
    """All batches of one Spark task as one packed row per cell (Spark's `mapInArrow`)."""
    parts: list[list[pa.Table]] = [[] for _ in range(task.cells)]
    rejects: list[pa.Table] = []
    seen, position = START, 0
    for batch in batches:
        table = numbered(pa.Table.from_batches([batch]), position)
        position += len(batch)
        table, unstamped = split_unstamped(table)
        seen = max(seen, _frontier(table))
        changes, cells, bad = route_table(table, task)
        rejects += [unstamped, bad]
        for cell in range(task.cells):
            chosen = np.flatnonzero(cells == cell)
            if len(chosen):
                parts[cell].append(changes.take(pa.array(chosen)))
    yield packed_rows(parts, pa.concat_tables(rejects) if rejects else None, seen, number)


def packed_rows(
    parts: list[list[pa.Table]], rejects: pa.Table | None, seen: Frontier, number: int
) -> pa.RecordBatch:
    """One row per cell; every cell hears of the frontier, the first one takes the rejects."""
    keys = cell_keys(len(parts))
    chunks = [to_chunk(pa.concat_tables(tables)) if tables else None for tables in parts]
    aside: list[bytes | None] = [None] * len(parts)
    if rejects is not None and len(rejects):
        aside[0] = to_chunk(rejects)
    n = len(parts)
    columns = [keys, [number] * n, [seen.time] * n, [seen.tx] * n, [seen.ended] * n, chunks, aside]
    return pa.record_batch(
        [pa.array(c, f.type) for c, f in zip(columns, PACKED, strict=True)], schema=PACKED
    )


def numbered(table: pa.Table, position: int) -> pa.Table:
    """The table with a column `seq`: the user's, or each row's place in the task's input."""
    if "seq" in table.column_names:
        return table
    return table.append_column("seq", pa.array(np.arange(position, position + len(table))))


def split_unstamped(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows with a time, a transaction and a diff; and the others, set aside."""
    valid = pc.and_(
        pc.and_(pc.is_valid(table["time"]), pc.is_valid(table["tx"])), pc.is_valid(table["diff"])
    )
    missing = table.filter(pc.invert(valid))
    reasons = dict.fromkeys(range(len(missing)), "time, tx or diff is missing")
    return table.filter(valid), _rejects(missing, reasons)


def route_table(table: pa.Table, task: Task) -> tuple[pa.Table, NDArray[np.int64], pa.Table]:
    """Changes with canonical terms, one row per copy; the cell of each; and what is set aside."""
    terms = TermDictionary()
    real = table.filter(pc.and_(pc.not_equal(table["diff"], 0), table["wanted"]))
    quads, bad = _encode(real, terms)
    good = np.setdiff1d(np.arange(len(real)), np.array(sorted(bad), np.int64))
    rows, cells = route(quads[good], terms, [q.grid for q in task.cell_queries])
    home = np.concatenate([[True], rows[1:] != rows[:-1]]) if len(rows) else np.empty(0, np.bool_)
    source, ids = real.take(pa.array(good[rows])), quads[good][rows]
    changes = pa.table(
        [
            source["time"],
            source["tx"],
            source["seq"],
            source["diff"].cast(pa.int8()),
            pa.array(home),
            *(terms.decode_column(ids[:, column]) for column in range(4)),
        ],
        schema=CHANGES,
    )
    return changes, cells, _rejects(real, bad)


def _encode(table: pa.Table, terms: TermDictionary) -> tuple[NDArray[np.int32], dict[int, str]]:
    quads = np.empty((len(table), 4), np.int32)
    bad: dict[int, str] = {}
    for column, name in enumerate("spog"):
        ids, wrong = terms.encode_rows(table[name], skip_empty=name == "g")
        quads[:, column] = ids
        for row, reason in wrong:
            bad.setdefault(row, reason)
        if name in "spo":
            for row in np.flatnonzero(ids == 0).tolist():
                bad.setdefault(row, f"column {name} is empty")
    for row in np.flatnonzero(~np.isin(table["diff"].to_numpy(), (-1, 1))).tolist():
        bad.setdefault(row, "diff is neither +1 nor -1")
    return quads, bad


def _rejects(table: pa.Table, bad: dict[int, str]) -> pa.Table:
    chosen = table.take(pa.array(list(bad), pa.int64()))
    columns = [chosen[name].to_pylist() for name in ("s", "p", "o")]
    texts = [" ".join(str(part) for part in row) for row in zip(*columns, strict=True)]
    columns = [chosen["time"], chosen["tx"], chosen["diff"], texts, list(bad.values())]
    return pa.table(columns, schema=REJECTS)


def _frontier(table: pa.Table) -> Frontier:
    return frontier_of(*(table[name].to_numpy() for name in ("time", "tx", "diff")))
