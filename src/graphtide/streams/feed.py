"""Feed: changes and events of one log. An insert into a graph named like a stream is an event."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from graphtide.arguments import check_choice
from graphtide.engine.ingest import Piece, check_order, one_by_one, pieces
from graphtide.engine.locking import synchronized
from graphtide.errors import DataError, GraphtideError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs
from graphtide.rdf.holders import HeldIds
from graphtide.streams.windows import GRAPH_COLUMN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.rdf.changes import ChangeBatch
    from graphtide.streams.registry import Streams
    from graphtide.streams.stream import Stream


class FeedStep(NamedTuple):
    """How many changes and transactions were applied at once."""

    changes: int
    transactions: int


class Feed:
    """Applies the transactions of a log to a graph, and pushes its events to the streams.

    The log is in order of time over all streams: with a row, all before its time are here. A delete
    of an event is an error; with `on_error="skip"` it is left out and counted.
    """

    def __init__(self, streams: Streams, *, on_error: Literal["raise", "skip"] = "raise") -> None:
        check_choice(on_error, "on_error", ("raise", "skip"))
        self._streams = streams
        self._runtime = streams.runtime
        self.lock = streams.runtime.lock
        self._skips = on_error == "skip"
        self.skipped_deletes = 0

    @property
    def streams(self) -> frozenset[str]:
        """The names of the streams, as N-Triples texts."""
        return frozenset(f"<{stream.name}>" for stream in self._streams)

    def _by_id(self) -> dict[int, Stream]:
        intern = self._runtime.terms.intern
        return {intern(f"<{stream.name}>"): stream for stream in self._streams.by_name.values()}

    def steps(self, batches: Iterable[ChangeBatch]) -> Iterator[FeedStep]:
        """Apply batches of changes step by step, to look at the output in between."""
        self._runtime.flush()
        held = HeldIds()  # terms may be freed between two steps
        self._runtime.terms.holders.add(held)
        for piece in pieces(self._runtime, batches, None, plain=False):
            held.arrays = [piece[0]]
            for part in self.parts(piece):
                with self.lock:
                    self._apply(part)
                    self._runtime.reclaim()
                yield FeedStep(len(part[0]), len(part[1]))

    @synchronized
    def apply(self, piece: Piece) -> None:
        """Apply whole transactions: as many at once as are of one kind, changes or events."""
        schedule = self._runtime.schedule
        if schedule.calling_back:
            for one in one_by_one(piece):
                schedule.defer_to_next(partial(self._apply, one))
            return
        with schedule, schedule.one_call:
            for part in self.parts(piece):
                self._apply(part)

    def parts(self, piece: Piece) -> Iterator[Piece]:
        """Transactions that can be applied at once: changes only, events only, or one of both."""
        changes, times, txs = piece
        events = self._are_events(changes)
        if not events.any():
            yield piece
            return
        happens = np.bincount(changes[events, TX], minlength=len(times)) > 0
        changed = np.bincount(changes[~events, TX], minlength=len(times)) > 0
        both = happens & changed
        begins = np.ones(len(times), np.bool_)
        begins[1:] = (happens[1:] != happens[:-1]) | both[1:] | both[:-1]
        starts = np.flatnonzero(begins)
        for begin, end in zip(starts, [*starts[1:], len(times)], strict=True):
            part = changes[slice(*np.searchsorted(changes[:, TX], (begin, end)))].copy()
            part[:, TX] -= begin
            yield part, times[begin:end], txs[begin:end]

    def _are_events(self, changes: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isin(changes[:, GRAPH_COLUMN], list(self._by_id()))

    def _apply(self, part: Piece) -> None:
        """Apply changes, and push events; errors of single events wait until all are through."""
        if self._streams.by_name:
            with self._runtime.schedule, self._runtime.schedule.one_call:
                self._apply_part(part)
        else:
            self._runtime.flush()
            if self._runtime.schedule.recorder is not None:
                self._runtime.schedule.admit()
            self._runtime.apply_piece(part)

    def _apply_part(self, part: Piece) -> None:
        changes, times, txs = part
        mask = self._are_events(changes)
        events, rest = changes[mask], changes[~mask]
        if len(events):
            check_order(self._runtime.clock, times)
            events = self._without_deletes(events, times)
        if len(rest):
            index, diff, s, p, o, g = rest.T
            self._runtime.apply_ids(s, p, o, g, diff=diff, time=times[index], tx=txs[index])
        streams = self._by_id()
        for rows in self._by_stream(events):
            if self._streams.has_windows:  # with a line of a log, all before its time are there
                self._runtime.schedule.advance(int(times[rows[0, TX]]))
            quads = rows[:, VALUES:].copy()
            quads[:, 3] = 0
            stream = streams[int(rows[0, GRAPH_COLUMN])]
            stream.push_ids(times[rows[:, TX]], quads, events=rows[:, TX].astype(np.int64))
        self._runtime.schedule.advance(int(times[-1]))

    def _by_stream(self, events: Ints) -> Iterator[Ints]:
        """The events of each stream; in the order of the log, if somebody follows single ones."""
        graphs = events[:, GRAPH_COLUMN]
        if not self._streams.publisher.in_order:
            yield from (events[graphs == number] for number in dict.fromkeys(graphs.tolist()))
            return
        begins = np.diff(graphs, prepend=-1) != 0
        if self._streams.has_windows:
            begins |= np.diff(events[:, TX], prepend=-1) != 0
        starts = np.flatnonzero(begins)
        yield from (part for part in np.split(events, starts[1:]) if len(part))

    def _without_deletes(self, events: Ints, times: Longs) -> Ints:
        deletes = events[:, DIFF] < 0
        if deletes.any() and not self._skips:
            row = events[np.argmax(deletes)]
            stream = self._runtime.terms.text(int(row[GRAPH_COLUMN]))
            raise DataError(
                f"events cannot be deleted, as one of {stream} is at time {int(times[row[TX]])}",
                hint="leave deletes out, as windows evict events by themselves; or skip them with "
                "--on-error skip",
            )
        self.skipped_deletes += int(deletes.sum())
        return events[~deletes]

    @synchronized
    def push(self, times: Longs, quads: Ints, events: Longs) -> None:
        """Push events of the only stream."""
        streams = list(self._streams)
        if len(streams) != 1:
            names = ", ".join(f"<{stream.name}>" for stream in streams)
            raise GraphtideError(
                f"the events of this file could be of any of the streams {names}",
                hint="use a change log (.rdfp), where the graph of an insert names its stream",
            )
        if len(times):
            check_order(self._runtime.clock, times)
            streams[0].push_ids(times, quads, events=events)
            self._runtime.schedule.advance(int(times[-1]))

    @synchronized
    def end(self, until: int | None) -> None:
        """End the log: advance the clock past its last time if there are streams, or to `until`."""
        clock = self._runtime.clock
        if until is not None and until < clock:
            raise GraphtideError(
                f"--until {until} is in the past: the changes go up to {clock}",
                hint="give a later time, or none",
            )
        if until is not None:
            self._runtime.schedule.advance(until)
        elif self._streams.by_name:
            self._runtime.schedule.advance(clock + 1)
