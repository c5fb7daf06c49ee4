"""The driver: read a model, check it, then transform and recheck it round by round."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.datasets.java_random import JavaRandom
from benchmarks.datasets.train import SEED, TrainModel, constant_texts, vertex_texts
from benchmarks.datasets.train_kernel import VERTEX_0
from benchmarks.train import transformations
from benchmarks.train.operations import QueryOperation
from benchmarks.train.plans import DEFAULT_PLAN, Choice, watch_query
from graphtide.graph import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.datasets.queries import TrainQuery


@dataclass(slots=True)
class TrainFigures:
    """What a run measured: times in ms; matches and peak of stored tuples by query."""

    triples: int = 0
    matches: dict[str, list[int]] = field(default_factory=dict)
    read_ms: float = 0.0
    check_ms: float = 0.0
    transform_ms: list[float] = field(default_factory=list)
    recheck_ms: list[float] = field(default_factory=list)
    tuples_stored: dict[str, int] = field(default_factory=dict)


def load_model(graph: LiveGraph, model: TrainModel) -> int:
    """Insert a railway model, one transaction per block; the number of its vertices.

    >>> graph = LiveGraph()
    >>> load_model(graph, TrainModel(1, "inject")), len(graph)
    (741, 4089)
    """
    terms = graph.terms
    ids = np.zeros(2 * VERTEX_0, np.int32)
    ids[:VERTEX_0] = terms.encode_column(constant_texts())
    vertices = 0
    for number, block in enumerate(model.blocks()):
        first, end = VERTEX_0 + block.first_vertex, VERTEX_0 + block.last_vertex + 1
        if end > len(ids):
            ids = np.concatenate([ids, np.zeros(end, np.int32)])
        new = np.arange(block.first_vertex, block.last_vertex + 1)
        ids[first:end] = terms.encode_column(vertex_texts(new))
        s, p, o = ids[block.triples].T
        graph.apply_ids(s, p, o, tx=np.full(len(s), number, np.int64))
        vertices = block.last_vertex
    return vertices


class TrainRun:
    """One run of the benchmark: a live graph, and the queries that check it.

    *Read* generates the model and loads it. *Check* registers the queries, which evaluates them.
    *Transform* selects matches of every query and then applies the changes, one transaction per
    query. *Recheck* updates the answers and reads their deltas.

    >>> from benchmarks.datasets.queries import find_queries
    >>> from benchmarks.train.transformations import MatchSelection
    >>> run = TrainRun(
    ...     TrainModel(1, "repair"),
    ...     find_queries(["PosLength"]),
    ...     transformations.MatchSelection("fixed", 10),
    ... )
    >>> run.run(rounds=2).matches
    {'PosLength': [52, 42, 32]}

    `on_changes` is called with each transaction that transforms the model.
    """

    def __init__(
        self,
        model: TrainModel,
        queries: Sequence[TrainQuery],
        selection: transformations.MatchSelection,
        *,
        strategy: Choice = "auto",
        plan: str = DEFAULT_PLAN,
        on_changes: Callable[[Sequence[transformations.TripleChange]], None] = lambda _: None,
    ) -> None:
        self.graph = LiveGraph()
        self.figures = TrainFigures()
        self.operations: list[QueryOperation] = []
        self._model = model
        self._queries = queries
        self._selection = selection
        self._strategy: Choice = strategy
        self._plan = plan
        self._on_changes = on_changes
        self._random = JavaRandom(SEED)
        self._context = transformations.TransformationContext(0)

    def run(self, rounds: int) -> TrainFigures:
        """All phases."""
        self.read()
        self.check()
        for _ in range(rounds):
            self.transform()
            self.recheck()
        return self.figures

    def read(self) -> None:
        """Load the model into the graph."""
        start = perf_counter()
        self._context.last_vertex = load_model(self.graph, self._model)
        self.figures.triples = len(self.graph)
        self.figures.read_ms = since(start)

    def check(self) -> None:
        """Register the queries, and count their matches."""
        start = perf_counter()
        for query in self._queries:
            watch = watch_query(self.graph, query, self._strategy, self._plan)
            self.operations.append(QueryOperation(self.graph, query, watch, self._model.scenario))
        self._count()
        self.figures.check_ms = since(start)
        self._record_size()

    def transform(self) -> None:
        """Select matches of every query first; then transform them, query by query."""
        start = perf_counter()
        for operation in self.operations:
            operation.choose(self._selection, self._random, self._context)
        for operation in self.operations:
            changes = list(operation.changes(self._context))
            with self.graph.transaction() as tx:
                for diff, triple in changes:
                    (tx.insert if diff > 0 else tx.delete)(*triple)
            self._on_changes(changes)
        self.figures.transform_ms.append(since(start))

    def recheck(self) -> None:
        """Update the answers, and count the matches again."""
        start = perf_counter()
        self._count()
        self.figures.recheck_ms.append(since(start))
        self._record_size()

    def _count(self) -> None:
        for operation in self.operations:
            counts = self.figures.matches.setdefault(operation.query.name, [])
            counts.append(operation.check())

    def _record_size(self) -> None:
        for operation in self.operations:
            peak, name = self.figures.tuples_stored, operation.query.name
            peak[name] = max(peak.get(name, 0), operation.watch.cache_size().entries)


def since(start: float) -> float:
    """Milliseconds since a time of `perf_counter`."""
    return round(1000 * (perf_counter() - start), 3)
