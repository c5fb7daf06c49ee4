"""Timelist: the events of a stream in order of time, added at the end, dropped from the front."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs

SMALLEST = 1024


class Timelist:
    """Times and quads of events. Places count from the first event ever, and stay valid.

    >>> events = Timelist()
    >>> events.append(np.array([3, 5]), np.array([[1, 2, 3, 0], [4, 5, 6, 0]], np.int32))
    >>> events.place_of(4), events.times(1, 2).tolist()
    (1, [5])
    """

    def __init__(self) -> None:
        self._times = np.empty(SMALLEST, np.int64)
        self._quads = np.empty((SMALLEST, 4), np.int32)
        self._begin = 0
        self._end = 0
        self._dropped = 0

    @property
    def end(self) -> int:
        """The place after the last event."""
        return self._dropped + self._end

    @property
    def begin(self) -> int:
        """The place of the first event that is still held."""
        return self._dropped + self._begin

    def append(self, times: Longs, quads: Ints) -> None:
        """Add events that are not earlier than any before."""
        more = len(times)
        if self._end + more > len(self._times):
            self._make_room(more)
        self._times[self._end : self._end + more] = times
        self._quads[self._end : self._end + more] = quads
        self._end += more

    def _make_room(self, more: int) -> None:
        """Move what is held to the front, of larger arrays if need be."""
        held = self._end - self._begin
        size = len(self._times)
        while size < 2 * (held + more):
            size *= 2
        times, quads = np.empty(size, np.int64), np.empty((size, 4), np.int32)
        times[:held] = self._times[self._begin : self._end]
        quads[:held] = self._quads[self._begin : self._end]
        self._times, self._quads = times, quads
        self._dropped += self._begin
        self._begin, self._end = 0, held

    def place_of(self, time: int) -> int:
        """The place of the first event at or after a time."""
        held = self._times[self._begin : self._end]
        return self.begin + int(np.searchsorted(held, time, side="left"))

    def times(self, first: int, last: int) -> Longs:
        """The times of the events from one place up to another."""
        return self._times[first - self._dropped : last - self._dropped]

    def quads(self, first: int, last: int) -> Ints:
        """The quads of the events from one place up to another."""
        return self._quads[first - self._dropped : last - self._dropped]

    def drop_before(self, place: int) -> None:
        """Forget the events before a place."""
        self._begin = max(self._begin, place - self._dropped)

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._times.nbytes + self._quads.nbytes
