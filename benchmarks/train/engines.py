"""The same workload by re-evaluation in pyoxigraph.

Graphtide selects what to transform, outside of the measured times. After every round, both must
have the same number of matches.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from pyoxigraph import RdfFormat, Store

from benchmarks.harness import BenchmarkError
from benchmarks.train.driver import TrainFigures, TrainRun, since

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.datasets.queries import TrainQuery
    from benchmarks.datasets.train import TrainModel
    from benchmarks.train.transformations import MatchSelection, TripleChange


class PyoxigraphRun:
    """One run of the benchmark by re-evaluation: all queries are evaluated after each round.

    >>> from benchmarks.datasets.train import TrainModel
    >>> from benchmarks.datasets.queries import find_queries
    >>> from benchmarks.train.transformations import MatchSelection
    >>> run = PyoxigraphRun(
    ...     TrainModel(1, "repair"), find_queries(["PosLength"]), MatchSelection("fixed", 10)
    ... )
    >>> run.run(rounds=2).matches
    {'PosLength': [52, 42, 32]}
    """

    def __init__(
        self, model: TrainModel, queries: Sequence[TrainQuery], selection: MatchSelection
    ) -> None:
        self.figures = TrainFigures(tuples_stored=dict.fromkeys((q.name for q in queries), 0))
        self._model = model
        self._texts = {query.name: query.text for query in queries}
        self._store = Store()
        self._changed: list[TripleChange] = []
        self._live = TrainRun(model, queries, selection, on_changes=self._changed.extend)

    def run(self, rounds: int) -> TrainFigures:
        """All phases."""
        self._read()
        self._live.check()
        self.figures.check_ms = self._count()
        for _ in range(rounds):
            self._live.transform()
            self._live.recheck()
            self._transform()
            self.figures.recheck_ms.append(self._count())
        return self.figures

    def _read(self) -> None:
        self._live.read()
        start = perf_counter()
        for block in self._model.blocks():
            self._store.bulk_load(bytes(block.columns().lines()), format=RdfFormat.N_TRIPLES)
        self.figures.triples = len(self._store)
        self.figures.read_ms = since(start)

    def _transform(self) -> None:
        start = perf_counter()
        words = {1: "INSERT", -1: "DELETE"}
        updates = [f"{words[diff]} DATA {{ {s} {p} {o} }}" for diff, (s, p, o) in self._changed]
        self._store.update(" ;\n".join(updates))
        self._changed.clear()
        self.figures.transform_ms.append(since(start))

    def _count(self) -> float:
        """Evaluate all queries; returns the milliseconds."""
        start = perf_counter()
        for name, text in self._texts.items():
            # The result of a SELECT is lazy: it is evaluated by iterating over it.
            count = sum(1 for _ in self._store.query(text))  # type: ignore[union-attr, misc]
            self.figures.matches.setdefault(name, []).append(count)
        spent = since(start)
        for name, counts in self.figures.matches.items():
            ours = self._live.figures.matches[name][-1]
            if counts[-1] != ours:
                raise BenchmarkError(
                    f"{name}: pyoxigraph finds {counts[-1]} matches, graphtide {ours}"
                )
        return spent
