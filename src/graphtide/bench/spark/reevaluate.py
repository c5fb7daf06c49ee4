"""What a Spark user would do instead: merge into a table, ask the whole query again, compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.route_sensor import RELATIONS
from graphtide.bench.route_sensor.workload import texts

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ANSWER: Final = """
SELECT f.s AS route, m.o AS sensor, f.o AS swP, t.o AS sw
FROM follows f JOIN target t ON f.o = t.s JOIN monitoredBy m ON t.o = m.s
LEFT ANTI JOIN requires r ON r.s = f.s AND r.o = m.o
"""


class Reevaluation:
    """Tables of edges and of answers, both written anew by each micro-batch."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self.matches = 0

    def take(self, changes: DataFrame, batch: int) -> None:
        """One micro-batch (Spark's `foreachBatch`)."""
        answer = self._answer(self._merged(changes, batch))
        path = str(self._folder / f"answer-{batch}")
        answer.write.mode("overwrite").parquet(path)
        new = self._session.read.parquet(path)
        old = self._previous("answer", batch)
        appeared = new if old is None else new.exceptAll(old)
        disappeared = new.limit(0) if old is None else old.exceptAll(new)
        self.matches += appeared.count() - disappeared.count()

    def _merged(self, changes: DataFrame, batch: int) -> DataFrame:
        """The table of edges after a batch."""
        rows = changes.where("diff <> 0").select("s", "p", "o", "diff")
        old = self._previous("edges", batch)
        if old is not None:
            rows = rows.unionByName(old.selectExpr("s", "p", "o", "1 AS diff"))
        path = str(self._folder / f"edges-{batch}")
        merged = rows.groupBy("s", "p", "o").agg({"diff": "sum"}).where("`sum(diff)` > 0")
        merged.select("s", "p", "o").write.mode("overwrite").parquet(path)
        return self._session.read.parquet(path)

    def _answer(self, edges: DataFrame) -> DataFrame:
        for name, predicate in zip(RELATIONS, texts(list(RELATIONS)), strict=True):
            edges.where(edges["p"] == predicate).createOrReplaceTempView(name)
        return self._session.sql(ANSWER)

    def _previous(self, name: str, batch: int) -> DataFrame | None:
        if not batch:
            return None
        return self._session.read.parquet(str(self._folder / f"{name}-{batch - 1}"))
