"""The Train Benchmark: which workloads are run, on which engine, and how they are reported."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from graphtide.bench import report as tables
from graphtide.bench.harness import Benchmark, peak_rss_mb
from graphtide.bench.train.driver import TrainFigures, TrainRun
from graphtide.bench.train.engines import PyoxigraphRun, SparkTrainRun
from graphtide.bench.train.plans import (
    DEFAULT_PLAN,
    Choice,
    NodeFigures,
    check_plan,
    check_strategy,
)
from graphtide.bench.train.transformations import DEFAULTS, parse_selection
from graphtide.datasets.queries import TRAIN_QUERIES, find_queries
from graphtide.datasets.train import Scenario, TrainModel
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


Engine: TypeAlias = Literal["graphtide", "pyoxigraph", "spark"]

SIX: Final = tuple(query.name for query in TRAIN_QUERIES)
"""The queries that are transformed too."""

WARM_UP_ROUNDS: Final = 2


@dataclass(frozen=True, slots=True)
class TrainTask:
    """One run: a model, the queries that are registered together, and the rounds after the check.

    >>> task = TrainTask("repair", 1, ("PosLength",), select="fixed:10", rounds=1)
    >>> task.run().matches
    {'PosLength': [52, 42]}
    """

    scenario: Scenario
    size: int
    queries: Sequence[str] = SIX
    strategy: Choice = "auto"
    plan: str = DEFAULT_PLAN
    rounds: int = 0
    select: str = "fixed:10"
    engine: Engine = "graphtide"
    partitions: int = 2

    def __post_init__(self) -> None:
        TrainModel(self.size, self.scenario)
        parse_selection(self.select)
        check_strategy(self.strategy)
        if self.rounds < 0:
            raise GraphtideError(f'invalid --rounds "{self.rounds}": the minimum is 0')
        if self.rounds and self.scenario == "batch":
            raise GraphtideError(
                "the scenario batch has no rounds: its model is not transformed",
                hint="choose the scenario inject or repair, or omit --rounds",
            )
        if self.partitions < 1:
            raise GraphtideError(f'invalid --partitions "{self.partitions}": the minimum is 1')
        if self.engine != "graphtide" and "RouteLength" in self.queries:
            raise GraphtideError(
                "RouteLength follows links that only the in-process engine maintains",
                hint="omit it from --queries",
            )
        for query in find_queries(self.queries):
            check_plan(query, self.strategy, self.plan)

    def run(self) -> TrainFigures:
        """Run it in this process."""
        model = TrainModel(self.size, self.scenario)
        queries, selection = find_queries(self.queries), parse_selection(self.select)
        match self.engine:
            case "graphtide":
                run = TrainRun(model, queries, selection, strategy=self.strategy, plan=self.plan)
                return run.run(self.rounds)
            case "pyoxigraph":
                return PyoxigraphRun(model, queries, selection).run(self.rounds)
            case "spark":
                return SparkTrainRun(model, queries, selection, self.partitions).run(self.rounds)

    @property
    def label(self) -> str:
        """The strategy; of other engines, the engine."""
        return self.strategy if self.engine == "graphtide" else self.engine

    def __str__(self) -> str:
        queries = "all queries" if tuple(self.queries) == SIX else ", ".join(self.queries)
        return f"{self.scenario} {self.size}: {queries}, {self.label}, plan {self.plan}"


@dataclass(frozen=True, slots=True)
class QueryResult:
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


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What was measured of one task; see `TrainFigures`."""

    scenario: str
    size: int
    label: str
    plan: str
    figures: dict[str, Any]
    rss_mb: float

    def queries(self) -> list[QueryResult]:
        """A result for each query."""
        shared = ("triples", "read_ms", "check_ms", "transform_ms", "recheck_ms")
        return [
            QueryResult(
                scenario=self.scenario,
                size=self.size,
                query=query,
                strategy=self.label,
                plan=self.plan,
                matches=matches,
                rss_mb=self.rss_mb,
                tuples_stored=self.figures["tuples_stored"][query],
                nodes=self.figures["nodes"].get(query, []),
                **{key: self.figures[key] for key in shared},
            )
            for query, matches in self.figures["matches"].items()
        ]


def make_tasks(
    scenario: Scenario,
    sizes: Iterable[int],
    queries: Iterable[str],
    strategies: Iterable[Choice],
    plans: Iterable[str],
    *,
    together: bool = False,
    rounds: int | None = None,
    select: str | None = None,
    engines: Iterable[Engine] = (),
    partitions: int = 2,
) -> list[TrainTask]:
    """One task for each size, query, strategy and plan; with `together`, all queries in one.

    Rounds and selection are by default those of the public benchmark. Other `engines` follow.

    >>> [task.rounds for task in make_tasks("repair", [1], ["all"], ["rete"], ["default"])]
    [8, 8, 8, 8, 8, 8]
    """
    names = tuple(query.name for query in find_queries(queries))
    defaults = DEFAULTS[scenario]
    variants: list[tuple[Choice, str, Engine]] = [
        *((strategy, plan, "graphtide") for strategy in strategies for plan in plans),
        *(("auto", DEFAULT_PLAN, engine) for engine in engines),
    ]
    return [
        TrainTask(
            scenario,
            size,
            group,
            strategy,
            plan,
            defaults.rounds if rounds is None else rounds,
            select or str(defaults.selection),
            engine,
            partitions,
        )
        for size in sizes
        for group in ([names] if together else [(name,) for name in names])
        for strategy, plan, engine in variants
    ]


