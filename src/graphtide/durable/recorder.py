"""Recorder: collects the inputs of a graph in groups, which go to its journal, at once or later.

Inputs are collected as ids, under the graph's lock. A group that is *closed* has all it needs to be
encoded and written without that lock (`durable.groups`): with "batch", a thread of its own does
that, beside the one that changes the graph.
"""

from __future__ import annotations

import time
from logging import getLogger
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from graphtide.algebra.nodes import SelectQuery
from graphtide.durable import chunks
from graphtide.durable.calls import CallRow, FinishedCalls
from graphtide.durable.chunks import InputEntry
from graphtide.durable.groups import GroupWriter, InputGroup
from graphtide.durable.replay import program_fields
from graphtide.engine.ingest import MAX_BUFFERED
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.durable.journal import Journal
    from graphtide.engine.events import EventBatch
    from graphtide.engine.ingest import Transactions
    from graphtide.engine.runtime import Runtime

log = getLogger(__name__)

Durability = Literal["transaction", "batch", "none"]

GROUP_SECONDS: Final = 0.05
GROUP_ROWS: Final = 10_000
"""With "batch": how far the disk may be behind, in time and in changes."""

CLOSE_AFTER: Final = 0.4 * GROUP_SECONDS
DUE_AFTER: Final = 0.7 * GROUP_SECONDS
PATIENCE: Final = 0.1 * GROUP_SECONDS
"""How old a group is when whoever changes the graph closes it in passing; when the thread asks for
that; and how long the thread waits then before it stops the graph to do so itself."""

PASSED_ON: Final = MAX_BUFFERED // 2
"""Single changes that a graph buffers while its group is open: how often it comes by."""

MAX_WAITING: Final = 100_000
"""Changes that may wait for the disk; then whoever makes more waits, too."""

REGISTERS: Final = {"watch", "run", "stream"}
ENDS: Final = {"unwatch": "watch", "stop": "run"}


