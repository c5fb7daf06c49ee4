"""Bytes of a quad and of a term: as the graph counts them, and by the memory of the process.

RouteSensor's edges are loaded as ids, in one transaction or in one for each, beside the query or
without it. Resident memory is noted before the terms, after them, and after the edges.
"""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.harness import Benchmark, peak_rss_mb
from graphtide.bench.report import BenchReport, TableColumn, make_table, to_objects
from graphtide.bench.route_sensor import MIN_EDGES, QUERY, make_workload
from graphtide.bench.route_sensor_engine import PREDICATES, encode_pieces, node_texts
from graphtide.graph import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

LOADS: Final = "no query", "one transaction", "a transaction each"


@dataclass(frozen=True, slots=True)
class MemoryTask:
    """A way to load so many edges."""

    load: str
    edges: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.load}: {self.edges:,}"


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Bytes per quad and per term; `resident` ones are the growth of the process."""

    load: str
    quads: int
    terms: int
    quad_bytes: float
    resident_quad_bytes: float
    term_bytes: float
    resident_term_bytes: float
    peak_mb: float


def make_tasks(edges: int, seed: int) -> list[MemoryTask]:
    """Each way to load.

    >>> len(make_tasks(1000, 0))
    3
    """
    return [MemoryTask(load, edges, seed) for load in LOADS]


def measure(task: MemoryTask) -> MemoryResult:
    """Encode the terms, load the edges, and divide."""
    workload = make_workload(task.edges, task.seed)
    graph = LiveGraph()
    if task.load != "no query":
        graph.watch(QUERY, history=0)
    start = resident_bytes()
    nodes = encode_pieces(graph, node_texts(workload))
    predicates = graph.terms.encode_column(PREDICATES)
    s, p, o = nodes[workload.s], predicates[workload.relation], nodes[workload.o]
    encoded = resident_bytes() - s.nbytes - p.nbytes - o.nbytes
    each = task.load == "a transaction each"
    graph.apply_ids(s, p, o, tx=None if each else np.zeros(len(s), np.int64))
    stats = graph.stats()
    del s, p, o
    loaded = resident_bytes()
    return MemoryResult(
        task.load, stats.quads, stats.terms,
        stats.bytes_per_quad, round((loaded - encoded) / stats.quads, 1),
        stats.bytes_per_term, round((encoded - start) / stats.terms, 1), peak_rss_mb(),
    )  # fmt: skip


def resident_bytes() -> int:
    """Memory of this process now; 0 where the system does not tell.

    >>> resident_bytes() >= 0
    True
    """
    gc.collect()
    status = Path("/proc/self/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 if found else 0


COLUMNS: Final[Sequence[TableColumn[MemoryResult]]] = (
    TableColumn("load", lambda result: result.load, left=True),
    TableColumn("quads", lambda result: f"{result.quads:,}"),
    TableColumn("per quad", lambda result: f"{result.quad_bytes:.1f}"),
    TableColumn("resident", lambda result: f"{result.resident_quad_bytes:.1f}"),
    TableColumn("terms", lambda result: f"{result.terms:,}"),
    TableColumn("per term", lambda result: f"{result.term_bytes:.1f}"),
    TableColumn("resident", lambda result: f"{result.resident_term_bytes:.1f}"),
    TableColumn("peak MB", lambda result: f"{result.peak_mb:,.0f}"),
)


def report(results: Sequence[MemoryResult]) -> BenchReport:
    """A line for each way to load."""
    table = make_table("Bytes per quad and per term", COLUMNS, results)
    return BenchReport(to_objects(results), [table])


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=MemoryTask,
    result=MemoryResult,
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, edges=MIN_EDGES)],
    prepare=lambda tasks: [replace(task, edges=MIN_EDGES) for task in tasks],
)
