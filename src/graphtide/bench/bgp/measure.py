"""One measurement: a query of a class, under a strategy, over a graph of some size."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.bgp.people import people
from graphtide.bench.bgp.queries import query_text
from graphtide.engine.live_graph import LiveGraph

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.plan.patterns import Strategy

CONTENDERS: Final[tuple[str, ...]] = ("rete", "search", "decomposed", "decomposed, no quads")
"""Strategies on a graph that stores its quads, and the one that can do without."""

PIECE: Final = 50_000
UPDATES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Task:
    """What to measure."""

    of_class: str
    contender: str
    triples: int
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured: memory at its largest, and microseconds per change.

    `entries` and `bytes` are the query's own; `quad_bytes` are those of the shared quads with the
    indexes that the query needs. `rows` is the size of the answer, and `delta_rows` all that came
    and went.
    """

    of_class: str
    contender: str
    triples: int
    rows: int
    delta_rows: int
    entries: int
    bytes: int
    quad_bytes: int
    load_us: float
    update_us: float


def measure(task: Task) -> Result:
    """Load a graph change by change, then delete and insert again.

    >>> measure(Task("star", "decomposed", 900)).entries <= 100
    True
    """
    bare = task.contender == "decomposed, no quads"
    graph = LiveGraph(store="none" if bare else "all")
    rows = people(task.triples, graph.terms, task.seed)
    strategy: Strategy = "decomposed" if bare else task.contender  # type: ignore[assignment]
    watch = graph.watch(query_text(task.of_class), strategy=strategy, history=1)
    load = _timed(graph, rows, np.ones(len(rows), np.int32))
    held, stats, told = watch.cache_size(), graph.stats(), watch.forgotten
    again, diff = _updates(rows, task.seed)
    update = _timed(graph, again, diff)
    return Result(
        task.of_class,
        task.contender,
        len(rows),
        watch.count(),
        max(watch.forgotten, told),
        held.entries,
        held.bytes,
        stats.quad_bytes,
        load,
        update,
    )


def _updates(rows: Ints, seed: int) -> tuple[Ints, Ints]:
    """Deletes of random triples, each followed by its insert."""
    random = np.random.default_rng(seed + 1)
    chosen = random.choice(len(rows), min(UPDATES // 2, len(rows)), replace=False)
    return np.repeat(rows[chosen], 2, axis=0), np.tile(np.array([-1, 1], np.int32), len(chosen))


def _timed(graph: LiveGraph, rows: Ints, diff: Ints) -> float:
    """Microseconds per change, each of which is a transaction."""
    start = perf_counter()
    for at in range(0, len(rows), PIECE):
        part = rows[at : at + PIECE]
        graph.apply_ids(part[:, 0], part[:, 1], part[:, 2], diff=diff[at : at + PIECE])
    graph.settle()
    return (perf_counter() - start) / max(len(rows), 1) * 1e6