class Recorder:
    """Records what comes in, in order. While `replaying`, only calls of functions are recorded.

    What comes in while a function of CALL runs is recorded with the call (`durable.calls`).
    """

    def __init__(self, runtime: Runtime, journal: Journal, durability: Durability) -> None:
        self.durability = durability
        self.replaying = False
        self.registrations: list[InputEntry] = []
        self.recorded = 0
        """Rows since the last snapshot."""
        self.loose = False
        """Whether something was ended that is not registered by itself: no snapshot has that."""
        self._runtime = runtime
        self._journal = journal
        self._writer = GroupWriter(journal)
        self._entries: list[InputEntry] = []
        self._rows = 0
        self._clock: int | None = None
        self._stamp: tuple[int, int] | None = None
        self._calls: list[CallRow] = []
        self._since: float | None = None
        """When the first of what is to be written came; None if nothing is."""
        self.finished = FinishedCalls()
        self._caused: list[InputEntry] | None = None
        """What the function that runs now has caused so far."""
        self._problem: GraphtideError | None = None
        self.broken: GraphtideError | None = None
        """Why nothing more can be recorded, if so."""
        self.written: Callable[[], None] = _nothing
        """Called now and then by the thread, when something was written; nothing else waits."""
        self._waiting, self._closed = Event(), Event()
        runtime.terms.holders.add(self)
        if durability != "none":  # with "batch": while nothing waits, see `_pass_on`
            runtime.max_buffered = 1
        self._thread = Thread(target=self._keep_up, name="graphtide journal", daemon=True)
        self._thread.start()

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of inputs in the open group; a closed one has the terms themselves."""
        for entry in self._entries:
            yield entry.rows[:, VALUES:]

    # --- what comes in ---

    def changes(self, piece: Transactions) -> None:
        """Record transactions of changes."""
        if self._caused is not None:
            self._caused.append(chunks.changes_entry(*piece))
        elif not self.replaying:
            if not self._runtime.eager:  # or calls of the last group may follow
                self._calls_are_made()
            self._add(chunks.changes_entry(*piece))

    def clock(self, to: int) -> None:
        """Note a move of the clock; changes at that time say the same."""
        if not self.replaying:
            self._clock = to
            self._wake()

    def input(self, kind: str, *what: Any) -> None:  # noqa: ANN401 - the fields of each kind
        """Record anything else, after the changes that wait in the write buffer."""
        if self._caused is not None:
            self._runtime.flush()
            self._caused.append(_entry(kind, *what))
            self.note(self._caused[-1])
        elif not self.replaying:
            self._runtime.flush()
            self._flush_clock()
            self._add(_entry(kind, *what))

    def call(self, firing: str, function: Callable[[], object]) -> None:
        """Call a function, unless that was finished before; and record how it ended."""
        if self.finished.replay(firing):
            return
        before, self._caused = self._caused, []
        try:
            function()
            self._runtime.flush()
        except Exception as error:
            self._runtime.flush()
            self._called(firing, f"{type(error).__name__}: {error}", self._caused)
            raise
        else:
            self._called(firing, None, self._caused)
        finally:
            self._caused = before

    def interrupted(self, error: BaseException) -> None:
        """Record nothing more: the store has the whole input, and the graph in memory has not."""
        self.broken = GraphtideError(
            f"the graph was interrupted by {type(error).__name__} while programs were running, so "
            "it may differ from its store",
            hint="close it and open it again: it comes back with the whole of its last input",
        )

    def note(self, entry: InputEntry) -> None:
        """Keep the list of what is registered."""
        if entry.kind in REGISTERS:
            self.registrations.append(entry)
        elif entry.kind in ENDS:
            ended = [
                each
                for each in self.registrations
                if each.kind == ENDS[entry.kind] and each.fields["name"] == entry.fields["name"]
            ]
            self.loose |= not ended
            for each in ended:
                self.registrations.remove(each)
        elif entry.kind == "replace":
            self.registrations = [
                _replaced(each, entry.fields)
                if each.kind == "run" and each.fields["name"] == entry.fields["name"]
                else each
                for each in self.registrations
            ]

    def _add(self, entry: InputEntry) -> None:
        if self.broken is not None:
            raise self.broken
        if self._problem is not None:
            self.flush()  # once more: there may be room on the disk again
        self._put(entry)
        self._pass_on()
        self.note(entry)

    def _put(self, entry: InputEntry) -> None:
        if self._stamp is None:
            first = int(entry.times[0]) if entry.kind == "changes" and len(entry.times) else None
            clock = self._runtime.clock
            self._stamp = self._runtime.done, clock if first is None else min(first, clock)
        self._entries.append(entry)
        self._rows += len(entry.rows)
        self.recorded += max(1, len(entry.rows))

    def _pass_on(self) -> None:
        """Close the group, if it is time to; with "batch", the thread does the rest.

        The graph's write buffer is passed on at its first change while the group is empty, and
        then when it is full: so what waits there is never older than the group.
        """
        if self.durability == "transaction":
            self._write_now()
        elif self.durability == "none":
            if self._rows >= GROUP_ROWS:
                self._close_group()
                self._writer.write(settles=True)
        elif self._rows >= GROUP_ROWS or self._is_old():
            self._close_group()
            self._waiting.set()
            if self._writer.waiting_changes > MAX_WAITING:
                self._writer.write(settles=True)
        else:
            self._runtime.max_buffered = PASSED_ON
        self._wake()

    def _write_now(self) -> None:
        """Write the group, or let nothing of it have happened."""
        group = self._close_group()
        try:
            self._writer.write(settles=False)  # not with every transaction
        except BaseException:
            if group is not None:
                self._writer.drop(group)
            raise

    def _is_old(self) -> bool:
        """Whether the group has waited long enough; rules may have calls to add to it."""
        if self._since is None or self._runtime.eager:
            return False
        return time.monotonic() >= self._since + CLOSE_AFTER

    def _wake(self) -> None:
        """Let the thread know what there is to do."""
        if self.durability != "batch":
            self._waiting.set()
        elif self._since is None and (self._entries or self._calls or self._clock is not None):
            self._since = time.monotonic()
            self._waiting.set()

    def _called(self, firing: str, error: str | None, caused: list[InputEntry]) -> None:
        self.recorded += sum(len(entry.rows) for entry in caused)
        chunk = chunks.encoded(caused, self._runtime.terms.table()) if caused else None
        self._calls.append(CallRow(firing, error, chunk))
        if self.durability == "transaction":  # also in a replay, which may be interrupted again
            self._close_group()
            self._writer.write(settles=False)
        self._wake()

    def _flush_clock(self) -> None:
        """Record the clock, if no change has its time. The graph has nothing left to record."""
        self._forget_clock()
        if self._clock is not None:
            if self.broken is not None:
                raise self.broken
            self._put(InputEntry("clock", {"to": self._clock}))
            self._clock = None

    def _forget_clock(self) -> None:
        last = next((each for each in reversed(self._entries) if each.kind == "changes"), None)
        if last is not None and self._clock is not None and self._clock <= int(last.times[-1]):
            self._clock = None

    # --- to disk ---

    def flush(self) -> None:
        """Wait until everything so far is on disk."""
        with self._runtime.lock:
            self._close_all()
        self._problem = None
        self._writer.write(settles=self.durability != "transaction")

    def _close_all(self) -> None:
        """Close the group with all that has come in so far. The graph's lock is held."""
        self._runtime.flush()
        self._flush_clock()
        self._close_group()
        self._calls_are_made()

    def _close_group(self) -> InputGroup | None:
        """Let the entries and calls so far be written. The graph's lock is held."""
        self._forget_clock()
        group = None
        if self._entries or self._calls:
            tx, clock = self._stamp or (0, 0)
            terms = self._runtime.terms.table()
            group = InputGroup(tx, clock, time.time(), self._entries, terms, self._calls)
            self._writer.add(group)
        self._entries, self._calls, self._rows = [], [], 0
        self._stamp = self._since = None
        if self.durability == "batch":
            self._runtime.max_buffered = 1
        return group

    def settle(self) -> None:
        """Let readers know that the calls of all rows are finished; on a full disk, they wait.

        With "transaction", rows come before their calls; else, this is written with them.
        """
        with self._runtime.lock:
            self._calls_are_made()
        self._writer.settle()

    def _calls_are_made(self) -> None:
        """No call of the rows so far can follow, if nothing is under way."""
        schedule = self._runtime.schedule
        if not (self._entries or self._calls or schedule.calling or schedule.running):
            self._writer.settled = self._writer.made

    def _keep_up(self) -> None:
        """Write in groups, in a thread of its own."""
        while not self._closed.is_set():
            self._waiting.wait()
            self._waiting.clear()
            try:
                if self.durability == "batch":
                    self._catch_up()
                elif not self._closed.wait(0.8 * GROUP_SECONDS) and self.durability != "none":
                    self.settle()
                if not self._closed.is_set():
                    self.written()
            except GraphtideError as error:  # whoever changes the graph next is told
                log.warning("the journal cannot be written: %s", error)
                self._problem, self._since = error, None
            except Exception as error:
                if self._closed.is_set():
                    return
                log.exception("the journal cannot be written")
                self._problem = GraphtideError(f"the journal cannot be written: {error!r}")
                self._since = None

    def _catch_up(self) -> None:
        """Write closed groups at once. The open one is closed when it is due.

        Whoever changes the graph can do that at the next change, which costs nothing. To wait for
        the graph's lock slows down everybody who takes and releases it meanwhile; so this thread
        asks first, and does it only if there is no next change.
        """
        asked = None
        while not self._closed.is_set():
            if self._writer.waiting:
                self._writer.write(settles=True)
                self._problem = None
                self.written()
            since, lock = self._since, self._runtime.lock
            left = 0.0 if since is None else since + DUE_AFTER - time.monotonic()
            if since is None and not self._writer.unsettled:
                return
            if left > 0:
                self._sleep(left)
            elif since is not None and asked != since:
                asked, self._runtime.max_buffered = since, 1
                self._sleep(PATIENCE)
            elif lock.acquire(timeout=0 if since is None else GROUP_SECONDS):
                try:
                    self._close_all()
                finally:
                    lock.release()
            else:  # a long piece of work goes on, and may close groups meanwhile
                self._sleep(GROUP_SECONDS if since is None else 0)

    def _sleep(self, seconds: float) -> None:
        self._waiting.wait(seconds)
        self._waiting.clear()

    def abandon(self) -> None:
        """Write nothing more."""
        self._closed.set()
        self._waiting.set()

    def close(self) -> None:
        """Write what is left, and end the thread."""
        self.abandon()
        if self._thread.is_alive():
            self._thread.join()
        self.flush()
        self.settle()


