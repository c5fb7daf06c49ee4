"""Log: a cell's durable state, kept by Spark's state store or, for a bounded input, in memory.

A log is a row of chunks, each with a version and a token, and a head that says which of them count.
A chunk holds what came after the chunk before it, up to its version. A token names one attempt at a
version: two attempts at the same micro-batch never share one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from graphtide.spark.frontier import START, Frontier


@dataclass(frozen=True, slots=True)
class Head:
    """What the state says of a cell: the log's versions, its token, the frontier, changes held.

    `pending` is what changed in answers over windows since they were last put out.
    """

    version: int = 0
    oldest: int = 1
    token: str = ""
    frontier: Frontier = START
    held: bytes = b""
    pending: bytes = b""


class Log(Protocol):
    """Where a cell's state is kept."""

    def head(self) -> Head | None:
        """The head, or None before the first batch."""

    def put_head(self, head: Head) -> None:
        """Replace the head."""

    def versions(self) -> list[int]:
        """The versions that have a chunk, in order."""

    def chunk(self, version: int) -> tuple[str, bytes] | None:
        """A version's token and chunk; None if it was merged into a later one, or forgotten."""

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""

    def drop_chunk(self, version: int) -> None:
        """Forget a version."""

    def clear(self) -> None:
        """Forget all versions."""


@dataclass(slots=True)
class DictLog:
    """A log in memory.

    >>> log = DictLog()
    >>> log.put_chunk(1, "token", b"bytes")
    >>> log.chunk(1), log.head()
    (('token', b'bytes'), None)
    """

    current: Head | None = None
    chunks: dict[int, tuple[str, bytes]] = field(default_factory=dict)

    def head(self) -> Head | None:
        """The head, or None before the first batch."""
        return self.current

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self.current = head

    def versions(self) -> list[int]:
        """The versions that have a chunk, in order."""
        return sorted(self.chunks)

    def chunk(self, version: int) -> tuple[str, bytes] | None:
        """A version's token and chunk, if there is one."""
        return self.chunks.get(version)

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""
        self.chunks[version] = (token, chunk)

    def drop_chunk(self, version: int) -> None:
        """Forget a version."""
        del self.chunks[version]

    def clear(self) -> None:
        """Forget all versions."""
        self.chunks.clear()
