"""A Spark job without Spark: the same stages (`graphtide.spark.topology`), in one process.

A `PartitionRun` takes micro-batches of tasks of changes, as Spark would cut them, and gives the
output. It can be made to fail as a cluster does: attempts that fail after they changed cached
engines, workers that lose their cache, partitions that move to other workers.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from graphtide.lang.tide.program import Program
from graphtide.limits import Limits
from graphtide.spark.job import JobSpec, Layout, pinned
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.partition.hubs import Hubs, hub_counts
from graphtide.spark.partition.program import program_spec
from graphtide.spark.partition.windows import Clock
from graphtide.spark.restore.stages import MATCH, SAVED_STAGES, Restoration, beginning
from graphtide.spark.stages.pack import pack_rows
from graphtide.spark.stages.unpack import emitted_deltas
from graphtide.spark.state.cache import EngineCache, EngineKey, PartitionEngine, PartitionState
from graphtide.spark.state.log import MemoryLog
from graphtide.spark.state.messages import MESSAGES, REJECTED, StageRow, from_chunks
from graphtide.spark.topology import StageSpec, run_partition, stages_of
from oracles.transactions import StreamTransaction, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    ChangeRow = tuple[int | str | None, ...]
    """Time, tx, diff, s, p, o, g, and perhaps the stream of an event, and the source's shard."""
    Tasks = Sequence[Sequence[ChangeRow]]

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("diff", pa.int32()),
    *((name, pa.string()) for name in "spog"),
    ("stream", pa.string()),
    ("shard", pa.string()),
]
_INPUT = pa.schema(_FIELDS)


class OutRow(NamedTuple):
    """A delta row as it leaves a job."""

    query: str
    time: int
    tx: int
    diff: int
    values: tuple[str | None, ...]


class RejectedInput(NamedTuple):
    """A rejected row."""

    time: int | None
    tx: int | None
    text: str
    reason: str


