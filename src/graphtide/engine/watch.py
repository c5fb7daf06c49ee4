"""Query: one standing query on a live graph, its current answer and its deltas."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import numpy as np

from graphtide.arguments import check_choice, check_type, wrong_type
from graphtide.engine import explanations
from graphtide.engine.locking import synchronized
from graphtide.engine.results import (
    SHOWN_ROWS,
    Delta,
    DeltaRow,
    Place,
    TransactionTimes,
    WindowResult,
    answer_table,
    html_table,
)
from graphtide.errors import GraphtideError
from graphtide.kernel import Answer
from graphtide.kernel.batch import TX, Ints
from graphtide.kernel.counts import DELTA_VALUES
from graphtide.plan.explain import ExplainFormat, explain
from graphtide.ticks import ticks, ticks_or_none

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import pandas as pd
    import pyarrow as pa

    from graphtide.engine.dataflow.network import NodeIds
    from graphtide.engine.query_host import (
        AskedQuery,
        CacheSize,
        QueryCursor,
        QueryHost,
        WindowSide,
    )
    from graphtide.plan.explain import NodeFacts
    from graphtide.plan.physical import QueryPlan
    from graphtide.why.tree import Explanation

DEFAULT_HISTORY: Final = 100_000
"""Delta rows that a query retains by default."""

LARGE_HISTORY: Final = 1000
"""A history of more rows than this evicts a quarter of them at a time."""

MAX_UNREAD: Final = 10_000
"""Deltas that wait for a reader of `async for`, at most."""

MAX_COUNTED: Final = 200_000
"""Quads of a graph up to which explain counts the rows of every node unasked."""

_REGISTERED = count()
Callback = TypeVar("Callback")


class Query:
    """A standing query. Made by `LiveGraph.watch`, ended by `close()`.

    A query over windows (RSP-QL) also has `results()`, one for each time a window closed.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> query = graph.watch("SELECT ?who WHERE { ?who <http://example.org/knows> ?whom }")
    >>> graph.insert("<http://example.org/a>", "<http://example.org/knows>", '"b"')
    >>> print(query.delta())
    + who=<http://example.org/a>
    """

    def __init__(
        self,
        host: QueryHost,
        plan: QueryPlan,
        asked: AskedQuery,
        name: str,
        history: int | None = DEFAULT_HISTORY,
    ) -> None:
        self.name = name
        self.asked = asked
        self.plan = plan
        self.order = next(_REGISTERED)
        self.node_ids: NodeIds = {}
        self._evicted = 0
        self.begins_at = -1
        """The first transaction whose delta it has; -1, that of an answer on an empty graph."""
        self.windows: WindowSide | None = None
        self._host = host
        self._schedule, self._terms, self.lock = host.schedule, host.terms, host.lock
        self._unchanged_at: object = self  # the last look found no change, as of this
        self._columns = tuple(v.name for v in plan.variables)
        self._answer = Answer(len(self._columns))
        self._limit = history
        self._held = 0
        self._history: deque[tuple[Ints, TransactionTimes]] = deque()
        nothing = np.empty((0, DELTA_VALUES + len(self._columns)), np.int32)
        self._no_change = self._delta(nothing, TransactionTimes((), (), 0))
        self._on_delta: list[Callable[[Delta], object]] = []
        self._readers: list[Callable[[Delta | None], None]] = []
        self._on_appear: list[Callable[[DeltaRow], object]] = []
        self._on_disappear: list[Callable[[DeltaRow], object]] = []
        self._terms.holders.add(self)  # its history can be read when it is closed, too

    def held_ids(self) -> Iterator[Ints]:
        """The ids of the answer and of the retained deltas."""
        yield from self._answer.held_ids()
        if self._history:  # often many short ones
            yield np.concatenate([net for net, _ in self._history])[:, DELTA_VALUES:]

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of the answer."""
        return self._columns if self.windows is None else self.windows.variables

    @property
    def text(self) -> str:
        """The query as it was registered."""
        return self.plan.text

    @property
    def strategy(self) -> str:
        """The strategy that its patterns are matched with."""
        return self.plan.strategy

    # --- deltas ---

    def delta(self) -> Delta:
        """The rows that the last transaction added and removed.

        Right after `watch(...)` on a graph that already holds quads: the whole answer.
        """
        if self._unchanged_at is self._schedule.settled:
            return self._no_change
        with self.lock:
            self._host.settle()
            if self._history:
                net, stamps = self._history[-1]
                last = self._host.done - 1 - stamps.first
                if last < len(stamps.times) and net.item(-1, TX) == last:
                    if last > 0:
                        net = net[np.searchsorted(net[:, TX], last) :]
                    return self._delta(net, stamps)
            self._unchanged_at = self._schedule.settled or self
            return self._no_change

    def deltas(self) -> Iterator[Delta]:
        """The delta of each transaction so far, oldest first, the first answer included.

        The buffer is bounded: of more than `history` rows, the oldest transactions are evicted, and
        `evicted` counts their rows. The last transaction is always there.
        """
        with self.lock:
            self._host.settle()
            retained = [self._delta(net, stamps) for net, stamps in self._history]
        for delta in retained:
            yield from delta.by_transaction()

    @synchronized
    def recent(self, after: int = -1, limit: int = 100) -> list[Delta]:
        """The last retained deltas, oldest first: those with a greater `seq`, at most `limit`."""
        after, limit = ticks(after, "after"), ticks(limit, "limit")
        self._host.settle()
        found: list[Delta] = []
        for net, stamps in reversed(self._history):
            if len(found) >= limit or stamps.seq(int(net[-1, TX])) <= after:
                break
            each = self._delta(net, stamps).by_transaction()
            found[:0] = [delta for delta in each if delta.seq > after]
        return found[-limit:]

    @synchronized
    def since(self, seq: int) -> list[Delta]:
        """The deltas after that of a sequence number, oldest first, also from the journal.

        An error if some of them are no longer retained, and there is no journal.
        """
        seq = ticks(seq, "seq")
        self._host.settle()
        found: deque[tuple[Ints, TransactionTimes]] = deque()
        reached = not self._evicted and self.begins_at <= seq + 1
        for net, stamps in reversed(self._history):
            if stamps.seq(int(net[0, TX])) <= seq:
                reached = True
                if stamps.seq(int(net[-1, TX])) <= seq:
                    break
            found.appendleft((net, stamps))
        if reached:
            parts = [self._delta(net, stamps) for net, stamps in found]
            deltas = (delta for part in parts for delta in part.by_transaction())
        elif self._host.past is not None:
            deltas = (delta for delta in self._host.past.since(self, seq))
        else:
            raise GraphtideError(
                f"the deltas of {self.name} after {seq} are no longer retained",
                hint="begin with the current answer, or keep the graph in a store",
            )
        return [delta for delta in deltas if delta.seq > seq]

    def rows(self) -> Iterator[DeltaRow]:
        """The rows of all `deltas()`, oldest first."""
        return (row for delta in self.deltas() for row in delta)

    def drain(self) -> list[tuple[Ints, TransactionTimes]]:
        """Take the history out of its buffer as rows of ids, with the times of its transactions.

        For consumers that forward deltas in bulk. A row is transaction index, diff, count before,
        and one id per variable. The ids are valid until the graph is used again.
        """
        settled = self._schedule.settled
        if settled is not None and not self._history and self._schedule.settled is settled:
            return []
        with self.lock:
            self._host.flush()
            taken = list(self._history)
            if taken:
                self._host.drained(self, taken)
                self._history.clear()
                self._held = 0
            return taken

    def history(self) -> list[tuple[Ints, TransactionTimes]]:
        """The buffered deltas."""
        return list(self._history)

    def put_back(self, history: list[tuple[Ints, TransactionTimes]]) -> None:
        """Put back what was drained last."""
        self._history = deque(history)
        self._held = sum(len(net) for net, _ in history)

    @synchronized
    def retain(self, history: int | None) -> None:
        """Retain that many delta rows from now on; None retains all until they are drained."""
        self._limit = ticks_or_none(history, "history")

    @synchronized
    def on_delta(self, callback: Callable[[Delta], object]) -> Callable[[Delta], object]:
        """Call back with the delta of each transaction that changes the answer.

        Usable as a decorator. Changes that a callback makes are applied after the transaction that
        it was called for.
        """
        self._subscribe(self._on_delta, callback)
        return callback

    @synchronized
    def on_appear(self, callback: Callable[[DeltaRow], object]) -> Callable[[DeltaRow], object]:
        """Call back with each row that was not in the answer and now is. Usable as a decorator."""
        self._subscribe(self._on_appear, callback)
        return callback

    @synchronized
    def on_disappear(self, callback: Callable[[DeltaRow], object]) -> Callable[[DeltaRow], object]:
        """Call back with each row that was in the answer and no longer is."""
        self._subscribe(self._on_disappear, callback)
        return callback

    def _subscribe(self, callbacks: list[Callback], callback: Callback) -> None:
        if not callable(callback):
            raise wrong_type(callback, "callback", "a function")
        self._host.flush()  # what is buffered came before the callback
        callbacks.append(callback)
        self._host.notify_each(self)

    async def __aiter__(self) -> AsyncIterator[Delta]:
        """Deltas as they come, from now on: `async for delta in query`; it ends with the query.

        A reader that is far behind gets an error after what it has not read yet.
        """
        import asyncio  # noqa: PLC0415 - a start need not wait for it

        loop, queue = asyncio.get_running_loop(), asyncio.Queue["Delta | None"]()
        sent, read, behind = 0, 0, False  # only a writer changes the first, a reader the second

        def put(delta: Delta | None) -> None:
            with suppress(RuntimeError):  # the loop has ended, and its readers with it
                loop.call_soon_threadsafe(queue.put_nowait, delta)

        def take(delta: Delta) -> None:
            nonlocal sent, behind
            if sent - read < MAX_UNREAD and not behind:
                sent += 1
                put(delta)
            elif not behind:
                behind = True
                put(None)

        self.on_delta(take)
        self._readers.append(put)
        try:
            while (delta := await queue.get()) is not None:
                read += 1
                yield delta
        finally:
            self._on_delta.remove(take)
            self._readers.remove(put)
        if behind:
            raise GraphtideError(
                f"this reader is more than {MAX_UNREAD:,} deltas behind",
                hint="read faster, or use query.since(seq) with the seq of the last delta",
            )

    # --- the past ---

    def changes(self, start: int, end: int) -> Iterator[Delta]:
        """The delta of each transaction from a time up to another, both included.

        On a durable graph they come from the journal, as far back as it goes.
        """
        start, end = ticks(start, "start"), ticks(end, "end")
        if self._host.past is not None:
            return self._host.past.changes(self, start, end)
        deltas = (delta for delta in self.deltas() if delta.time is not None)
        return (delta for delta in deltas if start <= (delta.time or 0) <= end)

    def cursor(self, name: str) -> QueryCursor:
        """The deltas that a consumer of that name has not acknowledged, also across restarts."""
        if self._host.past is None:
            raise GraphtideError(
                "cursors are kept in a store, and this graph is in memory only",
                hint="LiveGraph.open(directory) keeps a graph",
            )
        return self._host.past.cursor(self, name)

    # --- the answer now ---

    def table(self, *, terms: bool = False, offset: int = 0, limit: int | None = None) -> pa.Table:
        """The current answer as an Arrow table, or a part of it; duplicates are repeated.

        Columns whose values all are of one XSD type have its Arrow type (int64, double, bool,
        timestamp, date, string). Other columns, and all of them with `terms=True`, are N-Triples
        texts. Unbound is null.
        """
        check_type(terms, "terms", bool)
        offset, limit = ticks(offset, "offset"), ticks_or_none(limit, "limit")
        end = None if limit is None else offset + limit

        def answer() -> pa.Table:
            rows = self._answer.rows()
            repeated = np.repeat(rows[:, :-1], np.maximum(rows[:, -1], 0), axis=0)
            return answer_table(self._columns, repeated[offset:end], self._terms, texts=terms)

        return self.lock.read(self._host.settle, answer)

    def to_pandas(self) -> pd.DataFrame:
        """The current answer as a pandas DataFrame, with the types of `table()`."""
        frame: pd.DataFrame = self.table().to_pandas()
        return frame

    def count(self) -> int:
        """How many rows the current answer has, duplicates counted."""
        settled, count = self._schedule.settled, self._answer.total
        if settled is None or self._schedule.settled is not settled or self.windows is not None:
            count = self.lock.read(self._host.settle, self._count)
        if count < 0:  # a graph that stores no quads cannot tell a redundant delete
            return 0
        return count

    def _count(self) -> int:
        total = self._answer.total
        return total if self.windows is None else self.windows.count(total)

    @synchronized
    def answer(self) -> bool:
        """The answer of an ASK query now."""
        if self.plan.form != "ASK":
            raise GraphtideError(
                f"{self.name} is a {self.plan.form} query and has no yes or no",
                hint="use table() or count()",
            )
        return bool(self.table()["answer"][0].as_py())

    # --- explanations ---

    @synchronized
    def why(
        self,
        /,
        row: Mapping[str, object] | None = None,
        *,
        all: bool = False,  # noqa: A002 - the user's word
        limit: int = explanations.MAX_DERIVATIONS,
        **columns: object,
    ) -> Explanation:
        """Why a row is in the answer now: the quads that make it true, as a tree.

        Columns that are left out may have any value. With `all`, every derivation is shown, up to
        `limit`.

        >>> from graphtide import LiveGraph
        >>> graph = LiveGraph()
        >>> query = graph.watch("SELECT ?a { ?a <ex:p> ?b FILTER NOT EXISTS { ?b <ex:q> ?c } }")
        >>> graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
        >>> print(query.why(a="<ex:a>"))
        a=:ex:a is in query1
        ├─ ?a :ex:p ?b
        │     :ex:a :ex:p :ex:b
        └─ NOT EXISTS { ?b :ex:q ?c }: nothing matches
        """
        check_type(row, "row", Mapping, None)
        bindings = explanations.bindings_of(self.variables, row, columns)
        check_type(all, "all", bool)
        return self._explainer().why(bindings, every=all, limit=limit)

    @synchronized
    def why_not(self, /, row: Mapping[str, object] | None = None, **columns: object) -> Explanation:
        """Why no row with these values is in the answer now.

        Shows the largest part of the query that holds for them, what does not hold, and, where it
        finds some, changes of the graph with which there would be such a row.

        >>> from graphtide import LiveGraph
        >>> graph = LiveGraph()
        >>> query = graph.watch("SELECT ?a { ?a <ex:p> ?b . ?b <ex:q> ?c }")
        >>> graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
        >>> print(query.why_not(a="<ex:a>"))
        a=:ex:a is not in query1
        ├─ ?a :ex:p ?b
        │     :ex:a :ex:p :ex:b
        └─ ✗ ?b :ex:q ?c: no quad :ex:b :ex:q ?c
        it would be with
          + :ex:b :ex:q :urn:graphtide:any:c
        """
        check_type(row, "row", Mapping, None)
        bindings = explanations.bindings_of(self.variables, row, columns)
        return self._explainer().why_not(bindings)

    @synchronized
    def why_moved(self, row: DeltaRow, place: Place, *, every: bool, limit: int) -> Explanation:
        """Why a row of a delta came or went with the transaction at a place."""
        explainer = self._explainer()
        return explainer.why_moved(row.row, row.diff, place, row.time, every=every, limit=limit)

    def _explainer(self) -> explanations.Explainer:
        events = None if self.windows is None else self.windows.events
        return explanations.Explainer(self._host, self.name, self.asked.select, events)

    # --- windows ---

    @synchronized
    def results(self) -> list[WindowResult]:
        """What the query put out at each close of its windows, oldest first."""
        return self._windows().results()

    @synchronized
    def last_result(self) -> WindowResult | None:
        """What the query put out when its windows last closed."""
        return self._windows().last()

    @synchronized
    def on_result(
        self, callback: Callable[[WindowResult], object]
    ) -> Callable[[WindowResult], object]:
        """Call back with each result of the windows. Usable as a decorator."""
        self._windows().on_result(callback)
        return callback

    def _windows(self) -> WindowSide:
        if self.windows is None:
            raise GraphtideError(
                f"{self.name} is a query without windows, so it has no results of windows",
                hint="use deltas(), or add FROM NAMED WINDOW to the query",
            )
        return self.windows

    # --- plan, memory, end ---

    @synchronized
    def replan(self) -> bool:
        """Plan the query again by current statistics; whether that gave another plan.

        A pinned plan stays. Unasked, this happens whenever the graph has grown fourfold.
        """
        return self._host.replan(self)

    @synchronized
    def cache_size(self) -> CacheSize:
        """What the query's nodes store besides the shared quads.

        `search` stores nothing, `rete` the memories of its joins, `decomposed` its instances,
        `counting` counts by key.
        """
        return self._host.cache_size(self)

    @property
    @synchronized
    def nbytes(self) -> int:
        """Bytes held for this query: its memories, shared ones too, and its answer."""
        return self._host.cache_size(self).bytes + self._answer.nbytes

    @property
    @synchronized
    def answer_bytes(self) -> int:
        """Bytes of the current answer."""
        return self._answer.nbytes

    @synchronized
    def facts(self, *, actual: bool | None = None) -> NodeFacts:
        """The numbers of the nodes of the plan that `explain` shows."""
        check_type(actual, "actual", bool, None)
        return self._host.plan_facts(self, self._answer.total, actual=actual)

    @synchronized
    def explain(
        self,
        format: ExplainFormat = "text",  # noqa: A002 - the user's word
        *,
        actual: bool | None = None,
        why: bool = False,
    ) -> str:
        """The plan with its rows: expected, stored and, if few or asked for, `actual`; `why` it."""
        check_choice(format, "format", get_args(ExplainFormat))
        check_type(why, "why", bool)
        text = explain(self.plan, format, self.facts(actual=actual), self.asked if why else None)
        return text if self.windows is None or format != "text" else self.windows.explain(text)

    @synchronized
    def close(self) -> None:
        """End the query and free what only it needed."""
        self._host.close_query(self)
        for end in self._readers:
            end(None)

    @property
    def evicted(self) -> int:
        """How many rows of deltas, or of results of windows, are not retained any more."""
        return self._evicted if self.windows is None else self.windows.evicted

    # --- called by the registry ---

    def take(
        self, root: Ints, stamps: TransactionTimes, columns: Ints | None = None
    ) -> Delta | None:
        """Apply a batch of changes, or some `columns` of it; the delta, if there are callbacks."""
        net = self._answer.step(root, columns) if len(root) else root
        rows = len(net)
        if not rows:
            return None
        self._history.append((net, stamps))
        self._held += rows
        limit = self._limit
        while limit is not None and self._held > limit and self._evict(limit):
            pass
        listening = self._on_delta or self._on_appear or self._on_disappear
        return self._delta(net, stamps) if listening else None

    def fresh_answer(self, rows: Ints) -> Answer:
        """An answer of some rows."""
        answer = Answer(len(self._columns))
        answer.step(rows)
        return answer

    def restore(self, node_ids: NodeIds, answer: Answer, first: int) -> None:
        """Go back to an answer, that before the transaction of a number."""
        history = deque(entry for entry in self._history if entry[1].first < first)
        self._held = sum(len(net) for net, _ in history)
        self._history, self._answer, self.node_ids = history, answer, node_ids

    def callbacks(self, delta: Delta) -> Iterator[Callable[[], object]]:
        """Who is called: for rows that disappeared, rows that appeared, then the whole delta."""
        for row in delta.disappeared() if self._on_disappear else ():
            yield from (partial(each, row) for each in tuple(self._on_disappear))
        for row in delta.appeared() if self._on_appear else ():
            yield from (partial(each, row) for each in tuple(self._on_appear))
        yield from (partial(each, delta) for each in tuple(self._on_delta))

    def _evict(self, limit: int) -> bool:
        """Drop the oldest transactions, as many as need be, but never the last one."""
        net, stamps = self._history.popleft()
        if self._history and net[0, TX] == net[-1, TX]:
            self._held -= len(net)
            self._evicted += len(net)
            return True
        starts = np.flatnonzero(np.diff(net[:, TX], prepend=-1))
        begins = starts if not self._history else np.append(starts, len(net))
        # A large buffer makes room for many rows at once, so that evicting costs little per row.
        excess = max(self._held - limit, limit // 4 if limit > LARGE_HISTORY else 0)
        end = int(begins[min(int(np.searchsorted(begins, excess)), len(begins) - 1)])
        if end < len(net):
            self._history.appendleft((net[end:].copy(), stamps))
        self._held -= end
        self._evicted += end
        return end > 0

    def _delta(self, net: Ints, stamps: TransactionTimes) -> Delta:
        delta = Delta(net, stamps, self._columns, self._terms, self)
        self._terms.holders.hold(delta)
        return delta

    def __repr__(self) -> str:
        return f"<Query {self.name} ({self.strategy}): {', '.join(self.variables)}>"

    def _repr_html_(self) -> str:
        table = self.table(terms=True)
        rows: list[dict[str, Any]] = table.slice(0, SHOWN_ROWS).to_pylist()
        cells = [["" if value is None else value for value in row.values()] for row in rows]
        return html_table(table.column_names, cells, table.num_rows)
