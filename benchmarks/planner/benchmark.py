"""How good the planner's choice is: beside every strategy, on even, skewed and drifted graphs.

A task is a query over a graph. Each strategy in turn watches the query, and some join trees that
start elsewhere than the planner's; then quads of the query's predicates are deleted and inserted
again, in three mixes: `even` over all of them, those of the `rare` predicate only, and those at the
`hubs`. After drift, the query that was watched all the time is compared with fresh ones; before a
mix is measured, so many of its changes are made that the planner knows of them. The ratio of a task
is the planner's figure over the best one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from benchmarks.harness import Benchmark, BenchmarkError, check_names
from benchmarks.planner import workload
from benchmarks.report import Cell, Report, Table
from graphtide.algebra.variables import pattern_variables
from graphtide.engine import queries
from graphtide.engine.evaluate import FIRST_REPLAN
from graphtide.errors import LimitError, UnsupportedError
from graphtide.graph import LiveGraph
from graphtide.limits import Limits
from graphtide.plan.patterns import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Ints
    from graphtide.plan.order import JoinTree

MIXES: Final = ("even", "rare", "hubs")
CHANGED: Final = 250
"""Quads of a round that are deleted and inserted again."""

ROUNDS, SECONDS, LONG = 20, 0.03, 1.0
"""A mix is repeated so often, or so long, but once if it does not take as long as this."""

OBSERVED, PATIENCE = 2, 5.0
"""How many times as many changes as there are quads are observed before a mix is measured after
drift, and how many seconds that may take."""

SMALLEST: Final = 3
"""Patterns from which on there are several join trees."""

SLOW: Final = 2.5
"""A plan that takes so many times the least time in one of the mixes is not in time."""

IN_TIME, CHOICE = "bytes in time", "choice"
"""Bytes beside those of plans that are in time; the worst figure beside that of the best plan."""

LIMITS: Final = Limits(query_seconds=20, query_bytes=1 << 30, flush_seconds=20)
"""A strategy that exceeds them has no figures."""


@dataclass(frozen=True, slots=True)
class PlannerTask:
    """A query over a graph of a shape, possibly after drift."""

    query: str
    shape: str
    drift: bool
    quads: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.query}, {self.shape}{', after drift' * self.drift}, {self.quads:,} quads"


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """The planner's choice, and for each strategy and tree µs per change by mix, and bytes.

    Equal plans are measured once. `q_error` is the factor by which the
    planner's estimate of the answer is off.
    """

    query: str
    shape: str
    drift: bool
    chosen: str
    rows: int
    q_error: float
    figures: dict[str, dict[str, float]]

    def ratio(self, figure: str) -> float:
        """The default's figure over the best; `bytes in time` only over plans that are in time.

        `choice` is its largest ratio over that of the plan whose largest ratio is least: if it is
        1, no plan that was measured would have been a better choice.
        """
        ways = list(self.figures.values())
        if figure == CHOICE:
            best = {name: min(each[name] for each in ways) for name in (*MIXES, "bytes")}
            worst = [max(each[name] / best[name] for name in best) for each in ways]
            return worst[0] / min(worst)
        if figure == IN_TIME:
            figure, least = "bytes", {mix: min(each[mix] for each in ways) for mix in MIXES}
            ways = [self.figures["default"]] + [
                each for each in ways if all(each[mix] <= SLOW * least[mix] for mix in MIXES)
            ]
        return self.figures["default"][figure] / min(each[figure] for each in ways)


def make_tasks(
    sizes: Sequence[int] = (100_000,), queries: Sequence[str] = ("all",), seed: int = 0
) -> list[PlannerTask]:
    """Each query on each shape of graph, of so many quads, before and after drift."""
    names = check_names(queries, list(workload.QUERIES), "--queries")
    return [
        PlannerTask(name, shape, drift, quads, seed)
        for quads in sizes
        for name in names
        for shape in workload.SHAPES
        for drift in (False, True)
    ]


# ---- measuring -----------------------------------------------------------------------------------


def measure(task: PlannerTask) -> PlannerResult:
    """Watch a query by default and by every strategy, and change its quads.

    >>> found = measure(PlannerTask("mutual", "hubs", drift=True, quads=1000))
    >>> found.ratio("bytes") >= 1
    True
    """
    graph = LiveGraph(limits=LIMITS)
    shape = cast("workload.Shape", task.shape)
    data = workload.WorkloadGraph(graph.terms, task.query, task.quads, shape, task.seed)
    _apply(graph, data.all_edges(), 1)
    text = workload.query_text(task.query)
    default = graph.watch(text, history=0)
    if task.drift:
        fresh = data.drifted()
        for name, edges in fresh.items():
            _apply(graph, data.edges[name], -1)
            _apply(graph, edges, 1)
            data.edges[name] = edges
    rounds = dict(_rounds(task, data))
    rows = default.count()
    figures = {"default": _figures(graph, default, rounds, known=task.drift)}
    plan, chosen, q_error = default.plan, default.strategy, _q_error(default)
    measured = {} if task.drift else {plan: figures["default"]}  # it may have had several plans
    default.close()
    ways: dict[str, dict[str, Any]] = {name: {"strategy": name} for name in STRATEGIES}
    ways |= {f"tree {i}": {"plan": tree} for i, tree in enumerate(pinned_trees(task.query))}
    for name, way in ways.items():
        with suppress(LimitError, UnsupportedError):
            query = graph.watch(text, history=0, **way)
            if query.count() != rows:
                raise BenchmarkError(f"{task}: {name} has {query.count()} rows, not {rows}")
            if query.plan not in measured:
                measured[query.plan] = _figures(graph, query, rounds)
            figures[name] = measured[query.plan]
            query.close()
    return PlannerResult(task.query, task.shape, task.drift, chosen, rows, q_error, figures)


def pinned_trees(query: str) -> list[JoinTree]:
    """Left-deep trees from the first, the middle and the last pattern, without products.

    Of two patterns that are as near, the later one comes first.

    >>> pinned_trees("chain 2"), pinned_trees("triangle")
    ([], [((0, 1), 2), ((1, 2), 0), ((2, 1), 0)])
    """
    patterns, *others = workload.patterns_of(query)
    if len(patterns) < SMALLEST or any(len(each) > 1 for each in others):
        return []  # there is one tree, or a tree would have to be given for each part
    variables = [set(pattern_variables(pattern)) for pattern in patterns]
    last = len(patterns) - 1
    trees: list[JoinTree] = []
    for start in (0, last // 2, last):
        tree: JoinTree = start
        known, rest = set(variables[start]), [i for i in range(len(patterns)) if i != start]
        while rest:
            near = min(rest, key=lambda i: (known.isdisjoint(variables[i]), abs(i - start), -i))
            rest.remove(near)
            known |= variables[near]
            tree = (tree, near)
        trees.append(tree)
    return trees


def _apply(graph: LiveGraph, edges: Ints, diff: int) -> None:
    s, p, o = edges.T
    graph.apply_ids(s, p, o, diff=np.full(len(edges), diff, np.int32))
    len(graph)  # applies what is buffered


def _go_on(graph: LiveGraph, quads: Ints) -> None:
    """Change quads until the planner has seen which ones change, and no plan is being replaced."""
    end = perf_counter() + PATIENCE
    enough = graph.stats().inserted + OBSERVED * max(FIRST_REPLAN, len(graph)) // 2
    share, queries.LOOK_SHARE = queries.LOOK_SHARE, 0  # seconds stand for hours: no pauses
    try:
        while perf_counter() < end:
            _change(graph, quads)
            if graph.stats().inserted >= enough and not graph.stats().replanning:
                return
    finally:
        queries.LOOK_SHARE = share


def _rounds(task: PlannerTask, data: workload.WorkloadGraph) -> Iterator[tuple[str, Ints]]:
    """The quads that each mix deletes and inserts again."""
    own = data.read()
    every = np.concatenate(own)
    random = np.random.default_rng(task.seed + 1)
    degrees = np.bincount(every[:, [0, 2]].ravel())
    by_degree = every[np.argsort(-degrees[every[:, [0, 2]]].max(axis=1), kind="stable")]
    even, rare = random.permutation(every)[:CHANGED], random.permutation(min(own, key=len))
    yield "even", even
    yield "hubs", random.permutation(by_degree[: 4 * CHANGED])[:CHANGED]
    yield "rare", rare[:CHANGED]  # last: what is observed of a mix is forgotten only by and by


def _figures(
    graph: LiveGraph, query: Query, rounds: Mapping[str, Ints], *, known: bool = False
) -> dict[str, float]:
    """Microseconds of processor time per change by mix, the best of some rounds; and bytes.

    If a mix is `known`, the planner has observed it before. Of bytes, the most.
    """
    found: dict[str, float] = {}
    held = 0.0
    for mix, quads in rounds.items():
        if known:
            _go_on(graph, quads)
        times = [_timed(graph, query, quads)]  # memory is touched for the first time
        seconds = max(times[0], 1e-3) * 2 * CHANGED / 1e6
        more = min(max(int(SECONDS / seconds), int(seconds < LONG)), ROUNDS)
        times += (_timed(graph, query, quads) for _ in range(more))
        found[mix] = min(times)
        held = max(held, float(graph.stats().quad_bytes + query.nbytes))
    return {**found, "bytes": held}


def _timed(graph: LiveGraph, query: Query, quads: Ints) -> float:
    """Microseconds per change."""
    start = process_time()  # others on the machine do not count
    changes = _change(graph, quads)
    query.delta()
    return (process_time() - start) / changes * 1e6


def _change(graph: LiveGraph, quads: Ints) -> int:
    """Delete quads and insert them again, few quads several times: so many changes."""
    often = max(CHANGED // len(quads), 1)
    s, p, o = np.tile(np.concatenate([quads, quads[::-1]]), (often, 1)).T
    diff = np.tile(np.repeat(np.array([-1, 1], np.int32), len(quads)), often)
    graph.apply_ids(s, p, o, diff=diff)
    len(graph)  # applies what is buffered
    return len(s)


def _q_error(query: Query) -> float:
    """The factor between expected and actual rows of the answer, at least one of each."""
    expected = query.facts(actual=False).expected or {}
    guess, there = max(expected.get(query.plan.root, 1.0), 1.0), max(query.count(), 1)
    return max(guess / there, there / guess)


# ---- reporting -----------------------------------------------------------------------------------

FIGURES: Final = (*MIXES, "bytes", IN_TIME, CHOICE)
WAYS: Final = (*STRATEGIES, "tree 0", "tree 1", "tree 2")


def report(results: Sequence[PlannerResult]) -> Report:
    """The ratios over all tasks, and every task with its figures."""
    title = "The default's figure over that of the best plan"
    tasks = "µs per change by mix of changes, and MB of quads and query"
    return Report([Table(title, summary(results)), Table(tasks, [_row(each) for each in results])])


def summary(results: Sequence[PlannerResult]) -> list[dict[str, Cell]]:
    """By graph and figure: the median and the worst ratio of the default to the best plan."""
    found: list[dict[str, Cell]] = []
    for graph in dict.fromkeys(["all", *map(_graph, results)]):
        own = [each for each in results if graph in ("all", _graph(each))]
        for figure in FIGURES:
            worst = max(own, key=partial(_ratio, figure=figure))
            ratios = [each.ratio(figure) for each in own]
            found.append(
                {
                    "graph": graph,
                    "figure": figure,
                    "median": round(median(ratios), 2),
                    "worst": round(max(ratios), 2),
                    "worst query": worst.query,
                    f"over {SLOW}": sum(ratio > SLOW for ratio in ratios),
                    "tasks": len(own),
                    "median q-error": round(median(each.q_error for each in own), 2),
                    "worst q-error": round(max(each.q_error for each in own), 1),
                }
            )
    return found


def _graph(result: PlannerResult) -> str:
    return f"{result.shape}{', after drift' * result.drift}"


def _ratio(result: PlannerResult, figure: str) -> float:
    return result.ratio(figure)


def _row(result: PlannerResult) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "query": result.query, "graph": _graph(result), "default": result.chosen
    }  # fmt: skip
    for name in WAYS:
        own = result.figures.get(name, {})
        row |= {f"{name} {mix}": own.get(mix) for mix in MIXES}
        row[f"{name} MB"] = own["bytes"] / 1e6 if own else None
    return row


def _warm_up(task: PlannerTask) -> list[PlannerTask]:
    """Once for each query: all tasks run in one process."""
    first = task.shape == workload.SHAPES[0] and not task.drift
    return [replace(task, quads=workload.MIN_QUADS)] if first else []


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=PlannerTask,
    result=PlannerResult,
    tasks=make_tasks,
    small={"sizes": (1000,), "queries": ("star 2", "mutual")},
    measure=measure,
    report=report,
    warm_up=_warm_up,
    own_process=False,
)
