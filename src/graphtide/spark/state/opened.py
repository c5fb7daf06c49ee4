"""The state of a stateful operator, as Spark is asked for it: the same of every stage.

It imports nothing, because Spark starts a process for each operator only to be told of its state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

HEAD_SCHEMA: Final = "fingerprint string, fields string, data binary"
CHUNK_SCHEMA: Final = "token string, chunk binary"


def open_state(handle: StatefulProcessorHandle) -> tuple[Any, Any]:
    """The value state `head` and the map state `chunks` (`state.log` says what is in them)."""
    head = handle.getValueState("head", HEAD_SCHEMA)
    return head, handle.getMapState("chunks", "version long", CHUNK_SCHEMA)
