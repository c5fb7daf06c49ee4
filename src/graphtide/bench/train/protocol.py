"""The experiment of "Incremental graph queries" (section 6) as its authors ran it: Figures 10, 11.

Every layout of both queries, on models of growing size, in the scenario repair: several runs, each
in a process of its own, of many rounds each. A run over its limit of time or memory is terminated,
and the layout is not tried on larger models. Other than in the paper, compiled code is loaded
before a run is timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from graphtide.bench import report as tables
from graphtide.bench.harness import LimitExceededError, Progress, RunLimits, silent
from graphtide.bench.train import benchmark as train
from graphtide.bench.train.plans import LAYOUTS
from graphtide.bench.train.transformations import DEFAULTS
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SIZES: Final = tuple(2**n for n in range(11))
REPEATS: Final = 10
ROUNDS: Final = 100
LIMITS: Final = RunLimits(seconds=15 * 60, bytes=12 * 10**9)
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
class PaperExperiment:
    """How often each layout is run, and what a run may take; tasks are of one round of runs each.

    `measure` runs one task within limits, by default in a process of its own.
    """

    repeats: int = REPEATS
    limits: RunLimits = LIMITS
    measure: Callable[[train.TrainTask, RunLimits], train.TrainResult] = (
        train.BENCHMARK.measure_apart
    )

    def run(
        self, tasks: Sequence[train.TrainTask], progress: Progress = silent
    ) -> list[LayoutResult]:
        """Run every task several times, unless the layout was lost on a smaller model."""
        results: list[LayoutResult] = []
        lost: set[tuple[str, str]] = set()
        for number, task in enumerate(sorted(tasks, key=lambda task: task.size), start=1):
            layout = task.queries[0], task.plan
            if layout in lost:
                continue
            progress(f"{number} of {len(tasks)}, {self.repeats} times: {task}")
            result = self._repeated(task)
            results.append(result)
            if result.lost is not None:
                lost.add(layout)
        return results

    def _repeated(self, task: train.TrainTask) -> LayoutResult:
        empty = LayoutResult(task.queries[0], task.plan, task.size)
        try:
            runs = [
                query
                for _ in range(self.repeats)
                for query in self.measure(task, self.limits).queries()
            ]
        except LimitExceededError as error:
            return replace(empty, lost=error.limit)
        traces = {tuple(run.matches) for run in runs}
        if len(traces) > 1:
            raise GraphtideError(f"{task}: two runs found different matches: this is a bug")
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

    def report(self, results: Sequence[LayoutResult]) -> tables.BenchReport:
        """A table for each query, with median and range of the runs, and its figure."""
        queries = dict.fromkeys(result.query for result in results)
        title = "{}, {}: {} runs, median (minimum to maximum) in ms".format
        found = [
            tables.make_table(
                title(FIGURES[query], query, self.repeats),
                COLUMNS,
                [result for result in results if result.query == query],
            )
            for query in queries
        ]
        notes = [
            f"{result}: {result.lost}; larger models were not tried"
            for result in results
            if result.lost is not None
        ]
        return tables.BenchReport([_object(r) for r in results], found, make_plot(results), notes)


def make_tasks(
    sizes: Iterable[int] = SIZES,
    queries: Iterable[str] = ("all",),
    rounds: int | None = None,
    select: str | None = None,
) -> list[train.TrainTask]:
    """One task for each size and layout of the paper's two queries, or of those named.

    What a round repairs the paper does not say: by default what it is in the public benchmark.

    >>> [(task.queries[0], task.plan) for task in make_tasks([1], ["RouteSensor"])]
    [('RouteSensor', 'A'), ('RouteSensor', 'B'), ('RouteSensor', 'C')]
    >>> len(make_tasks([1, 2])), make_tasks([1])[0].rounds
    (18, 100)
    """
    names = list(queries)
    chosen = list(LAYOUTS) if names == ["all"] else names
    for name in chosen:
        if name not in LAYOUTS:
            raise GraphtideError(
                f"the paper has no layouts of {name!r}", hint=f"choose from {', '.join(LAYOUTS)}"
            )
    return [
        train.TrainTask(
            "repair",
            size,
            (query,),
            "rete",
            plan,
            ROUNDS if rounds is None else rounds,
            select or str(DEFAULTS["repair"].selection),
        )
        for size in sizes
        for query in chosen
        for plan in LAYOUTS[query]
    ]


# ---- reporting -----------------------------------------------------------------------------------


def spread(times: Sequence[float]) -> str:
    """Median and range of some times.

    >>> spread([3.0, 1.0, 2.0]), spread([]), spread([0.5])
    ('2.00 (1.00 to 3.00)', '-', '0.50')
    """
    middle = tables.median_text(times)
    low, high = map(tables.number, (min(times, default=None), max(times, default=None)))
    return middle if low == high else f"{middle} ({low} to {high})"


def _phase(name: str) -> tables.TableColumn[LayoutResult]:
    return tables.TableColumn(name, lambda result: spread(result.phases.get(name, [])))


COLUMNS: Final[Sequence[tables.TableColumn[LayoutResult]]] = (
    tables.TableColumn("size", lambda result: f"{result.size:,}"),
    tables.TableColumn("triples", lambda result: f"{result.triples:,}" if result.triples else ""),
    tables.TableColumn("layout", lambda result: result.plan, left=True),
    tables.TableColumn("matches", lambda r: r.lost or train.matches_text(r.matches)),
    *(_phase(name) for name in train.PHASES),
    tables.TableColumn("tuples", lambda result: f"{result.tuples_stored:,}"),
    tables.TableColumn("MB", lambda result: f"{result.rss_mb:,.0f}"),
)


def _object(result: LayoutResult) -> dict[str, Any]:
    named = {"query": result.query, "plan": result.plan, "size": result.size}
    if result.lost is not None:
        return {**named, "lost": result.lost}
    return {
        **named,
        "triples": result.triples,
        "matches": list(result.matches),
        "tuples_stored": result.tuples_stored,
        "rss_mb": result.rss_mb,
        **{f"{name}_ms": times for name, times in result.phases.items()},
    }


def make_plot(results: Sequence[LayoutResult]) -> tables.Plot | None:
    """A row for each query: its phases over the number of triples, a line for each layout."""
    complete = [result for result in results if result.lost is None]
    if not complete:
        return None
    queries = dict.fromkeys(result.query for result in complete)
    rows = [
        [_panel([r for r in complete if r.query == query], name) for name in train.PHASES]
        for query in queries
    ]
    return tables.Plot("Layouts of two queries, scenario repair", rows, 3.6, 2.9)


def _panel(results: Sequence[LayoutResult], phase: str) -> tables.Panel:
    def points(which: Callable[[list[float]], float]) -> dict[str, list[tables.Point]]:
        return tables.group_points(
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
    return tables.Panel(title, points(median), "triples", "ms", ranges=ranges)