def _nothing() -> None:
    """What is done after a write if nobody has asked for anything."""


def _entry(kind: str, *what: Any) -> InputEntry:  # noqa: ANN401 - the fields of each kind
    match kind:
        case "events":
            return _events_entry(*what)
        case "push":
            return _push_entry(*what)
        case "clock":
            return InputEntry(kind, {"to": what[0]})
        case "watermark":
            return InputEntry(kind, {"name": what[0], "to": what[1]})
        case "stream":
            return InputEntry(kind, {"name": what[0], "lateness": what[1]})
        case "fire":
            return InputEntry(kind, {"name": what[0], "number": what[1]})
        case "unwatch" | "stop":
            return InputEntry(kind, {"name": what[0]})
        case "watch":
            return _watch_entry(*what)
        case "run":
            name, program, options = what
            return InputEntry(kind, {"name": name, "options": options, **program_fields(program)})
        case "replace":
            name, program, disabled = what
            return InputEntry(kind, {"name": name, "disabled": disabled, **program_fields(program)})
        case _:
            raise AssertionError(kind)


def _replaced(run: InputEntry, fields: dict[str, Any]) -> InputEntry:
    """The registration of a program that another one has replaced."""
    options = {**run.fields["options"], "disabled": fields["disabled"]}
    texts = {key: value for key, value in fields.items() if key in ("sources", "queries")}
    return InputEntry("run", {"name": fields["name"], "options": options, **texts})


