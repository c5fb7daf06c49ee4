"""The experiment of "Incremental graph queries" (section 6) as its authors ran it: Figures 10, 11.

Every layout of both queries, on models of growing size, in the scenario repair: several runs, each
in a process of its own, of many rounds each. A run over its limit of time or memory is terminated,
and the layout is not tried on larger models. Other than in the paper, compiled code is loaded
before a run is timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.harness import (
    BenchmarkError,
    LimitExceededError,
    Progress,
    RunLimits,
    check_names,
    silent,
)
from benchmarks.report import Cell, Panel, Plot, Point, Report, Table, group_points
from benchmarks.train import benchmark as train
from benchmarks.train.plans import LAYOUTS
from benchmarks.train.transformations import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SIZES: Final = tuple(2**n for n in range(11))
REPEATS: Final = 10
ROUNDS: Final = 100
MINUTES: Final = 15.0
GIGABYTES: Final = 12
"""The paper's: ten runs, a hundred rounds, 15 minutes, 12 GB. It does not name its sizes."""

FIGURES: Final = {"RouteSensor": "Figure 10", "SemaphoreNeighbor": "Figure 11"}


@dataclass(frozen=True, slots=True)
class LayoutResult:
    """What the runs of a layout on a model gave: for each phase, one time in ms per run.

    A run has one time for its read and its check; of its rounds, the medians count. `lost` is why
    the runs were discarded.
    """

    query: str
    plan: str
    size: int
    triples: int = 0
    matches: tuple[int, int] = (0, 0)
    tuples_stored: int = 0
    rss_mb: float = 0.0
    phases: dict[str, list[float]] = field(default_factory=dict)
    lost: str | None = None

    def __str__(self) -> str:
        return f"{self.query} {self.plan}, size {self.size:,}"


@dataclass(frozen=True, slots=True)
class LayoutTask:
    """A layout on a model: the rounds of each run, the number of runs, and what each may take."""

    query: str
    plan: str
    size: int
    rounds: int
    select: str
    runs: int
    limits: RunLimits

    def __str__(self) -> str:
        return f"{self.query} {self.plan}, size {self.size:,}, {self.runs} runs"

    @property
    def one_run(self) -> train.TrainTask:
        """One run as a task of the Train Benchmark."""
        return train.TrainTask(
            "repair", self.size, (self.query,), "rete", self.plan, self.rounds, self.select
        )


def make_tasks(
    sizes: Sequence[int] = SIZES,
    queries: Sequence[str] = ("all",),
    rounds: int = ROUNDS,
    runs: int = REPEATS,
    minutes: float = MINUTES,
    gigabytes: int = GIGABYTES,
    select: str = str(DEFAULTS["repair"].selection),
) -> list[LayoutTask]:
    """One task for each size and layout of the paper's two queries.

    A run is terminated after so many minutes, or if it needs more memory than so many gigabytes.
    What a round repairs the paper does not say: by default what it is in the public benchmark.

    >>> [(task.query, task.plan) for task in make_tasks([1], ["RouteSensor"])]
    [('RouteSensor', 'A'), ('RouteSensor', 'B'), ('RouteSensor', 'C')]
    >>> len(make_tasks([1, 2])), make_tasks([1])[0].rounds
    (18, 100)
    """
    limits = RunLimits(60 * minutes, gigabytes * 10**9)
    return [
        LayoutTask(query, plan, size, rounds, select, runs, limits)
        for size in sizes
        for query in check_names(queries, list(LAYOUTS), "--queries")
        for plan in LAYOUTS[query]
    ]


