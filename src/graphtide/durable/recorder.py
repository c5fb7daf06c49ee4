"""Recorder: collects the inputs of a graph in groups, which go to its journal, at once or later.

Inputs are collected as ids, under the graph's lock. A group that is *closed* has all it needs to be
encoded and written without that lock (`durable.groups`): with "batch", a thread of its own does
that, beside the one that changes the graph.
"""

from __future__ import annotations

import time
from contextlib import suppress
from logging import getLogger
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Literal

from graphtide.durable import chunks
from graphtide.durable.calls import CallRow, FinishedCalls
from graphtide.durable.chunks import InputEntry
from graphtide.durable.entries import make_entry, replaced
from graphtide.durable.groups import Bell, GroupWriter, InputGroup
from graphtide.engine.ingest import MAX_BUFFERED, PIECE
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import VALUES, Ints, Longs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.durable.journal import Journal
    from graphtide.engine.ingest import Transactions
    from graphtide.engine.runtime import Runtime

log = getLogger(__name__)

Durability = Literal["transaction", "batch", "none"]

MAX_SECONDS: Final = 0.05
MAX_MISSING: Final = 10_000
"""With "batch": how far the disk may be behind when a call begins, in time and in changes."""

CLOSE_AFTER: Final = 0.2 * MAX_SECONDS
PATIENCE: Final = 0.1 * MAX_SECONDS
CLOSE_CHANGES: Final = 4096
"""How old a group is, or how large, when it is closed by the next input. Without one, a thread
waits so much longer, and then stops the graph to close it."""

PASSED_ON: Final = MAX_BUFFERED // 4
"""Single changes that a graph buffers while its group is open: how often it comes by."""

OWN_PIECES: Final = 2 * PIECE
"""Changes of a call that runs on which may wait for the disk."""

SETTLE_AFTER: Final = 0.04
"""With "transaction": seconds until readers know which calls are finished."""

