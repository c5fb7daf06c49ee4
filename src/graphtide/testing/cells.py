"""The Spark pipeline without Spark: the same functions, cell by cell, in one process.

A `CellRun` takes micro-batches of tasks of changes, as Spark would cut them, and gives the deltas.
It can be made to go wrong as a cluster does: attempts that fail after they changed what a worker
remembers, workers that forget, cells that move to other workers.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from graphtide.spark.cache import Cache
from graphtide.spark.cell_state import take_batch
from graphtide.spark.chunk import from_chunk
from graphtide.spark.consolidate import consolidate
from graphtide.spark.frontier import START, Frontier
from graphtide.spark.log import DictLog
from graphtide.spark.matched import by_cell
from graphtide.spark.pack import pack_task
from graphtide.spark.reports import put_out
from graphtide.spark.schemas import DELTAS, REJECTS
from graphtide.spark.task import Task
from graphtide.spark.windows import Clock
from graphtide.testing.transactions import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from graphtide.testing.transactions import StreamTransaction

    ChangeRow = tuple[int | str | None, ...]
    """Time, tx, diff, s, p, o, g, and for an event its stream."""
    Tasks = Sequence[Sequence[ChangeRow]]

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("diff", pa.int32()),
    *((name, pa.string()) for name in "spog"),
    ("stream", pa.string()),
    ("wanted", pa.bool_()),
]
_INPUT = pa.schema(_FIELDS)


class OutRow(NamedTuple):
    """A delta row as it leaves the pipeline."""

    query: str
    time: int
    tx: int
    diff: int
    values: tuple[str | None, ...]


@dataclass(slots=True)
class Logs:
    """The durable state of all cells of both stages: what Spark's checkpoint holds."""

    match: list[DictLog]
    meet: list[DictLog]


@dataclass(slots=True)
class CellRun:
    """Named queries on a number of cells, fed micro-batch by micro-batch.

    >>> run = CellRun.of({"q": "SELECT ?x { ?x <ex:p> ?y }"}, cells=2)
    >>> run.batch([[(0, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None)]])
    []
    >>> run.batch([[(1, 0, 0, None, None, None, None)]])
    [OutRow(query='q', time=0, tx=0, diff=1, values=('<ex:a>',))]
    """

    task: Task
    logs: Logs
    workers: list[Cache]
    place: Callable[[int], int] = field(default=lambda _: 0)
    rejects: list[tuple[int | None, int | None, str, str]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        queries: Mapping[str, str],
        cells: int,
        *,
        workers: int = 1,
        place: Callable[[int], int] | None = None,
        sizes: Mapping[str, int] | None = None,
        clock: Clock | None = None,
    ) -> CellRun:
        """A run from the start. `place` says which worker a cell is given to, each time."""
        task = Task(tuple(queries.items()), cells, tuple((sizes or {}).items()), clock or Clock())
        logs = Logs(*([DictLog() for _ in range(cells)] for _ in range(2)))
        run = cls(task, logs, [Cache() for _ in range(workers)])
        if place is not None:
            run.place = place
        return run

    def batch(self, tasks: Tasks) -> list[OutRow]:
        """One micro-batch: the delta rows that come out. Rejects are collected in `rejects`."""
        packed = [
            line
            for number, rows in enumerate(tasks)
            for out in pack_task(record_batches(rows), self.task, number)
            for line in out.to_pylist()
        ]
        seen = max((Frontier(*(p[n] for n in Frontier._fields)) for p in packed), default=START)
        seen = seen.delayed(self.task.clock.lateness)
        by_key: dict[int, list[pa.Table]] = {cell: [] for cell in range(self.task.cells)}
        self._set_aside(from_chunk(p["rejects"]) for p in packed if p["rejects"])
        for cell in range(self.task.cells):
            lines = [p for at, p in enumerate(packed) if at % self.task.cells == cell]
            chunks = [p["chunk"] for p in lines if p["chunk"]]
            log, cache = self.logs.match[cell], self.workers[self.place(cell)]
            outcome = take_batch(log, cache, self.task, "run", cell, chunks, seen)
            self._set_aside([outcome.late])
            for target, part in by_cell(outcome.deltas, self.task, cell):
                by_key[target].append(part)
        return [row for cell, parts in by_key.items() for row in self._meet(cell, parts)]

    def attempt(self, tasks: Tasks) -> None:
        """A micro-batch that fails at its very end: workers remember it, the logs do not."""
        logs, rejects = deepcopy(self.logs), list(self.rejects)
        self.batch(tasks)
        self.logs, self.rejects = logs, rejects

    def forget(self, worker: int) -> None:
        """A worker dies; another takes its place and remembers nothing."""
        self.workers[worker] = Cache()

    def _meet(self, cell: int, parts: list[pa.Table]) -> list[OutRow]:
        deltas = pa.concat_tables([DELTAS.empty_table(), *parts])
        if len(deltas) and any(query.meets for query in self.task.cell_queries):
            log, cache = self.logs.meet[cell], self.workers[self.place(cell)]
            deltas = consolidate(deltas, self.task, log, cache, "run", cell)
        deltas = put_out(deltas, self.task)
        names = [name for name, _ in self.task.queries]
        return [
            OutRow(names[line["query"]], line["time"], line["tx"], line["diff"], tuple(line["row"]))
            for line in deltas.to_pylist()
        ]

    def _set_aside(self, tables: Iterable[pa.Table]) -> None:
        for line in pa.concat_tables([REJECTS.empty_table(), *tables]).to_pylist():
            self.rejects.append((line["time"], line["tx"], line["text"], line["reason"]))


def record_batches(rows: Sequence[ChangeRow]) -> list[pa.RecordBatch]:
    """Changes as they leave the first stage, all of them wanted."""
    lines = [
        dict(zip(_INPUT.names, (*row, *[None] * (8 - len(row)), True), strict=True)) for row in rows
    ]
    return pa.Table.from_pylist(lines, schema=_INPUT).to_batches()


def change_rows(stream: Sequence[StreamTransaction]) -> list[ChangeRow]:
    """A stream as rows `time, tx, diff, s, p, o, g`; transactions are numbered from 0."""
    return [
        (each.time, tx, diff, str(s), str(p), str(o), None if g is None else str(g))
        for tx, each in enumerate(stream)
        for diff, quad in each.changes
        for s, p, o, g in [terms_of(quad)]
    ]


def net_of(rows: Iterable[OutRow]) -> Counter[tuple[str, int, int, tuple[str | None, ...]]]:
    """Delta rows by query, transaction and values, with their diffs.

    >>> net_of([OutRow("q", 1, 2, -3, ("<ex:a>",))])
    Counter({('q', 1, 2, ('<ex:a>',)): -3})
    """
    net: Counter[tuple[str, int, int, tuple[str | None, ...]]] = Counter()
    for row in rows:
        net[row.query, row.time, row.tx, row.values] += row.diff
    return net
