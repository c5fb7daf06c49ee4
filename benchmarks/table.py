"""One run over every kind of change: what each costs through the public API, beside its aim.

A job is one workload; it has one or more figures. Nothing here imports the engine: processes that
measure peers must not load it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks import route_sensor, rules
from benchmarks.harness import Benchmark, check_names, check_same
from benchmarks.report import Cell, Report, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

PEERS: Final = ("RouteSensor, clipspy", "RouteSensor, DuckDB", "AlarmConfirmation, clipspy")
"""Jobs of other engines, on the same input."""

WARM: Final = 20
"""By how much the warm-up divides them: enough events are left to grow and sweep every table."""

WARM_IN_MEMORY: Final = 400
"""The same where memory is measured."""


class Line(NamedTuple):
    """A figure of a job, in a unit, and what it should be: at least, or at most if `least`."""

    job: str
    figure: str
    unit: str
    aim: float | None = None
    least: bool = False

    def is_met(self, value: float) -> bool | None:
        """Whether a value meets the aim; None if there is none."""
        if self.aim is None:
            return None
        return value <= self.aim if self.least else value >= self.aim


SIZES: Final = {
    "RouteSensor, ids": 1_300_000,
    "RouteSensor, one transaction": 1_300_000,
    "RouteSensor, texts": 1_300_000,
    "RouteSensor, calls": 1_300_000,
    "RouteSensor, clipspy": 1_300_000,
    "RouteSensor, DuckDB": 1_300_000,
    "groups": 1_000_000,
    "reach": 100_000,
    "sequence, arrays": 1_000_000,
    "sequence, calls": 200_000,
    "sequence in a program": 1_000_000,
    "sequence beside CALL": 1_000_000,
    "sequence with CALL": 200_000,
    "NO EVENT": 200_000,
    "absence": 400_000,
    "rules that feed each other": 200_000,
    "waiting tokens": 1_000_000,
    "AlarmConfirmation, calls": 300_000,
    "AlarmConfirmation, clipspy": 300_000,
    "window, calls": 200_000,
    "window, each result read": 20_000,
    "start": 1,
}
"""The jobs in order, and the number of their edges, rows or events."""

LINES: Final = (
    Line("RouteSensor, ids", "load", "/s", 1.5e6),
    Line("RouteSensor, ids", "update, median", "µs", 4, least=True),
    Line("RouteSensor, ids", "update, mean", "µs", 6, least=True),
    Line("RouteSensor, ids", "update, p99", "µs", 20, least=True),
    Line("RouteSensor, ids", "peak memory", "MB", 400, least=True),
    Line("RouteSensor, one transaction", "load", "/s", 3e6),
    Line("RouteSensor, texts", "load", "/s", 1e6),
    Line("RouteSensor, calls", "load", "/s", 4e5),
    Line("RouteSensor, clipspy", "load", "/s"),
    Line("RouteSensor, clipspy", "update, median", "µs"),
    Line("RouteSensor, DuckDB", "update, median", "µs"),
    Line("groups", "load", "/s", 3e6),
    Line("groups", "update, median", "µs", 5, least=True),
    Line("groups", "peak memory", "MB", 400, least=True),
    Line("reach", "load", "s", 0.15, least=True),
    Line("reach", "update, mean", "µs", 100, least=True),
    Line("reach", "update, p99", "µs", 900, least=True),
    Line("sequence, arrays", "events", "/s", 20e6),
    Line("sequence, calls", "events", "/s", 3e5),
    Line("sequence in a program", "events", "/s", 5e6),
    Line("sequence beside CALL", "events", "/s", 2e6),
    Line("sequence with CALL", "events", "/s"),
    Line("NO EVENT", "events", "/s", 2e6),
    Line("absence", "events", "/s", 2e6),
    Line("rules that feed each other", "events", "/s"),
    Line("waiting tokens", "events", "/s"),
    Line("waiting tokens", "update, median", "µs"),
    Line("waiting tokens", "update, p99", "µs"),
    Line("waiting tokens", "peak memory", "MB"),
    Line("AlarmConfirmation, calls", "events", "/s", 2e5),
    Line("AlarmConfirmation, clipspy", "events", "/s"),
    Line("window, calls", "events", "/s", 1.5e5),
    Line("window, each result read", "events", "/s"),
    Line("start", "first answer", "s", 0.7, least=True),
    Line("start", "processor time", "s"),
)

MEMORY_JOBS: Final = frozenset(line.job for line in LINES if line.unit == "MB")
"""Jobs whose code is compiled in another process first, because compiling takes memory."""


@dataclass(frozen=True, slots=True)
class TableTask:
    """A job, and its size."""

    job: str
    size: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.job}: {self.size:,}"


@dataclass(frozen=True, slots=True)
class TableResult:
    """The figures of a job by name; `load` is the machine's when it began.

    `busy` is processor time divided by elapsed time: below 1, the job had to wait for a core.
    """

    job: str
    size: int
    figures: dict[str, float]
    busy: float
    load: float = field(default_factory=lambda: round(os.getloadavg()[0], 2))


def make_tasks(
    jobs: Sequence[str] = ("all",), divisor: int = 1, seed: int = 0, *, peers: bool = True
) -> list[TableTask]:
    """A task for each job, with sizes divided by the divisor; without `peers`, only our own."""
    return [
        TableTask(job, max(1, SIZES[job] // divisor), seed)
        for job in check_names(jobs, list(SIZES), "--jobs")
        if peers or job not in PEERS
    ]


def measure(task: TableTask) -> TableResult:
    """Run a job."""
    name, _, way = task.job.partition(", ")
    used, begin = process_time(), perf_counter()
    match name, way:
        case "RouteSensor", _ if way != "one transaction":
            engine = {"texts": "strings", "DuckDB": "duckdb"}.get(way, way)
            figures = _route_sensor(task, engine)
        case "AlarmConfirmation", _:
            alarms = rules.measure(rules.RulesTask(way, 10_000, task.size, task.seed))
            figures = {"events": alarms.events_per_s}
        case _:
            from benchmarks import table_engine

            return TableResult(
                task.job, task.size, *table_engine.JOBS[task.job](task.size, task.seed)
            )
    busy = (process_time() - used) / (perf_counter() - begin)
    return TableResult(task.job, task.size, figures, round(busy, 2))


def _route_sensor(task: TableTask, engine: str) -> dict[str, float]:
    edges = max(task.size, route_sensor.MIN_EDGES)
    found = route_sensor.measure(route_sensor.RouteSensorTask(engine, edges, task.seed))
    figures = {
        "load": found.load_per_s,
        "update, median": found.update_us_median,
        "update, mean": found.update_us_mean,
        "update, p99": found.update_us_p99,
        "peak memory": found.rss_mb,
        "matches": found.matches,
    }
    return {name: float(value) for name, value in figures.items() if value is not None}


def check_agreement(results: Sequence[TableResult]) -> None:
    """Raise unless all jobs of RouteSensor, which have the same edges, found as many matches."""
    own = [each for each in results if "matches" in each.figures]
    check_same({each.job: each.figures["matches"] for each in own}, "matches of RouteSensor")


def report(results: Sequence[TableResult]) -> Report:
    """A line for each figure, with its aim."""
    found = {result.job: result for result in results}
    rows: list[dict[str, Cell]] = []
    for line in LINES:
        result = found.get(line.job)
        if result is not None and line.figure in result.figures:
            value = result.figures[line.figure]
            rows.append(
                {
                    "job": line.job,
                    "figure": line.figure,
                    "value": value,
                    "unit": line.unit,
                    "aim": line.aim,
                    "met": line.is_met(value),
                    "busy": result.busy,
                    "load": result.load,
                }
            )
    return Report([Table("Every kind of change", rows)])


def _small(task: TableTask) -> TableTask:
    """A small task of the same job, which loads and compiles what it needs."""
    parts = WARM_IN_MEMORY if task.job in MEMORY_JOBS else WARM
    return replace(task, size=max(1, task.size // parts))


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=TableTask,
    result=TableResult,
    tasks=make_tasks,
    small={"divisor": 2000},
    measure=measure,
    report=report,
    warm_up=lambda task: [] if task.job == "start" else [_small(task)],
    prepare=lambda tasks: [_small(task) for task in tasks if task.job in MEMORY_JOBS],
    check=check_agreement,
    garbage_collection=True,
)
