"""Timelist: the events of a stream that windows may still need, with their times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.streams.pruning import Mask

Rows = np.ndarray[Any, Any]

TailSavepoint = tuple[Rows, int, int, int]
"""An array, where the rows in it begin and end, and the index of its first place."""

SMALLEST = 1024


class Tail:
    """The last part of a long sequence of rows, appended at the end, dropped from the front.

    Indexes count from the first row ever, and stay valid.

    >>> tail = Tail(np.int64)
    >>> tail.append(np.array([3, 5, 8]))
    >>> tail.drop_before(1)
    >>> tail.begin, tail.end, tail.rows(1, 3).tolist()
    (1, 3, [5, 8])
    """

    def __init__(self, kind: type[np.generic], width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._rows: Rows = np.empty((SMALLEST, *self._shape), kind)
        self._first = 0  # indexes in the array, of what is held
        self._last = 0
        self._moved = 0

    @property
    def begin(self) -> int:
        """The index of the first row still held."""
        return self._moved + self._first

    @property
    def end(self) -> int:
        """The index after the last row."""
        return self._moved + self._last

    def append(self, rows: Rows) -> None:
        """Add rows at the end."""
        end = self._last + len(rows)
        if end > len(self._rows):
            self._make_room(len(rows))
            end = self._last + len(rows)
        self._rows[self._last : end] = rows
        self._last = end

    def cut(self, end: int) -> None:
        """Forget the rows from an index on."""
        self._last = end - self._moved

    def _make_room(self, more: int) -> None:
        """Move what is held to the front, of a larger array if need be."""
        held = self._last - self._first
        size = len(self._rows)
        while size < 2 * (held + more):
            size *= 2
        larger = np.empty((size, *self._shape), self._rows.dtype)
        larger[:held] = self._rows[self._first : self._last]
        self._rows = larger
        self._moved += self._first
        self._first, self._last = 0, held

    def rows(self, first: int, last: int) -> Rows:
        """The rows from one index up to another."""
        return self._rows[first - self._moved : last - self._moved]

    def drop_before(self, index: int) -> None:
        """Drop the rows before an index."""
        self._first = min(max(self._first, index - self._moved), self._last)

    def __len__(self) -> int:
        return self._last - self._first

    def start(self, begin: int, rows: Rows) -> None:
        """Hold rows instead, the first of them with an index."""
        self._first, self._last, self._moved = 0, 0, begin
        self.append(rows)

    def savepoint(self) -> TailSavepoint:
        """What `roll_back` needs; rows that are dropped or appended do not change it."""
        return self._rows, self._first, self._last, self._moved

    def roll_back(self, to: TailSavepoint) -> None:
        """Go back to a savepoint."""
        self._rows, self._first, self._last, self._moved = to

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._rows.nbytes


class Timelist:
    """Times and quads of events; beside them all times at which there was any event (`moments`).

    What no query can match is not held, but a window reports at its time all the same. Indexes
    count from the first event ever, and stay valid; those of `moments` are counted separately.

    >>> events = Timelist()
    >>> quads = np.array([[1, 2, 3, 0], [4, 5, 6, 0]], np.int32)
    >>> events.append(np.array([3, 5]), quads)
    >>> events.append(np.array([7, 8]), quads, np.array([False, True]))
    >>> events.index_of(6), events.times(1, 3).tolist(), events.moments.rows(1, 4).tolist()
    (2, [5, 8], [5, 7, 8])
    """

    def __init__(self) -> None:
        self._times = Tail(np.int64)
        self._quads = Tail(np.int32, 4)
        self.moments = Tail(np.int64)

    @property
    def end(self) -> int:
        """The index after the last event."""
        return self._times.end

    @property
    def begin(self) -> int:
        """The index of the first event that is still held."""
        return self._times.begin

    def append(self, times: Longs, quads: Ints, held: Mask | None = None) -> None:
        """Add events that are not earlier than any before; of some only the moment is `held`.

        If it is interrupted, it has added nothing.
        """
        ends = [(tail, tail.end) for tail in (self.moments, self._times, self._quads)]
        try:
            self.moments.append(times)
            if held is not None:
                times, quads = times[held], quads[held]
            self._times.append(times)
            self._quads.append(quads)
        except BaseException:
            for tail, end in ends:
                tail.cut(end)
            raise

    def index_of(self, time: int) -> int:
        """The index of the first event at or after a time."""
        return _index_of(self._times, time)

    def moment_of(self, time: int) -> int:
        """The index of the first moment at or after a time."""
        return _index_of(self.moments, time)

    def times(self, first: int, last: int) -> Longs:
        """The times of the events from one index up to another."""
        return self._times.rows(first, last)

    def quads(self, first: int, last: int) -> Ints:
        """The quads of the events from one index up to another."""
        return self._quads.rows(first, last)

    def drop_before(self, index: int, moment: int = 0) -> None:
        """Drop the events before an index, and the moments before one of their own."""
        self._times.drop_before(index)
        self._quads.drop_before(index)
        self.moments.drop_before(moment)

    def savepoint(self) -> tuple[TailSavepoint, TailSavepoint, TailSavepoint]:
        """What `roll_back` needs."""
        return self._times.savepoint(), self._quads.savepoint(), self.moments.savepoint()

    def roll_back(self, to: tuple[TailSavepoint, TailSavepoint, TailSavepoint]) -> None:
        """Go back to a savepoint."""
        for tail, saved in zip((self._times, self._quads, self.moments), to, strict=True):
            tail.roll_back(saved)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of the quads."""
        yield self._quads.rows(self._quads.begin, self._quads.end)

    def dump(self) -> list[Any]:
        """Of times, quads and moments the index of the first, and all."""
        tails = (self._times, self._quads, self.moments)
        return [[tail.begin, tail.rows(tail.begin, tail.end).copy()] for tail in tails]

    def load(self, saved: list[Any]) -> None:
        """Hold saved events instead."""
        for tail, part in zip((self._times, self._quads, self.moments), saved, strict=True):
            tail.start(*part)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._times.nbytes + self._quads.nbytes + self.moments.nbytes


def _index_of(times: Tail, time: int) -> int:
    begin = times.begin
    return begin + int(times.rows(begin, times.end).searchsorted(time))
