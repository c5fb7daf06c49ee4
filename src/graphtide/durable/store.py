"""Store: the directory of a durable graph. It is locked, opened, recovered, checkpointed, closed.

journal.db            inputs, cursors, finished calls, and where the snapshots are
snapshot-NUMBER.packed the graph after that row of the journal
last                  the number of the last row of the journal that is on disk
lock.db               locked by the process that writes
"""

from __future__ import annotations

import time
from logging import getLogger
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from graphtide.arguments import check_choice, check_path, check_type
from graphtide.durable import retention
from graphtide.durable import snapshot as snap
from graphtide.durable import state as held_state
from graphtide.durable.calls import FinishedCalls
from graphtide.durable.chunks import InputEntry
from graphtide.durable.journal import SETTLED, Journal, check_exists
from graphtide.durable.recorder import Durability, Recorder
from graphtide.durable.replay import Replay, ReplayTarget, Until, calls_of
from graphtide.durable.tables import SnapshotRow
from graphtide.errors import GraphtideError, StoreError
from graphtide.locking import lock_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from graphtide.durable.tables import JournalRow
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.streams.registry import Streams

log = getLogger(__name__)

LOCK: Final = "lock.db"

FIRST_SNAPSHOT: Final = 1_000_000
"""Changes in the journal after which a snapshot is made unasked; or twice the quads, if more.

A row of the journal counts as `recorder.ROW_CHANGES` more. So a store that was not closed opens
within seconds, or in proportion to its quads, and snapshots take about as much room as the journal.
"""


class WriteLock:
    """The right to write to a store: one process has it, until it ends."""

    def __init__(self, folder: Path) -> None:
        try:
            self._file = lock_file(folder / LOCK, wait=False)
        except BlockingIOError:
            raise GraphtideError(
                f"{folder} is open in another process, or was opened twice",
                hint="close it there, or open it with read_only=True to follow it",
            ) from None
        except OSError as error:
            raise GraphtideError(
                f"{folder / LOCK}: {error.strerror}",
                hint="the directory must be writable; the file itself holds nothing",
            ) from None

    def release(self) -> None:
        """Let others write."""
        self._file.close()


