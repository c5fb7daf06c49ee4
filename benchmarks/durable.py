"""What a store costs: writing RouteSensor to it beside memory only, and opening it again.

Writing is timed until everything is on disk. Opening is timed beside loading the same quads from an
Arrow file into memory; both with ten standing queries. The age on disk is the time from the return
of a single insert until it is on disk, at several rates.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from benchmarks import route_sensor
from benchmarks.harness import Benchmark, check_same, peak_rss_mb, timed
from benchmarks.report import Cell, Report, Table
from benchmarks.route_sensor_engine import PREDICATES, change_table
from graphtide.durable.chunks import headers_of
from graphtide.graph import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

WAYS: Final = ("ids", "strings", "calls")
MODES: Final = ("memory", "none", "batch", "transaction")
QUERIES: Final = 10
WARM_UP_EDGES: Final = 2000
RATES: Final = (100, 1_000, 20_000, 0)
"""Single inserts a second; 0 for as many as there can be."""
AGE_SECONDS: Final = 3


@dataclass(frozen=True, slots=True)
class DurableTask:
    """A part, "write", "open" or "age"; how edges come; how durable they are; how many; the seed.

    For "age", they come as single inserts, so many a second as `way` says.
    """

    part: str
    way: str
    mode: str
    edges: int
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DurableResult:
    """Seconds of a part, bytes on disk, peak memory, and rows of the answer; ages on disk."""

    part: str
    way: str
    mode: str
    edges: int
    seconds: float
    bytes: int
    peak_mb: float
    rows: int
    median_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None


def measure(task: DurableTask) -> DurableResult:
    """Measure a task in a directory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return {"write": _write, "open": _open, "age": _age}[task.part](task, Path(folder))


def _write(task: DurableTask, folder: Path) -> DurableResult:
    workload = route_sensor.make_workload(task.edges, task.seed)
    graph = _graph(task, folder)
    query = graph.watch(route_sensor.QUERY)
    nodes = route_sensor.texts(workload.names())
    if task.way == "ids":
        ids = graph.terms.encode_column(nodes)
        predicates = graph.terms.encode_column(PREDICATES)
        columns = ids[workload.s], predicates[workload.relation], ids[workload.o]
        with timed() as watch:
            graph.apply_ids(*columns)
            _wait(graph, task)
    elif task.way == "strings":
        table = change_table(workload)
        with timed() as watch:
            graph.apply(table)
            _wait(graph, task)
    else:
        texts = _texts(workload)
        with timed() as watch:
            for edge in texts:
                graph.insert(*edge)
            query.delta()
            _wait(graph, task)
    rows = query.count()
    graph.close()
    return _result(task, watch.seconds, folder, rows)


def _age(task: DurableTask, folder: Path) -> DurableResult:
    """Insert edges one by one, at a rate; how long after its return each is on disk."""
    edges = _texts(route_sensor.make_workload(task.edges, task.seed))
    graph = _graph(task, folder)
    query = graph.watch(route_sensor.QUERY)
    graph.flush()
    journal, written = graph.store.store.journal, []
    append = journal.append

    def noting(chunks: Any, calls: Any, settled: int | None = None) -> None:  # noqa: ANN401
        append(chunks, calls, settled)
        written.append((time.perf_counter(), chunks))

    journal.append = noting  # type: ignore[method-assign] # of this journal alone
    returned, rate = np.empty(len(edges)), int(task.way)
    with timed() as watch:
        begin = time.perf_counter()
        for number, edge in enumerate(edges):
            while rate and (early := begin + number / rate - time.perf_counter()) > 0:
                time.sleep(early)
            graph.insert(*edge)
            returned[number] = time.perf_counter()
        graph.flush()
    rows = query.count()
    graph.close()
    sizes = [
        sum(each["rows"] for row in batch for each in headers_of(row[-1])) for _, batch in written
    ]
    ages = (np.repeat([moment for moment, _ in written], sizes) - returned) * 1000
    median, p99, longest = (float(np.percentile(ages, q)) for q in (50, 99, 100))
    result = _result(task, watch.seconds, folder, rows)
    return replace(result, median_ms=median, p99_ms=p99, max_ms=longest)


