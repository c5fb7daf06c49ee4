"""The durable state of a partition: a log of chunks in Spark's state store, or in memory.

A log is a sequence of chunks, each with a version and a token, and a head. A chunk holds what came
after the chunk before it, up to its version. A token names one attempt at a version: two attempts
at the same micro-batch never share one.

A round trip to the state store costs more than the bytes it moves, so the newest chunks are in the
head itself (its *tail*): a small micro-batch reads the head and writes it, and that is all. When
the tail is full, its older half becomes one chunk of its own. Large chunks never are in the tail.

The layout, for whatever reads the state of a checkpoint (Spark's `statestore` source):

- The operator has one group per partition, by the key of `partition.hashing.partition_keys`.
- The value state `head` has the columns `fingerprint` (`JobSpec.fingerprint`: partitions, format,
  hash), `fields` and `data`. `fields` is a JSON object: `version`, `oldest` and `token` of the last
  chunk; `frontier`, a list of time, tx and ended; `shards` (`Shards.to_text`); `held` and
  `unreported`, two numbers of bytes; `tail`, a list of version, token and bytes per chunk;
  `stored`, a list of version, bytes and level per chunk of the map. `data` has the bytes of `held`,
  `unreported` and all of the `tail`, one after the other.
- The map state `chunks` has, by `version`, the columns `token` and `chunk`.
- All chunks of `stored`, then those of `tail`, in order, are the log. Each is one or several Arrow
  streams (`messages.from_chunk`): of the match, rows of `JobSpec.log_schema`; of other stages,
  `MESSAGES`. Applied in order to an empty engine, they give the state. `held` is a chunk of
  `changes_schema`, `unreported` one of `MESSAGES`; no bytes stand for no rows.

A checkpoint can be resumed only by the queries and the number of partitions that made it: rows lie
where that division put them. Spark does not know of it, so each head has the fingerprint of its
job. If this layout changes, `FORMAT` does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from graphtide.errors import GraphtideError
from graphtide.spark.state.frontier import NO_SHARDS, START, Frontier, Shards
from graphtide.spark.state.messages import merged
from graphtide.spark.state.opened import open_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

FORMAT: Final = 2
"""The number of the layout of states, a part of every fingerprint."""


class LogEntry(NamedTuple):
    """A chunk of a log, its version, and the attempt that wrote it."""

    version: int
    token: str
    chunk: bytes


class Stored(NamedTuple):
    """A chunk outside the head: its version and size, and how often it was merged."""

    version: int
    size: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a partition beside its larger chunks.

    `version` and `token` name its last chunk, `oldest` the first that counts. `frontier` is that of
    the stream, `shards` those of the source's shards. `held` has the changes of transactions beyond
    the frontier. `unreported` has what changed in the answers of queries over windows since their
    last window closed. `tail` has the newest chunks, `stored` says which others there are.
    """

    version: int = 0
    oldest: int = 1
    token: str = ""
    frontier: Frontier = START
    held: bytes = b""
    unreported: bytes = b""
    shards: Shards = NO_SHARDS
    tail: tuple[LogEntry, ...] = ()
    stored: tuple[Stored, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of the whole state of the partition."""
        inside = len(self.held) + len(self.unreported) + sum(len(e.chunk) for e in self.tail)
        return inside + sum(each.size for each in self.stored)

    def fields(self) -> str:
        """All but the bytes, as a JSON text."""
        return json.dumps(
            {
                "version": self.version,
                "oldest": self.oldest,
                "token": self.token,
                "frontier": self.frontier,
                "shards": self.shards.to_text(),
                "held": len(self.held),
                "unreported": len(self.unreported),
                "tail": [(e.version, e.token, len(e.chunk)) for e in self.tail],
                "stored": self.stored,
            }
        )

    def data(self) -> bytes:
        """The bytes, one part after the other."""
        return b"".join([self.held, self.unreported, *(entry.chunk for entry in self.tail)])

    @classmethod
    def of(cls, fields: str, data: bytes) -> Head:
        """The head of `fields` and `data`.

        >>> head = Head(3, held=b"held", tail=(LogEntry(3, "token", b"chunk"),))
        >>> Head.of(head.fields(), head.data()) == head
        True
        """
        found = json.loads(fields)
        sizes = [found["held"], found["unreported"], *(size for _, _, size in found["tail"])]
        ends = list(accumulate(sizes))
        held, unreported, *chunks = (
            data[end - size : end] for size, end in zip(sizes, ends, strict=True)
        )
        return cls(
            found["version"],
            found["oldest"],
            found["token"],
            Frontier(*found["frontier"]),
            held,
            unreported,
            Shards.from_text(found["shards"]),
            tuple(
                LogEntry(version, token, chunk)
                for (version, token, _), chunk in zip(found["tail"], chunks, strict=True)
            ),
            tuple(Stored(*each) for each in found["stored"]),
        )


class Log(Protocol):
    """The durable state of a partition."""

    def head(self) -> Head | None:
        """The head, or None before the first batch."""

    def put_head(self, head: Head) -> None:
        """Replace the head."""

    def chunk(self, version: int) -> LogEntry | None:
        """A chunk outside the head; None if it was merged into a later one, or dropped."""

    def put_chunk(self, entry: LogEntry) -> None:
        """Add a chunk outside the head."""

    def drop_chunk(self, version: int) -> None:
        """Drop a chunk outside the head."""

    def clear(self) -> None:
        """Drop all chunks outside the head."""


@dataclass(slots=True)
class MemoryLog:
    """A log in memory.

    >>> log = MemoryLog()
    >>> log.put_chunk(LogEntry(1, "token", b"bytes"))
    >>> log.chunk(1), log.head()
    (LogEntry(version=1, token='token', chunk=b'bytes'), None)
    """

    current: Head | None = None
    chunks: dict[int, LogEntry] = field(default_factory=dict)

    def head(self) -> Head | None:
        """The head, or None before the first batch."""
        return self.current

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self.current = head

    def chunk(self, version: int) -> LogEntry | None:
        """A chunk outside the head, if there is one."""
        return self.chunks.get(version)

    def put_chunk(self, entry: LogEntry) -> None:
        """Add a chunk outside the head."""
        self.chunks[entry.version] = entry

    def drop_chunk(self, version: int) -> None:
        """Drop a chunk outside the head."""
        del self.chunks[version]

    def clear(self) -> None:
        """Drop all chunks outside the head."""
        self.chunks.clear()


class StateLog:
    """The log of whichever partition the operator is working on."""

    def __init__(self, handle: StatefulProcessorHandle, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        self._head, self._chunks = open_state(handle)

    def head(self) -> Head | None:
        """The head, or None before the first batch; that of another job is an error."""
        row = self._head.get()
        if row is None:
            return None
        fingerprint, fields, data = row
        check_fingerprint(fingerprint, self._fingerprint)
        return Head.of(fields, bytes(data))

    def put_head(self, head: Head) -> None:
        """Replace the head."""
        self._head.update((self._fingerprint, head.fields(), head.data()))

    def chunk(self, version: int) -> LogEntry | None:
        """A chunk outside the head, if there is one."""
        found = self._chunks.getValue((version,))
        return None if found is None else LogEntry(version, found[0], bytes(found[1]))

    def put_chunk(self, entry: LogEntry) -> None:
        """Add a chunk outside the head."""
        self._chunks.updateValue((entry.version,), (entry.token, entry.chunk))

    def drop_chunk(self, version: int) -> None:
        """Drop a chunk outside the head."""
        self._chunks.removeKey((version,))

    def clear(self) -> None:
        """Drop all chunks outside the head."""
        self._chunks.clear()


def check_fingerprint(found: str, wanted: str) -> None:
    """Raise if the state is that of a job with another fingerprint.

    >>> check_fingerprint("2 2 0ba4", "4 2 77e1")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the checkpoint was made with 2 partitions and not 4
      hint: resume with the queries, sizes, layouts and partitions as they were, or start again with
      another checkpoint and another output
    """
    if found == wanted:
        return
    (before, *old), (now, *new) = (text.split() for text in (found, wanted))
    if old[:1] != new[:1]:
        raise GraphtideError(
            "the checkpoint was made by another version of graphtide: its state has format "
            f"{old[0]} and not {new[0]}",
            hint="resume with that version, or start again with another checkpoint and output",
        )
    what = (
        f"{before} partitions and not {now}" if before != now else "other queries, sizes or layouts"
    )
    raise GraphtideError(
        f"the checkpoint was made with {what}",
        hint="resume with the queries, sizes, layouts and partitions as they were, or start again "
        "with another checkpoint and another output",
    )


RUN: Final = 16
"""How many chunks are merged into one; the tail has up to two such runs."""

TAIL_BYTES: Final = 65_536
"""A larger chunk is not in the tail, and a larger tail loses its older half."""

LARGE: Final = 1_000_000
"""Bytes; no chunk is merged into a larger one."""


def appended(log: Log, head: Head, chunk: bytes) -> Head:
    """The head with a chunk for its version; older ones may go from the tail into the log.

    A run of chunks from the tail becomes one chunk, a run of such chunks one of the next level, and
    so on up to `LARGE`. So a change is written a few times in all, and a rebuild reads few chunks.
    The newest ones stay as they are: an engine that is a little behind catches up from there.

    >>> from graphtide.spark.state.messages import to_chunk
    >>> import pyarrow as pa
    >>> log, head = MemoryLog(), Head()
    >>> for version in range(1, 41):
    ...     head = replace(head, version=version, token=f"token {version}")
    ...     head = appended(log, head, to_chunk(pa.table({"a": [version]})))
    >>> [each.version for each in head.stored], [entry.version for entry in head.tail][::23]
    ([16], [17, 40])
    """
    entry = LogEntry(head.version, head.token, chunk)
    if len(chunk) > TAIL_BYTES:
        stored = _spilled(log, head.stored, head.tail)
        return replace(head, tail=(), stored=_spilled(log, stored, [entry]))
    tail = (*head.tail, entry)
    size = sum(len(each.chunk) for each in tail)
    if len(tail) <= 2 * RUN and size <= TAIL_BYTES:
        return replace(head, tail=tail)
    older = min(RUN, len(tail) // 2)
    return replace(head, tail=tail[older:], stored=_spilled(log, head.stored, tail[:older]))


def _spilled(
    log: Log, stored: tuple[Stored, ...], entries: Sequence[LogEntry]
) -> tuple[Stored, ...]:
    """The stored chunks, with a chunk of these entries; full runs are merged."""
    if not entries:
        return stored
    stored = (*stored, _put(log, entries, 0))
    while True:
        run = stored[-RUN:]
        level = run[0].level
        fits = len(run) == RUN and sum(each.size for each in run) <= LARGE
        if not fits or any(each.level != level for each in run):
            return stored
        found = [log.chunk(each.version) for each in run]
        whole = [entry for entry in found if entry is not None]
        for each in run[:-1]:
            log.drop_chunk(each.version)
        stored = (*stored[:-RUN], _put(log, whole, level + 1))


def _put(log: Log, entries: Sequence[LogEntry], level: int) -> Stored:
    """Put some chunks into the log as one, with the version and token of the last."""
    last = entries[-1]
    chunk = last.chunk if len(entries) == 1 else merged(entry.chunk for entry in entries)
    log.put_chunk(LogEntry(last.version, last.token, chunk))
    return Stored(last.version, len(chunk), level)
