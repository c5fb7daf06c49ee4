"""GraphCore: the state of a live graph, and how a transaction goes through it."""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

import numpy as np

from graphtide.engine.ingest import one_by_one
from graphtide.engine.queries import QueryRegistry
from graphtide.errors import GraphtideError, StrictError
from graphtide.kernel import QuadStore, QuadStream
from graphtide.rdf.dictionary import TermDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.engine.ingest import Ids, Piece, Transactions
    from graphtide.engine.queries import RunningPlans
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.plan.patterns import Strategy
    from graphtide.streams.events import Listener
    from graphtide.streams.registry import Streams


# --- WriteBuffer: single changes that wait for the next kernel call.
#
# A kernel call costs more than a change. Answers are only looked at after `settle`, and a batch keeps
# its transactions apart, so nobody can tell that changes waited.

MOST_PENDING = 4096

_ROW = Struct("6i")
_write = _ROW.pack_into


class WriteBuffer:
    """Changes of whole transactions, and the stamps of these; `waiting` counts the transactions.

    >>> pending = WriteBuffer()
    >>> pending.begin(time=17, tx=0)
    >>> pending.add(1, (2, 3, 4, 0))
    >>> pending.take()[0].tolist()
    [[0, 1, 2, 3, 4, 0]]
    """

    __slots__ = ("_bytes", "_end", "_rows", "_times", "_txs", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self._end = 0
        self._times: list[int] = []
        self._txs: list[int] = []
        self._make_room(MOST_PENDING)

    def _make_room(self, rows: int) -> None:
        larger = np.zeros((rows, 6), np.int32)
        if self._end:
            larger[: len(self._rows)] = self._rows
        self._rows: Ints = larger
        self._bytes = larger.data.cast("B")

    def begin(self, time: int, tx: int) -> None:
        """Start a transaction."""
        self._times.append(time)
        self._txs.append(tx)
        self.waiting += 1

    def add(self, diff: int, ids: Ids) -> None:
        """Add a change to the transaction begun last."""
        if self._end == len(self._bytes):
            self._make_room(2 * len(self._rows))
        _write(self._bytes, self._end, self.waiting - 1, diff, *ids)
        self._end += 24

    def single(self, time: int, tx: int, diff: int, ids: Ids) -> int:
        """Add a transaction of one change; how many transactions wait now."""
        self._times.append(time)
        self._txs.append(tx)
        if self._end == len(self._bytes):
            self._make_room(2 * len(self._rows))
        _write(self._bytes, self._end, self.waiting, diff, *ids)
        self._end += 24
        self.waiting += 1
        return self.waiting

    def take(self) -> tuple[Ints, list[int], list[int]]:
        """All that waits: a batch of changes, its times and its numbers; nothing waits then.

        The batch is good until the next change is added.
        """
        changes = self._rows[: self._end // 24]
        times, txs = self._times, self._txs
        self._end = self.waiting = 0
        self._times, self._txs = [], []
        return changes, times, txs


# --- TransactionTimes: the times and transaction numbers of the transactions of one batch.


class TransactionTimes(NamedTuple):
    """Per transaction of a batch its `(time, tx)`; `first` counts transactions since the start.

    >>> TransactionTimes([17, 18], [0, 1], first=5).stamp(1)
    (18, 1)
    """

    times: Sequence[int] | Longs
    txs: Sequence[int] | Longs
    first: int

    def stamp(self, index: int) -> tuple[int, int]:
        """The time and number of a transaction of the batch."""
        return int(self.times[index]), int(self.txs[index])


# --- Strict mode: find a change that would have no effect, before anything happens.


def first_redundant(
    changes: Sequence[tuple[int, tuple[int, ...]]], store: QuadStore, terms: TermDictionary
) -> tuple[int, StrictError] | None:
    """Walk the changes in order, as if they were applied; the place of the first redundant one."""
    quads = list({ids for _, ids in changes})
    present = dict(
        zip(quads, store.contains(np.array(quads, np.int32).reshape(-1, 4)), strict=True)
    )
    for place, (diff, ids) in enumerate(changes):
        if bool(present[ids]) == (diff > 0):
            what = "insert of a quad that is present" if diff > 0 else "delete of an absent quad"
            text = " ".join(terms.text(i) for i in ids if i)
            return place, StrictError(
                f"{what}: {text}",
                hint="nothing of this transaction was applied; LiveGraph(strict=False) ignores it",
            )
        present[ids] = diff > 0
    return None


# --- Which quads a live graph keeps.
#
# all      every quad; a query can be registered at any time
# matched  quads that a registered query can match, by their predicate
# none     no quad: changes are matched as they pass, and queries keep what they need

Storage = Literal["all", "matched", "none"]


def make_store(storage: Storage, *, strict: bool) -> QuadStore:
    """The store of a live graph, or an error if it cannot do what is asked of it.

    >>> len(make_store("matched", strict=False))
    0
    """
    if storage not in get_args(Storage):
        hint = 'use "all", "matched" or "none"'
        raise GraphtideError(f"store={storage!r} is unknown", hint=hint)
    if strict and storage != "all":
        kept = "a store of matched quads drops some" if storage == "matched" else "none is stored"
        raise GraphtideError(
            f"strict mode has to know every quad, but {kept}",
            hint='use strict=True with store="all"',
        )
    return QuadStream() if storage == "none" else QuadStore(store_all=storage == "all")


def strategy_for(store: QuadStore, strategy: Strategy | None) -> Strategy | None:
    """The strategy of a new query: over no quads, one that looks none up.

    >>> strategy_for(make_store("none", strict=False), None)
    'decomposed'
    """
    return strategy if store.stores or strategy else "decomposed"


# --- Followers: those who go along with a graph, transaction by transaction, such as rules.


class Follower(Protocol):
    """Is told before the graph's clock moves on, and after every transaction."""

    def before(self, time: int) -> None:
        """The clock is going to be moved on to a time; the graph is still as it was."""

    def after(self) -> None:
        """A transaction is through; it may be changed again."""


class Followers(list[Follower]):
    """The followers of a graph. Whoever joins also counts as one of the graph's callbacks.

    >>> Followers().after()
    """

    def before(self, time: int, clock: int) -> None:
        """Tell all that the clock is going to be moved on, if it is."""
        if self and time > clock:
            for follower in tuple(self):
                follower.before(time)

    def after(self) -> None:
        """Tell all that a transaction is through."""
        for follower in tuple(self):
            follower.after()


class GraphCore:
    """The quads, the standing queries, the clock, and what waits for its turn.

    `LiveGraph` is what is built on it; `_streams` is made there.
    """

    _streams: Streams

    def __init__(
        self, *, strict: bool, store: Storage, default_graph: Literal["own", "union"], tick_ms: int
    ) -> None:
        if default_graph not in ("own", "union"):
            known = 'use "own" or "union"'
            raise GraphtideError(f"default_graph={default_graph!r} is unknown", hint=known)
        self.terms = TermDictionary()
        self.strict = strict
        self.storage: Storage = store
        self.default_graph: Literal["own", "union"] = default_graph
        self.clock = 0
        self.callbacks = 0
        self.tick_ms = tick_ms
        self.followers = Followers()
        self.listeners: list[Listener] = []
        self._done = 0
        self._last_tx = -1
        self._storage = store
        self._store = make_store(store, strict=strict)
        self._register = QueryRegistry(self._store, self.terms, union=default_graph == "union")
        self._pending = WriteBuffer()
        self._due: deque[Piece] = deque()
        self._running = False

    @property
    def standing(self) -> RunningPlans:
        """The plans of the queries at work."""
        return self._register.standing

    @property
    def has_windows(self) -> bool:
        """Whether queries over windows are registered."""
        return self._streams.has_windows

    def settle(self) -> None:
        """Carry out what waits. Every look at an answer does this first.

        What a callback changes waits until the transaction that it was called for is through.
        """
        while (self._due or self._pending.waiting) and not self._running:
            if self._due:
                self._run(self._due.popleft())
            elif self.callbacks:
                self._due.extend(one_by_one(self._pending.take()))
            else:
                self._run(self._pending.take())

    def _stamp(self, time: int | None) -> int:
        """A time for what comes next. Windows that close before it close first."""
        if time is None:
            return self.clock
        if self._streams and time > self.clock:
            self._streams.advance(time)
        self.followers.before(time, self.clock)
        if time < self.clock:
            raise GraphtideError(
                f"time runs backwards: {time} is before the graph's clock, {self.clock}",
                hint="give times in order; equal times are allowed",
            )
        return time

    def _run(self, piece: Transactions) -> None:
        """Apply changes, let the queries they concern take them in, then call back."""
        changes, times, txs = piece
        stamps = TransactionTimes(times, txs, self._done)
        self._running = True
        try:
            batches = self._store.apply(changes)
            self._done += len(times)
            if batches:
                self._register.tell(self.standing.advance(batches), stamps)
        finally:
            self._running = False
        self.followers.after()

    def _tell(self, outputs: Mapping[int, Ints], stamps: TransactionTimes) -> None:
        """Let the queries take in what changed, and whoever wants to hear of it."""
        self._running = True
        try:
            self._register.tell(outputs, stamps)
        finally:
            self._running = False
        self.followers.after()

    def _refuse_inside_callback(self, what: str) -> None:
        if self._running:
            raise GraphtideError(
                f"{what} cannot be used inside a callback: its transaction is still under way",
                hint="use insert() and delete(), which wait for their turn",
            )
