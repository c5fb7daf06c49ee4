"""LiveGraph: a graph that keeps changing, and the standing queries that watch it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from graphtide.algebra.as_select import as_select
from graphtide.algebra.nodes import SelectQuery, Slice
from graphtide.algebra.variables import schema
from graphtide.engine.feed import (
    Piece,
    Transactions,
    check_order,
    cut,
    encode,
    first_backwards,
    first_transactions,
    one_by_one,
    pieces_of,
)
from graphtide.engine.followers import Followers
from graphtide.engine.id_rows import id_rows, integers
from graphtide.engine.once import in_order
from graphtide.engine.pending import MOST_PENDING, Pending
from graphtide.engine.quads import Ids, ObjectLike, TermLike, as_term, quad_ids
from graphtide.engine.register import Register
from graphtide.engine.stamps import Stamps
from graphtide.engine.stats import Stats
from graphtide.engine.storage import Storage, make_store, strategy_for
from graphtide.engine.strict import first_redundant
from graphtide.engine.together import Together
from graphtide.engine.transaction import Transaction
from graphtide.engine.update import carry_out
from graphtide.engine.watch import Watch
from graphtide.engine.windows.continuous import Continuous
from graphtide.engine.windows.streams import Streams
from graphtide.errors import DataError, GraphtideError
from graphtide.kernel.batch import DIFF, VALUES
from graphtide.lang.sparql import parse_any_query, parse_query, parse_standing, parse_update
from graphtide.plan.choose import choose_plan
from graphtide.rdf import ChangeBatch, TermDictionary, read_changes
from graphtide.rdf.dictionary import HIDDEN_GRAPHS
from graphtide.rdf.formats import find_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.engine.feed import Lines
    from graphtide.engine.standing import Standing
    from graphtide.engine.windows.shape import Alignment
    from graphtide.engine.windows.stream import Stream
    from graphtide.engine.windows.streams import ReportPolicy
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.plan.patterns import Strategy
    from graphtide.plan.pinned import Pin
    from graphtide.plan.statistics import Statistics
    from graphtide.rdf.term import Term

Changes = ChangeBatch | Iterable[ChangeBatch] | pa.Table | str | Path


class LiveGraph:
    """The current set of quads, kept in step with every change, and its standing queries.

    With `strict`, an insert of a present quad and a delete of an absent one are errors; otherwise
    they have no effect and are counted. `store="matched"` keeps only what a registered query can
    match: less memory, but queries must then be registered before the data comes. So it is with
    `store="none"`, which keeps no quad at all: the strategy is `decomposed`, and that no change is
    redundant is then the caller's promise. With `default_graph="union"`, queries see the union of
    all graphs as their default graph.

    Times are whole ticks of `tick_ms` milliseconds; windows are aligned to `window_origin` in one
    of the ways of `graphtide.engine.windows.shape`.

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
        if default_graph not in ("own", "union"):
            known = 'use "own" or "union"'
            raise GraphtideError(f"default_graph={default_graph!r} is unknown", hint=known)
        self.terms = TermDictionary()
        self.strict = strict
        self.clock = 0
        self.callbacks = 0
        self.tick_ms = tick_ms
        self.followers = Followers()
        self._done = 0
        self._last_tx = -1
        self._storage = store
        self._store = make_store(store, strict=strict)
        self._register = Register(self._store, self.terms, union=default_graph == "union")
        self._streams = Streams(self, tick_ms, window_origin, window_alignment)
        self._pending = Pending()
        self._due: deque[Piece] = deque()
        self._running = False

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

    def apply(self, changes: Changes, *, time: int | None = None) -> None:
        """Apply changes: a batch, several, an Arrow table, or the path of a file of changes.

        Rows that share one `(time, tx)` are one transaction. With `time`, everything is one
        transaction at that time; so is a file of plain RDF, at the current time if none is given.

        One batch is applied whole or, if there is something wrong with it, not at all. Of several,
        and of a file, the transactions before an error are applied.
        """
        self.settle()
        if isinstance(changes, ChangeBatch) and time is None:
            rows, bad = encode(changes, self.terms)
            if bad:
                raise DataError(f"row {bad[0]}: {bad[1]}")
            self._apply_whole((rows, changes.time, changes.tx))
            return
        batches = _batches(changes)
        if time is not None or _is_plain_rdf(changes):
            batches = _restamped(batches, self._stamp(time), self._last_tx + 1)
        for piece in pieces_of(batches, self.terms):
            self.apply_piece(piece)

    def apply_ids(
        self,
        s: Ints,
        p: Ints,
        o: Ints,
        g: Ints | None = None,
        *,
        diff: Ints | None = None,
        time: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
        tx: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
    ) -> None:
        """Apply changes given as ids of `graph.terms`; without `tx`, each is a transaction.

        All are applied or, if there is something wrong with one of them, none.
        """
        self.settle()
        rows = id_rows(len(self.terms), s, p, o, g, diff)
        if time is None:
            time = np.full(len(rows), self.clock, np.int64)
        if tx is None:
            tx = np.arange(self._last_tx + 1, self._last_tx + 1 + len(rows), dtype=np.int64)
        times, txs = integers("time", time, len(rows)), integers("tx", tx, len(rows))
        self._apply_whole((rows, times, txs))

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
        together = Together(self._store, self.standing)
        changed = carry_out(request, self, together, load_from)
        self.clock = stamp
        self._last_tx += 1
        self._done += 1
        stamps = Stamps((stamp,), (self._last_tx,), self._done - 1)
        self._tell(together.outputs(), stamps)
        self.settle()
        return changed

    def advance(self, to: int) -> None:
        """Let the clock go on to a time at which nothing else happens; windows close up to then."""
        self.clock = self._stamp(to)

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
        history: int = 100_000,
    ) -> Watch:
        """Register a query, as text or parsed. Its first delta is the whole current answer.

        The rows of an ASK are one `?answer`, those of CONSTRUCT and DESCRIBE are triples `?subject
        ?predicate ?object`.

        The planner chooses a `strategy` and a join order unless they are given. `plan` pins the
        join tree of `rete`: pairs of pattern numbers such as `((0, 1), 2)`, or `"written"` for a
        query whose algebra already is the tree. `history` bounds the delta rows kept for
        `watch.changes()`.
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
        stamps = Stamps((self.clock,), (max(self._last_tx, 0),), self._done - 1)
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
    ) -> Continuous:
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

    def unwatch(self, watch: Watch | Continuous) -> None:
        """End a standing query and give back what only it needed."""
        self.settle()
        if isinstance(watch, Continuous):
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
    def standing(self) -> Standing:
        """The plans of the queries at work."""
        return self._register.standing

    @property
    def watches(self) -> tuple[Watch, ...]:
        """The registered queries, oldest first."""
        return tuple(self._register)

    # --- looking at it ---

    def query(self, query: str | SelectQuery) -> pa.Table:
        """Answer a query once, as an Arrow table of N-Triples texts; in its order, if it has one.

        Unlike a standing query it may call NOW, RAND and the like.
        """
        self.settle()
        parsed = as_select(parse_any_query(query)) if isinstance(query, str) else query
        rows = self.rows_once(parsed)
        repeated = np.repeat(rows[:, VALUES:], np.maximum(rows[:, DIFF], 0), axis=0)
        columns = [self.terms.decode_column(column) for column in repeated.T]
        names = [v.name for v in parsed.variables]
        return pa.table(dict(zip(names, columns, strict=True)))

    def rows_once(self, query: SelectQuery) -> Ints:
        """The rows of a query now, as a batch of ids; in its order, if it has one."""
        order = query.root if isinstance(query.root, Slice) else None
        if order is not None:
            query = replace(query, root=order.child, variables=schema(order.child))
        plan = choose_plan(
            query, self.standing.statistics(), strategy="search", union=self._register.union
        )
        rows = self.standing.evaluate(plan)
        return rows if order is None else in_order(rows, plan.root, order, self.terms)

    def __len__(self) -> int:
        self.settle()
        return len(self._store) - self._streams.held()

    def __contains__(self, quad: tuple[ObjectLike | None, ...]) -> bool:
        self.settle()
        *triple, graph = quad if len(quad) == 4 else (*quad, None)
        ids = [self.terms.lookup(as_term(term)) for term in triple]
        ids.append(0 if graph is None else self.terms.lookup(as_term(graph)))
        if 0 in ids[:3] or (graph is not None and ids[3] == 0):
            return False
        return bool(self._store.contains(np.array([ids], np.int32))[0])

    def quads(self) -> Iterator[tuple[Term, Term, Term, Term | None]]:
        """The current quads, in no particular order; the last part is None in the default graph."""
        self.settle()
        decode = self.terms.decode
        for s, p, o, g in self.quad_ids().tolist():
            yield decode(s), decode(p), decode(o), decode(g) if g else None

    def quad_ids(self) -> Ints:
        """The current quads as rows of ids of `graph.terms`."""
        self.settle()
        return self.quad_ids_now()

    def quad_ids_now(self) -> Ints:
        """As `quad_ids`, in the middle of a transaction."""
        quads = self._store.quads()
        if not self._streams:
            return quads
        own: Ints = quads[quads[:, 3] < HIDDEN_GRAPHS]
        return own

    @property
    def transactions(self) -> int:
        """How many transactions there were."""
        self.settle()
        return self._done

    def statistics(self, *, exact: bool = False) -> Statistics:
        """Counts per predicate and class, as the planner sees them: at most a fifth out of date."""
        if exact:
            self.settle()
        return self.standing.statistics(exact=exact)

    def stats(self) -> Stats:
        """What the graph holds and has done."""
        self.settle()
        counts = self._store.counts()
        counts["dropped"] += self._streams.pruned()
        return Stats(
            quads=len(self._store),
            terms=len(self.terms),
            watches=len(self._register),
            searches=len(self.standing.programs),
            indexes=self._store.index_count,
            transactions=self._done,
            clock=self.clock,
            quad_bytes=self._store.nbytes,
            term_bytes=self.terms.nbytes,
            watch_bytes=self.standing.network.nbytes
            + sum(watch.answer_bytes for watch in self._register),
            **counts,
        )

    # --- the machinery ---

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

    def _apply_whole(self, lines: Lines) -> None:
        """Apply changes with a time and a number each, unless something is wrong with them."""
        rows, times, txs = lines
        problem = self._first_problem(rows, times)
        if problem:
            raise problem[1]
        for piece in cut(rows, times, txs):
            self._apply_checked(piece)

    def apply_piece(self, piece: Piece) -> None:
        """Apply whole transactions of ids; those before one that has to be refused are applied."""
        changes, times, _ = piece
        problem = self._first_problem(changes, times[changes[:, 0]])
        if problem:
            piece = first_transactions(piece, int(changes[problem[0], 0]))
        if len(piece[1]):
            self._apply_checked(piece)
        if problem:
            raise problem[1]

    def _first_problem(self, changes: Ints, times: Longs) -> tuple[int, GraphtideError] | None:
        """The place of the first change that has to be refused, given a time for each."""
        backwards = first_backwards(self.clock, times)
        if not self.strict:
            return backwards
        listed = [(row[1], tuple(row[2:])) for row in changes.tolist()]
        redundant = first_redundant(listed, self._store, self.terms)
        problems = [problem for problem in (backwards, redundant) if problem]
        return min(problems, key=lambda problem: problem[0], default=None)

    def _apply_checked(self, piece: Piece) -> None:
        _, times, txs = piece
        self._last_tx = max(self._last_tx, int(txs.max()))
        if self._running:  # called by a callback
            self._due.extend(one_by_one(self._pending.take()))
            self._due.extend(one_by_one(piece))
        elif self.callbacks or self._streams:
            self._apply_each(piece)
            return
        else:
            self._run(piece)
        self.clock = int(times[-1])

    def _apply_each(self, piece: Piece) -> None:
        """Whoever is called back sees the graph as of that transaction, not of the whole batch."""
        for one in one_by_one(piece):
            check_order(self.clock, one[1])  # a callback may have advanced the clock
            if self._streams and one[1][0] > self.clock:  # windows never see the future
                self._streams.advance(int(one[1][0]))
            self.followers.before(int(one[1][0]), self.clock)
            self.clock = int(one[1][0])
            self._run(one)
            self.settle()

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


def _batches(changes: Changes) -> Iterable[ChangeBatch]:
    if isinstance(changes, ChangeBatch):
        return (changes,)
    if isinstance(changes, (str, Path, pa.Table)):
        return read_changes(changes)
    return changes


def _is_plain_rdf(changes: Changes) -> bool:
    return isinstance(changes, (str, Path)) and find_format(changes).rdf is not None


def _restamped(batches: Iterable[ChangeBatch], time: int, tx: int) -> Iterator[ChangeBatch]:
    for batch in batches:
        n = len(batch)
        yield ChangeBatch(
            np.full(n, time, np.int64), np.full(n, tx, np.int64), batch.diff,
            batch.s, batch.p, batch.o, batch.g,
        )  # fmt: skip