@dataclass(slots=True)
class PartitionRun:
    """A job on a number of partitions, fed micro-batch by micro-batch.

    `logs` is the durable state by stage and partition: what Spark's checkpoint holds. `place` gives
    the worker that a partition runs on, each time. With `numbered`, rows have a `seq`: the order in
    which they come. `messages` and `time` are the output and the
    watermark of the last micro-batch; `rejected` collects the rejected rows.

    >>> run = PartitionRun.of({"q": "SELECT ?x { ?x <ex:p> ?y }"}, partitions=2)
    >>> run.batch([[(0, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None)]])
    []
    >>> run.batch([[(1, 0, 0, None, None, None, None)]])
    [OutRow(query='q', time=0, tx=0, diff=1, values=('<ex:a>',))]
    """

    job: JobSpec
    workers: list[EngineCache]
    place: Callable[[int], int] = field(default=lambda _: 0)
    numbered: bool = True
    logs: dict[str, list[MemoryLog]] = field(default_factory=dict)
    rejected: list[RejectedInput] = field(default_factory=list)
    messages: pa.Table = field(default_factory=MESSAGES.empty_table)
    time: int = 0
    taken: int = 0

    def __post_init__(self) -> None:
        for stage in stages_of(self.job):
            self.logs[stage.name] = [MemoryLog() for _ in range(self.job.partitions)]

    @classmethod
    def of(
        cls,
        program: Mapping[str, str] | Program,
        partitions: int,
        *,
        workers: int = 1,
        place: Callable[[int], int] | None = None,
        sizes: Mapping[str, int] | None = None,
        clock: Clock | None = None,
        numbered: bool = True,
        layout: Layout | Mapping[str, Layout] | None = None,
        hubs: Hubs = (),
        limits: Limits | None = None,
    ) -> PartitionRun:
        """A run of named queries, or of a program, from the start."""
        clock = clock or Clock()
        known = tuple((sizes or {}).items())
        named = program.texts if isinstance(program, Program) else program
        layouts = pinned(layout, named)
        if isinstance(program, Program):
            spec = program_spec(program, partitions, clock.tick_ms)
        else:
            spec = None
        texts = tuple(named.items())
        job = JobSpec(
            texts,
            partitions,
            known,
            clock,
            spec,
            layouts,
            hub_counts(hubs),
            limits=limits or Limits(),
        )
        caches = [EngineCache() for _ in range(workers)]
        return cls(job, caches, place or (lambda _: 0), numbered)

    def batch(self, tasks: Tasks, now: int | None = None) -> list[OutRow]:
        """One micro-batch through all stages, at a processing time: the delta rows it emits."""
        rows: list[StageRow] = []
        for number, task in enumerate(tasks):
            batches = record_batches(task, self.taken if self.numbered else None)
            self.taken += len(task)
            rows += pack_rows(batches, self.job, number)
        for stage in stages_of(self.job):
            rows = self.run_stage(stage, rows, now)
        self.messages = from_chunks((row.chunk for row in rows), MESSAGES)
        self.time = max((row.time for row in rows), default=0)
        for line in from_chunks((row.rejected for row in rows), REJECTED).to_pylist():
            self.rejected.append(RejectedInput(*(line[name] for name in RejectedInput._fields)))
        return self.answers()

    def run_stage(
        self, stage: StageSpec, rows: Sequence[StageRow], now: int | None = None
    ) -> list[StageRow]:
        """All partitions of a stage; as on Spark, those run that get a row, or have a timer."""
        now = now if stage.timed else None
        sent: list[StageRow] = []
        for partition, key in enumerate(partition_keys(self.job.partitions)):
            mine = [row for row in rows if row.partition == key]
            if mine or now is not None:
                cache = self.workers[self.place(partition)]
                log = self.logs[stage.name][partition]
                state = PartitionState(log, cache, EngineKey("run", stage.name, partition))
                sent += run_partition(stage, state, mine, self.job.partitions, now=now)
        return sent

    def answers(self) -> list[OutRow]:
        """The deltas of the last micro-batch; of a job that goes on from another, its answers."""
        names = [name for name, _ in self.job.queries]
        return [
            OutRow(names[line["id"]], line["time"], line["tx"], line["diff"], tuple(line["values"]))
            for line in emitted_deltas(self.messages, self.job).to_pylist()
        ]

    def continued(self, job: JobSpec) -> PartitionRun:
        """Another job that goes on from here; its `messages` are the answers of its queries."""
        restoration = Restoration.of(job, self.job)
        logs, answers = restore_all(restoration, self.logs)
        caches = [EngineCache() for _ in self.workers]
        new = PartitionRun(job, caches, self.place, self.numbered, taken=self.taken)
        new.logs, new.messages, new.rejected = logs, answers, self.rejected
        return new

    def rescaled(
        self, partitions: int, layouts: Layout | None = None, hubs: Hubs | None = None
    ) -> PartitionRun:
        """The same job on another number of partitions, perhaps with other layouts and hubs."""
        program = self.job.program
        job = replace(
            self.job,
            partitions=partitions,
            program=None if program is None else replace(program, partitions=partitions),
            layouts=pinned(layouts, dict(self.job.queries)) if layouts else self.job.layouts,
            hubs=self.job.hubs if hubs is None else hub_counts(hubs),
        )
        return self.continued(job)

    def attempt(self, tasks: Tasks, now: int | None = None) -> None:
        """A micro-batch that fails at its very end: caches have changed, the logs have not."""
        logs, rejected, taken = deepcopy(self.logs), list(self.rejected), self.taken
        self.batch(tasks, now)
        self.logs, self.rejected, self.taken = logs, rejected, taken

    def lose(self, worker: int) -> None:
        """A worker dies; another takes its place with an empty cache."""
        self.workers[worker] = EngineCache()

    def engines(self, stage: str) -> list[PartitionEngine]:
        """The cached engines of a stage."""
        return [
            cached.engine
            for worker in self.workers
            for key, cached in worker.engines.items()
            if key.stage == stage
        ]


def record_batches(rows: Sequence[ChangeRow], seq: int | None = None) -> list[pa.RecordBatch]:
    """Changes as they leave `prune`, all of them relevant, with numbers from `seq` on."""
    names = _INPUT.names
    lines = [
        dict(zip(names, (*row, *[None] * (len(names) - len(row))), strict=True)) for row in rows
    ]
    table = pa.Table.from_pylist(lines, schema=_INPUT)
    table = table.append_column("relevant", pa.array([True] * len(rows), pa.bool_()))
    if seq is not None:
        table = table.append_column("seq", pa.array(range(seq, seq + len(rows)), pa.int64()))
    return table.to_batches()


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


def restore_all(
    restoration: Restoration, logs: Mapping[str, Sequence[MemoryLog]]
) -> tuple[dict[str, list[MemoryLog]], pa.Table]:
    """The logs of all stages and partitions, in one process; and the whole answers."""
    job, found = restoration.job, {}
    rows: list[StageRow] = []
    for stage in stages_of(job):
        if stage.name in SAVED_STAGES:
            for at, matched in enumerate(logs[MATCH]):
                log = logs[stage.name][at] if stage.name in logs else beginning(matched)
                rows += restoration.split(stage.name, at, log)
        restored = [
            restoration.restore(stage, at, [row for row in rows if row.partition == key])
            for at, key in enumerate(partition_keys(job.partitions))
        ]
        found[stage.name] = [log for log, _ in restored]
        rows = [row for _, sent in restored for row in sent]
    return found, from_chunks((row.chunk for row in rows), MESSAGES)
