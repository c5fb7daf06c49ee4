"""The Train Benchmark: which workloads are run, on which engine, and how they are reported."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from benchmarks.datasets.queries import TRAIN_QUERIES, find_queries
from benchmarks.datasets.train import Scenario, TrainModel, check_scenario
from benchmarks.harness import Benchmark, BenchmarkError, peak_rss_mb
from benchmarks.report import Cell, Panel, Plot, Report, Table, group_points
from benchmarks.train.driver import TrainFigures, TrainRun
from benchmarks.train.engines import PyoxigraphRun
from benchmarks.train.plans import DEFAULT_PLAN, Choice, check_plan, check_strategy
from benchmarks.train.transformations import DEFAULTS, parse_selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Engine: TypeAlias = Literal["graphtide", "pyoxigraph"]

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

    def __post_init__(self) -> None:
        TrainModel(self.size, self.scenario)
        parse_selection(self.select)
        check_strategy(self.strategy)
        if self.rounds < 0:
            raise BenchmarkError(f"invalid number of rounds {self.rounds}")
        if self.rounds and self.scenario == "batch":
            raise BenchmarkError(
                "the scenario batch has no rounds: its model is not transformed",
                hint="choose the scenario inject or repair, or omit --rounds",
            )
        if self.engine != "graphtide" and "RouteLength" in self.queries:
            raise BenchmarkError(
                "RouteLength follows links that only the in-process engine maintains",
                hint="omit it from --queries",
            )
        for query in find_queries(self.queries):
            check_plan(query, self.strategy, self.plan)

    def run(self) -> TrainFigures:
        """Run it in this process."""
        model = TrainModel(self.size, self.scenario)
        queries, selection = find_queries(self.queries), parse_selection(self.select)
        if self.engine == "pyoxigraph":
            return PyoxigraphRun(model, queries, selection).run(self.rounds)
        run = TrainRun(model, queries, selection, strategy=self.strategy, plan=self.plan)
        return run.run(self.rounds)

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
                **{key: self.figures[key] for key in shared},
            )
            for query, matches in self.figures["matches"].items()
        ]


def make_tasks(
    sizes: Sequence[int] = (1, 2, 4, 8),
    scenario: str = "repair",
    queries: Sequence[str] = ("all",),
    strategies: Sequence[str] = ("auto",),
    plans: Sequence[str] = (DEFAULT_PLAN,),
    rounds: int = -1,
    select: str = "",
    *,
    together: bool = False,
    peers: bool = False,
) -> list[TrainTask]:
    """One task for each size, query, strategy and plan; with `together`, all queries in one.

    Scenarios: batch only checks, inject injects errors, repair removes them. Strategies: search,
    rete, decomposed, counting, or auto for the planner's choice. Plans: default for the planner's,
    A to C for layouts of RouteSensor, A to F for those of SemaphoreNeighbor. A round transforms
    `select`: fixed:10 for ten matches of a query, proportional:5 for 5 %. By default, rounds and
    selection are those of the public benchmark. Queries: the six that are also transformed, or
    names; ActiveRoute, RouteReachability and RouteLength are checked only. With `peers`, pyoxigraph
    evaluates the queries again.

    >>> [task.rounds for task in make_tasks([1])]
    [8, 8, 8, 8, 8, 8]
    """
    chosen = check_scenario(scenario)
    names = tuple(query.name for query in find_queries(queries))
    defaults = DEFAULTS[chosen]
    variants: list[tuple[Choice, str, Engine]] = [
        (check_strategy(strategy), plan, "graphtide") for strategy in strategies for plan in plans
    ]
    variants += [("auto", DEFAULT_PLAN, "pyoxigraph")] if peers else []
    return [
        TrainTask(
            chosen,
            size,
            group,
            strategy,
            plan,
            defaults.rounds if rounds < 0 else rounds,
            select or str(defaults.selection),
            engine,
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

PHASES: Final[dict[str, Callable[[QueryResult], list[float]]]] = {
    "read": lambda result: [result.read_ms],
    "check": lambda result: [result.check_ms],
    "transformation": lambda result: result.transform_ms,
    "recheck": lambda result: result.recheck_ms,
}

TOGETHER: Final = "all together"


def report(results: Sequence[TrainResult]) -> Report:
    """A line for each query; diagrams of the phases over the size of the model."""
    queries = [query for result in results for query in result.queries()]
    scenario = results[0].scenario
    rows: list[dict[str, Cell]] = [
        {
            "size": r.size,
            "triples": r.triples,
            "query": r.query,
            "strategy": r.strategy,
            "plan": r.plan,
            "matches": r.matches[0],
            "at the end": r.matches[-1],
            **{name: median(of(r)) if of(r) else None for name, of in PHASES.items()},
            "MB": round(r.rss_mb),
            "tuples": r.tuples_stored,
        }
        for r in queries
    ]
    title = f"Train Benchmark, {scenario}: times in ms, transformation and recheck as medians"
    plot = make_plot(queries, scenario, together=len(queries) > len(results))
    return Report([Table(title, rows)], plot)


def make_plot(results: Sequence[QueryResult], scenario: str, *, together: bool) -> Plot:
    """A row of phases for each query; queries that ran `together` share their times, and a row."""
    if together:
        shared = {(r.size, r.strategy, r.plan): replace(r, query=TOGETHER) for r in results}
        results = list(shared.values())
    phases = [name for name, times in PHASES.items() if any(times(r) for r in results)]
    queries = dict.fromkeys(result.query for result in results)
    rows = [[_panel(results, query, phase) for phase in phases] for query in queries]
    return Plot(f"Train Benchmark, {scenario}", rows)


def _panel(results: Sequence[QueryResult], query: str, phase: str) -> Panel:
    lines = group_points(
        (f"{result.strategy}, {result.plan}", result.triples, median(times))
        for result in results
        if result.query == query and (times := PHASES[phase](result))
    )
    return Panel(f"{query}: {phase}", lines, "triples", "ms")


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=TrainTask,
    result=TrainResult,
    tasks=make_tasks,
    small={"sizes": (1,), "select": "fixed:10", "rounds": 1, "together": True, "peers": True},
    measure=measure,
    report=report,
    warm_up=_warm_up,
    prepare=_prepare,
)
