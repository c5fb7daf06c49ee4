"""Groups of inputs on their way to the disk: encoded and written in order, by any thread.

A group has its inputs as ids, and the table that has the texts of these ids. So neither encoding
nor writing needs the graph's lock, and both release the interpreter's for most of their time:
whoever changes the graph goes on meanwhile.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING

from graphtide.durable import chunks
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from graphtide.durable.calls import CallRow
    from graphtide.durable.chunks import InputEntry
    from graphtide.durable.journal import Journal
    from graphtide.rdf.term_tables import TermTable


@dataclass(slots=True, eq=False)
class InputGroup:
    """Inputs that become a row of the journal, and calls of these or earlier ones that ended.

    `tx` and `time` are how many transactions there were before it and the clock then, `wall` is
    when it was closed. Without entries it is no row, but only calls.
    """

    tx: int
    time: int
    wall: float
    entries: list[InputEntry]
    terms: TermTable
    calls: list[CallRow]
    size: int = field(init=False)
    _chunk: bytes | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.size = sum(len(entry.rows) for entry in self.entries)

    def row(self) -> tuple[int, int, float, bytes]:
        """What the journal takes; encoded once, also if the disk was full the first time."""
        if self._chunk is None:
            self._chunk = chunks.encoded(self.entries, self.terms)
        return self.tx, self.time, self.wall, self._chunk


class GroupWriter:
    """Writes groups to a journal, in order. Nobody waits for the graph's lock in here."""

    def __init__(self, journal: Journal) -> None:
        self.made = journal.last
        self.settled = 0
        """The last row of the journal that is made, and the last of which no call can follow."""
        self._journal = journal
        self._noted = -1
        self._queue: deque[InputGroup] = deque()
        self._disk = RLock()

    @property
    def waiting(self) -> bool:
        """Whether there are groups to be written."""
        return bool(self._queue)

    @property
    def unsettled(self) -> bool:
        """Whether calls of rows may follow, as far as is known."""
        return self.settled < self.made

    @property
    def waiting_changes(self) -> int:
        """How many changes they have."""
        return sum(group.size for group in tuple(self._queue))

    def add(self, group: InputGroup) -> None:
        """Let a group be written after those before it."""
        self._queue.append(group)
        self.made += bool(group.entries)

    def drop(self, group: InputGroup) -> None:
        """Let go of a group that could not be written: nothing of it has happened."""
        with self._disk:
            if group in self._queue:
                self._queue.remove(group)
                self.made -= bool(group.entries)

    def write(self, *, settles: bool) -> None:
        """Write all groups, all or none; with `settles`, also of which rows no call can follow."""
        with self._disk:
            # First, so that all calls up to there are in the queue.
            settled = self.settled if settles else self._noted
            groups = list(self._queue)
            if not groups and settled <= self._noted:
                return
            rows = [group.row() for group in groups if group.entries]
            calls = [call for group in groups for call in group.calls]
            self._journal.append(rows, calls, settled if settled > self._noted else None)
            self._noted = max(settled, self._noted)
            for _ in groups:
                self._queue.popleft()

    def settle(self) -> None:
        """Let readers know which rows are settled; on a full disk, they wait."""
        with suppress(GraphtideError):
            self.write(settles=True)
