"""Match: the stateful operator. One call per cell and micro-batch, packed rows in, packed rows out."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from graphtide.spark.cell_state import Cache, Head, take_batch
from graphtide.spark.chunk import to_chunk
from graphtide.spark.frontier import END, START, Frontier
from graphtide.spark.hashing import cell_keys

if TYPE_CHECKING:
    from graphtide.spark.cell_state import Outcome
    from graphtide.spark.task import Task

HEAD_SCHEMA = "version long, oldest long, token string, time long, tx long, ended int, held binary"
CHUNK_SCHEMA = "token string, chunk binary"
PACKED_SQL = "cell int, task int, time bigint, tx bigint, ended int, chunk binary, rejects binary"
MATCHED_SQL = "cell int, deltas binary, rejects binary"
"""Packed rows in; out, one row per cell and batch with its deltas and what it set aside."""

CACHE = Cache()
"""The engines of this Python worker."""


class StateLog:
    """A cell's log in Spark's state store."""

    def __init__(self, head: Any, chunks: Any) -> None:  # noqa: ANN401 - Spark's state handles
        self._head = head
        self._chunks = chunks

    def head(self) -> Head | None:
        """The head, or None before the first batch."""
        row = self._head.get()
        if row is None:
            return None
        version, oldest, token, time, tx, ended, held = row
        return Head(version, oldest, token, Frontier(time, tx, ended), bytes(held))

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self._head.update((head.version, head.oldest, head.token, *head.frontier, head.held))

    def chunk(self, version: int) -> tuple[str, bytes]:
        """A version's token and chunk."""
        token, chunk = self._chunks.getValue((version,))
        return token, bytes(chunk)

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""
        self._chunks.updateValue((version,), (token, chunk))

    def drop_chunk(self, version: int) -> None:
        """Forget a version."""
        self._chunks.removeKey((version,))


class Match(StatefulProcessor):
    """Takes a micro-batch into one cell after the other."""

    def __init__(self, task: Task, run: str) -> None:
        self._task = task
        self._run = run

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state (called by Spark)."""
        self._log = StateLog(
            handle.getValueState("head", HEAD_SCHEMA),
            handle.getMapState("chunks", "version long", CHUNK_SCHEMA),
        )

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """One cell's part of a micro-batch."""
        packed = pd.concat(list(rows)).sort_values("task")
        cell = cell_keys(self._task.cells).index(key[0])
        outcome = take_batch(
            self._log, CACHE, self._task, self._run, cell, chunks_of(packed), frontier_of(packed)
        )
        yield matched_row(key[0], outcome, packed)

    def close(self) -> None:
        """Keep the engines out of Python's garbage collection, which runs after every task."""
        gc.freeze()


def chunks_of(packed: pd.DataFrame) -> list[bytes]:
    """The chunks of packed rows, in the order of their tasks."""
    return [bytes(chunk) for chunk in packed["chunk"] if chunk is not None]


def frontier_of(packed: pd.DataFrame) -> Frontier:
    """The latest frontier that any task saw."""
    columns = (packed[name].tolist() for name in ("time", "tx", "ended"))
    return max((Frontier(*row) for row in zip(*columns, strict=True)), default=START)


def matched_row(key: int, outcome: Outcome, packed: pd.DataFrame) -> pd.DataFrame:
    """A cell's output: its deltas, and all that was set aside on the way."""
    aside = [bytes(chunk) for chunk in packed["rejects"] if chunk is not None]
    if len(outcome.late):
        aside.append(to_chunk(outcome.late))
    deltas = to_chunk(outcome.deltas) if len(outcome.deltas) else None
    rejects = aside or [None]
    rows = [(key, deltas if i == 0 else None, chunk) for i, chunk in enumerate(rejects)]
    return pd.DataFrame(rows, columns=["cell", "deltas", "rejects"])


class DictLog:
    """A cell's log in memory: for a bounded input, which is one batch."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._chunks: dict[int, tuple[str, bytes]] = {}

    def head(self) -> Head | None:
        """The head, or None before the first batch."""
        return self._head

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self._head = head

    def chunk(self, version: int) -> tuple[str, bytes]:
        """A version's token and chunk."""
        return self._chunks[version]

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""
        self._chunks[version] = (token, chunk)

    def drop_chunk(self, version: int) -> None:
        """Forget a version."""
        del self._chunks[version]


def match_all(packed: pd.DataFrame, task: Task) -> pd.DataFrame:
    """A cell's whole bounded input at once: after it, every transaction is complete."""
    packed = packed.sort_values("task")
    key = int(packed["cell"].iloc[0])
    cell = cell_keys(task.cells).index(key)
    outcome = take_batch(DictLog(), Cache(), task, "", cell, chunks_of(packed), END)
    return matched_row(key, outcome, packed)
