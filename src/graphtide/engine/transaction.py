"""Transaction: changes that take effect together; WorkItem: input with all that it causes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from graphtide.engine.ingest import Ids, ObjectLike, TermLike, Transactions, signed
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints
from graphtide.limits import end_all
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from types import TracebackType

    from graphtide.engine.results import TransactionTimes
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.scheduler import Scheduler
    from graphtide.engine.watch import Query
    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Longs


class Transaction:
    """Made by `LiveGraph.transaction`; committed when its `with` block ends without an error.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> with graph.transaction(time=17) as tx:
    ...     tx.insert("<http://example.org/a>", "<http://example.org/p>", 1)
    ...     tx.insert("<http://example.org/a>", "<http://example.org/p>", 2)
    >>> len(graph), graph.clock
    (2, 17)
    """

    __slots__ = ("__weakref__", "_append", "_changes", "_ids", "_runtime", "_time", "lock")

    def __init__(self, runtime: Runtime, time: int | None) -> None:
        self._runtime = runtime
        self.lock = runtime.lock
        self._time = time
        self._ids = runtime.quad_ids_of
        self._changes: list[tuple[int, Ids]] | None = None
        self._append: Callable[[tuple[int, Ids]], None] = _not_open

    def insert(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Insert a quad (into the default graph, unless `g` names another)."""
        with self.lock:
            self._append((1, self._ids(self._runtime.terms, s, p, o, g)))

    def delete(self, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None = None) -> None:
        """Delete a quad."""
        with self.lock:
            self._append((-1, self._ids(self._runtime.terms, s, p, o, g)))

    def __enter__(self) -> Self:
        self._changes = []
        self._append = self._append_first
        return self

    def _append_first(self, change: tuple[int, Ids]) -> None:
        """From the first change on, there are terms to hold."""
        self._runtime.terms.holders.hold(self)
        if self._changes is not None:
            self._append = self._changes.append
            self._append(change)

    def held_ids(self) -> Iterator[Longs]:
        """The ids of the changes so far."""
        yield flat_ids(ids for _, ids in self._changes or ())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.lock:
            changes, self._changes, self._append = self._changes, None, _not_open
            if kind is None and changes is not None:
                self._runtime.commit(changes, self._time)
                if changes:
                    self._runtime.reclaim()


def _not_open(_: tuple[int, Ids]) -> None:
    raise GraphtideError(
        "this transaction is not open, so its change would be lost",
        hint="write `with graph.transaction() as tx:` and change the graph inside",
    )


Underway = tuple[Transactions | None, list[Ints], int]
"""What is being applied: its transactions, its changes step by step, the first number.

Plain tuples, as these two are made for every single change."""

Recent = tuple[Underway | None, int]
"""What was applied last, and the generation of terms then: later, ids may be of others."""


def undone(store: QuadStore, steps: Sequence[Ints]) -> Ints:
    """What undoes steps, of which a store may have applied the last one in part."""
    parts: list[Ints] = [np.empty((0, VALUES + 4), np.int32)]
    for at, step in enumerate(reversed(steps)):
        if at == 0:
            parts.append(store.undo(step))
        else:
            parts.append(step[::-1].copy())
            parts[-1][:, DIFF] *= -1
    return np.concatenate(parts)


def in_one(steps: Sequence[Ints]) -> Ints:
    """The changes of several steps, one after the other, as one transaction."""
    changes = np.concatenate([np.empty((0, VALUES + 4), np.int32), *steps])
    changes[:, TX] = 0
    return changes


def copied(piece: Transactions) -> Transactions:
    """The same transactions in arrays of their own."""
    changes, times, txs = piece
    return changes.copy(), np.array(times, np.int64), np.array(txs, np.int64)


