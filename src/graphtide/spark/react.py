"""React: the stages after the match, where patterns and rules see events. Packed rows in and out.

All that belongs to a transaction comes in one micro-batch, and every cell hears how far the stream
is. So nothing has to wait here; and what happens because a time is over happens in every cell in
the same micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from graphtide.spark.cache import Cache, advance, recover
from graphtide.spark.chunk import from_chunks, to_chunk
from graphtide.spark.detect_cell import DetectCell
from graphtide.spark.frontier import START, Frontier
from graphtide.spark.hashing import cell_keys
from graphtide.spark.match import CACHE, chunks_of, freeze_engines, matched_frame, run_id
from graphtide.spark.react_send import send_detected
from graphtide.spark.reaction import FRONTIER, SAVED, TO_FACTS, TO_PATTERN, TO_RULE
from graphtide.spark.rule_cell import RuleCell
from graphtide.spark.schemas import DELTAS, MATCHED_SQL
from graphtide.spark.state_log import StateLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from graphtide.spark.log import Log
    from graphtide.spark.matched import MatchedRow
    from graphtide.spark.reaction import Reaction
    from graphtide.spark.task import Task

StageName = Literal["detect", "react"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the stages: which rows it takes, and where what it makes goes."""

    name: StageName
    reaction: Reaction

    def takes(self, query: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which rows are for this stage."""
        if self.name == "detect":
            return (query >= TO_PATTERN) & (query < TO_RULE)
        return ((query >= TO_FACTS) & (query < TO_PATTERN)) | ((query >= TO_RULE) & (query < SAVED))

    def engine(self, cell: int) -> DetectCell | RuleCell:
        """What works in a cell."""
        return (DetectCell if self.name == "detect" else RuleCell)(self.reaction, cell)

    def sent(self, rows: pa.Table, cell: int) -> list[tuple[int, pa.Table]]:
        """What leaves a cell, by the cell where it goes."""
        if self.name == "detect":
            return send_detected(rows, self.reaction, cell)
        return [(cell, rows)] if len(rows) else []


def stages_of(reaction: Reaction) -> list[Stage]:
    """The stages that a program needs."""
    names: list[StageName] = []
    if reaction.program.patterns:
        names.append("detect")
    if reaction.program.rules:
        names.append("react")
    return [Stage(name, reaction) for name in names]


def react_batch(
    log: Log, cache: Cache, stage: Stage, run: str, cell: int, rows: pa.Table
) -> pa.Table:
    """Take a micro-batch into a cell of a stage; what it makes, and what was not for it."""
    key = (run, stage.name, cell)
    engine, head, first = recover(log, cache, key, lambda: stage.engine(cell))
    frontier = max(head.frontier, *frontiers(rows), START)
    mine = stage.takes(rows["query"].to_numpy())
    taken = in_order(rows.filter(pa.array(mine)))
    out = rows.filter(pa.array(~mine))
    if len(taken) or frontier.time > head.frontier.time or first is not None:
        made, head = advance(log, replace(head, frontier=frontier), engine, taken)
        log.put_head(head)
        out = pa.concat_tables([out, made])
    cache.put(key, engine, head)
    return out


def frontiers(rows: pa.Table) -> list[Frontier]:
    """How far the stream is, as the cells of the match say."""
    told = rows.take(np.flatnonzero(rows["query"].to_numpy() == FRONTIER))
    columns: Any = [told[name].to_pylist() for name in ("time", "tx", "diff")]
    return [Frontier(*row) for row in zip(*columns, strict=True)]


def in_order(rows: pa.Table) -> pa.Table:
    """Rows by transaction; of one its facts, then its events by place, type and values."""
    if len(rows) < 2:
        return rows
    values: Any = rows["row"].combine_chunks()
    texts = pa.ListArray.from_arrays(
        pa.array(np.asarray(values.offsets) - int(values.offsets[0].as_py()), pa.int32()),
        values.flatten().fill_null(""),
    )
    query, place = rows["query"].to_numpy(), rows["diff"].to_numpy()
    events = query >= TO_PATTERN
    columns: dict[str, Any] = {
        "time": rows["time"],
        "tx": rows["tx"],
        "kind": events.astype(np.int8),
        "place": np.where(events, place, 0),
        "query": query,
        "text": pc.binary_join(texts, "\0"),
    }
    keys: Any = [(name, "ascending") for name in columns]
    return rows.take(pc.sort_indices(pa.table(columns), sort_keys=keys))


def react(matched: DataFrame, task: Task) -> DataFrame:
    """The matched rows of a stream after all stages that its program needs."""
    for stage in stages_of(task.reaction) if task.reaction else ():
        matched = matched.groupBy("cell").transformWithStateInPandas(
            statefulProcessor=React(task, stage),
            outputStructType=MATCHED_SQL,
            outputMode="Append",
            timeMode="None",
        )
    return matched


class React(StatefulProcessor):
    """Takes a micro-batch into one cell of a stage after the other."""

    def __init__(self, task: Task, stage: Stage) -> None:
        self._task = task
        self._stage = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._log = StateLog(handle, self._task.mark)

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """What was sent to a cell in a micro-batch."""
        cell = cell_keys(self._task.cells).index(key[0])
        frame = pd.concat(list(rows))
        deltas = from_chunks(chunks_of(frame, "deltas"), DELTAS)
        out = react_batch(self._log, CACHE, self._stage, run_id(), cell, deltas)
        keys = cell_keys(self._task.cells)
        sent: list[MatchedRow] = [
            (keys[target], to_chunk(part), None) for target, part in self._stage.sent(out, cell)
        ]
        aside: list[MatchedRow] = [(key[0], None, c) for c in chunks_of(frame, "rejects")]
        yield matched_frame([*sent, *aside])

    def close(self) -> None:
        """The task is done (called by Spark)."""
        freeze_engines()
