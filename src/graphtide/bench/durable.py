"""What a store costs: writing RouteSensor to it beside memory only, and opening it again.

Writing is timed until everything is on disk. Opening is timed beside loading the same quads from an
Arrow file into memory; both with ten standing queries.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from graphtide.bench import report as reports
from graphtide.bench import route_sensor
from graphtide.bench.harness import Benchmark, peak_rss_mb, timed
from graphtide.bench.route_sensor_engine import PREDICATES, change_table
from graphtide.graph import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

WAYS: Final = ("ids", "strings", "calls")
MODES: Final = ("memory", "none", "batch", "transaction")
QUERIES: Final = 10
WARM_UP_EDGES: Final = 2000


@dataclass(frozen=True, slots=True)
class DurableTask:
    """A part, "write" or "open"; how edges come, and how durable they are; how many; the seed."""

    part: str
    way: str
    mode: str
    edges: int
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DurableResult:
    """Seconds of a part, bytes on disk, peak memory, and rows of the answer."""

    part: str
    way: str
    mode: str
    edges: int
    seconds: float
    bytes: int
    peak_mb: float
    rows: int


def measure(task: DurableTask) -> DurableResult:
    """Measure a task in a directory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return (_write if task.part == "write" else _open)(task, Path(folder))


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
        lists = (column.tolist() for column in (workload.s, workload.relation, workload.o))
        texts = [(nodes[s], PREDICATES[p], nodes[o]) for s, p, o in zip(*lists, strict=True)]
        with timed() as watch:
            for edge in texts:
                graph.insert(*edge)
            query.delta()
            _wait(graph, task)
    rows = query.count()
    graph.close()
    return _result(task, watch.seconds, folder, rows)


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


def report(results: Sequence[DurableResult]) -> reports.BenchReport:
    """Seconds beside those of memory only."""
    memory = {(r.part, r.way): r.seconds for r in results if r.mode == "memory"}
    columns: Sequence[reports.TableColumn[DurableResult]] = [
        reports.TableColumn("part", lambda r: r.part, left=True),
        reports.TableColumn("edges come as", lambda r: r.way, left=True),
        reports.TableColumn("durability", lambda r: r.mode, left=True),
        reports.TableColumn("edges", lambda r: reports.number(r.edges)),
        reports.TableColumn("seconds", lambda r: f"{r.seconds:.2f}"),
        reports.TableColumn(
            "of memory only", lambda r: f"{r.seconds / memory[r.part, r.way]:.2f}×"
        ),
        reports.TableColumn("MB on disk", lambda r: f"{r.bytes / 1e6:.1f}"),
        reports.TableColumn("peak MB", lambda r: reports.number(r.peak_mb)),
    ]
    table = reports.make_table("What a store costs", columns, results)
    return reports.BenchReport(reports.to_objects(results), [table], None, [])


def check_rows(results: Sequence[DurableResult]) -> None:
    """All ways and modes must lead to the same answers."""
    for part in ("write", "open"):
        rows = {r.rows for r in results if r.part == part}
        assert len(rows) <= 1, rows  # noqa: S101 - a measurement of something else is none


def make_tasks(edges: int, quads: int, seed: int) -> list[DurableTask]:
    """Writing in each way and mode, and opening; single calls are not fsynced one by one."""
    tasks = [
        DurableTask("write", way, mode, edges, seed)
        for way in WAYS
        for mode in MODES
        if (way, mode) != ("calls", "transaction")
    ]
    return tasks + [DurableTask("open", "strings", m, quads, seed) for m in ("memory", "batch")]


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=DurableTask,
    result=DurableResult,
    measure=measure,
    report=report,
    warm_up=lambda task: DurableTask(task.part, task.way, task.mode, WARM_UP_EDGES, task.seed),
    check=check_rows,
)
