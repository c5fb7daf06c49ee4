"""The same workload on other engines: re-evaluation by pyoxigraph, and the pipeline on Spark.

In both, the in-process engine selects what to transform, outside of the measured times. After every
round, both must have the same number of matches.
"""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyoxigraph import RdfFormat, Store

from graphtide.bench.train.driver import TrainFigures, TrainRun, since
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.train.transformations import MatchSelection, TripleChange
    from graphtide.datasets.queries import TrainQuery
    from graphtide.datasets.train import TrainModel


class PyoxigraphRun:
    """One run of the benchmark by re-evaluation: all queries are evaluated after each round.

    >>> from graphtide.datasets.train import TrainModel
    >>> from graphtide.datasets.queries import find_queries
    >>> from graphtide.bench.train.transformations import MatchSelection
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
                raise GraphtideError(
                    f"{name}: pyoxigraph finds {counts[-1]} matches, graphtide {ours}"
                )
        return spent


FIELDS: Final = ("time", "tx", "diff", "s", "p", "o")


class SparkTrainRun:
    """One run of the benchmark on Spark, whose single pass over the change log counts as the check.

    The log has the model at time 0, and the transactions of round n at time n.
    """

    def __init__(
        self,
        model: TrainModel,
        queries: Sequence[TrainQuery],
        selection: MatchSelection,
        partitions: int,
    ) -> None:
        self.figures = TrainFigures(tuples_stored=dict.fromkeys((q.name for q in queries), 0))
        self._model = model
        self._texts = {query.name: query.text for query in queries}
        self._partitions = partitions
        self._log: list[tuple[int, int, TripleChange]] = []
        self._round = 0
        self._tx = 0
        self._live = TrainRun(model, queries, selection, on_changes=self._write)

    def run(self, rounds: int) -> TrainFigures:
        """All phases."""
        start = perf_counter()
        self._live.read()
        self._live.check()
        for self._round in range(1, rounds + 1):
            self._live.transform()
            self._live.recheck()
        log = self._change_log()
        self.figures.triples = self._live.figures.triples
        self.figures.read_ms = since(start)
        start = perf_counter()
        changed = self._changed(log)
        self.figures.check_ms = since(start)
        self.figures.matches = {
            name: [sum(changed[name, t] for t in range(last + 1)) for last in range(rounds + 1)]
            for name in self._texts
        }
        if self.figures.matches != self._live.figures.matches:
            raise GraphtideError(
                "the pipeline finds other matches than the in-process engine",
                hint=f"{self.figures.matches} and {self._live.figures.matches}",
            )
        return self.figures

    def _write(self, changes: Sequence[TripleChange]) -> None:
        self._tx += 1
        self._log += [(self._round, self._tx, change) for change in changes]

    def _change_log(self) -> pa.Table:
        """All changes in order, with sequence numbers."""
        parts: list[list[Any]] = []
        for triples in (block.columns() for block in self._model.blocks()):
            zeros = np.zeros(len(triples), np.int64)
            parts.append([zeros, zeros, zeros + 1, triples.s, triples.p, triples.o])
        later = [(time, tx, diff, *triple) for time, tx, (diff, triple) in self._log]
        parts += [[*map(list, zip(*later, strict=True))]] if later else []
        named = (dict(zip(FIELDS, part, strict=True)) for part in parts)
        log = pa.concat_tables(map(pa.table, named))
        return log.append_column("seq", pa.array(np.arange(len(log))))

    def _changed(self, log: pa.Table) -> Counter[tuple[str, int]]:
        """The sum of each query's deltas at each time."""
        from graphtide.spark import make_session, watch

        spark = make_session(partitions=self._partitions, name="train")
        try:
            deltas = watch(spark.createDataFrame(log), self._texts, partitions=self._partitions)
            sums = deltas.groupBy("query", "time").sum("diff").collect()
        finally:
            spark.stop()
        changed: Counter[tuple[str, int]] = Counter()
        for query, time, diff in sums:
            changed[query, time] += diff
        return changed
