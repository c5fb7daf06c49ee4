"""GraphCore: the state of a live graph, and how a transaction goes through it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal

from graphtide.engine.feed import one_by_one
from graphtide.engine.followers import Followers
from graphtide.engine.pending import Pending
from graphtide.engine.register import Register
from graphtide.engine.stamps import Stamps
from graphtide.engine.storage import Storage, make_store
from graphtide.errors import GraphtideError
from graphtide.rdf import TermDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.engine.feed import Piece, Transactions
    from graphtide.engine.graph_events import Listener
    from graphtide.engine.standing import Standing
    from graphtide.engine.windows.streams import Streams
    from graphtide.kernel.batch import Ints


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
        self._register = Register(self._store, self.terms, union=default_graph == "union")
        self._pending = Pending()
        self._due: deque[Piece] = deque()
        self._running = False

    @property
    def standing(self) -> Standing:
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
        stamps = Stamps(times, txs, self._done)
        self._running = True
        try:
            batches = self._store.apply(changes)
            self._done += len(times)
            if batches:
                self._register.tell(self.standing.advance(batches), stamps)
        finally:
            self._running = False
        self.followers.after()

    def _tell(self, outputs: Mapping[int, Ints], stamps: Stamps) -> None:
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
