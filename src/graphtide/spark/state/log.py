"""The durable state of a partition: a log of chunks in Spark's state store, or in memory.

A log is a sequence of chunks, each with a version and a token, and a head that says which of them
count. A chunk holds what came after the chunk before it, up to its version. A token names one
attempt at a version: two attempts at the same micro-batch never share one.

A checkpoint can be resumed only by the queries and the number of partitions that made it: rows lie
where that division put them. Spark does not know of it, so each head has the fingerprint of its
job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from graphtide.errors import GraphtideError
from graphtide.spark.state.frontier import NO_SHARDS, START, Frontier, Shards
from graphtide.spark.state.messages import merged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a partition beside its chunks.

    `version` and `token` name its last chunk, `oldest` the first that counts. `frontier` is that of
    the stream, `shards` those of the source's shards. `held` has the changes of transactions beyond
    the frontier. `unreported` has what changed in the answers of queries over windows since their
    last window closed.
    """

    version: int = 0
    oldest: int = 1
    token: str = ""
    frontier: Frontier = START
    held: bytes = b""
    unreported: bytes = b""
    shards: Shards = NO_SHARDS


class LogEntry(NamedTuple):
    """A chunk of a log, and the attempt that wrote it."""

    token: str
    chunk: bytes


class Log(Protocol):
    """The durable state of a partition."""

    def head(self) -> Head | None:
        """The head, or None before the first batch."""

    def put_head(self, head: Head) -> None:
        """Replace the head."""

    def versions(self) -> list[int]:
        """The versions that have a chunk, in order."""

    def chunk(self, version: int) -> LogEntry | None:
        """A version's token and chunk; None if it was merged into a later one, or dropped."""

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""

    def drop_chunk(self, version: int) -> None:
        """Drop a version."""

    def clear(self) -> None:
        """Drop all versions."""


@dataclass(slots=True)
class MemoryLog:
    """A log in memory.

    >>> log = MemoryLog()
    >>> log.put_chunk(1, "token", b"bytes")
    >>> log.chunk(1), log.head()
    (LogEntry(token='token', chunk=b'bytes'), None)
    """

    current: Head | None = None
    chunks: dict[int, LogEntry] = field(default_factory=dict)

    def head(self) -> Head | None:
        """The head, or None before the first batch."""
        return self.current

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self.current = head

    def versions(self) -> list[int]:
        """The versions that have a chunk, in order."""
        return sorted(self.chunks)

    def chunk(self, version: int) -> LogEntry | None:
        """A version's token and chunk, if there is one."""
        return self.chunks.get(version)

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""
        self.chunks[version] = LogEntry(token, chunk)

    def drop_chunk(self, version: int) -> None:
        """Drop a version."""
        del self.chunks[version]

    def clear(self) -> None:
        """Drop all versions."""
        self.chunks.clear()


HEAD_SCHEMA = (
    "fingerprint string, version long, oldest long, token string, "
    "time long, tx long, ended int, held binary, shards string"
)
UNREPORTED_SCHEMA = "chunk binary"
CHUNK_SCHEMA = "token string, chunk binary"


