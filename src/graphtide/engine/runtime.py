"""Runtime: one live graph at work. Its store, scheduler, write buffer, queue and queries."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphtide.engine import ingest, storage, timers, transaction
from graphtide.engine.locking import GraphLock
from graphtide.engine.queries import SEVERAL, QueryRegistry
from graphtide.engine.query_host import AskedQuery, CacheSize, QueryPast
from graphtide.engine.reclaim import ALWAYS, TermReclaimer
from graphtide.engine.results import Delta, TransactionTimes
from graphtide.engine.scheduler import Scheduler, inside_callback
from graphtide.engine.watch import MAX_COUNTED, Query
from graphtide.errors import DataError, StoreError
from graphtide.kernel.batch import TX, VALUES, Ints, Longs, first_of_each
from graphtide.limits import Limits
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.dictionary import HIDDEN_GRAPHS, TermDictionary

Result = TypeVar("Result")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.events import EventBatch
    from graphtide.engine.timers import Follower
    from graphtide.engine.transaction import InputRecorder, Recent, Underway
    from graphtide.plan.explain import NodeFacts
    from graphtide.plan.order import Pin
    from graphtide.plan.patterns import Strategy


class Runtime:
    """One graph at work: quad store, clock, write buffer, queue, standing queries, subscribers.

    Single changes wait in the write buffer until `flush`. Whole transactions go through `_run`, one
    batch at a time: the store applies them, the queries take in what that changed, callbacks run,
    followers are notified. What a callback changes is queued until its transaction is through.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        store: storage.Storage = "all",
        default_graph: storage.DefaultGraphMode = "own",
        tick_ms: int = 1000,
        limits: Limits | None = None,
    ) -> None:
        storage.check_options(default_graph, tick_ms)
        self.lock = GraphLock()
        self.terms = TermDictionary(self.lock)
        self.reclaimer = TermReclaimer(self.terms)
        self.terms.holders.add(self)
        self.strict, self.storage = strict, store
        self.default_graph: storage.DefaultGraphMode = default_graph
        self.tick_ms, self.schedule = tick_ms, Scheduler()
        self.schedule.finish_input = self.flush
        self.limits = Limits() if limits is None else limits
        self.store = storage.make_store(store, strict=strict)
        self.terms.longest = self.limits.literal_length or inf
        self.store.limits, union = self.limits, default_graph == "union"
        self.queries = QueryRegistry(self.store, self.terms, self.limits, union=union)
        self._matched: storage.MatchFilter | None = None
        self.quad_ids_of = ingest.quad_ids
        if store != "all":
            self._matched = storage.MatchFilter(self.queries, self.terms, stored=self.store.stores)
            self.quad_ids_of = self._matched.quad_ids
        self.done, self.closes, self.last_tx = 0, 0, -1
        self.buffer, self.max_buffered = ingest.WriteBuffer(), ingest.MAX_BUFFERED
        self.past: QueryPast | None = None
        self.facade: Callable[[], Any] = lambda: None
        self.queue: deque[ingest.Transactions] = deque()
        self.eager: tuple[Follower, ...] = ()
        self.underway: Underway | None = None
        self.recent: Recent | None = None
        self.applied, self._items = transaction.AppliedSteps(), transaction.RuntimeItems(self)
        self.counted: Any = None
        self.unnotified: deque[tuple[Query, Delta] | None] = deque()

    # --- followers ---

    def subscribe(self, follower: Follower, *, eager: bool = True) -> timers.Subscription:
        """Let a follower follow the clock and, if `eager`, every single transaction and event."""
        self.flush()
        self.schedule.followers.append(follower)
        if eager:
            self.eager += (follower,)
            self.schedule.host = self._items
        return timers.Subscription(self, follower)

    def unsubscribe(self, subscription: timers.Subscription) -> None:
        """End a subscription."""
        follower = subscription.follower
        if follower in self.schedule.followers:
            self.schedule.followers.remove(follower)
            self.eager = tuple(each for each in self.eager if each is not follower)
            self.schedule.host = self._items if self.eager else None

    def publish(self, events: EventBatch, followers: tuple[Follower, ...] | None = None) -> None:
        """Pass events to all eager followers, or to some; the graph does not store them.

        Callbacks see the graph after each single event.
        """
        if self.schedule.calling_back:
            self.schedule.defer_to_next(lambda: self.publish(events, followers))
            return
        self.flush()
        if len(events.ends):
            self.schedule.check_time(int(events.ends[0]))
        ingest.check_order(self.clock, events.ends)
        apart = self.queries.with_callbacks and self.schedule.is_between_inputs
        if apart and len(events.ends) > 1:
            each = [events.slice(at, at + 1) for at in range(len(events.ends))]
            self.schedule.take_each([partial(self.publish, one, followers) for one in each])
            return
        chosen = self.eager if followers is None else followers
        self.schedule.take_input(
            lambda: self.schedule.publish(events, chosen), "events", events, followers
        )

    # --- clock and queue ---

    @property
    def clock(self) -> int:
        """The current time, in ticks."""
        return self.schedule.clock

    def tick(self, to: int) -> None:
        """Take in a step of the clock, after what an interrupt or an error has left."""
        schedule = self.schedule
        if schedule.calling_back:
            schedule.defer_to_next(lambda: self.tick(to))
            return
        with schedule, schedule.one_call:
            if transaction.is_unsettled(self):
                self.flush()
            schedule.take_input(lambda: schedule.advance(to), "clock", to)

    def reach(self, time: int | None) -> int:
        """Move the clock to the time of the next transaction, if it has one. Returns the time.

        All watermarks rise to it, also if the clock stands there already: no result for an earlier
        time may know of the transaction.
        """
        schedule = self.schedule
        if time is None:
            if transaction.is_unsettled(self):  # what an interrupt has left may move the clock
                self._flush_before_change()
            time = schedule.clock
        if time != schedule.clock or self._is_behind:
            schedule.advance(time)
        return schedule.clock

    @property
    def _is_behind(self) -> bool:
        """True if a result for a time before now may still come."""
        return self.schedule.raised != self.schedule.clock

    @property
    def transactions(self) -> int:
        """How many transactions have been applied: the number of the next one."""
        self.flush()
        return self.next_seq

    @property
    def next_seq(self) -> int:
        """The number of the next transaction; closes of windows have none."""
        return self.done - self.closes

    @property
    def position(self) -> int:
        """How many transactions and closes of windows have been applied."""
        self.flush()
        return self.done

    @property
    def one_by_one(self) -> bool:
        """Whether somebody wants to see the graph after every single transaction."""
        return bool(self.eager or self.queries.with_callbacks)

    def flush(self) -> None:
        """Apply buffered and queued transactions. Every look at an answer does this first.

        Between inputs, callbacks run first, and then what they have written is taken in. The first
        error is raised when nothing is left.
        """
        schedule = self.schedule
        if schedule.calling_back:
            return
        if self.one_by_one and schedule.is_between_inputs:
            with schedule, schedule.one_call:
                self._flush()
        else:
            self._flush()

    def _flush(self) -> None:
        schedule, quiet = self.schedule, False
        if not schedule.running:
            if schedule.notices and schedule.is_between_inputs:  # of an input that did not end
                schedule.recover()
                transaction.recover(self)
                self._call_back()
            left = schedule.waiting or schedule.unreleased or schedule.is_interrupted
            if left or schedule.buffer.sink is not None:
                schedule.settle()
            else:
                quiet = not (self.eager or self.queries.with_callbacks or ALWAYS)
            if self.underway is not None:
                transaction.recover(self)
        while True:
            if self.unnotified:
                self._notify()
            elif schedule.has_callbacks_due and schedule.is_between_inputs:
                self._call_back()
            elif self.queue and schedule.is_between_inputs:
                self._run_next()
            elif self.buffer.waiting and quiet and schedule.recorder is None:
                self._apply_piece(self.buffer.take(self), None)
            elif self.buffer.waiting:
                self._run_buffered()
            else:
                schedule.settled = self.recent if quiet else None
                return

    def _call_back(self) -> None:
        """Run the callbacks that are due, and take in what they write, until nothing is left."""
        while self.schedule.has_callbacks_due:
            if self.schedule.notices:
                self.schedule.call_back()
            else:
                self.schedule.take_next()

    def _run_buffered(self) -> None:
        """Apply what is in the write buffer; between inputs, what needs single steps is queued."""
        recorder = self.schedule.recorder and self.schedule.admit()
        if not self.one_by_one:
            self._apply_piece(self.buffer.take(self), recorder)
            return
        if self.schedule.is_between_inputs:
            self.queue.extend(ingest.one_by_one(self.buffer.take()))
            return
        for piece in ingest.one_by_one(self.buffer.take()):
            self.underway = piece, [piece[0]], self.done
            self._run(piece, queued=True)

    def _run_next(self) -> None:
        """Apply the first transactions of the queue."""
        piece = self.queue[0]
        if self.one_by_one and len(piece[1]) > 1:
            self._divide_first()
            return
        schedule = self.schedule
        schedule.inputs += 1
        try:
            if self._is_behind:
                schedule.advance(self.clock)
            self.underway = piece, [piece[0]], self.done
            self.queue.popleft()
            self._run(piece, queued=True)
        finally:
            schedule.inputs -= 1

    def _divide_first(self) -> None:
        """Let each of the first transactions of the queue be a piece of its own."""
        first, *others = self.queue
        self.queue = deque([*ingest.one_by_one(first), *others])

    def settle(self) -> None:
        """Flush at the start or at the end of what a user calls: terms may be freed here."""
        self.flush()
        if self.terms.grown or ALWAYS:
            self.reclaim()

    def reclaim(self, *, in_call: bool = False) -> None:
        """A safe point, perhaps in a call of a user: free terms if nothing is under way.

        What is queued or under way has ids that no holder knows of: effects, transactions, notices.
        """
        if not (self.terms.grown or ALWAYS):
            return
        if len(self.terms) < self.reclaimer.at:
            self.terms.grown = False
        elif (
            self.reclaimer.due
            and self.schedule.is_idle(in_call=in_call)
            and not (self.underway or self.unnotified or self.queue)
        ):
            self.reclaimer.reclaim()

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids that the store, the plans and the write buffer hold; queries do so too."""
        yield from self.store.held_ids()
        yield from self.queries.plans.held_ids()
        yield from (*self.buffer.held_ids(), *self.schedule.buffer.held_ids())

    def _run(
        self,
        piece: ingest.Transactions,
        *,
        derived: bool = False,
        queued: bool = False,
        closes: int = 0,
    ) -> None:
        """Apply transactions, and do what they cause.

        Those that are `derived` are not input, as `closes` of windows are not; those that were
        `queued` have been admitted.
        """
        schedule = self.schedule
        recorder = None if derived else schedule.recording
        if recorder is not None and not queued:
            schedule.admit(more=True)
        if self.eager:
            if not schedule.running:
                self.underway = piece, [piece[0]], self.done
                schedule.accepted += 1
            work = partial(self._apply_piece, piece, recorder, closes)
            schedule.perform(work, ("changes", self.done))
        else:
            self._apply_piece(piece, recorder, closes)

    def _apply_piece(
        self, piece: ingest.Transactions, recorder: InputRecorder | None, closes: int = 0
    ) -> None:
        """Apply transactions, all or none; of several, those that fail are left out.

        `closes` is the number of transactions if they are closes of windows, else 0.
        """
        changes, times, txs = piece
        self.schedule.settled, underway, deltas = None, self.underway, None
        many = len(times)
        if underway is None or underway[0] is not piece:
            if underway is not None:  # it could not be undone before
                transaction.recover(self)
            self.underway = underway = piece, [changes], self.done
            self.schedule.accepted += 1
        try:
            if ALWAYS:
                self.reclaimer.verify(changes[:, VALUES:])
            if len(changes) and (batches := self.store.apply(changes)):
                stamps = TransactionTimes(times, txs, self.done, self.closes)
                deltas = self.queries.react(batches, stamps, changes)
            elif len(changes) >= SEVERAL or not self.done % SEVERAL:
                self.queries.observe(changes)  # of single changes without effect, some
            if recorder is not None:
                recorder.changes(piece)
            if self.schedule.item is not None:
                self.applied.note(self.store, changes)
            notices = deque([*(deltas or ()), None]) if deltas or self.eager else self.unnotified
            recent = underway, self.terms.generation
            clock = max(self.schedule.clock, int(times[-1])) if many else self.schedule.clock
            # From here on nothing is called: an interrupt comes before or after. The clock moves
            # here, as what is interrupted before is applied by the next call.
            self.schedule.clock = clock
            self.done += many
            self.closes += closes
            self.unnotified, self.recent, self.underway = notices, recent, None
        except Exception as error:
            if many == 1 or isinstance(error, StoreError):  # refused: undone, and not done again
                self.underway = None, underway[1], underway[2]
                self.schedule.not_applied(error, int(times[0]), derived=recorder is None)
                transaction.recover(self)
                raise
            transaction.recover(self)
            self._divide_first()
            self._apply_one_by_one(many, recorder, close=int(closes > 0))
        if self.unnotified or self.schedule.failure is not None:
            self._notify()

    def _apply_one_by_one(self, many: int, recorder: InputRecorder | None, *, close: int) -> None:
        """Apply the first pieces of the queue, of one transaction each; leave those out that fail.

        If one cannot be undone, the others wait until it is.
        """
        with self.schedule, self.schedule.one_call:
            while many and self.underway is None:
                one, many = self.queue[0], many - 1
                self.underway = one, [one[0]], self.done
                self.queue.popleft()
                self.schedule.attempt(partial(self._apply_piece, one, recorder, close))

    def drained(self, query: Query, taken: list[tuple[Ints, TransactionTimes]]) -> None:
        """Deltas are about to be taken out of the history of a query."""
        if self.schedule.item is not None:
            self.applied.drained.setdefault(query, taken)
            self.schedule.touched = True

    def emit(self, outputs: Mapping[int, Ints], time: int) -> None:
        """Count what plan nodes put out, over several steps, as one transaction."""
        recorder, steps = self.schedule.recording, self.underway[1] if self.underway else ()
        if recorder is not None:
            recorder.changes((transaction.in_one(steps), (time,), (self.last_tx + 1,)))
        self.schedule.clock = time
        self.schedule.perform(lambda: self._emit(outputs, time), ("changes", self.done))
        self.flush()

    def _emit(self, outputs: Mapping[int, Ints], time: int) -> None:
        self.last_tx += 1
        self.done += 1
        stamps = TransactionTimes((time,), (self.last_tx,), self.done - 1, self.closes)
        deltas = self.queries.take(outputs, stamps)
        if self.schedule.item is not None and self.underway is not None:
            self.applied.steps += self.underway[1]
        self.unnotified = deque([*deltas, None])
        self.recent, self.underway = (self.underway, self.terms.generation), None
        self._notify()

    @contextmanager
    def in_steps(self, steps: list[Ints]) -> Iterator[None]:
        """A transaction of several steps, which are listed before they are applied.

        If something is raised before `emit` is through, all of them are undone.
        """
        self.schedule.admit()
        self.counted = self.store.counted()
        self.underway = None, steps, self.done
        try:
            yield
        except Exception:
            transaction.recover(self)
            raise

    def _notify(self) -> None:
        """Let followers know of what was applied; callbacks run when the input is through."""
        while self.unnotified:
            notice = self.unnotified[0]
            calls = () if notice is None else notice[0].callbacks(notice[1])
            self.schedule.notices.extend(calls)
            self.unnotified.popleft()
            if notice is None:
                for follower in self.eager:
                    follower.after_transaction()
        if self.schedule.failure is not None:
            self.schedule.raise_errors()

    def reject_inside_callback(self, what: str) -> None:
        """Raise if a callback calls what needs the graph between two transactions."""
        if self.schedule.calling_back:
            raise inside_callback(what)

    # --- single changes ---

    def write(self, diff: int, ids: ingest.Ids, time: int | None) -> None:
        """Buffer one change, as a transaction of its own."""
        schedule = self.schedule
        if schedule.calling or schedule.buffer.sink is not None:
            if schedule.calling_back:
                schedule.defer_to_next(lambda: self.write(diff, ids, time))
                return
            schedule.accept()
        if self.eager or self.underway is not None or self.queue:
            # An error of what is left is raised when this change is in, too.
            with schedule, schedule.one_call:
                self._flush_before_change()
                self._write(diff, ids, time)
        else:
            self._write(diff, ids, time)

    def _write(self, diff: int, ids: ingest.Ids, time: int | None) -> None:
        schedule = self.schedule
        if self.strict:
            self.commit([(diff, ids)], time)
            self.reclaim()
            return
        if (time is not None and time != schedule.clock) or self._is_behind:
            if schedule.followers:
                with schedule, schedule.one_call:
                    schedule.inputs += 1
                    try:
                        self.reach(time)
                        self.write(diff, ids, None)
                    finally:
                        schedule.inputs -= 1
                    if schedule.notices:
                        self.flush()
                return
            self.reach(time)  # nothing is due
        tx = self.last_tx + 1
        schedule.settled = None  # not before: what is flushed on the way sets it
        waiting = self.buffer.single(schedule.clock, tx, diff, ids)
        self.last_tx = tx
        if schedule.next:
            schedule.accepted += 1
        if waiting >= self.max_buffered or self.eager or self.queries.with_callbacks:
            try:
                self.settle()
            except Exception:
                self._withdraw(tx)
                raise

    def _flush_before_change(self) -> None:
        """Flush what an interrupt or an error has left, which comes before a change.

        No holder knows of the ids of the change yet, and what is flushed may call user code, which
        reaches safe points of its own: nothing is freed meanwhile.
        """
        self.reclaimer.busy += 1
        try:
            self.flush()
        finally:
            self.reclaimer.busy -= 1

    def commit(self, changes: Sequence[tuple[int, ingest.Ids]], time: int | None) -> None:
        """Buffer the changes of one transaction."""
        schedule = self.schedule
        if schedule.calling or schedule.buffer.sink is not None:
            if schedule.calling_back:
                schedule.defer_to_next(lambda: self.commit(changes, time))
                return
            schedule.accept()
        if self.eager or self.underway is not None or self.queue:
            # An error of what is left is raised when these changes are in, too.
            with schedule, schedule.one_call:
                self._flush_before_change()
                self._commit(changes, time)
        else:
            self._commit(changes, time)

    def _commit(self, changes: Sequence[tuple[int, ingest.Ids]], time: int | None) -> None:
        schedule = self.schedule
        moves = (time is not None and time != schedule.clock) or self._is_behind
        if self.strict and not (moves and schedule.followers):
            storage.refuse_redundant(self, changes)  # and it does not move the clock
        if moves and schedule.followers:
            with schedule, schedule.one_call:
                schedule.inputs += 1
                try:
                    self.reach(time)
                    self.commit(changes, None)
                finally:
                    schedule.inputs -= 1
                if schedule.notices:
                    self.flush()
            return
        if moves:
            self.reach(time)  # nothing is due
        tx = self.last_tx + 1
        schedule.settled = None  # not before: what is flushed on the way sets it
        waiting = self.buffer.several(schedule.clock, tx, changes)
        self.last_tx = tx
        schedule.accepted += 1
        if waiting >= self.max_buffered or self.eager or self.queries.with_callbacks:
            try:
                self.flush()
            except Exception:
                self._withdraw(tx)
                raise

    def _withdraw(self, tx: int) -> None:
        """Let a transaction not happen that a call has buffered, if the call could not begin it."""
        if self.buffer.drop(tx):
            self.last_tx = tx - 1

    # --- batches ---

    def apply(
        self, batches: ChangeBatch | Iterable[ChangeBatch], time: int | None, *, plain: bool
    ) -> None:
        """Apply batches of changes; `plain` data, or with a `time`, all as one transaction.

        A single batch is applied whole or, if something is wrong with it, not at all. Of several,
        the transactions before an error are applied.
        """
        if self.schedule.calling_back and (plain or time is not None):  # one input
            self.schedule.defer_to_next(lambda: self.apply(batches, time, plain=plain))
            return
        self.flush()
        self.schedule.admit()
        with self.schedule, self.schedule.one_call:
            if isinstance(batches, ChangeBatch) and time is None:
                rows, bad = ingest.encode(batches, self.terms, self._matched)
                if bad:
                    raise DataError(f"row {bad[0]}: {bad[1]}")
                self._apply_whole(rows, batches.time, batches.tx)
            else:
                for piece in ingest.pieces(self, batches, time, self._matched, plain=plain):
                    self.apply_piece(piece)
                    self.reclaim(in_call=True)
        self.reclaim()

    def apply_ids(
        self,
        s: Ints,
        p: Ints,
        o: Ints,
        g: Ints | None = None,
        *,
        diff: Ints | None = None,
        time: Longs | None = None,
        tx: Longs | None = None,
    ) -> None:
        """Apply changes given as ids, all of them or none; without `tx`, each is a transaction."""
        self.flush()
        self.schedule.admit()
        rows = ingest.id_rows(self.terms, s, p, o, g, diff)
        if time is None:
            time = np.broadcast_to(np.int64(self.clock), len(rows))
        if tx is None:
            tx = np.arange(self.last_tx + 1, self.last_tx + 1 + len(rows), dtype=np.int64)
        time, tx = ingest.integers("time", time, len(rows)), ingest.integers("tx", tx, len(rows))
        notifies = self.schedule.followers or self.queries.with_callbacks  # and lets them change it
        self._apply_whole(rows[:] if notifies else rows, time, tx)

    def apply_piece(self, piece: ingest.Piece) -> None:
        """Apply whole transactions of ids; those before a rejected one are applied."""
        changes, times, _ = piece
        problem = self._first_problem(changes, times[changes[:, TX]])
        if problem:
            piece = ingest.first_transactions(piece, int(changes[problem[0], TX]))
        if len(piece[1]):
            self._apply_checked(piece)
        if problem:
            raise problem[1]

    def insert_each(self, quads: Ints, owners: Longs, times: Longs) -> None:
        """Insert quads as one transaction for each owner, at the time of that owner.

        `owners` has the owner's index for each quad. Quads that are present are left out, and
        owners of which nothing is left.
        """
        self.flush()
        new = ~self.store.contains(quads)
        quads, owners = first_of_each(quads[new], owners[new])
        txs = np.cumsum(np.diff(owners, prepend=-1) > 0) + self.last_tx
        stamps = np.maximum(times[owners], self.clock)
        for piece in ingest.cut(ingest.signed(quads, 1), stamps, txs):
            self._run(piece)
            self.last_tx = int(piece[2][-1])
            self.schedule.clock = int(piece[1][-1])
        if len(quads):
            self.reach(None)  # there are no windows: it only raises watermarks

    def apply_now(self, changes: Ints) -> None:
        """Apply a transaction that is not input, at the time of the clock."""
        self.flush()
        self.last_tx += 1
        self._run((changes, (self.clock,), (self.last_tx,)), derived=True)

    def apply_closes(self, times: Longs, changes: Ints) -> None:
        """Apply the changes of windows at some closes, which do not count as transactions."""
        self.flush()
        self.reject_inside_callback("a stream")
        many = len(times)
        stamps = np.maximum(times, self.clock) if many > 1 else (max(times.item(), self.clock),)
        self.schedule.clock = int(stamps[-1])
        self._run((changes, stamps, (self.last_tx,) * many), derived=True, closes=many)

    def pass_closes(self, many: int, time: int) -> None:
        """Pass closes of windows that change nothing, the last at a time."""
        self.schedule.clock = max(self.schedule.clock, time)
        self.done += many
        self.closes += many

    def _apply_whole(self, rows: ingest.Changes, times: Longs, txs: Longs) -> None:
        if problem := self._first_problem(rows, times):
            raise problem[1]
        left = len(rows)
        for piece in ingest.cut(rows, times, txs):
            self._apply_checked(piece)
            self.store.to_come = left = left - len(piece[0])

    def _first_problem(self, rows: ingest.Changes, times: Longs) -> ingest.Problem | None:
        if self.strict:
            return storage.first_problem(self, rows[:], times)
        return ingest.first_backwards(self.clock, times)

    def _apply_checked(self, piece: ingest.Piece) -> None:
        _, times, txs = piece
        if self.schedule.calling_back:
            for one in ingest.one_by_one(piece):
                self.schedule.defer_to_next(partial(self._apply_in_order, one))
            return
        if self.schedule.calling or self.schedule.buffer.sink is not None:
            self.schedule.accept()
        self.last_tx = max(self.last_tx, int(txs.max()))
        if self.schedule.followers or self.queries.with_callbacks:
            self._apply_each(piece)
            return
        else:
            self._run(piece)
            self.schedule.raised = int(times[-1])
        self.schedule.clock = int(times[-1])

    def _apply_in_order(self, piece: ingest.Piece) -> None:
        """Apply a transaction, unless the clock has passed its time meanwhile."""
        ingest.check_order(self.clock, piece[1])
        self._apply_checked(piece)

    def _apply_each(self, piece: ingest.Piece) -> None:
        """Who is notified sees the graph as of that transaction, not of the whole batch."""
        with self.schedule, self.schedule.one_call:
            for one in ingest.one_by_one(piece):
                ingest.check_order(self.clock, one[1])  # a callback may have advanced the clock
                self.schedule.inputs += 1
                try:
                    self.reach(int(one[1][0]))
                    self._run(one)
                finally:
                    self.schedule.inputs -= 1
                self.flush()

    # --- standing queries ---

    def watch(
        self,
        select: SelectQuery,
        *,
        strategy: Strategy | None = None,
        plan: Pin | None = None,
        name: str | None = None,
        history: int | None = None,
    ) -> Query:
        """Register a query without windows; `history` None keeps every delta until drained."""
        self.flush()
        strategy = storage.strategy_for(self.store, strategy)
        timers.follow_clock(self, select)
        chosen = self.queries.plan(select, strategy, plan)
        storage.check_complete(self.store)
        asked = AskedQuery(select, strategy, plan)
        query = Query(self, chosen, asked, self.queries.free_name(name), history)
        last = (max(self.last_tx, 0),)
        stamps = TransactionTimes((self.clock,), last, self.done - 1, self.closes)
        self.queries.add(query, stamps)
        return query

    def registering(
        self, work: Callable[[], Result], is_recorded: Callable[[], bool] = lambda: False
    ) -> Result:
        """Register something on a graph that may be recorded.

        If that fails before it is recorded, the queries that it has registered are removed.
        """
        if self.schedule.recording is None:
            return work()
        before = self.queries.registered()
        try:
            return work()
        except BaseException as error:
            if not is_recorded():
                try:
                    self.queries.restore(*before)
                    if not isinstance(error, Exception):  # nodes may be there in part
                        self.queries.rebuild(self.store, self.done)
                except BaseException:
                    self.schedule.interrupted(error)
                    raise
            raise

    def close_query(self, query: Query) -> None:
        """End a query."""
        self.flush()
        self.queries.check(query)
        self.schedule.take_input(lambda: self._end_query(query), "unwatch", query.name)

    def _end_query(self, query: Query) -> None:
        self.queries.remove(query)
        if query.windows is not None:
            query.windows.close()

    def replan(self, query: Query) -> bool:
        """Plan a query again by current statistics; whether that gave another plan."""
        self.flush()
        self.queries.check(query)
        return self.queries.replan(query)

    def notify_each(self, query: Query) -> None:
        """A query has callbacks from now on."""
        self.queries.with_callbacks.add(query)

    def plan_facts(self, query: Query, rows: int, *, actual: bool | None) -> NodeFacts:
        """Expected, actual and stored rows per plan node; unless told, no count on large graphs."""
        self.flush()
        counted = len(self.store) <= MAX_COUNTED if actual is None else actual
        return self.queries.plans.facts(query.plan, query.node_ids, rows, actual=counted)

    def cache_size(self, query: Query) -> CacheSize:
        """What a query's nodes store besides the shared quads."""
        self.flush()
        return CacheSize(*self.queries.plans.network.held(query.node_ids))

    # --- the graph now ---

    def quad_ids(self) -> Ints:
        """The current quads as rows of ids, those of windows left out."""
        quads: Ints = self.store.quads()
        shown = quads[:, ingest.GRAPH] < HIDDEN_GRAPHS
        return quads if shown.all() else quads[shown]

    def present(self, quads: Sequence[ingest.Ids]) -> list[bool]:
        """Which of some quads, given as ids, are in the graph."""
        self.flush()
        return list(map(bool, self.store.contains(np.array(quads, np.int32).reshape(-1, 4))))
