"""The same workload on Spark: the whole change log through the pipeline, and its answers counted.

Our in-process engine chooses what to transform and writes the log: the model at time 0, the
transactions of round n at time n. The pipeline then reads all of it. After every round the two must
have the same number of matches.
"""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.bench.train.driver import Figures, Run, since
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.bench.train.selection import Selection
    from graphtide.bench.train.transformations import Change
    from graphtide.datasets.queries import TrainQuery
    from graphtide.datasets.train import TrainModel

FIELDS = ("time", "tx", "diff", "s", "p", "o")


class SparkRun:
    """One run of the benchmark on Spark. Its one pass over the log is told as the check."""

    def __init__(
        self, model: TrainModel, queries: Sequence[TrainQuery], selection: Selection, cells: int
    ) -> None:
        self.figures = Figures(tuples_stored=dict.fromkeys((q.name for q in queries), 0))
        self._model = model
        self._texts = {query.name: query.text for query in queries}
        self._cells = cells
        self._log: list[tuple[int, int, Change]] = []
        self._round = 0
        self._tx = 0
        self._leader = Run(model, queries, selection, heard=self._write)

    def run(self, rounds: int, progress: Callable[[str], None] = lambda _: None) -> Figures:
        """All phases; `progress` hears which one comes next."""
        progress("read")
        start = perf_counter()
        self._leader.read()
        self._leader.check()
        for self._round in range(1, rounds + 1):
            self._leader.transform()
            self._leader.recheck()
        log = self._change_log()
        self.figures.triples = self._leader.figures.triples
        self.figures.read_ms = since(start)
        progress("check")
        start = perf_counter()
        moved = self._moved(log)
        self.figures.check_ms = since(start)
        self.figures.matches = {
            name: [sum(moved[name, t] for t in range(last + 1)) for last in range(rounds + 1)]
            for name in self._texts
        }
        if self.figures.matches != self._leader.figures.matches:
            raise GraphtideError(
                "the pipeline finds other matches than the in-process engine",
                hint=f"{self.figures.matches} and {self._leader.figures.matches}",
            )
        return self.figures

    def _write(self, changes: Sequence[Change]) -> None:
        self._tx += 1
        self._log += [(self._round, self._tx, change) for change in changes]

    def _change_log(self) -> pa.Table:
        """Everything that happened, in order: `seq` numbers the changes."""
        parts: list[list[Any]] = []
        for triples in (block.columns() for block in self._model.blocks()):
            zeros = np.zeros(len(triples), np.int64)
            parts.append([zeros, zeros, zeros + 1, triples.s, triples.p, triples.o])
        later = [(time, tx, diff, *triple) for time, tx, (diff, triple) in self._log]
        parts += [[*map(list, zip(*later, strict=True))]] if later else []
        named = (dict(zip(FIELDS, part, strict=True)) for part in parts)
        log = pa.concat_tables(map(pa.table, named))
        return log.append_column("seq", pa.array(np.arange(len(log))))

    def _moved(self, log: pa.Table) -> Counter[tuple[str, int]]:
        """By how much each query's matches changed at each time."""
        from graphtide.spark import make_session, watch

        spark = make_session(cells=self._cells, name="train")
        try:
            deltas = watch(spark.createDataFrame(log), self._texts, cells=self._cells)
            sums = deltas.groupBy("query", "time").sum("diff").collect()
        finally:
            spark.stop()
        moved: Counter[tuple[str, int]] = Counter()
        for query, time, diff in sums:
            moved[query, time] += diff
        return moved
