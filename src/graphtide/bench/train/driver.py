"""The driver: read a model, check it, then transform and recheck it round by round."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from graphtide.bench.load import load_model
from graphtide.bench.train.nodes import NodeFigures, node_figures
from graphtide.bench.train.operation import Operation
from graphtide.bench.train.plans import DEFAULT_PLAN, watch_query
from graphtide.bench.train.transformations import Yard
from graphtide.datasets.java_random import JavaRandom
from graphtide.datasets.train import SEED, TrainModel
from graphtide.engine import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.bench.train.plans import Choice
    from graphtide.bench.train.selection import Selection
    from graphtide.bench.train.transformations import Change
    from graphtide.datasets.queries import TrainQuery


@dataclass(slots=True)
class Figures:
    """What a run measured. Times are in ms; matches, the most tuples stored and nodes by query."""

    triples: int = 0
    matches: dict[str, list[int]] = field(default_factory=dict)
    read_ms: float = 0.0
    check_ms: float = 0.0
    transform_ms: list[float] = field(default_factory=list)
    recheck_ms: list[float] = field(default_factory=list)
    tuples_stored: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, list[NodeFigures]] = field(default_factory=dict)


class Run:
    """One run of the benchmark: a live graph, and the queries that check it.

    *Read* makes the model and loads it. *Check* registers the queries, which evaluates them.
    *Transform* chooses matches of every query and then hands in the changes, one transaction for
    each query. *Recheck* brings the answers up to date and takes over what changed in them.

    >>> from graphtide.datasets.queries import find_queries
    >>> from graphtide.bench.train.selection import Selection
    >>> run = Run(TrainModel(1, "repair"), find_queries(["PosLength"]), Selection("fixed", 10))
    >>> run.run(rounds=2).matches
    {'PosLength': [52, 42, 32]}

    `heard` is told of each transaction that transforms the model.
    """

    def __init__(
        self,
        model: TrainModel,
        queries: Sequence[TrainQuery],
        selection: Selection,
        *,
        strategy: Choice = "auto",
        plan: str = DEFAULT_PLAN,
        heard: Callable[[Sequence[Change]], None] = lambda _: None,
    ) -> None:
        self.graph = LiveGraph()
        self.figures = Figures()
        self.operations: list[Operation] = []
        self._model = model
        self._queries = queries
        self._selection = selection
        self._strategy: Choice = strategy
        self._plan = plan
        self._heard = heard
        self._random = JavaRandom(SEED)
        self._yard = Yard(0)

    def run(self, rounds: int, progress: Callable[[str], None] = lambda _: None) -> Figures:
        """All phases; `progress` hears which one comes next."""
        progress("read")
        self.read()
        progress("check")
        self.check()
        for number in range(1, rounds + 1):
            progress(f"round {number} of {rounds}")
            self.transform()
            self.recheck()
        for operation in self.operations:
            nodes = node_figures(self.graph, operation.watch)
            self.figures.nodes[operation.query.name] = nodes
        return self.figures

    def read(self) -> None:
        """Load the model into the graph."""
        start = perf_counter()
        self._yard.last_vertex = load_model(self.graph, self._model)
        self.figures.triples = len(self.graph)
        self.figures.read_ms = since(start)

    def check(self) -> None:
        """Register the queries, and count their matches."""
        start = perf_counter()
        for query in self._queries:
            watch = watch_query(self.graph, query, self._strategy, self._plan)
            self.operations.append(Operation(self.graph, query, watch, self._model.scenario))
        self._count()
        self.figures.check_ms = since(start)
        self._weigh()

    def transform(self) -> None:
        """Choose matches of every query first; then change them, query by query."""
        start = perf_counter()
        for operation in self.operations:
            operation.choose(self._selection, self._random, self._yard)
        for operation in self.operations:
            changes = list(operation.changes(self._yard))
            with self.graph.transaction() as tx:
                for diff, triple in changes:
                    (tx.insert if diff > 0 else tx.delete)(*triple)
            self._heard(changes)
        self.figures.transform_ms.append(since(start))

    def recheck(self) -> None:
        """Bring the answers up to date, and count the matches again."""
        start = perf_counter()
        self._count()
        self.figures.recheck_ms.append(since(start))
        self._weigh()

    def _count(self) -> None:
        for operation in self.operations:
            counts = self.figures.matches.setdefault(operation.query.name, [])
            counts.append(operation.check())

    def _weigh(self) -> None:
        for operation in self.operations:
            most, name = self.figures.tuples_stored, operation.query.name
            most[name] = max(most.get(name, 0), operation.watch.cache_size().entries)


def since(start: float) -> float:
    """Milliseconds that have passed."""
    return round(1000 * (perf_counter() - start), 3)
