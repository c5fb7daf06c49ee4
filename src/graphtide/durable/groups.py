"""Groups of inputs on their way to the disk, and the thread that encodes and writes them in order.

A group has its inputs as ids, and the table that has the texts of these ids. So neither encoding
nor writing needs the graph's lock, and both release the interpreter's for most of their time:
whoever changes the graph runs meanwhile. As signals reach the main thread only, Ctrl-C interrupts
those who wait for a write, never a write.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from logging import getLogger
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Final

from graphtide.durable import chunks
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.durable.calls import CallRow
    from graphtide.durable.chunks import InputEntry
    from graphtide.durable.journal import Journal
    from graphtide.rdf.term_tables import TermTable

log = getLogger(__name__)

LOOK_AGAIN: Final = 0.05
"""Seconds after which a thread that waits looks by itself: a wake-up may be lost to Ctrl-C."""


@dataclass(slots=True, eq=False)
class InputGroup:
    """Inputs that become a row of the journal, and calls of these or earlier ones that ended.

    `tx` and `time` are how many transactions there were before it and the clock then, `wall` is
    when it was closed, and `since` when its first input came (of the monotonic clock), of which
    it has `size`. Without entries it is no row, but only calls.
    """

    tx: int
    time: int
    wall: float
    entries: list[InputEntry]
    terms: TermTable
    calls: list[CallRow]
    since: float
    size: int
    written: bool = field(init=False, default=False)
    last: int | None = field(init=False, default=None)
    """The last row of the journal when it is written."""
    _chunk: bytes | None = field(init=False, default=None)

    def row(self) -> tuple[int, int, float, bytes]:
        """What the journal takes; encoded once, also if the disk was full the first time."""
        if self._chunk is None:
            self._chunk = chunks.encoded(self.entries, self.terms)
        return self.tx, self.time, self.wall, self._chunk


class Bell:
    """Wakes a thread. Other than an event of Python, Ctrl-C cannot leave it locked.

    >>> bell = Bell()
    >>> bell.ring()
    >>> bell.ring()
    >>> bell.wait(0), bell.wait(0)
    (True, False)
    """

    def __init__(self) -> None:
        self._lock = _locked()

    def ring(self) -> None:
        """Wake the thread, or let its next wait end at once."""
        with suppress(RuntimeError):  # nobody has heard the last one yet
            self._lock.release()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for that, at most so long; whether it has rung."""
        return self._lock.acquire(timeout=-1 if seconds is None else max(0.0, seconds))


class GroupWriter:
    """Writes groups to a journal, in a thread of its own, which never takes the graph's lock.

    After an error it stands still until it is asked to `write` once more. With `settles`, it
    writes `settled` with every group, else only when asked to.

    Whoever adds a group or drops one holds the graph's lock. Waiting is done with plain locks:
    Ctrl-C can leave a `Condition` locked.
    """

    def __init__(self, journal: Journal, *, settles: bool) -> None:
        self.made = journal.last
        self.settled = -1
        """The last row of the journal that is made, and the last of which no call can follow."""
        self.problem: GraphtideError | None = None
        """Why the last attempt to write has failed."""
        self.written: Callable[[], None] = _nothing
        """Called by the thread when something was written."""
        self._journal = journal
        self._settles = settles
        self._noted = self._wanted = -1
        self._queue: dict[InputGroup, None] = {}
        self._writing: tuple[InputGroup, ...] = ()
        self._taking = Lock()
        """Held to take groups from the queue, by whoever does that."""
        self._ended = False
        self._bell = Bell()
        self._turn = _locked()
        """Released when the thread has written something, or failed to."""
        self._thread = Thread(target=self._work, name="graphtide journal", daemon=True)
        self._thread.start()

    # --- what waits ---

    @property
    def unsettled(self) -> bool:
        """Whether calls of rows may follow, as far as is known."""
        return self.settled < self.made

    @property
    def missing(self) -> int:
        """How many changes of closed groups are not on disk."""
        return sum(group.size for group in tuple(self._queue))

    @property
    def oldest(self) -> float | None:
        """When the first of them came, if there are any."""
        queue = tuple(self._queue)
        return queue[0].since if queue else None

    def add(self, group: InputGroup) -> None:
        """Let a group be written after those before it. An interrupted call may be repeated."""
        if group.last is None:
            group.last = self.made + bool(group.entries)
        if not group.written:
            self._queue[group] = None
        self.made = group.last
        self._bell.ring()

    def drop(self, group: InputGroup) -> bool:
        """Let go of the last group, unless it is on disk; whether it could."""
        while True:
            turn = self._turn
            with self._taking:
                # What is not being written either waits or has `written` set: the thread does that
                # before it forgets what it writes. So this is asked first.
                if group not in self._writing:
                    if not group.written and group in self._queue and group.last is not None:
                        before = group.last - bool(group.entries)
                        # Nothing is called here: an interrupt comes before or after.
                        del self._queue[group]
                        self.made = before
                    return not group.written
            turn.acquire(timeout=LOOK_AGAIN)

    # --- waiting for it ---

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until enough is written; raise why nothing can be written."""
        while True:
            turn = self._turn
            if ready():
                return
            if self.problem is not None:
                raise self.problem.with_traceback(None)
            if self._ended:
                raise GraphtideError("the store of this graph is closed")
            if turn.acquire(timeout=LOOK_AGAIN):
                turn.release()  # for others who wait

    def write(self, *, settles: bool = True) -> None:
        """Wait until all groups so far, and `settled`, are on disk; after an error, try again."""
        settled, groups = self.settled if settles else self._noted, tuple(self._queue)
        self._wanted, self.problem = max(settled, self._wanted), None
        self._bell.ring()
        self.wait(lambda: settled <= self._noted and all(group.written for group in groups))

    def close(self) -> None:
        """End the thread, after what it is writing now."""
        self._ended = True
        self._bell.ring()
        if self._thread is not current_thread():
            self._thread.join()

    # --- the thread ---

    def _work(self) -> None:
        while not self._ended:
            self._bell.wait()
            while self._has_work():
                self._take_turn()

    def _has_work(self) -> bool:
        news = self._queue or self._noted < (self.settled if self._settles else self._wanted)
        return bool(news) and self.problem is None and not self._ended

    def _take_turn(self) -> None:
        with self._taking:
            # First, so that all calls up to there are in the queue, or were.
            settled = self.settled if self._settles else self._wanted
            self._writing = tuple(self._queue)
        self.problem = self._attempt(self._writing, settled)
        if self.problem is None:
            self._noted = max(settled, self._noted)
            for group in self._writing:
                group.written = True
                del self._queue[group]
        self._writing = ()
        done, self._turn = self._turn, _locked()
        done.release()
        if self.problem is None:
            self.written()

    def _attempt(self, groups: tuple[InputGroup, ...], settled: int) -> GraphtideError | None:
        """Write groups, all or none; what went wrong."""
        try:
            rows = [group.row() for group in groups if group.entries]
            calls = [call for group in groups for call in group.calls]
            self._journal.append(rows, calls, settled if settled > self._noted else None)
        except GraphtideError as error:
            log.warning("the journal cannot be written: %s", error)
            return error
        except Exception as error:
            log.exception("the journal cannot be written")
            return GraphtideError(f"the journal cannot be written: {error!r}")
        return None


def _nothing() -> None:
    """What is done after a write if nobody has asked for anything."""


def _locked() -> Lock:
    """A lock that is held, until somebody releases it for those who wait."""
    lock = Lock()
    lock.acquire()
    return lock
