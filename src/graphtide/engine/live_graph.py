"""LiveGraph: a graph that keeps changing, and the standing queries that watch it."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, Literal

import numpy as np

from graphtide.algebra.nodes import SelectQuery
from graphtide.engine.graph_look import ReadableGraph
from graphtide.engine.ingest import Ids, ObjectLike, TermLike, quad_ids
from graphtide.engine.runtime import (
    MOST_PENDING,
    Storage,
    TransactionTimes,
    first_redundant,
    strategy_for,
)
from graphtide.engine.transaction import MultiStepTransaction, Transaction
from graphtide.engine.update import carry_out
from graphtide.engine.watch import Watch
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query, parse_standing, parse_update
from graphtide.plan.choose import choose_plan
from graphtide.streams.events import make_events
from graphtide.streams.query import WindowQuery
from graphtide.streams.registry import Streams

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.plan.order import Pin
    from graphtide.plan.patterns import Strategy
    from graphtide.streams.events import Fired
    from graphtide.streams.registry import ReportPolicy
    from graphtide.streams.stream import Stream
    from graphtide.streams.windows import Alignment


class LiveGraph(ReadableGraph):
    """The current set of quads, kept in step with every change, and its standing queries.

    With `strict`, an insert of a present quad and a delete of an absent one are errors; otherwise
    they have no effect and are counted. `store="matched"` keeps only what a registered query can
    match: less memory, but queries must then be registered before the data comes. So it is with
    `store="none"`, which keeps no quad at all: the strategy is `decomposed`, and that no change is
    redundant is then the caller's promise. With `default_graph="union"`, queries see the union of
    all graphs as their default graph.

    Times are whole ticks of `tick_ms` milliseconds; windows are aligned to `window_origin` in one
    of the ways of `graphtide.streams.windows`.

    >>> graph = LiveGraph()
    >>> watch = graph.watch("SELECT ?a ?c { ?a <ex:knows> ?b . ?b <ex:knows> ?c }")
    >>> graph.insert("<ex:ann>", "<ex:knows>", "<ex:bob>")
    >>> graph.insert("<ex:bob>", "<ex:knows>", "<ex:cat>")
    >>> print(watch.delta())
    + a=<ex:ann> c=<ex:cat>
    >>> graph.delete("<ex:ann>", "<ex:knows>", "<ex:bob>")
    >>> print(watch.delta())
    - a=<ex:ann> c=<ex:cat>
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        store: Storage = "all",
        default_graph: Literal["own", "union"] = "own",
        tick_ms: int = 1000,
        window_origin: int = 0,
        window_alignment: Alignment = "close",
    ) -> None:
        super().__init__(strict=strict, store=store, default_graph=default_graph, tick_ms=tick_ms)
        self._streams = Streams(self, tick_ms, window_origin, window_alignment)

    # --- changes in ---

    def insert(
        self,
        s: TermLike,
        p: TermLike,
        o: ObjectLike,
        g: TermLike | None = None,
        *,
        time: int | None = None,
    ) -> None:
        """Insert one quad, as a transaction of its own."""
        self._single(1, quad_ids(self.terms, s, p, o, g), time)

    def delete(
        self,
        s: TermLike,
        p: TermLike,
        o: ObjectLike,
        g: TermLike | None = None,
        *,
        time: int | None = None,
    ) -> None:
        """Delete one quad, as a transaction of its own."""
        self._single(-1, quad_ids(self.terms, s, p, o, g), time)

    def transaction(self, *, time: int | None = None) -> Transaction:
        """Begin a transaction: its changes take effect together at the end of a `with` block."""
        return Transaction(self, time)

    def update(
        self, text: str, *, time: int | None = None, load_from: str | Path | None = None
    ) -> int:
        """Carry out a SPARQL Update request as one transaction; how many quads it changed.

        Each operation sees what those before it did. If one fails, none has happened. LOAD reads
        files inside the folder `load_from` only.
        """
        self.settle()
        request = parse_update(text)
        stamp = self._stamp(time)
        self._refuse_inside_callback("update()")
        together = MultiStepTransaction(self._store, self.standing)
        changed = carry_out(request, self, together, load_from)
        self.clock = stamp
        self._last_tx += 1
        self._done += 1
        stamps = TransactionTimes((stamp,), (self._last_tx,), self._done - 1)
        self._tell(together.outputs(), stamps)
        self.settle()
        return changed

    def commit(self, changes: list[tuple[int, Ids]], time: int | None) -> None:
        """Take a transaction's changes (called when its `with` block ends)."""
        stamp = self._stamp(time)
        if self.strict:
            self.settle()
            redundant = first_redundant(changes, self._store, self.terms)
            if redundant:
                raise redundant[1]
        self.clock = stamp
        self._last_tx += 1
        self._pending.begin(stamp, self._last_tx)
        for diff, ids in changes:
            self._pending.add(diff, ids)
        if self._pending.waiting >= MOST_PENDING or self.callbacks:
            self.settle()

    def _single(self, diff: int, ids: Ids, time: int | None) -> None:
        if self.strict:
            self.commit([(diff, ids)], time)
            return
        if time is not None:
            self.clock = self._stamp(time)
        self._last_tx += 1
        waiting = self._pending.single(self.clock, self._last_tx, diff, ids)
        if waiting >= MOST_PENDING or self.callbacks:
            self.settle()

    # --- time and streams ---

    def advance(self, to: int) -> None:
        """Let the clock go on to a time at which nothing else happens; windows close up to then."""
        self.clock = self._stamp(to)

    def assert_event(
        self,
        triples: Iterable[tuple[TermLike, TermLike, ObjectLike]],
        *,
        time: int | None = None,
        duration: int = 0,
    ) -> None:
        """Something happens, now or later: triples that programs hear of, and nobody keeps.

        It may have lasted for some ticks. Rules that it completes have fired when this returns.

        >>> from graphtide.rules.program import run
        >>> graph = LiveGraph()
        >>> running = run(
        ...     '''EVENT Seen(?x) AS { ?x <ex:seen> ?y }
        ...     RULE Note ON Seen(?x) THEN INSERT { ?x a <ex:Known> }''',
        ...     graph,
        ... )
        >>> graph.assert_event([("<ex:a>", "<ex:seen>", 1)], time=5)
        >>> print(graph.firings()[0].why())
        Note fired at 5
          Seen = Seen(<ex:a>) at 5
        """
        stamp = self._stamp(time)
        ids = [quad_ids(self.terms, s, p, o, None)[:3] for s, p, o in triples]
        self.clock = stamp
        events = make_events([ids], [stamp], duration)
        for listener in tuple(self.listeners):
            listener.take_events(events)

    def firings(self) -> list[Fired]:
        """What rules have fired on this graph so far, oldest first; each can say why."""
        return list(merge(*(each.firings() for each in self.listeners), key=lambda f: f.time))

    def stream(self, name: TermLike, *, lateness: int | None = None) -> Stream:
        """The stream of that name, for pushing events; windowed queries read it.

        Events may come out of order by up to `lateness` ticks (0 if nothing is said).
        """
        return self._streams.stream(name, lateness)

    def apply_window_changes(self, times: Longs, changes: Ints) -> None:
        """Take in what windows hold at their closes (called when streams move on)."""
        self.settle()
        self._refuse_inside_callback("a stream")
        stamps = np.maximum(times, self.clock)
        numbers = np.arange(self._last_tx + 1, self._last_tx + 1 + len(times), dtype=np.int64)
        self._last_tx += len(times)
        self.clock = int(stamps[-1])
        self._run((changes, stamps, numbers))

    def clear_graph(self, number: int) -> None:
        """Take all quads out of a graph that is no window's any more."""
        quads = self._store.quads()
        left = quads[quads[:, 3] == number]
        if len(left):
            changes = np.zeros((len(left), 6), np.int32)
            changes[:, 1] = -1
            changes[:, 2:] = left
            self.apply_window_changes(np.array([self.clock]), changes)

    # --- standing queries ---

    def watch(
        self,
        query: str | SelectQuery,
        *,
        strategy: Strategy | None = None,
        plan: Pin | None = None,
        name: str | None = None,
        history: int | None = 100_000,
    ) -> Watch:
        """Register a query, as text or parsed. Its first delta is the whole current answer.

        The rows of an ASK are one `?answer`, those of CONSTRUCT and DESCRIBE are triples `?subject
        ?predicate ?object`.

        The planner chooses a `strategy` and a join order unless they are given. `plan` pins the
        join tree of `rete`: pairs of pattern numbers such as `((0, 1), 2)`, or `"written"` for a
        query whose algebra already is the tree. `history` bounds the delta rows kept for
        `watch.changes()`; None is no bound.
        """
        self.settle()
        parsed = parse_query(query) if isinstance(query, str) else query
        union = self._register.union
        strategy = strategy_for(self._store, strategy)
        chosen = choose_plan(parsed, self.statistics(), strategy=strategy, pinned=plan, union=union)
        if self._store.counts()["dropped"]:
            raise GraphtideError(
                "quads that no query matched have been dropped, so this query would start wrong",
                hint='register queries before the data comes, or use LiveGraph(store="all")',
            )
        watch = Watch(self, chosen, self._register.free_name(name), history)
        watch.replans = (parsed, strategy) if plan is None else None
        stamps = TransactionTimes((self.clock,), (max(self._last_tx, 0),), self._done - 1)
        self._register.add(watch, stamps)
        return watch

    def register(
        self,
        query: str | WindowedQuery,
        *,
        strategy: Strategy | None = None,
        report: ReportPolicy = "close",
        reevaluate: bool = False,
        name: str | None = None,
    ) -> WindowQuery:
        """Register a query over windows, in RSP-QL; it reports whenever one of them closes.

        With `report="change"` it reports at every time at which events come. With `reevaluate` the
        answer is not maintained but worked out anew for every report, to compare.
        """
        self.settle()
        parsed = parse_standing(query) if isinstance(query, str) else query
        if isinstance(parsed, SelectQuery):
            raise GraphtideError(
                "this query has no window",
                hint="register it with watch(), or add FROM NAMED WINDOW",
            )
        if reevaluate and self._storage != "all":
            raise GraphtideError(
                "what is evaluated anew needs all quads, but this graph keeps only some",
                hint='use LiveGraph(store="all"): streams leave out what no query can match',
            )
        return self._streams.watch(parsed, strategy, name, report, reevaluate=reevaluate)

    def unwatch(self, watch: Watch | WindowQuery) -> None:
        """End a standing query and give back what only it needed."""
        self.settle()
        if isinstance(watch, WindowQuery):
            self._streams.unwatch(watch)
            return
        self._register.remove(watch)
        self.callbacks -= watch.callbacks

    def replan(self, watch: Watch) -> bool:
        """Plan a query anew by the statistics of now; whether that gave another plan.

        A pinned plan stays. Where nobody asks, this happens by itself whenever the graph has grown
        fourfold.
        """
        self.settle()
        self._register.check(watch)
        return self._register.replan(watch)

    @property
    def watches(self) -> tuple[Watch, ...]:
        """The registered queries, oldest first."""
        return tuple(self._register)