class Store:
    """A directory with the journal and the snapshots of one graph."""

    def __init__(
        self,
        folder: str | Path,
        *,
        durability: Durability = "batch",
        retain: str | None = None,
        read_only: bool = False,
        check_end: bool = True,
    ) -> None:
        check_path(folder, "path")
        check_choice(durability, "durability", ("transaction", "batch", "none"))
        check_type(read_only, "read_only", bool)
        self.folder = Path(folder)
        self.durability: Durability = durability
        self.read_only = read_only
        self.policy = retention.RetentionPolicy.of(retain)
        if read_only:
            check_exists(self.folder)
        else:
            _make(self.folder)
        self._lock = None if read_only else WriteLock(self.folder)
        try:
            fsync = durability != "none"
            self.journal = Journal(
                self.folder, writes=not read_only, fsync=fsync, check_end=check_end
            )
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise
        self.recorder: Recorder | None = None
        self._snapshotting = Lock()
        self.joins = True
        """Whether a replay takes in the changes of several rows at once."""
        self.read_to = 0
        """The last row of the journal that a replay has begun."""
        self._followed = 0
        self._runtime: Runtime | None = None
        self._streams: Streams | None = None

    # --- options ---

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of the graph: those given when the store was made."""
        made = self.journal.meta("options")
        if made is None:
            if given.get("store", "all") != "all":
                raise GraphtideError(
                    f"a durable graph stores all quads, not store={given['store']!r}",
                    hint="leave `store` out",
                )
            made = dict(given)
            if not self.read_only:
                self.journal.set_meta("options", made)
        different = [name for name, value in given.items() if made.get(name, value) != value]
        different += [name for name in given if name not in made]
        if different:
            raise GraphtideError(
                f"{self.folder} was made with other options: {', '.join(sorted(different))}",
                hint="leave them out: they are in the store",
            )
        return dict(made)

    # --- opening ---

    def recover(
        self,
        graph: ReplayTarget,
        runtime: Runtime,
        streams: Streams,
        functions: Mapping[str, Callable[..., object]],
    ) -> None:
        """Bring an empty graph to the end of the journal, and record its inputs from then on."""
        self._runtime, self._streams = runtime, streams
        if self.read_only:
            runtime.max_buffered = 1
            self._replay(graph, runtime, streams, None, Until(), Frozen())
            self._followed = self.read_to
            return
        recorder = Recorder(runtime, self.journal, self.durability)
        try:
            self._replay(graph, runtime, streams, functions, Until(), recorder)
            recorder.settle()
        except BaseException:
            recorder.abandon()
            raise
        self.recorder = recorder

    def replay_until(
        self,
        graph: ReplayTarget,
        runtime: Runtime,
        streams: Streams,
        until: Until,
        begin: Until | None = None,
        each: Callable[[ReplayTarget], None] | None = None,
    ) -> None:
        """Bring an empty graph to a time or transaction; nothing is recorded, nothing called.

        With `begin`, from a snapshot that is not after that, and queries keep all their deltas.
        `each` is called with the graph before and after each input.
        """
        self.flush()
        self._replay(graph, runtime, streams, None, until, Frozen(), begin, each)
        runtime.schedule.recorder = None

    def replay_inputs(self, replay: Replay, streams: Streams) -> None:
        """Bring an empty graph, on which nothing runs, to where a replay of the data ends."""
        number, chain = self._begin(replay, streams, replay.until)
        replay.read(self.journal.runs(number, chain))
        replay.go_on()

    def follow(self, replay: Replay) -> bool:
        """Apply what has come to the journal since; whether there was anything."""
        frozen = replay.runtime.schedule.recorder
        assert isinstance(frozen, Frozen)  # noqa: S101 - of a reader
        frozen.replaying, frozen.finished.apply = True, replay.apply_caused
        try:
            replay.number = self._followed
            replay.read(self._rows(replay, frozen, self._followed))
            replay.go_on()
        finally:
            frozen.replaying = False
        before, self._followed = self._followed, replay.number
        return self._followed > before

    def _replay(
        self,
        graph: ReplayTarget,
        runtime: Runtime,
        streams: Streams,
        functions: Mapping[str, Callable[..., object]] | None,
        until: Until,
        recorder: Recorder | Frozen,
        begin: Until | None = None,
        each: Callable[[ReplayTarget], None] | None = None,
    ) -> None:
        """Bring an empty graph to where a replay ends."""
        replay = Replay(
            graph, runtime, functions, until, recorder.note,
            keeps_all=begin is not None, joins=self.joins and each is None,
        )  # fmt: skip
        runtime.schedule.recorder = recorder
        recorder.replaying, recorder.finished.apply = True, replay.apply_caused
        number, chain = self._begin(replay, streams, begin or until)
        replay.number = number
        try:
            replay.read(self._rows(replay, recorder, number, chain))
            if each is not None:
                each(graph)
            for _ in replay.steps():
                if each is not None:
                    each(graph)
        finally:
            self.read_to = replay.number
        recorder.replaying = False

    def _rows(
        self, replay: Replay, recorder: Recorder | Frozen, after: int, chain: int | None = None
    ) -> Iterator[list[JournalRow]]:
        """The rows after a number, many at a time, and what their calls were.

        Beside a process that writes, a row whose calls may not be finished has to wait.
        """
        settled = self.journal.meta(SETTLED) if self.read_only else None
        recorder.finished.put(self.journal.calls(after))
        for run in self.journal.runs(after, chain):
            if settled is None or run[-1].number <= settled:
                yield run
                continue
            for row in run:
                if row.number > settled and _calls(replay.graph):
                    return
                yield [row]

    def _begin(self, replay: Replay, streams: Streams, until: Until) -> tuple[int, int]:
        """Restore the newest good snapshot before `until`; its number and chain."""
        for row in self._snapshots(until):
            try:
                snap.check_snapshot(self.folder / row.file, row.bytes, row.crc)
            except GraphtideError as error:
                if self.journal.first() > row.number + 1 or not self._reaches(row.number):
                    raise
                log.warning("%s; the journal goes further back", error)
                continue
            snapshot = snap.read_snapshot(self.folder / row.file)
            state = snapshot.state
            quads, held, _holder = snap.restored(snapshot, replay.runtime)
            hidden = streams.begin(held["streams"])
            snap.restore_quads(
                replay.runtime, state, quads, hidden[:0] if replay.only_data else hidden
            )
            for each in state.registrations:
                replay.apply(InputEntry(each["kind"], each["fields"]), again=True)
            held_state.load_all(replay.graph, streams, held)
            for query in replay.graph.queries:
                query.begins_at = state.done - state.closes
            return row.number, row.chain
        if self.journal.first() > 1:
            raise GraphtideError(
                f"{self.folder}: the journal begins at row {self.journal.first()}, and there is no "
                "snapshot before it",
                hint="what is older was dropped by `retain`; ask for a later time",
            )
        return 0, 0

    def _reaches(self, number: int) -> bool:
        """Whether the journal has everything before a row, or a snapshot before that."""
        first = self.journal.first()
        return first == 1 or any(first <= s.number + 1 < number for s in self.journal.snapshots())

    def _snapshots(self, until: Until) -> Iterator[SnapshotRow]:
        for row in reversed(self.journal.snapshots()):
            late = until.time is not None and row.time > until.time
            if not late and (until.tx is None or row.tx <= until.tx):
                yield row

    # --- while it is open ---

    def flush(self) -> None:
        """Wait until everything so far is on disk."""
        if self.recorder is not None:
            self.recorder.check()
            self.recorder.flush()

    def last_of(self, query: Query) -> int:
        """The last number that a delta of a query may have; of a window's results, the last time.

        A server numbers what a query over windows puts out by the times of its closes.
        """
        if self._runtime is None:
            return -1
        last = self._runtime.transactions - 1
        return last if query.windows is None else max(last, self._runtime.clock)

    @property
    def due(self) -> bool:
        """Whether the journal has grown enough for a snapshot."""
        if self.recorder is None or self._runtime is None:
            return False
        return self.recorder.recorded > max(FIRST_SNAPSHOT, 2 * len(self._runtime.store))

    def checkpoint(self, graph: ReplayTarget) -> bool:
        """Write a snapshot, and drop what `retain` allows; whether there is one of now."""
        runtime, recorder = self._runtime, self.recorder
        if runtime is None or recorder is None or self._streams is None:
            raise GraphtideError("a store that is open for reading has no checkpoints")
        with runtime.lock:
            recorder.check()
            runtime.settle()
            recorder.flush()
            recorder.check(snapshot=True)
            self.journal.check_alone()
            self.journal.keep_cursors([query.name for query in graph.queries])
            number, chain = self.journal.last, self.journal.crc
            if any(row.number == number for row in self.journal.snapshots()):
                return True
            why = held_state.obstacle(runtime, self._streams)
            if recorder.loose or why:
                log.info("no snapshot of %s: %s", self.folder, why or "a query was closed")
                recorder.recorded = 0
                return False
            state = snap.SnapshotState(
                runtime.clock,
                runtime.last_tx,
                runtime.position,
                runtime.closes,
                [{"kind": e.kind, "fields": e.fields} for e in recorder.registrations],
                raised=runtime.schedule.raised,
            )
            held = held_state.dump_all(graph, self._streams)
            snapshot = snap.snapshot_of(runtime, state, held)
            recorder.recorded = 0
        with self._snapshotting:  # which needs no other lock: changes come in meanwhile
            self._write_snapshot(number, chain, snapshot)
        return True

    def _write_snapshot(self, number: int, chain: int, snapshot: snap.Snapshot) -> None:
        if any(row.number == number for row in self.journal.snapshots()):
            return
        name = f"snapshot-{number}.packed"
        try:
            size, crc = snap.write_snapshot(self.folder / name, snapshot)
        except OSError as error:
            raise StoreError(
                self.folder / name,
                f"the snapshot cannot be written: {error.strerror}",
                hint="the journal has everything; make room, and call checkpoint() again",
            ) from None
        state = snapshot.state
        seq = state.done - state.closes
        row = SnapshotRow(number, seq, state.clock, time.time(), name, size, crc, chain)
        self.journal.add_snapshot(row)
        self.compact()

    def compact(self) -> int:
        """Drop what `retain` allows; how many rows of the journal."""
        return retention.compact(self.folder, self.journal, self.policy)

    def abandon(self) -> None:
        """Let go of a store that could not be opened."""
        if self.recorder is not None:
            self.recorder.abandon()
        self.journal.close()
        if self._lock is not None:
            self._lock.release()

    def close(self, graph: ReplayTarget, end_snapshot: Callable[[], None]) -> None:
        """Write what is left and a snapshot, after one under way; let others open the store."""
        try:
            if self.recorder is not None:
                self.recorder.close()
                end_snapshot()
                if self.recorder.is_whole:
                    self.checkpoint(graph)
        finally:
            if self._runtime is not None:
                self._runtime.schedule.recorder = Frozen("the store of this graph is closed")
                self._runtime.max_buffered = 1
            self.abandon()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GraphtideError(
            f"{folder} cannot be the directory of a store: {error.strerror}",
            hint="name a directory, which is made if need be",
        ) from None


def _calls(graph: ReplayTarget) -> bool:
    """Whether a program of a graph calls functions."""
    return any(calls_of(rule) for each in graph.programs for rule in each.program.rules)


class Frozen:
    """Stands in for a recorder where the graph must not be changed."""

    def __init__(self, why: str = "this graph is read-only") -> None:
        self.replaying = False
        self.underway = False
        self.finished = FinishedCalls()
        self.recorded = 0
        self._why = why

    def admit(self, *, more: bool = False) -> None:
        """Nothing is written, so there is nothing to wait for."""

    def changes(self, piece: object) -> None:
        """Refuse changes."""
        self.input("changes", piece)

    def clock(self, to: int) -> None:
        """Refuse a move of the clock."""
        self.input("clock", to)

    def input(self, kind: str, *what: object) -> None:  # noqa: ARG002 - as a recorder has it
        """Refuse anything that comes from outside; a new query changes nothing."""
        if not self.replaying and kind not in ("watch", "unwatch", "stream"):
            raise GraphtideError(
                f"{self._why}, and cannot be changed",
                hint="LiveGraph.open(store) opens a graph that can",
            )

    def call(self, firing: str, function: Callable[[], object]) -> None:  # noqa: ARG002
        """Call nothing; take what it has caused, and what failed fails again."""
        self.finished.replay(firing)

    def note(self, entry: InputEntry) -> None:
        """Nothing is written."""

    def interrupted(self, error: BaseException) -> None:
        """Nothing is written."""