def measure(task: TrainTask) -> TrainResult:
    """Run a task."""
    figures = asdict(task.run())
    return TrainResult(
        task.scenario, task.size, task.label, task.plan, figures, rss_mb=peak_rss_mb()
    )


def _warm_up(task: TrainTask) -> list[TrainTask]:
    """A small model; if the plan depends on the size, with every plan that may be measured.

    In a small model there may be nothing to change: lengths are, so that the code for it is loaded.
    """
    if task.engine == "spark":
        return []
    small = replace(task, size=1, rounds=min(task.rounds, WARM_UP_ROUNDS))
    if task.engine != "graphtide":
        return [small]
    chosen = [replace(small, strategy="rete")] if task.strategy == "auto" else []
    return [small, *chosen, TrainTask("inject", 1, ("PosLength",), rounds=1)]


def _prepare(tasks: Sequence[TrainTask]) -> list[TrainTask]:
    """A small task for each strategy."""
    strategies = dict.fromkeys(task.strategy for task in tasks)
    rounds = min(tasks[0].rounds, 1)
    return [
        TrainTask(tasks[0].scenario, 1, strategy=strategy, rounds=rounds) for strategy in strategies
    ]


# ---- reporting -----------------------------------------------------------------------------------

COLUMNS: Final[Sequence[tables.TableColumn[QueryResult]]] = (
    tables.TableColumn("size", lambda result: f"{result.size:,}"),
    tables.TableColumn("triples", lambda result: f"{result.triples:,}"),
    tables.TableColumn("query", lambda result: result.query, left=True),
    tables.TableColumn("strategy", lambda result: result.strategy, left=True),
    tables.TableColumn("plan", lambda result: result.plan, left=True),
    tables.TableColumn("matches", lambda result: matches_text(result.matches)),
    tables.TableColumn("read", lambda result: tables.number(result.read_ms)),
    tables.TableColumn("check", lambda result: tables.number(result.check_ms)),
    tables.TableColumn("transform", lambda result: tables.median_text(result.transform_ms)),
    tables.TableColumn("recheck", lambda result: tables.median_text(result.recheck_ms)),
    tables.TableColumn("MB", lambda result: f"{result.rss_mb:,.0f}"),
    tables.TableColumn("tuples", lambda result: f"{result.tuples_stored:,}"),
)

PHASES: Final[dict[str, Callable[[QueryResult], list[float]]]] = {
    "read": lambda result: [result.read_ms],
    "check": lambda result: [result.check_ms],
    "transformation": lambda result: result.transform_ms,
    "recheck": lambda result: result.recheck_ms,
}

TOGETHER: Final = "all together"


def matches_text(matches: Sequence[int]) -> str:
    """The matches at the check, and after the last round.

    >>> matches_text([14, 24, 34]), matches_text([0])
    ('14 → 34', '0')
    """
    return f"{matches[0]:,} → {matches[-1]:,}" if len(matches) > 1 else f"{matches[0]:,}"


def report(results: Sequence[TrainResult], *, nodes: bool = False) -> tables.BenchReport:
    """A line for each query; diagrams of the phases over the size of the model.

    With `nodes`, JSON has the figures of all nodes of the plans.
    """
    queries = [query for result in results for query in result.queries()]
    objects = [asdict(query) for query in queries]
    if not nodes:
        objects = [{k: v for k, v in each.items() if k != "nodes"} for each in objects]
    scenario = results[0].scenario
    title = f"Train Benchmark, {scenario}: times in ms, transform and recheck as medians"
    plot = make_plot(queries, scenario, together=len(queries) > len(results))
    return tables.BenchReport(objects, [tables.make_table(title, COLUMNS, queries)], plot)


def make_plot(
    results: Sequence[QueryResult], scenario: str, *, together: bool = False
) -> tables.Plot:
    """A row of phases for each query; queries that ran `together` share their times, and a row."""
    if together:
        shared = {(r.size, r.strategy, r.plan): replace(r, query=TOGETHER) for r in results}
        results = list(shared.values())
    phases = [name for name, times in PHASES.items() if any(times(r) for r in results)]
    queries = dict.fromkeys(result.query for result in results)
    rows = [[_panel(results, query, phase) for phase in phases] for query in queries]
    return tables.Plot(f"Train Benchmark, {scenario}", rows, 3.6, 2.9)


def _panel(results: Sequence[QueryResult], query: str, phase: str) -> tables.Panel:
    lines = tables.group_points(
        (f"{result.strategy}, {result.plan}", result.triples, median(times))
        for result in results
        if result.query == query and (times := PHASES[phase](result))
    )
    return tables.Panel(f"{query}: {phase}", lines, "triples", "ms")


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=TrainTask,
    result=TrainResult,
    measure=measure,
    report=report,
    warm_up=_warm_up,
    prepare=_prepare,
    hint="try a smaller size: memory may be the problem",
)
