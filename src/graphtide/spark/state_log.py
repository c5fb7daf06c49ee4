"""StateLog: a cell's log in Spark's state store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphtide.spark.frontier import Frontier
from graphtide.spark.log import Head

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

HEAD_SCHEMA = "version long, oldest long, token string, time long, tx long, ended int, held binary"
CHUNK_SCHEMA = "token string, chunk binary"


class StateLog:
    """The log of whichever cell the operator is working on."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head: Any = handle.getValueState("head", HEAD_SCHEMA)
        self._chunks: Any = handle.getMapState("chunks", "version long", CHUNK_SCHEMA)

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