class StateLog:
    """The log of whichever partition the operator is working on."""

    def __init__(
        self, handle: StatefulProcessorHandle, fingerprint: str, *, windows: bool = False
    ) -> None:
        self._fingerprint = fingerprint
        self._unreported: Any = (
            handle.getValueState("unreported", UNREPORTED_SCHEMA) if windows else None
        )
        self._head: Any = handle.getValueState("head", HEAD_SCHEMA)
        self._chunks: Any = handle.getMapState("chunks", "version long", CHUNK_SCHEMA)

    def head(self) -> Head | None:
        """The head, or None before the first batch; that of another job is an error."""
        row = self._head.get()
        if row is None:
            return None
        fingerprint, version, oldest, token, time, tx, ended, held, shards = row
        check_fingerprint(fingerprint, self._fingerprint)
        waiting = None if self._unreported is None else self._unreported.get()
        unreported = b"" if waiting is None else bytes(waiting[0])
        frontier, seen = Frontier(time, tx, ended), Shards.from_text(shards)
        return Head(version, oldest, token, frontier, bytes(held), unreported, seen)

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        stamps = head.version, head.oldest, head.token, *head.frontier
        self._head.update((self._fingerprint, *stamps, head.held, head.shards.to_text()))
        if self._unreported is not None:
            self._unreported.update((head.unreported,))

    def versions(self) -> list[int]:
        """The versions that have a chunk, in order."""
        keys: Iterator[tuple[int]] = self._chunks.keys()
        return sorted(version for (version,) in keys)

    def chunk(self, version: int) -> LogEntry | None:
        """A version's token and chunk, if there is one."""
        found = self._chunks.getValue((version,))
        return None if found is None else LogEntry(found[0], bytes(found[1]))

    def put_chunk(self, version: int, token: str, chunk: bytes) -> None:
        """Add a version."""
        self._chunks.updateValue((version,), (token, chunk))

    def drop_chunk(self, version: int) -> None:
        """Drop a version."""
        self._chunks.removeKey((version,))

    def clear(self) -> None:
        """Drop all versions."""
        self._chunks.clear()


def check_fingerprint(found: str, wanted: str) -> None:
    """Raise if the state is that of a job with another fingerprint.

    >>> check_fingerprint("2 0ba4", "4 77e1")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the checkpoint was made with 2 partitions and not 4
      hint: resume with the queries, sizes, layouts and partitions as they were, or start again with
      another checkpoint and another output
    """
    if found == wanted:
        return
    before, now = (text.split()[0] for text in (found, wanted))
    what = (
        f"{before} partitions and not {now}" if before != now else "other queries, sizes or layouts"
    )
    raise GraphtideError(
        f"the checkpoint was made with {what}",
        hint="resume with the queries, sizes, layouts and partitions as they were, or start again "
        "with another checkpoint and another output",
    )


RUN: Final = 16
"""How many chunks of one size are merged into one of the next."""

LARGE: Final = 1_000_000
"""Bytes; no chunk is merged into a larger one."""


def merge_chunks(log: Log, version: int) -> None:
    """Merge small chunks that this version has made old enough, so that a rebuild reads few.

    A log gets a chunk with each micro-batch. When a run of `RUN` chunks is complete, the run before
    it becomes one chunk, a run of such chunks one of the next size, and so on up to `LARGE`. So a
    change is written a few times in all. The newest run stays as it is: an engine that is a little
    behind catches up from there.

    >>> from graphtide.spark.state.messages import to_chunk
    >>> import pyarrow as pa
    >>> log = MemoryLog()
    >>> for version in range(1, 41):
    ...     log.put_chunk(version, f"token {version}", to_chunk(pa.table({"a": [version]})))
    ...     merge_chunks(log, version)
    >>> log.versions()[:3], len(log.versions())
    ([16, 17, 18], 25)
    """
    end, span = version - RUN, RUN
    if version % RUN or end <= 0:
        return
    versions = [at for at in log.versions() if at <= end]
    while end % span == 0:
        run = [at for at in versions if at > end - span]
        if not _merge_run(log, run):
            return
        versions = [*versions[: -len(run)], run[-1]]
        span *= RUN


def _merge_run(log: Log, run: list[int]) -> bool:
    """Merge the last chunks of a run, as many as fit; whether the run is one chunk now."""
    chunks: list[bytes] = []
    token, size = "", 0
    for at in reversed(run):
        found = log.chunk(at)
        if found is None or size + len(found.chunk) > LARGE:
            break
        token, size = token or found.token, size + len(found.chunk)
        chunks.append(found.chunk)
    if len(chunks) > 1:
        log.put_chunk(run[-1], token, merged(reversed(chunks)))
        for at in run[-len(chunks) : -1]:
            log.drop_chunk(at)
    return len(run) == len(chunks) > 0