def _texts(workload: route_sensor.EdgeWorkload) -> list[tuple[str, str, str]]:
    nodes = route_sensor.texts(workload.names())
    lists = (column.tolist() for column in (workload.s, workload.relation, workload.o))
    return [(nodes[s], PREDICATES[p], nodes[o]) for s, p, o in zip(*lists, strict=True)]


def _open(task: DurableTask, folder: Path) -> DurableResult:
    table = change_table(route_sensor.make_workload(task.edges, task.seed))
    if task.mode == "memory":
        path = folder / "edges.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        del table
        with timed() as watch:
            graph = LiveGraph()
            graph.apply(path)
            rows = _watch_all(graph)
        return _result(task, watch.seconds, folder, rows)
    with LiveGraph.open(folder / "store", durability="none") as graph:
        graph.apply(table)
        _watch_all(graph)
    del table, graph
    with timed() as watch:
        graph = LiveGraph.open(folder / "store")
        rows = sum(query.count() for query in graph.queries)
    graph.close()
    return _result(task, watch.seconds, folder, rows)


def _watch_all(graph: LiveGraph) -> int:
    """Register the queries of `open`; how many rows they have."""
    graph.watch(route_sensor.QUERY)
    for number in range(1, QUERIES):
        predicate = PREDICATES[number % len(PREDICATES)]
        graph.watch(f"SELECT ?a (COUNT(?b) AS ?n{number}) {{ ?a {predicate} ?b }} GROUP BY ?a")
    return sum(query.count() for query in graph.queries)


def _graph(task: DurableTask, folder: Path) -> LiveGraph:
    if task.mode == "memory":
        return LiveGraph()
    return LiveGraph.open(folder / "store", durability=task.mode)  # type: ignore[arg-type] # a mode


def _wait(graph: LiveGraph, task: DurableTask) -> None:
    if task.mode != "memory":
        graph.flush()


def _result(task: DurableTask, seconds: float, folder: Path, rows: int) -> DurableResult:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return DurableResult(
        task.part, task.way, task.mode, task.edges, seconds, size, peak_rss_mb(), rows
    )


# --- report ---


def report(results: Sequence[DurableResult]) -> Report:
    """Seconds beside those of memory only; and ages on disk."""
    memory = {(r.part, r.way): r.seconds for r in results if r.mode == "memory"}
    costs: list[dict[str, Cell]] = [
        {
            "part": r.part,
            "edges come as": r.way,
            "durability": r.mode,
            "edges": r.edges,
            "seconds": r.seconds,
            "× memory only": r.seconds / memory[r.part, r.way],
            "MB on disk": r.bytes / 1e6,
            "peak MB": round(r.peak_mb),
        }
        for r in results
        if r.part != "age"
    ]
    ages: list[dict[str, Cell]] = [
        {
            "inserts a second": round(r.edges / r.seconds),
            "inserts": r.edges,
            "median ms": r.median_ms,
            "99 % ms": r.p99_ms,
            "longest ms": r.max_ms,
        }
        for r in results
        if r.part == "age"
    ]
    return Report(
        [Table("What a store costs", costs), Table("From the return of an insert to disk", ages)]
    )


def check_rows(results: Sequence[DurableResult]) -> None:
    """All ways and modes must lead to the same answers."""
    for part in ("write", "open"):
        rows = {f"{r.way}, {r.mode}": r.rows for r in results if r.part == part}
        check_same(rows, f"rows of {part}")


def make_tasks(edges: int = 1_300_000, quads: int = 1_300_000, seed: int = 0) -> list[DurableTask]:
    """Writing so many edges in each way and mode, and opening a store of so many quads.

    Single calls are not fsynced one by one.
    """
    tasks = [
        DurableTask("write", way, mode, edges, seed)
        for way in WAYS
        for mode in MODES
        if (way, mode) != ("calls", "transaction")
    ]
    tasks += [DurableTask("open", "strings", m, quads, seed) for m in ("memory", "batch")]
    return tasks + [
        DurableTask("age", str(rate), "batch", min(edges, AGE_SECONDS * (rate or 100_000)), seed)
        for rate in RATES
    ]


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=DurableTask,
    result=DurableResult,
    tasks=make_tasks,
    small={"edges": 600, "quads": 600},
    measure=measure,
    report=report,
    warm_up=lambda task: [DurableTask(task.part, task.way, task.mode, WARM_UP_EDGES, task.seed)],
    check=check_rows,
)
