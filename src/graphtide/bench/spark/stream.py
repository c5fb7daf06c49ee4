"""The benchmark's stream, as Parquet files of one micro-batch each.

A graph grows in bulk to three sizes. At each of them small batches delete some edges and insert
them again, so that every batch changes the answer and none the size.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphtide.bench.route_sensor import RELATIONS
from graphtide.bench.route_sensor.workload import make_workload, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SIZES: Final = (1 / 20, 1 / 4, 1.0)
"""Of all edges: where growing stops for a while. 100k, 500k and 2M of two million."""

BULK: Final = 1 / 10
"""The largest part of all edges that one batch inserts."""

SMALL_BATCHES: Final = 15
FEW_BATCHES: Final = 4
"""Small batches per size; and for a pipeline that takes seconds for each."""

SMALL_ROWS: Final = 100
TRANSACTION_ROWS: Final = 10

SPARE_BATCHES: Final = 3
"""Small batches that are kept back, for after the stream."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One file: what it is for, the edges in the graph after it, its rows."""

    kind: str
    edges: int
    rows: int


def write_stream(folder: Path, changes: int, seed: int, small: int) -> list[Batch]:
    """Write the files in order, with `small` small batches at each size; and some `spare` ones.

    The spare ones have a folder of their own, and are not in the list.
    """
    spare = folder.with_name(f"{folder.name}-spare")
    for each in (folder, spare):
        each.mkdir(parents=True)
    batches: list[Batch] = []
    clock = 0
    for batch, table in _tables(changes, seed, small):
        path = (spare if batch.kind == "spare" else folder) / f"{len(batches):05}.parquet"
        stamps: Any = clock + np.arange(batch.rows) // TRANSACTION_ROWS
        clock = int(stamps[-1]) + 1
        pq.write_table(_with_end(pa.table({**table, "time": stamps, "tx": stamps})), path)
        os.utime(path, (1_700_000_000 + len(batches),) * 2)  # Spark takes the oldest first
        batches.append(batch)
    return [batch for batch in batches if batch.kind != "spare"]


def add_spare(folder: Path) -> None:
    """Let the stream go on with the batches that were kept back."""
    for path in folder.with_name(f"{folder.name}-spare").iterdir():
        path.rename(folder / path.name)


def _with_end(table: pa.Table) -> pa.Table:
    """The table with places in it, and with the end of its last transaction marked."""
    last = table.slice(len(table) - 1).to_pylist()[0]
    end = {**last, "diff": 0, **dict.fromkeys("spo")}
    ended = pa.concat_tables([table, pa.Table.from_pylist([end], schema=table.schema)])
    return ended.append_column("seq", pa.array(np.arange(len(ended))))


def _tables(changes: int, seed: int, small: int) -> Iterator[tuple[Batch, dict[str, Any]]]:
    workload = make_workload(changes, seed)
    random = np.random.default_rng(seed)
    nodes, relations = pa.array(texts(workload.names())), pa.array(texts(list(RELATIONS)))

    def table(edges: NDArray[np.int64], diff: NDArray[np.int32]) -> dict[str, Any]:
        return {
            "diff": diff,
            "s": nodes.take(workload.s[edges]),
            "p": relations.take(workload.relation[edges]),
            "o": nodes.take(workload.o[edges]),
        }

    total, done = len(workload), 0
    for part in SIZES:
        size = int(total * part)
        while done < size:
            upto = min(size, done + ceil(total * BULK))
            edges = np.arange(done, upto)
            yield Batch("bulk", upto, upto - done), table(edges, np.ones(upto - done, np.int32))
            done = upto
        kinds = ["small"] * small + ["spare"] * (SPARE_BATCHES if size == total else 0)
        for kind in kinds:
            edges = random.choice(done, size=min(SMALL_ROWS // 2, done), replace=False)
            diff = np.repeat(np.array([-1, 1], np.int32), len(edges))
            yield Batch(kind, done, len(diff)), table(np.tile(edges, 2), diff)
