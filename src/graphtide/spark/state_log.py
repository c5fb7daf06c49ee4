"""StateLog: a cell's log in Spark's state store, and whose it is.

A checkpoint goes on only with the queries and cells that made it: rows lie where that division put
them. Spark does not know of it, so each head names the task that made it (`Task.mark`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphtide.errors import GraphtideError
from graphtide.spark.frontier import Frontier
from graphtide.spark.log import Head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

HEAD_SCHEMA = (
    "mark string, version long, oldest long, token string, "
    "time long, tx long, ended int, held binary"
)
PENDING_SCHEMA = "chunk binary"
CHUNK_SCHEMA = "token string, chunk binary"


class StateLog:
    """The log of whichever cell the operator is working on."""

    def __init__(
        self, handle: StatefulProcessorHandle, mark: str, *, windows: bool = False
    ) -> None:
        self._mark = mark
        self._pending: Any = handle.getValueState("pending", PENDING_SCHEMA) if windows else None
        self._head: Any = handle.getValueState("head", HEAD_SCHEMA)
        self._chunks: Any = handle.getMapState("chunks", "version long", CHUNK_SCHEMA)

    def head(self) -> Head | None:
        """The head, or None before the first batch; of another task's log, none is given."""
        row = self._head.get()
        if row is None:
            return None
        mark, version, oldest, token, time, tx, ended, held = row
        check_mark(mark, self._mark)
        waiting = None if self._pending is None else self._pending.get()
        pending = b"" if waiting is None else bytes(waiting[0])
        return Head(version, oldest, token, Frontier(time, tx, ended), bytes(held), pending)

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        stamps = head.version, head.oldest, head.token, *head.frontier
        self._head.update((self._mark, *stamps, head.held))
        if self._pending is not None:
            self._pending.update((head.pending,))

    def versions(self) -> list[int]:
        """The versions that have a chunk, in order."""
        keys: Iterator[tuple[int]] = self._chunks.keys()
        return sorted(version for (version,) in keys)

    def chunk(self, version: int) -> tuple[str, bytes] | None:
        """A version's token and chunk, if there is one."""
        found = self._chunks.getValue((version,))
        return None if found is None else (found[0], bytes(found[1]))

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""
        self._chunks.updateValue((version,), (token, chunk))

    def drop_chunk(self, version: int) -> None:
        """Forget a version."""
        self._chunks.removeKey((version,))

    def clear(self) -> None:
        """Forget all versions."""
        self._chunks.clear()


def check_mark(found: str, wanted: str) -> None:
    """Refuse the state of a task with another mark.

    >>> check_mark("2 0ba4", "4 77e1")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the checkpoint was made with 2 cells and not 4
      hint: go on with the queries, sizes and cells as they were, or start anew with another
      checkpoint and another output
    """
    if found == wanted:
        return
    before, now = (mark.split()[0] for mark in (found, wanted))
    what = f"{before} cells and not {now}" if before != now else "other queries or sizes"
    raise GraphtideError(
        f"the checkpoint was made with {what}",
        hint="go on with the queries, sizes and cells as they were, or start anew with another "
        "checkpoint and another output",
    )