class MultiStepTransaction:
    """Several steps of changes as one transaction, each of which sees those before it.

    Store and plan nodes take in each step at once; the output is held back until the end. The
    runtime undoes all `steps` if something is raised.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._plans = runtime.queries.plans
        self.steps: list[Ints] = []
        self._outputs: dict[int, list[Ints]] = {}

    def change(self, deleted: Ints, inserted: Ints) -> int:
        """Delete quads, then insert quads; how many changes that made.

        Quads that are deleted and inserted stay; inserts of present quads are skipped.
        """
        removed, added = _distinct(deleted), _distinct(inserted)
        removed = removed[self._store.contains(removed)] if len(removed) else removed
        added = added[~self._store.contains(added)] if len(added) else added
        stays = set(map(tuple, inserted.tolist())) if len(removed) and len(inserted) else set()
        if stays:
            removed = removed[[tuple(row) not in stays for row in removed.tolist()]]
        changes = np.concatenate([signed(removed, -1), signed(added, 1)])
        self.steps.append(changes)
        self._apply(changes)
        return len(changes)

    def _apply(self, changes: Ints) -> None:
        batches = self._store.apply(changes) if len(changes) else {}
        if batches:
            for node_id, batch in self._plans.advance(batches).items():
                self._outputs.setdefault(node_id, []).append(batch)

    def outputs(self) -> dict[int, Ints]:
        """The output of each node of the network, by node id, over all steps."""
        return {node_id: np.concatenate(parts) for node_id, parts in self._outputs.items()}


def _distinct(quads: Ints) -> Ints:
    """Each quad once, in order of first appearance."""
    if len(quads) < 2:
        return quads
    _, first = np.unique(quads, axis=0, return_index=True)
    return quads[np.sort(first)]


# --- a piece of input, with all that it causes


class Protected(Protocol):
    """A part of a graph at work that goes back to a savepoint if a piece of input is interrupted.

    Going back may be interrupted itself: it is then done again, with the same savepoint.
    """

    def savepoint(self) -> Any:  # noqa: ANN401 - each part has its own
        """What `roll_back` needs."""

    def roll_back(self, to: Any) -> None:  # noqa: ANN401
        """Go back to a savepoint of the piece of input under way."""


class ItemHost(Protected, Protocol):
    """The runtime, as the scheduler sees it."""

    def flush(self) -> None:
        """Apply what waits, and what an interrupt has left."""


class InputRecorder(Protocol):
    """Records the input of a graph in order: what comes from outside, not what follows from it.

    `underway` is set when `input` has recorded something, until the graph has taken it in.
    """

    underway: bool

    def admit(self, *, more: bool = False) -> None:
        """Wait until another input may come, or `more` of the same call; nothing is applied yet."""

    def changes(self, piece: Transactions) -> None:
        """Transactions are applied; if this raises, they are not."""

    def clock(self, to: int) -> None:
        """The clock moves on, and nobody follows it."""

    def input(self, kind: str, *what: object) -> None:
        """Something else comes in: events, a move of the clock, the end of a query."""

    def interrupted(self, error: BaseException) -> object:
        """What follows from an input was interrupted: a replay of it would go further."""

    def call(self, firing: str, function: Callable[[], object]) -> None:
        """An action calls a function; in a replay only if that was not finished before."""


class WorkItem:
    """A piece of input under way, with all that it causes: it happens wholly, or not at all.

    `saved` has a savepoint of each part that takes part in it, `notices` how many callbacks were
    due before. `made` has by position the calls of functions of users that are finished; when the
    input is taken in again, known by its `key`, they are not made again.
    """

    __slots__ = ("clock", "failure", "key", "made", "notices", "position", "raised", "saved")

    def __init__(
        self,
        key: Hashable,
        clock: int,
        raised: int,
        failure: Exception | None,
        made: MadeCalls | None,
        notices: int,
    ) -> None:
        self.key = key
        self.clock = clock
        self.raised = raised
        self.failure = failure
        self.made: MadeCalls = {} if made is None else made
        self.notices = notices
        self.position = 0
        self.saved: dict[Protected, Any] = {}

    def call(self, label: object, function: Callable[[], object], schedule: Scheduler) -> None:
        """Call a function, unless that is finished; it is if it has not changed the graph."""
        at, self.position = self.position, self.position + 1
        known = self.made.get(at)
        if known is not None and known[0] == label:
            if known[1] is not None:
                schedule.known = known[1]
                raise known[1]
            return
        failed: Exception | None = None
        before, schedule.touched = schedule.touched, False
        try:
            function()
        except Exception as error:  # noqa: BLE001 - it is raised below
            failed = schedule.known = error
        if not schedule.touched:
            self.made[at] = label, failed
            schedule.touched = before
        if failed is not None:
            raise failed


MadeCalls = dict[int, tuple[object, Exception | None]]
"""By position: for what a function was called, and its error."""


class RuntimeSavepoint(NamedTuple):
    """A runtime before a piece of input: its first transaction, what waits, its numbers.

    `counted` is what the store has counted.
    """

    underway: Underway | None
    queue: tuple[Transactions, ...]
    done: int
    closes: int
    last_tx: int
    recent: Recent | None
    counted: Any


Drained = dict["Query", list[tuple[Ints, "TransactionTimes"]]]
"""By query, the deltas that were taken out of its history first."""


class AppliedSteps:
    """What a runtime has applied of a piece of input, to be undone if that is interrupted.

    `steps` are the changes that had an effect.
    """

    def __init__(self) -> None:
        self.steps: list[Ints] = []
        self.drained: Drained = {}

    def note(self, store: QuadStore, changes: Ints) -> None:
        """Changes are applied: note those that had an effect."""
        effective = store.effective(changes)
        self.steps.append(changes.copy() if effective is None else effective)

    def undone(self, store: QuadStore, underway: Underway | None) -> Ints:
        """What undoes them, and before them what is under way."""
        parts = [undone(store, () if underway is None else underway[1])]
        for step in reversed(self.steps):
            parts.append(step[::-1].copy())
            parts[-1][:, TX] = 0
            parts[-1][:, DIFF] *= -1
        return np.concatenate(parts)

    def put_back(self, first: int) -> None:
        """Let queries have the deltas that were drained, but for those from a number on."""
        for query, taken in self.drained.items():
            query.put_back([each for each in taken if each[1].first < first])


def recover(runtime: Runtime) -> None:
    """Something was raised within a transaction: restore the state before it.

    The quads are as they were, apart from what the store has applied of it; everything else is made
    from the quads. The transaction is put back into the queue, unless it is one that was refused.
    """
    if runtime.underway is None:
        return
    end_all()
    piece, steps, first = runtime.underway
    if piece is not None and runtime.queue and runtime.queue[0] is piece:
        runtime.queue.popleft()
    store = runtime.store.rebuilt(undone(runtime.store, steps))
    runtime.queries.rebuild(store, first)
    runtime.store, runtime.done = store, first
    waits = None if piece is None else copied(piece)
    # An interrupt comes before this or after it, when the queue has the transactions again.
    runtime.underway = None
    if waits is not None:
        runtime.queue.appendleft(waits)


def is_unsettled(runtime: Runtime) -> bool:
    """Whether events or transactions wait until somebody looks, or an interrupt left them."""
    schedule = runtime.schedule
    events = schedule.buffer.sink is not None or schedule.waiting or schedule.unreleased
    transactions = runtime.queue or runtime.underway or runtime.unnotified
    left = schedule.is_interrupted or schedule.has_callbacks_due
    return bool(events or transactions or left)


class RuntimeItems:
    """What a runtime does of a piece of input: it happens wholly, or not at all."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def flush(self) -> None:
        """Apply what waits, and what an interrupt has left."""
        self._runtime.flush()

    def savepoint(self) -> RuntimeSavepoint:
        """A piece of input comes: what to go back to if it is interrupted."""
        runtime = self._runtime
        runtime.applied, underway = AppliedSteps(), runtime.underway
        in_steps = underway is not None and underway[0] is None
        counted = runtime.counted if in_steps else runtime.store.counted()
        numbers = runtime.done, runtime.closes, runtime.last_tx
        return RuntimeSavepoint(underway, tuple(runtime.queue), *numbers, runtime.recent, counted)

    def roll_back(self, to: RuntimeSavepoint) -> None:
        """Undo the transactions of a piece of input; one that came from outside is queued again."""
        end_all()
        runtime = self._runtime
        if runtime.underway is not None or runtime.done != to.done:
            store = runtime.store.rebuilt(runtime.applied.undone(runtime.store, runtime.underway))
            store.recount(to.counted)
            runtime.queries.rebuild(store, to.done)
            runtime.store, runtime.done, runtime.underway = store, to.done, None
        runtime.closes = to.closes
        runtime.applied.put_back(to.done)
        queue, last_tx = deque(to.queue), to.last_tx
        if to.underway is not None:
            piece, steps, _ = to.underway
            if piece is None:  # of several steps
                last_tx += 1
                piece = in_one(steps), (runtime.clock,), (last_tx,)
            queue.appendleft(copied(piece))
        runtime.queue, runtime.unnotified = queue, deque()
        runtime.buffer.clear()
        runtime.last_tx, runtime.recent = last_tx, to.recent