def _watch_entry(
    name: str, query: SelectQuery | WindowedQuery, options: dict[str, object]
) -> InputEntry:
    text = query.text if isinstance(query, SelectQuery) else query.select.text
    if not text:
        raise GraphtideError(
            f"the query {name} has no text, and a store keeps queries as texts",
            hint="give watch() the text of the query",
        )
    return InputEntry("watch", {"name": name, "text": text, "options": options})


def _events_entry(events: EventBatch, followers: tuple[Any, ...] | None) -> InputEntry:
    sizes = np.diff(events.offsets)
    rows = np.zeros((len(events.triples), VALUES + 4), np.int32)
    rows[:, TX] = np.repeat(np.arange(len(sizes)), sizes)
    rows[:, DIFF] = 1
    rows[:, VALUES : VALUES + 3] = events.triples
    names = None if followers is None else [follower.name for follower in followers]
    fields = {"starts": events.starts.tolist(), "ends": events.ends.tolist(), "programs": names}
    stamps = np.zeros(len(rows), np.int64)
    return InputEntry("events", fields, rows, stamps, stamps)


def _push_entry(
    name: str, times: Longs, quads: Ints, newest: int | None, events: Longs | None
) -> InputEntry:
    rows = np.zeros((len(quads), VALUES + 4), np.int32)
    rows[:, DIFF] = 1
    rows[:, VALUES:] = quads
    numbers = np.zeros(len(rows), np.int64) if events is None else np.asarray(events, np.int64)
    fields = {"name": name, "newest": newest, "numbered": events is not None}
    return InputEntry("push", fields, rows, np.array(times, np.int64), numbers)
