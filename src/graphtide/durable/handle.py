"""DurableGraph: what a live graph does with its store. Opening, the past, cursors, the end."""

from __future__ import annotations

from logging import getLogger
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from graphtide.arguments import check_path
from graphtide.durable.backup import back_up
from graphtide.durable.cursors import Cursor
from graphtide.durable.replay import Replay, ReplayTarget, Until
from graphtide.durable.store import Frozen, Store
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from graphtide.engine.query_host import DroppedToken
    from graphtide.engine.results import Delta
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.limits import Limits


log = getLogger(__name__)


def open_graph(
    make: Callable[..., Any],
    store: Store,
    functions: Mapping[str, Callable[..., object]],
    limits: Limits | None,
    options: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - the live graph that `make` makes
    """A graph as its store has it."""
    try:
        kept = store.options(options)
        graph = make(limits=limits, **kept)
        runtime = graph._runtime  # noqa: SLF001 - the graph is made here
        streams = graph._streams  # noqa: SLF001
        store.recover(graph, runtime, streams, functions)
        graph._durable = DurableGraph(graph, store, runtime, kept, limits)  # noqa: SLF001
    except BaseException:
        store.abandon()
        raise
    return graph


class DurableGraph:
    """The store of an open graph."""

    def __init__(
        self,
        graph: Any,  # noqa: ANN401 - the live graph, which is above this layer
        store: Store,
        runtime: Runtime,
        options: Mapping[str, Any],
        limits: Limits | None,
    ) -> None:
        self.store = store
        self._graph = graph
        self._runtime = runtime
        self._options = options
        self._limits = limits
        self._closed = False
        self._replay = Replay(graph, runtime, None)
        runtime.past = self
        self._snapshot: Thread | None = None
        self._beginning = Lock()
        """Held while an unasked snapshot is begun."""
        if store.recorder is not None:
            store.recorder.written = self._checkpoint_if_due

    def _checkpoint_if_due(self) -> None:
        """A large journal takes long to replay: write a snapshot before that.

        That may take long, too, and what comes in meanwhile has to get to the journal.
        """
        with self._beginning:
            under_way = self._snapshot is not None and self._snapshot.is_alive()
            if self.store.due and not under_way and not self._closed:
                self._snapshot = Thread(
                    target=self._checkpoint_unasked, name="graphtide snapshot", daemon=True
                )
                self._snapshot.start()

    def _checkpoint_unasked(self) -> None:
        try:
            self.checkpoint()
        except GraphtideError as error:  # the journal has everything
            log.warning("no snapshot: %s", error)

    def flush(self) -> None:
        """Wait until everything so far is on disk."""
        self.store.flush()

    def backup(self, path: str | Path) -> None:
        """Copy the store, with everything so far, to a new directory; the graph stays in use."""
        check_path(path, "path")
        self.store.flush()
        back_up(self.store.folder, Path(path))

    def checkpoint(self) -> bool:
        """Write a snapshot of now, if that is possible; whether there is one."""
        return self.store.checkpoint(self._graph)

    @property
    def read_only(self) -> bool:
        """Whether another process may write to the store."""
        return self.store.read_only

    def follow(self) -> bool:
        """Apply what another process has written since."""
        if not self.read_only:
            raise GraphtideError("only a graph that is open with read_only=True follows a store")
        with self._runtime.lock:
            return self.store.follow(self._replay)

    def close(self) -> None:
        """Write what is left, and let others open the store."""
        if not self._closed:
            self._closed = True
            self.store.close(self._graph, self._end_snapshot)

    def _end_snapshot(self) -> None:
        """Wait for the snapshot that is being written; none begins after that."""
        with self._beginning:
            snapshot = self._snapshot
        if snapshot is not None:
            snapshot.join()

    # --- the past ---

    def begins_at(self) -> tuple[int, int]:
        """The first transaction and time that `at` can go back to."""
        if self.store.journal.first() <= 1:
            return 0, 0
        first = self.store.journal.snapshots()[0]
        return first.tx, first.time

    def at(self, time: int | None, tx: int | None) -> Any:  # noqa: ANN401 - a live graph
        """A graph as of a time or a transaction."""
        if (time is None) == (tx is None):
            raise GraphtideError("at() takes either a time or a number of transactions")
        with self._runtime.lock:
            now = Until(self._runtime.clock, self._runtime.transactions)
        if (time or 0) > (now.time or 0) or (tx or 0) > (now.tx or 0):
            raise GraphtideError(
                f"the graph is at time {now.time} after {now.tx} transactions, and the future is "
                "not known",
                hint="ask for an earlier time",
            )
        graph, runtime = self._replayed(Until(time, tx))
        if time is not None and time > runtime.clock:
            runtime.schedule.advance(time)
        runtime.max_buffered = 1
        runtime.schedule.recorder = Frozen("this graph is of the past")
        return graph

    def _replayed(
        self,
        until: Until,
        begin: Until | None = None,
        each: Callable[[ReplayTarget], None] | None = None,
    ) -> tuple[Any, Runtime]:
        """A graph as of then; with `begin`, from a snapshot that is not after that."""
        graph = type(self._graph)(limits=self._limits, **self._options)
        runtime, streams = graph._runtime, graph._streams  # noqa: SLF001 - the graph is made here
        self.store.replay_until(graph, runtime, streams, until, begin, each)
        return graph, runtime

    def host_after(self, transactions: int) -> Runtime:
        """A graph as it was after so many transactions, which has the changes of the last one."""
        return self._replayed(Until(tx=transactions), Until(tx=transactions - 1))[1]

    def dropped_tokens(self, program: str, pattern: str) -> list[DroppedToken]:
        """The tokens of a pattern that were dropped, by a replay of the whole journal."""
        found: list[DroppedToken] = []
        traced: list[Any] = []

        def trace(graph: ReplayTarget) -> None:
            for each in graph.programs:
                if each.name == program and each not in traced:
                    traced.append(each)
                    found.clear()
                    each.trace(pattern, found)

        journal = self.store.journal
        first = -1 if journal.first() == 1 else journal.snapshots()[0].tx
        self._replayed(Until(), Until(tx=first), trace)
        return found

    def changes(self, query: Query, start: int, end: int) -> Iterator[Delta]:
        """The deltas of a query from a time up to another."""
        with self._runtime.lock:
            end = min(end, self._runtime.clock)
        for delta in self._deltas(query, Until(time=start - 1), Until(time=end)):
            if delta.time is not None and start <= delta.time <= end:
                yield delta

    def _deltas(self, query: Query, before: Until, until: Until) -> Iterator[Delta]:
        """The deltas of a query, replayed from the snapshot before the first of them."""
        graph, runtime = self._replayed(until, before)
        runtime.past = self  # its rows can be explained, too
        found = next((each for each in graph.queries if each.name == query.name), None)
        for delta in () if found is None else found.deltas():
            if found is not None and delta.seq >= found.begins_at:
                yield delta

    def cursor(self, query: Query, name: str) -> Cursor:
        """The cursor of a consumer of a query."""
        return Cursor(self.store, query, name, self.since)

    def since(self, query: Query, seq: int) -> Iterator[Delta]:
        """The deltas of a query after a sequence number, from the journal."""
        return self._deltas(query, Until(tx=seq + 1), Until())