@dataclass(frozen=True, slots=True)
class PaperExperiment:
    """As a `Benchmark`, whose tasks are run several times, within limits.

    `measure` makes one run, by default in a process of its own.
    """

    measure: Callable[[train.TrainTask, RunLimits], train.TrainResult] = (
        train.BENCHMARK.measure_apart
    )
    tasks: Callable[..., list[LayoutTask]] = make_tasks
    small: Mapping[str, object] = field(
        default_factory=lambda: {
            "sizes": (1,),
            "queries": ("RouteSensor",),
            "rounds": 3,
            "runs": 2,
            "select": "fixed:2",
        }
    )

    def run(self, tasks: Sequence[LayoutTask], progress: Progress = silent) -> list[LayoutResult]:
        """Run every task several times, unless the layout was lost on a smaller model."""
        results: list[LayoutResult] = []
        lost: set[tuple[str, str]] = set()
        for number, task in enumerate(sorted(tasks, key=lambda task: task.size), start=1):
            layout = task.query, task.plan
            if layout in lost:
                continue
            progress(f"{number} of {len(tasks)}: {task}")
            result = self._repeated(task)
            results.append(result)
            if result.lost is not None:
                lost.add(layout)
        return results

    def _repeated(self, task: LayoutTask) -> LayoutResult:
        empty = LayoutResult(task.query, task.plan, task.size)
        try:
            runs = [
                query
                for _ in range(task.runs)
                for query in self.measure(task.one_run, task.limits).queries()
            ]
        except LimitExceededError as error:
            return replace(empty, lost=error.limit)
        traces = {tuple(run.matches) for run in runs}
        if len(traces) > 1:
            raise BenchmarkError(f"{task}: two runs found different matches: this is a bug")
        return replace(
            empty,
            triples=runs[0].triples,
            matches=(runs[0].matches[0], runs[0].matches[-1]),
            tuples_stored=runs[0].tuples_stored,
            rss_mb=median(run.rss_mb for run in runs),
            phases={
                name: [median(times(run)) for run in runs if times(run)]
                for name, times in train.PHASES.items()
            },
        )

    def report(self, results: Sequence[LayoutResult]) -> Report:
        """A table for each query, with median and range of the runs, and its figure."""
        queries = dict.fromkeys(result.query for result in results)
        tables = [
            Table(
                f"{FIGURES[query]}, {query}: median (minimum to maximum) of the runs in ms",
                [_row(result) for result in results if result.query == query],
            )
            for query in queries
        ]
        notes = [
            f"{result}: {result.lost}; larger models were not tried"
            for result in results
            if result.lost is not None
        ]
        return Report(tables, make_plot(results), notes)


# ---- reporting -----------------------------------------------------------------------------------


def spread(times: Sequence[float]) -> str:
    """Median and range of some times.

    >>> spread([3.0, 1.0, 2.0]), spread([])
    ('2.00 (1.00 to 3.00)', '')
    """
    return f"{median(times):,.2f} ({min(times):,.2f} to {max(times):,.2f})" if times else ""


def _row(result: LayoutResult) -> dict[str, Cell]:
    return {
        "size": result.size,
        "triples": result.triples,
        "layout": result.plan,
        "matches": result.lost or f"{result.matches[0]} → {result.matches[1]}",
        **{name: spread(result.phases.get(name, [])) for name in train.PHASES},
        "tuples": result.tuples_stored,
        "MB": round(result.rss_mb),
    }


def make_plot(results: Sequence[LayoutResult]) -> Plot | None:
    """A row for each query: its phases over the number of triples, a line for each layout."""
    complete = [result for result in results if result.lost is None]
    if not complete:
        return None
    queries = dict.fromkeys(result.query for result in complete)
    rows = [
        [_panel([r for r in complete if r.query == query], name) for name in train.PHASES]
        for query in queries
    ]
    return Plot("Layouts of two queries, scenario repair", rows)


def _panel(results: Sequence[LayoutResult], phase: str) -> Panel:
    def points(which: Callable[[list[float]], float]) -> dict[str, list[Point]]:
        return group_points(
            (result.plan, result.triples, which(times))
            for result in results
            if (times := result.phases[phase])
        )

    title = f"{FIGURES[results[0].query]}, {results[0].query}: {phase}"
    low, high = points(min), points(max)
    ranges = {
        plan: [(x, y, high[plan][at][1]) for at, (x, y) in enumerate(line)]
        for plan, line in low.items()
    }
    return Panel(title, points(median), "triples", "ms", ranges=ranges)


BENCHMARK: Final = PaperExperiment()
