"""Measure operators: load a graph, then change it one transaction at a time."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.live_graph import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.bench.sparql.operators import Data, Operator
    from graphtide.engine.watch import Watch

ROUNDS = 7
AT_ONCE = 500
"""Quads that a round takes away and puts back."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one change cost, in microseconds: the median of the rounds."""

    operator: str
    growth: str
    size: int
    rows: int
    load_s: float
    micros: float
    state_mb: float


def run_benchmark(
    operators: Sequence[Operator],
    sizes: Sequence[int],
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Measure each operator at each size, one after the other.

    >>> from graphtide.bench.sparql.operators import find_operators
    >>> [result.rows for result in run_benchmark(find_operators(["COUNT", "path"]), [450])]
    [1, 450]
    """
    found: list[Result] = []
    for operator in operators:
        _measure(operator, min(sizes), seed)  # compiles what it needs
        for size in sizes:
            progress(f"{operator.name}, {size:,}")
            found.append(_measure(operator, size, seed))
    return found


def _measure(operator: Operator, size: int, seed: int) -> Result:
    graph = LiveGraph()
    data = operator.make(graph, size, np.random.default_rng(seed))
    start = perf_counter()
    s, p, o, g = data.quads.T
    graph.apply_ids(s, p, o, g, tx=np.zeros(len(s), np.int64))
    watch = graph.watch(operator.query, strategy=operator.strategy, history=0)
    rows = watch.count()
    load = perf_counter() - start
    gc.collect()
    times = [_round(graph, watch, data, number) for number in range(ROUNDS)]
    state = graph.stats().watch_bytes / 1e6
    return Result(operator.name, operator.growth, size, rows, load, median(times), state)


def _round(graph: LiveGraph, watch: Watch, data: Data, number: int) -> float:
    """Take quads away and put them back; microseconds for each change."""
    count = min(AT_ONCE, len(data.moving) // 2)
    end = max(len(data.moving) - number * count, count)
    moving = data.moving[end - count : end]
    s, p, o, g = np.concatenate([moving[::-1], moving]).T
    diff = np.repeat(np.array([-1, 1], np.int32), count)
    start = perf_counter()
    graph.apply_ids(s, p, o, g, diff=diff)
    watch.delta()
    return (perf_counter() - start) / (2 * count) * 1e6
