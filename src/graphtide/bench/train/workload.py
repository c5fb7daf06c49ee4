"""Workloads: what is run on which model, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from graphtide.bench.train.driver import Figures, Run
from graphtide.bench.train.on_spark import SparkRun
from graphtide.bench.train.peer import PeerRun
from graphtide.bench.train.plans import DEFAULT_PLAN, Choice, check_plan, check_strategy
from graphtide.bench.train.selection import DEFAULTS, parse_selection
from graphtide.datasets.queries import TRAIN_QUERIES, find_queries, find_query
from graphtide.datasets.train import TrainModel
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from graphtide.datasets.train import Scenario

Engine: TypeAlias = Literal["graphtide", "pyoxigraph", "spark"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One run: a model, the queries that are registered together, and the rounds after the check.

    >>> Workload("repair", 1, ("PosLength",), select="fixed:10", rounds=1).run().matches
    {'PosLength': [52, 42]}
    """

    scenario: Scenario
    size: int
    queries: tuple[str, ...] = tuple(query.name for query in TRAIN_QUERIES)
    strategy: Choice = "auto"
    plan: str = DEFAULT_PLAN
    rounds: int = 0
    select: str = "fixed:10"
    engine: Engine = "graphtide"
    cells: int = 2

    def __post_init__(self) -> None:
        """Refuse what cannot be run, before anything is."""
        TrainModel(self.size, self.scenario)
        parse_selection(self.select)
        check_strategy(self.strategy)
        if self.rounds < 0:
            raise GraphtideError(f"{self.rounds} rounds are too few", hint="0 is the least")
        if self.rounds and self.scenario == "batch":
            raise GraphtideError(
                "a batch model is not transformed, so there are no rounds",
                hint="choose the scenario inject or repair, or leave out the rounds",
            )
        if self.cells < 1:
            raise GraphtideError(f"{self.cells} cells are too few", hint="1 is the least")
        if self.engine != "graphtide" and "RouteLength" in self.queries:
            raise GraphtideError(
                "RouteLength walks on links that only the in-process engine keeps",
                hint="leave it out of --queries",
            )
        for query in find_queries(self.queries):
            check_plan(query, self.strategy, self.plan)

    def run(self, progress: Callable[[str], None] = lambda _: None) -> Figures:
        """Run it in this process."""
        return self._run().run(self.rounds, progress)

    def _run(self) -> Run | PeerRun | SparkRun:
        what = (
            TrainModel(self.size, self.scenario),
            find_queries(self.queries),
            parse_selection(self.select),
        )
        match self.engine:
            case "graphtide":
                return Run(*what, strategy=self.strategy, plan=self.plan)
            case "pyoxigraph":
                return PeerRun(*what)
            case "spark":
                return SparkRun(*what, self.cells)

    @property
    def way(self) -> str:
        """The strategy, or the engine that has none."""
        return self.strategy if self.engine == "graphtide" else self.engine

    def __str__(self) -> str:
        every = self.queries == tuple(query.name for query in TRAIN_QUERIES)
        queries = "all queries" if every else ", ".join(self.queries)
        return f"{self.scenario} {self.size}: {queries}, {self.way}, plan {self.plan}"


def make_workloads(
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
    cells: int = 2,
) -> list[Workload]:
    """One workload for each size, query, strategy and plan; `together` is all queries in one.

    What is not given is as in the benchmark's own workloads. Other `engines` follow ours.

    >>> [work.rounds for work in make_workloads("repair", [1], ["all"], ["rete"], ["default"])]
    [8, 8, 8, 8, 8, 8]
    """
    names = tuple(query.name for query in find_queries(queries))
    selection, usual = DEFAULTS[scenario]
    ways: list[tuple[Choice, str, Engine]] = [
        *((strategy, plan, "graphtide") for strategy in strategies for plan in plans),
        *(("auto", DEFAULT_PLAN, engine) for engine in engines),
    ]
    return [
        Workload(
            scenario,
            size,
            group,
            strategy,
            plan,
            usual if rounds is None else rounds,
            select or str(selection),
            engine,
            cells,
        )
        for size in sizes
        for group in ([names] if together else [(find_query(name).name,) for name in names])
        for strategy, plan, engine in ways
    ]