ROW_CHANGES: Final = 30
"""Changes that take as long to replay as a row of the journal takes beside its changes."""

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
        """Changes since the last snapshot, and `ROW_CHANGES` for each row of the journal."""
        self.loose = False
        """Whether something was ended that is not registered by itself: no snapshot has that."""
        self._runtime = runtime
        self._journal = journal
        self._writer = GroupWriter(journal, settles=durability != "transaction")
        self._entries: list[InputEntry] = []
        self._rows = 0
        self._clock: int | None = None
        self._stamp: tuple[int, int] | None = None
        self._calls: list[CallRow] = []
        self._since: float | None = None
        """When the first of what is to be written came; None if nothing is."""
        self._handed: InputGroup | None = None
        """A group that is closed and may not be with the writer yet."""
        self._newest: tuple[InputEntry, int] | None = None
        """The last input, and how many transactions there were before it. Changes are in the graph
        when there are more; anything else begins when this is None again."""
        self._ahead: InputEntry | None = None
        """The last input, if it was interrupted and is on disk: it has to come again."""
        self.underway = False
        """Whether an input is recorded that the graph may not have wholly taken in."""
        self.finished = FinishedCalls()
        self._caused: list[InputEntry] | None = None
        """What the function that runs now has caused so far."""
        self.broken: GraphtideError | None = None
        """Why nothing more can be recorded, if so."""
        self._asked: float | None = None
        self._bell, self._closed = Bell(), False
        runtime.terms.holders.add(self)
        if durability != "none":  # with "batch": while nothing waits, see `_put`
            runtime.max_buffered = 1
        keep_time = {"batch": self._keep_time, "transaction": self._settle_later}.get(durability)
        self._clockwork = Thread(target=keep_time, name="graphtide journal clock", daemon=True)
        self._clockwork.start()

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of inputs in the open group; a closed one has the terms themselves."""
        for entry in self._entries:
            yield entry.rows[:, VALUES:]

    @property
    def written(self) -> Callable[[], None]:
        """Called by the thread that writes, when it has."""
        return self._writer.written

    @written.setter
    def written(self, called: Callable[[], None]) -> None:
        self._writer.written = called

    # --- what comes in ---

    def admit(self, *, more: bool = False) -> None:
        """Wait until the disk is not too far behind for another input, or more of the same call.

        Nothing of the input has happened yet, so an interrupt changes nothing.
        """
        if self.replaying or self._caused is not None:
            return
        self.check()
        if self.durability != "transaction":  # which writes every input before it happens
            if self._writer.problem is not None:  # once more: there may be room on the disk again
                self._writer.write()
            if self._rows >= CLOSE_CHANGES or self._is_old():
                self._close_group()
        self._calls_are_made()
        if self._is_behind(more=more):
            self._writer.wait(lambda: not self._is_behind(more=more))

    def _is_behind(self, *, more: bool = False) -> bool:
        """Whether the next input has to wait for the disk."""
        missing = self._writer.missing + self._rows
        if more:
            return missing > OWN_PIECES
        oldest = self._writer.oldest
        return missing > MAX_MISSING - PASSED_ON or (
            self.durability == "batch"
            and oldest is not None
            and time.monotonic() > oldest + MAX_SECONDS
        )

    def _is_old(self) -> bool:
        since = self._since
        return since is not None and time.monotonic() >= since + CLOSE_AFTER

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
            self._wake()

    def input(self, kind: str, *what: Any) -> None:  # noqa: ANN401 - the fields of each kind
        """Record anything else, after the changes that wait in the write buffer."""
        if self._caused is not None:
            self._runtime.flush()
            self._caused.append(make_entry(kind, *what))
            self.note(self._caused[-1])
        elif not self.replaying:
            self._runtime.flush()
            self._flush_clock()
            self._add(make_entry(kind, *what))
            # Nothing is called between `_newest` and this: an interrupt comes before or after.
            self.underway = True

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

    def interrupted(self, error: BaseException) -> GraphtideError:
        """Record nothing more: the store has the whole input, and the graph in memory has not."""
        self._runtime.max_buffered = 1  # so that no change is accepted, also not in the buffer
        self.broken = GraphtideError(
            f"the graph was interrupted by {type(error).__name__} in the middle of an input, so "
            "it may differ from its store",
            hint="close it and open it again: it comes back with the whole of its last input",
        )
        return self.broken

    def check(self, *, snapshot: bool = False) -> None:
        """Raise if the graph differs from its store, as far as inputs or a snapshot can tell.

        An input that is `underway` at the beginning of another one was interrupted, even where no
        handler has run: interrupts may come in handlers, too.
        """
        left = self.underway and self._caused is None and self._runtime.schedule.recording is self
        if left or (snapshot and self._withdraw() is not None):
            self.interrupted(KeyboardInterrupt())
        if self.broken is not None:
            raise self.broken

    @property
    def is_whole(self) -> bool:
        """Whether the graph is what a replay gives."""
        with suppress(GraphtideError):
            self.check(snapshot=True)
        return self.broken is None

    def note(self, entry: InputEntry) -> None:
        """Keep the list of what is registered."""
        self.registrations, self.loose = self._noted(entry)

    def _noted(self, entry: InputEntry) -> tuple[list[InputEntry], bool]:
        """The registrations after an input, and whether one was ended that is not listed."""
        found = self.registrations
        if entry.kind in REGISTERS:
            return [*found, entry], self.loose
        if entry.kind in ENDS:
            kind, name = ENDS[entry.kind], entry.fields["name"]
            left = [each for each in found if (each.kind, each.fields["name"]) != (kind, name)]
            return left, self.loose or len(left) == len(found)
        if entry.kind == "replace":
            found = [
                replaced(each, entry.fields)
                if each.kind == "run" and each.fields["name"] == entry.fields["name"]
                else each
                for each in found
            ]
        return found, self.loose

    def _add(self, entry: InputEntry) -> None:
        self.check()
        self._put(entry)
        if self.durability == "transaction":
            self._write_now()
        self._wake()
        registrations, loose = self._noted(entry)
        # From here on nothing is called: an interrupt comes before or after.
        self.registrations, self.loose = registrations, loose
        if entry.kind != "changes":
            self._newest = None

    def _put(self, entry: InputEntry) -> None:
        """Add an entry to the group, unless it is on disk, was interrupted, and is made again.

        The write buffer of the graph is passed on at its first change while the group is empty, and
        then when it is full: so what waits there is never older than the group.
        """
        ahead = self._withdraw()
        if ahead is not None:
            if not ahead.same_as(entry):
                raise self.interrupted(KeyboardInterrupt())
            return
        done, clock = self._runtime.done, self._runtime.clock
        timed = entry.kind == "changes" and len(entry.times) > 0
        if self._stamp is None:
            begins = min(int(entry.times[0]), clock) if timed else clock
            self._stamp = self._runtime.next_seq, begins
        self._rows += max(1, len(entry.rows))
        self.recorded += max(1, len(entry.rows))
        self._newest = (entry, done)
        self._entries.append(entry)
        if self.durability == "batch":
            comes_by = self._is_behind() or entry.kind != "changes"  # see `check`
            self._runtime.max_buffered = 1 if comes_by else PASSED_ON

    def _withdraw(self) -> InputEntry | None:
        """Let nothing of the last input be recorded if it was interrupted before it happened.

        Returns it if it is on disk, and so cannot be withdrawn. What was recorded with it stays.
        """
        if self._newest is None or self._newest[1] != self._runtime.done:
            return None
        entry, group = self._newest[0], self._handed
        if self._ahead is entry:
            return entry
        if group is not None and any(each is entry for each in group.entries):
            if not self._writer.drop(group):
                self._ahead = entry
                return entry
            entries, calls = [*group.entries, *self._entries], [*group.calls, *self._calls]
            left, stamp = [each for each in entries if each is not entry], (group.tx, group.time)
            # From here on nothing is called: an interrupt comes before or after.
            self._handed, self._entries, self._calls = None, left, calls
            self._stamp = stamp if left else None
        else:
            self._entries = [each for each in self._entries if each is not entry]
        self._newest = None
        return None

    def _write_now(self) -> None:
        """Write the group, or let nothing of its last input have happened."""
        try:
            self._hand_over()
            self._writer.write(settles=False)  # not with every transaction
        except BaseException:
            self._withdraw()
            raise

    def _wake(self) -> None:
        """Let the thread know that there is something to do."""
        if self.durability == "transaction":
            self._bell.ring()
        elif self._since is None and (self._entries or self._calls or self._clock is not None):
            self._since = time.monotonic()
            self._bell.ring()

    def _called(self, firing: str, error: str | None, caused: list[InputEntry]) -> None:
        self.recorded += sum(len(entry.rows) for entry in caused)
        chunk = chunks.encoded(caused, self._runtime.terms.table()) if caused else None
        self._calls.append(CallRow(firing, error, chunk))
        if self.durability == "transaction":  # also in a replay, which may be interrupted again
            self._close_group()
            try:
                self._writer.write(settles=False)
            except GraphtideError as problem:  # its actions fail here, and not in a replay
                self.interrupted(problem)
                raise
        self._wake()

    def _flush_clock(self) -> None:
        """Record the clock, if no change has its time. The graph has nothing left to record."""
        self._forget_clock()
        if self._clock is not None:
            self._put(InputEntry("clock", {"to": self._clock}))
            self._clock = self._newest = None

    def _forget_clock(self) -> None:
        if self._clock is not None:  # an interrupt may have come before it moved
            self._clock = min(self._clock, self._runtime.clock)
        last = next((each for each in reversed(self._entries) if each.kind == "changes"), None)
        if last is not None and self._clock is not None and self._clock <= int(last.times[-1]):
            self._clock = None

    # --- to disk ---

    def flush(self) -> None:
        """Wait until everything so far is on disk."""
        with self._runtime.lock:
            self._close_all()
        self._writer.write(settles=self.durability != "transaction")

    def _close_all(self) -> None:
        """Close the group with all that has come in so far. The graph's lock is held."""
        if self.broken is None:  # else a replay does what an interrupt has left
            self._runtime.flush()
            self._flush_clock()
        self._close_group()
        self._calls_are_made()

    def _close_group(self) -> None:
        """Let the entries and calls so far be written. The graph's lock is held."""
        self._withdraw()
        self._hand_over()

    def _hand_over(self) -> None:
        self._forget_clock()
        if self._handed is not None:
            self._writer.add(self._handed)
        group = None
        if self._entries or self._calls:
            tx, clock = self._stamp or (0, 0)
            since = time.monotonic() if self._since is None else self._since
            terms, entries, calls = self._runtime.terms.table(), self._entries, self._calls
            size = self._rows + len(calls)
            self.recorded += ROW_CHANGES if entries else 0
            group = InputGroup(tx, clock, time.time(), entries, terms, calls, since, size)
        # An interrupt comes before or after this: nothing is called in it.
        self._handed = group
        self._entries, self._calls, self._rows = [], [], 0
        self._stamp = self._since = None
        if group is not None:
            self._writer.add(group)
        if self.durability == "batch":
            self._runtime.max_buffered = 1

    def settle(self) -> None:
        """Let readers know that the calls of all rows are finished; on a full disk, they wait.

        With "transaction", rows come before their calls; else, this is written with them.
        """
        with self._runtime.lock:
            self._calls_are_made()
        with suppress(GraphtideError):
            self._writer.write()

    def _calls_are_made(self) -> None:
        """No call of the rows so far can follow, if nothing is under way."""
        schedule = self._runtime.schedule
        if not (self._entries or self._calls or schedule.calling or schedule.running):
            self._writer.settled = self._writer.made

    def _settle_later(self) -> None:
        """The thread beside "transaction"."""
        while not self._closed:
            self._bell.wait()
            time.sleep(SETTLE_AFTER)
            if not self._closed:
                self.settle()

    def _keep_time(self) -> None:
        """The thread beside "batch": closes groups in time, and stops whoever is too fast."""
        while not self._closed:
            self._bell.wait(self._look())

    def _look(self) -> float | None:
        """Do what is due; in how many seconds to look again. None: when the bell rings.

        Whoever changes the graph can close a group at the next change, which costs nothing. To wait
        for the graph's lock slows down everybody who takes and releases it meanwhile; so this
        thread asks first, and does it only if there is no next change.
        """
        since, oldest, now = self._since, self._writer.oldest, time.monotonic()
        if self._writer.problem is not None:
            return MAX_SECONDS
        if oldest is not None and now > oldest + MAX_SECONDS:
            self._runtime.max_buffered = 1  # the next change waits for the disk
            return MAX_SECONDS
        if since is None:
            if self._writer.unsettled and self._runtime.lock.acquire(blocking=False):
                self._locked(self._close_all)
            left = None if oldest is None else oldest + MAX_SECONDS - now
            return MAX_SECONDS if left is None and self._writer.unsettled else left
        if now < since + CLOSE_AFTER:
            return since + CLOSE_AFTER - now
        if self._asked != since:
            self._asked, self._runtime.max_buffered = since, 1
            return PATIENCE
        if self._runtime.lock.acquire(timeout=MAX_SECONDS):
            self._locked(self._close_all)
        return 0

    def _locked(self, work: Callable[[], None]) -> None:
        """Do something while the graph's lock is held, and release it."""
        try:
            work()
        except GraphtideError:  # the next call raises it
            pass
        except Exception:
            log.exception("the graph cannot be flushed")
        finally:
            self._runtime.lock.release()

    def abandon(self) -> None:
        """Write nothing more."""
        self._closed = True
        self._bell.ring()
        self._writer.close()

    def close(self) -> None:
        """Write what is left, and end the thread that keeps time."""
        self._closed = True
        self._bell.ring()
        if self._clockwork.is_alive():
            self._clockwork.join()
        self.flush()
        self.settle()
