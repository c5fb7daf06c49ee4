"""The output of a micro-batch: a table of deltas per query, in order, and what was set aside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.errors import GraphtideError
from graphtide.spark.chunk import from_chunks
from graphtide.spark.quarantine import set_aside
from graphtide.spark.reports import put_out
from graphtide.spark.schemas import DELTAS, REJECTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from graphtide.spark.actors import Actors
    from graphtide.spark.sink import Sink
    from graphtide.spark.task import Task

OnDeltas = Callable[[dict[str, pa.Table]], None]
"""What sees the deltas of a micro-batch after they were written, by query."""


class BatchWriter:
    """Writes micro-batches, and remembers why it could not."""

    def __init__(
        self,
        task: Task,
        sink: Sink,
        most_quarantined: int | None,
        on_deltas: OnDeltas | None,
        actors: Actors | None = None,
    ) -> None:
        self._actors = actors
        self.sink = sink
        self.failure: GraphtideError | None = None
        self._task = task
        self._most = most_quarantined
        self._on_deltas = on_deltas

    @property
    def feeds_back(self) -> bool:
        """Whether what is written may be read by the next micro-batch."""
        return self._actors is not None and self._actors.reaction.feeds_back

    def take(self, matched: DataFrame, batch: int) -> None:
        """Write a micro-batch. It is computed even if it was written: the state depends on it."""
        rows = matched.toArrow()
        deltas, aside = unpacked(rows, self._task)
        try:
            if self._actors is None:
                self.sink.write(batch, deltas, aside)
            else:
                self._act(batch, from_chunks(_chunks(rows, "deltas"), DELTAS), deltas, aside)
            self._check_quarantine()
        except GraphtideError as error:
            self.failure = error
            raise
        if self._on_deltas is not None:
            self._on_deltas(deltas)

    def _act(
        self, batch: int, rows: pa.Table, deltas: dict[str, pa.Table], aside: pa.Table
    ) -> None:
        """Let rules act, and write what they and patterns found. What was written is not called."""
        assert self._actors is not None  # noqa: S101 - seen by the caller
        fired, events, table = self._actors.tables(rows)
        if batch > self.sink.progress.batch:
            self._actors.call(fired)
        deltas |= events
        self.sink.write(batch, deltas, aside, table)
        self._actors.feed_back(batch, rows, fired)

    def _check_quarantine(self) -> None:
        found = self.sink.progress.quarantined
        if self._most is not None and found > self._most:
            raise GraphtideError(
                f"{found} rows are set aside, more than the {self._most} that are allowed",
                hint=f"look into {self.sink.out / 'quarantine'}; mend the input, or allow more "
                "with --most-quarantined, and start again",
            )


def unpacked(matched: pa.Table, task: Task) -> tuple[dict[str, pa.Table], pa.Table]:
    """Matched rows (`MATCHED`) as deltas by query and quarantine."""
    deltas = put_out(from_chunks(_chunks(matched, "deltas"), DELTAS), task)
    rejects = from_chunks(_chunks(matched, "rejects"), REJECTS)
    numbers: Any = deltas["query"]
    by_name = {}
    for number, query in enumerate(task.shown_queries):
        names = [variable.name for variable in query.query.variables[: query.shown]]
        part: Any = deltas.filter(pc.equal(numbers, number))  # type: ignore[call-overload]
        by_name[query.name] = delta_columns(part, names)
    return by_name, set_aside(rejects)


def delta_columns(deltas: pa.Table, names: list[str]) -> pa.Table:
    """Deltas of one query with a column per variable, sorted by time, transaction and row."""
    rows: Any = deltas["row"].combine_chunks()
    values = rows.flatten()
    at = np.arange(len(deltas)) * len(names)
    columns: dict[str, Any] = {name: deltas[name] for name in ("time", "tx", "diff")}
    for place, name in enumerate(names):
        columns[name] = values.take(pa.array(at + place, pa.int64()))
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _chunks(matched: pa.Table, column: str) -> list[bytes]:
    chunks: list[bytes | None] = matched[column].to_pylist()
    return [bytes(chunk) for chunk in chunks if chunk is not None]
