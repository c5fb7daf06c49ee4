"""Timelist: the events of a stream in order of time, added at the end, dropped from the front."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.windows.tail import Tail

if TYPE_CHECKING:
    from graphtide.engine.windows.summary import Mask
    from graphtide.kernel.batch import Ints, Longs


class Timelist:
    """Times and quads of events; beside them the moments at which there was any event at all.

    What no query can match is not held, but a window reports at its moment all the same. Places
    count from the first event ever, and stay valid; those of moments are numbers of their own.

    >>> events = Timelist()
    >>> quads = np.array([[1, 2, 3, 0], [4, 5, 6, 0]], np.int32)
    >>> events.append(np.array([3, 5]), quads)
    >>> events.append(np.array([7, 8]), quads, np.array([False, True]))
    >>> events.place_of(6), events.times(1, 3).tolist(), events.moments.rows(1, 4).tolist()
    (2, [5, 8], [5, 7, 8])
    """

    def __init__(self) -> None:
        self._times = Tail(np.int64)
        self._quads = Tail(np.int32, 4)
        self.moments = Tail(np.int64)

    @property
    def end(self) -> int:
        """The place after the last event."""
        return self._times.end

    @property
    def begin(self) -> int:
        """The place of the first event that is still held."""
        return self._times.begin

    def append(self, times: Longs, quads: Ints, held: Mask | None = None) -> None:
        """Add events that are not earlier than any before; of some only the moment is `held`."""
        self.moments.append(times)
        if held is not None:
            times, quads = times[held], quads[held]
        self._times.append(times)
        self._quads.append(quads)

    def place_of(self, time: int) -> int:
        """The place of the first event at or after a time."""
        return _place_of(self._times, time)

    def moment_of(self, time: int) -> int:
        """The place of the first moment at or after a time."""
        return _place_of(self.moments, time)

    def times(self, first: int, last: int) -> Longs:
        """The times of the events from one place up to another."""
        return self._times.rows(first, last)

    def quads(self, first: int, last: int) -> Ints:
        """The quads of the events from one place up to another."""
        return self._quads.rows(first, last)

    def drop_before(self, place: int) -> None:
        """Forget the events before a place."""
        self._times.drop_before(place)
        self._quads.drop_before(place)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._times.nbytes + self._quads.nbytes + self.moments.nbytes


def _place_of(times: Tail, time: int) -> int:
    held = times.rows(times.begin, times.end)
    return times.begin + int(np.searchsorted(held, time, side="left"))
