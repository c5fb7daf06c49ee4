"""Run workloads: each in its own process, one after the other, so that memory does not add up."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from graphtide.bench.train.workload import Workload
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.bench.train.nodes import NodeFigures


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one query. Queries that ran together share their times and memory."""

    scenario: str
    size: int
    query: str
    strategy: str
    plan: str
    triples: int
    matches: list[int]
    read_ms: float
    check_ms: float
    transform_ms: list[float]
    recheck_ms: list[float]
    rss_mb: float
    tuples_stored: int
    nodes: list[NodeFigures]


def run_workloads(
    workloads: Sequence[Workload],
    *,
    progress: Callable[[str], None] = lambda _: None,
    measure: Callable[[Workload], dict[str, Any]] | None = None,
) -> list[Result]:
    """Measure workloads; `progress` hears which one is next. One result for each query.

    Before that, a small one of each strategy leaves compiled code on disk: compiling takes memory.
    """
    results: list[Result] = []
    for strategy in dict.fromkeys(workload.strategy for workload in workloads):
        progress(f"compiling what {strategy} needs")
        rounds = min(workloads[0].rounds, 1)
        (measure or measure_apart)(
            Workload(workloads[0].scenario, 1, strategy=strategy, rounds=rounds)
        )
    for number, workload in enumerate(workloads, start=1):
        progress(f"{number} of {len(workloads)}: {workload}")
        results += to_results(workload, (measure or measure_apart)(workload))
    return results


def measure_apart(workload: Workload) -> dict[str, Any]:
    """Measure a workload in a fresh process."""
    asked = json.dumps(asdict(workload))
    command = [sys.executable, "-P", "-m", "graphtide.bench.train.worker", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.strip() and line[0] != " "]
        last = (told or [f"exit code {done.returncode}"])[-1]
        raise GraphtideError(
            f"the measurement ({workload}) failed: {last}",
            hint="a smaller size shows whether memory is the problem",
        )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def to_results(workload: Workload, figures: dict[str, Any]) -> list[Result]:
    """Figures of a run as one result for each of its queries."""
    shared = ("triples", "read_ms", "check_ms", "transform_ms", "recheck_ms", "rss_mb")
    return [
        Result(
            scenario=workload.scenario,
            size=workload.size,
            query=query,
            strategy=workload.way,
            plan=workload.plan,
            matches=matches,
            tuples_stored=figures["tuples_stored"][query],
            nodes=figures["nodes"].get(query, []),
            **{key: figures[key] for key in shared},
        )
        for query, matches in figures["matches"].items()
    ]
