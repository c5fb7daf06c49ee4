"""Cursor: the deltas of a query that a consumer has not acknowledged, across restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.arguments import check_type, wrong_type
from graphtide.errors import GraphtideError
from graphtide.ticks import ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.durable.store import Store
    from graphtide.engine.results import Delta
    from graphtide.engine.watch import Query

NEVER = -2
"""Acknowledged by a consumer before it has any: the first answer has -1 or more."""


def check_name(name: object) -> None:
    """Raise a TypeError unless a consumer can have that name in a store."""
    check_type(name, "name", str)
    text = str(name)
    if not text or "\0" in text or (not text.isascii() and any(map(_is_surrogate, text))):
        raise wrong_type(name, "name", "a text that is not empty, of characters of Unicode")


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


class Cursor:
    """Made by `Query.cursor`.

    Each delta has a sequence number, `delta.seq`, which is the same after a restart. A delta comes
    again until it, or a later one, is acknowledged.
    """

    def __init__(
        self,
        store: Store,
        query: Query,
        name: str,
        since: Callable[[Query, int], Iterator[Delta]],
    ) -> None:
        check_name(name)
        self.name = name
        self._store = store
        self._query = query
        self._since = since
        self._read: int | None = None
        known = store.journal.cursors().get((query.name, name))
        self.acknowledged = NEVER if known is None else known
        if known is None and not store.read_only:
            store.flush()
            store.journal.acknowledge(query.name, name, NEVER)

    def __iter__(self) -> Iterator[Delta]:
        return self.deltas()

    def deltas(self) -> Iterator[Delta]:
        """The deltas that are not acknowledged, oldest first."""
        retained = list(self._query.deltas())
        reaches = not self._query.evicted or (retained and retained[0].seq <= self.acknowledged)
        whole = reaches and self._query.begins_at <= self.acknowledged + 1
        found = iter(retained) if whole else self._since(self._query, self.acknowledged)
        for delta in found:
            if delta.seq > self.acknowledged:
                self._read = delta.seq
                yield delta

    def release(self) -> None:
        """Forget where the consumer is: it will not come back, and nothing is kept for it."""
        if not self._store.read_only:
            self._store.journal.release(self._query.name, self.name)

    def ack(self, delta: Delta | int | None = None) -> None:
        """Acknowledge everything up to a delta, or to its `seq`; by default all that was read."""
        seq = self._read if delta is None else getattr(delta, "seq", delta)
        if seq is None:
            return
        seq = ticks(seq, "seq")
        if self._store.read_only:
            raise GraphtideError("a store that is open for reading cannot acknowledge anything")
        last = self._store.last_of(self._query)
        if seq > last:
            raise GraphtideError(
                f"{self._query.name} has no delta {seq:,} to acknowledge: the last is {last:,}",
                hint="acknowledge the `seq` of a delta that was read",
            )
        if seq > self.acknowledged:
            self._store.flush()  # what is acknowledged must not be lost by the graph
            self._store.journal.acknowledge(self._query.name, self.name, seq)
            self.acknowledged = seq
