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

from benchmarks.harness import Benchmark, peak_rss_mb
from benchmarks.report import Cell, Report, Table
from benchmarks.route_sensor import MIN_EDGES, QUERY, make_workload
from benchmarks.route_sensor_engine import PREDICATES, encode_pieces, node_texts
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


def make_tasks(edges: int = 1_300_000, seed: int = 0) -> list[MemoryTask]:
    """Each way to load about so many edges."""
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


def report(results: Sequence[MemoryResult]) -> Report:
    """A line for each way to load."""
    rows: list[dict[str, Cell]] = [
        {
            "load": result.load,
            "quads": result.quads,
            "bytes per quad": result.quad_bytes,
            "resident": result.resident_quad_bytes,
            "terms": result.terms,
            "bytes per term": result.term_bytes,
            "resident per term": result.resident_term_bytes,
            "peak MB": round(result.peak_mb),
        }
        for result in results
    ]
    return Report([Table("Bytes per quad and per term", rows)])


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=MemoryTask,
    result=MemoryResult,
    tasks=make_tasks,
    small={"edges": 4000},
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, edges=MIN_EDGES)],
    prepare=lambda tasks: [replace(task, edges=MIN_EDGES) for task in tasks],
)
