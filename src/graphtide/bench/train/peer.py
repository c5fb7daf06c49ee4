"""The same workload with an engine that evaluates the queries anew: pyoxigraph.

Our own engine chooses what to transform, outside of the times measured. After every round the two
must have found the same number of matches.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from pyoxigraph import RdfFormat, Store

from graphtide.bench.train.driver import Figures, Run, since
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.bench.train.selection import Selection
    from graphtide.bench.train.transformations import Change
    from graphtide.datasets.queries import TrainQuery
    from graphtide.datasets.train import TrainModel


class PeerRun:
    """One run of the benchmark by re-evaluation.

    >>> from graphtide.datasets.train import TrainModel
    >>> from graphtide.datasets.queries import find_queries
    >>> from graphtide.bench.train.selection import Selection
    >>> run = PeerRun(TrainModel(1, "repair"), find_queries(["PosLength"]), Selection("fixed", 10))
    >>> run.run(rounds=2).matches
    {'PosLength': [52, 42, 32]}
    """

    def __init__(
        self, model: TrainModel, queries: Sequence[TrainQuery], selection: Selection
    ) -> None:
        self.figures = Figures(tuples_stored=dict.fromkeys((q.name for q in queries), 0))
        self._model = model
        self._texts = {query.name: query.text for query in queries}
        self._store = Store()
        self._changed: list[Change] = []
        self._leader = Run(model, queries, selection, heard=self._changed.extend)

    def run(self, rounds: int, progress: Callable[[str], None] = lambda _: None) -> Figures:
        """All phases; `progress` hears which one comes next."""
        progress("read")
        self._read()
        progress("check")
        self._leader.check()
        self.figures.check_ms = self._count()
        for number in range(1, rounds + 1):
            progress(f"round {number} of {rounds}")
            self._leader.transform()
            self._leader.recheck()
            self._transform()
            self.figures.recheck_ms.append(self._count())
        return self.figures

    def _read(self) -> None:
        self._leader.read()
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
        """Evaluate all queries; the milliseconds that it took."""
        start = perf_counter()
        for name, text in self._texts.items():
            # An answer to SELECT is an iterator; to go through it is to evaluate it.
            count = sum(1 for _ in self._store.query(text))  # type: ignore[union-attr, misc]
            self.figures.matches.setdefault(name, []).append(count)
        spent = since(start)
        for name, counts in self.figures.matches.items():
            if counts[-1] != self._leader.figures.matches[name][-1]:
                raise GraphtideError(f"{name}: pyoxigraph finds {counts[-1]} matches, we do not")
        return spent
