"""RequestLog: changes with an idempotency key are applied once, however often they are sent.

With a store, the keys are in its directory, and known after a crash. A key is written before its
changes, with the number of the transaction that they begin with: so it is known afterwards whether
they are in the journal, and how many of them.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from graphtide.rdf.changes import ChangeBatch
from graphtide.serve import http

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.serve.host import Host

FILE: Final = "requests.db"
MAX_KEYS: Final = 100_000
"""Keys that are remembered."""

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS requests
(key TEXT PRIMARY KEY, digest TEXT, first INTEGER, count INTEGER, applied INTEGER)
"""


class KnownRequest(NamedTuple):
    """A request that came before: a fingerprint of its body, and how many transactions of it."""

    digest: str
    applied: int


class RequestLog:
    """The keys of a server's requests. Its methods are called with the lock of the graph."""

    def __init__(self, host: Host) -> None:
        self._graph = host.graph
        self._durable = host.durable
        folder = host.graph.store.store.folder if host.durable else None
        self._database = sqlite3.connect(
            ":memory:" if folder is None else folder / FILE,
            isolation_level=None,
            check_same_thread=False,
        )
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(_TABLE)
        done = host.graph.transactions
        # A crash may have come before, or in the middle of, the last of them.
        self._run("DELETE FROM requests WHERE first >= ?", done)
        self._run("UPDATE requests SET applied = MIN(count, ? - first) WHERE applied < count", done)
        host.at_close(self._database.close)

    def apply(self, key: str | None, digest: str, batch: ChangeBatch) -> dict[str, Any]:
        """Apply changes, if they have not been applied under that key."""
        starts = batch.transaction_starts().tolist()
        said = {"transactions": len(starts), "changes": len(batch)}
        if key is None or self._graph.feed().streams:
            # Events have no transactions of their own, by which to tell how many were applied.
            return self.once(key, digest, lambda: self._applied(batch, said))
        known = self._known(key, digest)
        skipped = 0 if known is None else known.applied
        if skipped == len(starts):
            return said if known is None else said | {"repeated": True}
        self._add(key, digest, self._graph.transactions - skipped, len(starts), skipped)
        try:
            self._applied(batch.slice(starts[skipped], len(batch)), said)
        except BaseException:
            self._run("DELETE FROM requests WHERE key = ?", key)
            raise
        self._run("UPDATE requests SET applied = count WHERE key = ?", key)
        return said

    def once(
        self, key: str | None, digest: str, function: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Call a function, unless that was done under that key."""
        if key is None:
            return function()
        if self._known(key, digest) is not None:
            return {"repeated": True}
        result = function()
        if self._durable:
            self._graph.flush()
        self._add(key, digest, -1, 0, 0)
        return result

    def _applied(self, batch: ChangeBatch, said: dict[str, Any]) -> dict[str, Any]:
        if len(batch):
            self._graph.apply(stamped(batch, self._graph.clock, self._graph.transactions))
        return said

    def _known(self, key: str, digest: str) -> KnownRequest | None:
        rows = self._run("SELECT digest, applied FROM requests WHERE key = ?", key)
        if not rows:
            return None
        known = KnownRequest(*rows[0])
        if known.digest != digest:
            raise http.HttpProblem(
                422, "this idempotency key was used for another body", hint="use a new key"
            )
        return known

    def _add(self, key: str, digest: str, first: int, count: int, applied: int) -> None:
        values = key, digest, first, count, applied
        self._run("INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)", *values)
        self._run("DELETE FROM requests WHERE rowid <= last_insert_rowid() - ?", MAX_KEYS)

    def _run(self, text: str, *values: object) -> list[Any]:
        try:
            return self._database.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise http.HttpProblem(507, f"the idempotency key cannot be kept: {error}") from None


def stamped(batch: ChangeBatch, clock: int, tx: int) -> ChangeBatch:
    """A batch with the clock in place of missing times, and its transactions numbered from `tx`.

    >>> rows = [(t, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None) for t in (0, 0, 9)]
    >>> found = stamped(ChangeBatch.of(rows), 7, 100)
    >>> found.time.tolist(), found.tx.tolist()
    ([7, 7, 9], [100, 100, 101])
    """
    begins = np.zeros(len(batch), np.int64)
    begins[batch.transaction_starts()] = 1
    times = np.where(batch.time == 0, clock, batch.time).astype(np.int64)
    txs = np.cumsum(begins) - 1 + tx
    return ChangeBatch(times, txs, batch.diff, batch.s, batch.p, batch.o, batch.g)
