"""The pipeline on Spark, beside the cost of moving the data and beside plain Spark SQL.

One stream, four pipelines over it, each in a process of its own:

- `identity`: the cheapest pipeline that moves the same rows into state, each exactly once: the same
  source, a chunk per task and partition, a shuffle, the same log; no term is looked at;
- `graphtide`: RouteSensor maintained by the engines of the partitions;
- `ten`: RouteSensor and nine more queries;
- `reevaluate`: each micro-batch is merged into a table and the whole query is evaluated again.
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Benchmark, check_same
from benchmarks.report import Cell, Report, Table
from benchmarks.route_sensor import RELATIONS, make_workload, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

PIPELINES: Final = ("identity", "graphtide", "ten", "reevaluate")

PARTITIONS: Final = 2

MASTER: Final = "local-cluster[2,1,2048]"
"""Two executors of one core each, as on a cluster: the engine of a partition stays where it is."""

SIZES: Final = (1 / 20, 1 / 4, 1.0)
"""Shares of all edges at which growing pauses: 100,000, 500,000 and 2 million of two million."""

BULK_ROWS: Final = 200_000
"""How many edges a full batch inserts."""

FILES: Final = 2
"""Files per batch: as many tasks read them."""

SMALL_BATCHES: Final = 15
FEW_BATCHES: Final = 4
"""Small batches per size; and for the pipeline that takes seconds for each."""

SMALL_ROWS: Final = 100
TRANSACTION_ROWS: Final = 10

SPARE_BATCHES: Final = 3
"""Small batches that are held back until the stream has ended."""

FIRST_MTIME: Final = 1_700_000_000


@dataclass(frozen=True, slots=True)
class PipelineTask:
    """A pipeline over the stream; so many small batches at each size."""

    name: str
    changes: int
    small: int = SMALL_BATCHES
    master: str = MASTER
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.name}, {self.changes:,} changes"


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """Rows per second in bulk, and milliseconds per small micro-batch, by edges of the graph.

    And processor time, of all processes: seconds for `BULK_ROWS` rows in bulk, milliseconds per
    small micro-batch. Of `graphtide` also how often an engine was in the cache, and how long it
    takes to rebuild one.
    """

    name: str
    changes: int
    rows_per_s: float
    batch_ms_median_small: float
    batch_ms_by_graph_size: dict[str, float]
    matches: int
    cpu_s_bulk: float = 0.0
    cpu_ms_small: float = 0.0
    cache_hit_ratio: float = 0.0
    rebuild_ms: float = 0.0


# ---- the stream ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """One micro-batch of the stream: its kind, the edges in the graph after it, its rows."""

    kind: str
    edges: int
    rows: int


def write_stream(folder: Path, changes: int, seed: int, small: int) -> list[StreamBatch]:
    """Write the stream as Parquet files, `FILES` for each micro-batch.

    A graph grows in bulk to three sizes. At each of them `small` batches delete some edges and
    insert them again, so that every batch changes the answer and none the size. Spare batches go to
    a folder of their own and are not in the list.
    """
    spare = folder.with_name(f"{folder.name}-spare")
    for each in (folder, spare):
        each.mkdir(parents=True)
    batches: list[StreamBatch] = []
    clock = 0
    for batch, table in _tables(changes, seed, small):
        stamps: Any = clock + np.arange(batch.rows) // TRANSACTION_ROWS
        clock = int(stamps[-1]) + 1
        whole = _with_end(pa.table({**table, "time": stamps, "tx": stamps}))
        size = ceil(len(whole) / FILES)
        for part in range(FILES):
            number = len(batches) * FILES + part
            path = (spare if batch.kind == "spare" else folder) / f"{number:05}.parquet"
            pq.write_table(whole.slice(part * size, size), path)
            os.utime(path, (FIRST_MTIME + number,) * 2)  # Spark reads the oldest files first
        batches.append(batch)
    return [batch for batch in batches if batch.kind != "spare"]


def add_spare(folder: Path) -> None:
    """Continue the stream with the batches that were held back."""
    for path in folder.with_name(f"{folder.name}-spare").iterdir():
        path.rename(folder / path.name)


def _with_end(table: pa.Table) -> pa.Table:
    """The table with sequence numbers, and with a row that ends its last transaction."""
    last = table.slice(len(table) - 1).to_pylist()[0]
    end = {**last, "diff": 0, **dict.fromkeys("spo")}
    ended = pa.concat_tables([table, pa.Table.from_pylist([end], schema=table.schema)])
    return ended.append_column("seq", pa.array(np.arange(len(ended))))


def _tables(changes: int, seed: int, small: int) -> Iterator[tuple[StreamBatch, dict[str, Any]]]:
    workload = make_workload(changes, seed)
    random = np.random.default_rng(seed)
    nodes, relations = pa.array(texts(workload.names())), pa.array(texts(RELATIONS))

    def table(edges: NDArray[np.int64], diff: NDArray[np.int32]) -> dict[str, Any]:
        return {
            "diff": diff,
            "s": nodes.take(workload.s[edges]),
            "p": relations.take(workload.relation[edges]),
            "o": nodes.take(workload.o[edges]),
        }

    total, done = len(workload), 0
    for share in SIZES:
        size = int(total * share)
        while done < size:
            end = min(size, done + BULK_ROWS)
            edges = np.arange(done, end)
            yield StreamBatch("bulk", end, end - done), table(edges, np.ones(end - done, np.int32))
            done = end
        kinds = ["small"] * small + ["spare"] * (SPARE_BATCHES if size == total else 0)
        for kind in kinds:
            edges = random.choice(done, size=min(SMALL_ROWS // 2, done), replace=False)
            diff = np.repeat(np.array([-1, 1], np.int32), len(edges))
            yield StreamBatch(kind, done, len(diff)), table(np.tile(edges, 2), diff)


# ---- measuring -----------------------------------------------------------------------------------


def make_tasks(
    edges: int = 2_000_000, batches: int = SMALL_BATCHES, master: str = MASTER, seed: int = 0
) -> list[PipelineTask]:
    """A task for each pipeline: about so many edges, and small batches at each of three sizes."""
    return [PipelineTask(name, edges, batches, master, seed) for name in PIPELINES]


def measure(task: PipelineTask) -> PipelineResult:
    """Write the stream to a temporary folder, and run it through one pipeline."""
    from benchmarks.spark.pipelines import run_pipeline

    small = min(FEW_BATCHES, task.small) if task.name == "reevaluate" else task.small
    with TemporaryDirectory(prefix="graphtide-bench-") as temporary:
        folder = Path(temporary)
        batches = write_stream(folder / "input", task.changes, task.seed, small)
        return to_result(task, run_pipeline(task.name, folder, task.master), batches)


def to_result(
    task: PipelineTask, output: dict[str, Any], batches: list[StreamBatch]
) -> PipelineResult:
    """Medians over the micro-batches, without the first of each kind, which warms up.

    >>> batches = [StreamBatch("bulk", 1000, 1000), StreamBatch("bulk", 2000, 1000)]
    >>> batches += [StreamBatch("small", 2000, 10)] * 3
    >>> took = {0: 9000, 1: 500, 2: 80, 3: 20, 4: 30}
    >>> task = PipelineTask("identity", "", "", 2000)
    >>> result = to_result(task, {"batch_ms": took, "matches": 7}, batches)
    >>> result.rows_per_s, result.batch_ms_by_graph_size
    (2000.0, {'2000': 25.0})
    """
    took = {batch: float(ms) for batch, ms in output["batch_ms"].items()}
    cpu: dict[int, float] = output.get("batch_cpu", {})
    full = max(batch.rows for batch in batches)
    large = [
        (index, batch.rows)
        for index, batch in enumerate(batches)
        if batch.kind == "bulk" and index and 2 * batch.rows > full
    ]
    small: dict[int, list[float]] = {}
    times: list[float] = []
    for index, batch in enumerate(batches):
        if batch.kind == "small" and batches[index - 1].kind == "small":
            small.setdefault(batch.edges, []).append(took[index])
            times.append(cpu.get(index, 0.0))
    notes, rebuilds = output.get("notes", []), output.get("rebuilds", [])
    return PipelineResult(
        name=task.name,
        changes=task.changes,
        rows_per_s=round(statistics.median(1000 * rows / took[i] for i, rows in large), 1),
        batch_ms_median_small=statistics.median(ms for each in small.values() for ms in each),
        batch_ms_by_graph_size={str(size): statistics.median(ms) for size, ms in small.items()},
        matches=output["matches"],
        cpu_s_bulk=round(statistics.median(BULK_ROWS * cpu.get(i, 0) / n for i, n in large), 3),
        cpu_ms_small=round(1000 * statistics.median(times), 1),
        cache_hit_ratio=hit_ratio(notes),
        rebuild_ms=rebuild_ms(notes, rebuilds),
    )


def hit_ratio(notes: list[dict[str, Any]]) -> float:
    """The share of cache hits.

    >>> hit_ratio([{"hit": False}, {"hit": True}, {"hit": True}, {"hit": True}])
    0.75
    """
    hits = sum(bool(note["hit"]) for note in notes)
    return round(hits / max(len(notes), 1), 3)


def rebuild_ms(notes: list[dict[str, Any]], rebuilds: list[dict[str, Any]]) -> float:
    """How much longer a micro-batch takes if the engine has to be rebuilt.

    >>> rebuild_ms([{"hit": True, "ms": 5.0}], [{"rebuilt": True, "ms": 905.0}])
    900.0
    """
    usual: list[float] = [note["ms"] for note in notes if note["hit"]]
    lost: list[float] = [note["ms"] for note in rebuilds if note["rebuilt"]]
    if not usual or not lost:
        return 0.0
    return round(statistics.median(lost) - statistics.median(usual), 1)


def check_agreement(results: Sequence[PipelineResult]) -> None:
    """Raise unless both pipelines with this answer found the same number of matches."""
    found = {result.name: result.matches for result in results}
    check_same({name: found[name] for name in ("graphtide", "reevaluate")}, "matches")


# ---- reporting -----------------------------------------------------------------------------------


def report(results: Sequence[PipelineResult]) -> Report:
    """A column for each pipeline, with ratios of graphtide to identity."""
    by_name = {result.name: result for result in results}
    ours = by_name["graphtide"]

    def row(label: str, value: Callable[[PipelineResult], float], aim: str = "") -> dict[str, Cell]:
        values: dict[str, Cell] = {name: value(by_name[name]) for name in PIPELINES}
        ratio = value(ours) / value(by_name["identity"])
        return {"": label, **values, "ratio": ratio, "aim": aim}

    rows = [
        row("in bulk, rows/s", lambda result: result.rows_per_s, "≥ 0.7"),
        row(f"CPU s for {BULK_ROWS:,} rows", lambda result: result.cpu_s_bulk),
        row("small batch, median ms", lambda result: result.batch_ms_median_small, "≤ 1.3"),
        row("small batch, CPU ms", lambda result: result.cpu_ms_small),
        *(
            row(f"small batch at {int(size):,} edges, ms", partial(_ms_at, size))
            for size in ours.batch_ms_by_graph_size
        ),
        row("largest graph / smallest", growth, "≤ 1.2"),
    ]
    times = by_name["ten"].cpu_s_bulk / ours.cpu_s_bulk
    notes = [
        f"ten queries / one, CPU in bulk: {times:.2f} (aim: ≤ 2.5)",
        f"engine in cache: {ours.cache_hit_ratio:.1%}; rebuilt in {ours.rebuild_ms:,.0f} ms",
    ]
    return Report([Table(f"RouteSensor on Spark, {ours.changes:,} changes", rows)], notes=notes)


def _ms_at(size: str, result: PipelineResult) -> float:
    return result.batch_ms_by_graph_size[size]


def growth(result: PipelineResult) -> float:
    """Cost of a small batch in the largest graph, relative to the smallest."""
    by_size = list(result.batch_ms_by_graph_size.values())
    return round(by_size[-1] / by_size[0], 2)


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=PipelineTask,
    result=PipelineResult,
    tasks=make_tasks,
    small={"edges": 1000, "batches": 2, "master": "local[2]"},
    measure=measure,
    report=report,
    warm_up=lambda _: [],
    check=check_agreement,
    garbage_collection=True,
)
