"""Recorder: writes the inputs of a graph to its journal, at once or in groups.

Inputs are collected as ids, under the graph's lock. To *stage* them makes a chunk of them, which
needs the lock, too. To *write* chunks does not: who changes the graph need not wait for the disk.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from logging import getLogger
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from graphtide.algebra.nodes import SelectQuery
from graphtide.durable import chunks
from graphtide.durable.calls import CallRow, FinishedCalls
from graphtide.durable.chunks import InputEntry
from graphtide.durable.replay import program_fields
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

MAX_STAGED: Final = 64
"""Chunks that may wait for the disk; then whoever changes the graph waits, too."""

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
        self._entries: list[InputEntry] = []
        self._rows = 0
        self._clock: int | None = None
        self._stamp: tuple[int, int] | None = None
        self._calls: list[CallRow] = []
        self.finished = FinishedCalls()
        self._caused: list[InputEntry] | None = None
        """What the function that runs now has caused so far."""
        self._made = journal.last
        self._settled, self._noted = 0, -1
        """The last row that is made, that has no more calls, and of which a reader knows that."""
        self._staged: deque[tuple[int, int, float, bytes]] = deque()
        self._disk = RLock()
        self._problem: GraphtideError | None = None
        self.broken: GraphtideError | None = None
        """Why nothing more can be recorded, if so."""
        self.idle: Callable[[], None] | None = None
        """Called now and then when everything is on disk."""
        self._waiting, self._closed = Event(), Event()
        runtime.terms.holders.add(self)
        if durability == "transaction":
            runtime.max_buffered = 1
        self._thread = Thread(target=self._keep_up, name="graphtide journal", daemon=True)
        self._thread.start()

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of inputs that are not staged yet."""
        for entry in self._entries:
            yield entry.rows[:, VALUES:]

    # --- what comes in ---

    def changes(self, piece: Transactions) -> None:
        """Record transactions of changes."""
        if self._caused is not None:
            self._caused.append(chunks.changes_entry(*piece))
        elif not self.replaying:
            self._add(chunks.changes_entry(*piece))

    def clock(self, to: int) -> None:
        """Note a move of the clock; changes at that time say the same."""
        if not self.replaying:
            self._clock = to
            self._waiting.set()

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
        if self._stamp is None:
            first = int(entry.times[0]) if entry.kind == "changes" and len(entry.times) else None
            clock = self._runtime.clock
            self._stamp = self._runtime.done, clock if first is None else min(first, clock)
        self._entries.append(entry)
        self._rows += len(entry.rows)
        self.recorded += max(1, len(entry.rows))
        try:
            self._pass_on()
        except BaseException:
            if self.durability == "transaction":
                self._staged.clear()
                self._entries.clear()
                self._stamp = None
                self._made = self._journal.last
            raise
        self.note(entry)

    def _pass_on(self) -> None:
        if self.durability == "transaction":
            self._stage()
            self._write()
        elif self._rows >= GROUP_ROWS:
            self._stage()
            if len(self._staged) > MAX_STAGED or self.durability == "none":
                self._write()
        self._waiting.set()

    def _called(self, firing: str, error: str | None, caused: list[InputEntry]) -> None:
        self.recorded += sum(len(entry.rows) for entry in caused)
        self._calls.append(CallRow(firing, error, self._chunk(caused) if caused else None))
        if self.durability == "transaction":  # also in a replay, which may be interrupted again
            self._write()
        self._waiting.set()

    def _flush_clock(self) -> None:
        """Record the clock if no change has its time."""
        to, self._clock = self._clock, None
        last = next((each for each in reversed(self._entries) if each.kind == "changes"), None)
        if to is not None and (last is None or to > int(last.times[-1])):
            self._add(InputEntry("clock", {"to": to}))

    # --- to disk ---

    def flush(self) -> None:
        """Wait until everything so far is on disk."""
        with self._runtime.lock:
            self._runtime.flush()
            self._flush_clock()
            self._stage()
            self._calls_are_made()
        self._problem = None
        self._write()

    def _stage(self) -> None:
        """Make a chunk of the entries. The graph's lock is held."""
        if self._entries and self._stamp is not None:
            data = self._chunk(self._entries)
            self._staged.append((*self._stamp, time.time(), data))
            self._made += 1
            self._entries, self._rows, self._stamp = [], 0, None

    def _chunk(self, entries: list[InputEntry]) -> bytes:
        encoded = chunks.encode_entries(chunks.merged(entries), self._runtime.terms)
        return chunks.to_bytes(*encoded)

    def settle(self) -> None:
        """Let readers know that the calls of all rows are finished; on a full disk, they wait.

        With "transaction", rows come before their calls; else, this is written with them.
        """
        with self._runtime.lock:
            self._calls_are_made()
        with self._disk, suppress(GraphtideError):
            if self._settled > self._noted:
                self._journal.append((), (), self._settled)
                self._noted = self._settled

    def _calls_are_made(self) -> None:
        """No call of the rows so far can follow, if nothing is under way."""
        schedule = self._runtime.schedule
        if not (self._entries or schedule.calling or schedule.running):
            self._settled = self._made

    def _write(self) -> None:
        """Write the chunks in order. Nobody waits for the graph's lock in here."""
        with self._disk:
            # First, so that all calls up to there are in the list; not with every transaction.
            settled = self._noted if self.durability == "transaction" else self._settled
            staged, calls = list(self._staged), list(self._calls)
            if not staged and not calls:
                return
            self._journal.append(staged, calls, settled if settled > self._noted else None)
            self._noted = settled
            for _ in staged:
                self._staged.popleft()
            del self._calls[: len(calls)]

    def _keep_up(self) -> None:
        """Write in groups, in a thread of its own."""
        while not self._closed.is_set():
            self._waiting.wait()
            self._waiting.clear()
            self._closed.wait(0.8 * GROUP_SECONDS)
            if self._closed.is_set():
                return
            try:
                if self.durability == "batch":
                    self.flush()
                elif self.durability == "transaction":
                    self.settle()
                if self.idle is not None:
                    self.idle()
            except GraphtideError as error:  # whoever changes the graph next is told
                log.warning("the journal cannot be written: %s", error)
                self._problem = error
            except Exception as error:
                if self._closed.is_set():
                    return
                log.exception("the journal cannot be written")
                self._problem = GraphtideError(f"the journal cannot be written: {error!r}")

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
