"""Frontiers: up to which transaction a source, each of its shards, and a whole stream is complete.

Transactions come in the order of `(time, tx)`. One is complete as soon as a later one is seen, or a
row with diff 0 that ends it. Until then its changes are held, so that a transaction stays one
transaction however the stream is cut into micro-batches. A change of a transaction that was already
complete is late.

A source with several partitions is in order in each of them only. Such a partition is a *shard*: it
has a frontier of its own, and the stream is complete up to the least of them. A source without
shards is one shard, with the empty name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray


FEEDBACK: Final = -(2**62)
"""Transactions of actions are numbered from here on, so that they come before all others."""


class Frontier(NamedTuple):
    """The latest transaction seen, and whether its end was seen as well.

    >>> Frontier(17, 3, 0) < Frontier(17, 3, 1) < Frontier(17, 4, 0)
    True
    """

    time: int
    tx: int
    ended: int

    def at_end(self) -> Frontier:
        """The frontier if nothing comes after what was seen: all of it is complete."""
        return Frontier(self.time, END.tx, END.ended)

    def completed(self, time: NDArray[np.int64], tx: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which changes belong to complete transactions."""
        same_time = (time == self.time) & ((tx < self.tx) | ((tx == self.tx) & bool(self.ended)))
        return np.asarray((time < self.time) | same_time)


START = Frontier(-(2**63), -(2**63), 0)
END = Frontier(2**63 - 1, 2**63 - 1, 1)
"""Before any transaction, and after all: a bounded input is complete when it has been read."""


def is_feedback(tx: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which transactions are those of actions.

    >>> is_feedback(np.array([FEEDBACK + 7, 7, -(2**63)])).tolist()
    [True, False, False]
    """
    return np.asarray((tx >= FEEDBACK) & (tx < FEEDBACK // 2))


def frontier_of(
    time: NDArray[np.int64],
    tx: NDArray[np.int64],
    diff: NDArray[np.integer[Any]],
    lateness: int = 0,
) -> Frontier:
    """The frontier that a set of rows shows, if rows may be late by so many ticks.

    The end of a transaction is a promise: also with lateness, all is complete up to there.

    >>> times, txs = np.array([12, 17]), np.array([3, 3])
    >>> frontier_of(times, txs, np.array([0, 1])), frontier_of(times, txs, np.array([0, 1]), 5)
    (Frontier(time=17, tx=3, ended=0), Frontier(time=12, tx=3, ended=1))
    """
    if not len(time):
        return START
    if not lateness:
        return _last(time, tx, diff)
    ends = diff == 0
    ended = _last(time[ends], tx[ends], diff[ends]) if ends.any() else START
    return max(ended, Frontier(int(time.max()) - lateness, START.tx, 0))


def _last(
    time: NDArray[np.int64], tx: NDArray[np.int64], diff: NDArray[np.integer[Any]]
) -> Frontier:
    latest = time == time.max()
    last = tx[latest].max()
    ended = (diff[latest] == 0) & (tx[latest] == last)
    return Frontier(int(time.max()), int(last), int(ended.any()))


@dataclass(frozen=True, slots=True)
class Shards:
    """The frontier of each shard that was seen, by name.

    `first` is the time of the least frontier when the first shard was seen, `heard` the processing
    time (milliseconds) of the last micro-batch with input, if the clock may go on without any.

    >>> seen = Shards({"a": Frontier(7, 0, 0)}).joined([Shards({"b": Frontier(5, 2, 1)})])
    >>> seen.complete(), seen.complete(expected=3) == START, seen.complete(idle=1)
    (Frontier(time=5, tx=2, ended=1), True, Frontier(time=7, tx=0, ended=0))
    """

    seen: Mapping[str, Frontier] = field(default_factory=dict)
    first: int | None = None
    heard: int | None = None

    def joined(self, others: Iterable[Shards], now: int | None = None) -> Shards:
        """With what others have seen as well, at a processing time."""
        seen, heard = dict(self.seen), self.heard
        for other in others:
            for name, frontier in other.seen.items():
                seen[name] = max(seen.get(name, START), frontier)
                heard = now
        if self.first is None and seen:
            return Shards(seen, min(seen.values()).time, heard)
        return Shards(seen, self.first, heard)

    def complete(self, expected: int | None = None, idle: int | None = None) -> Frontier:
        """The frontier up to which all shards are complete.

        Shards that were `expected` and not seen hold back all others. With `idle`, one that is more
        ticks than that behind the first holds back nothing; one that was never seen counts from
        where the others began.
        """
        if not self.seen:
            return START
        foremost = max(self.seen.values()).time
        missing = len(self.seen) < (expected or 1)
        if missing and (idle is None or foremost - (self.first or 0) <= idle):
            return START
        return min(
            frontier
            for frontier in self.seen.values()
            if idle is None or foremost - frontier.time <= idle
        )

    def gone_on(self, until: int, tick_ms: int) -> Frontier:
        """The frontier if time has gone on since the last input, up to a processing time.

        >>> seen = Shards({"a": Frontier(7, 0, 0)}, heard=1000)
        >>> seen.gone_on(3500, tick_ms=1000).time, seen.gone_on(999, tick_ms=1000) == START
        (9, True)
        """
        if self.heard is None or until < self.heard:
            return START
        ticks = (until - self.heard) // tick_ms
        return Frontier(min(max(self.seen.values()).time + ticks, END.time), START.tx, 0)

    def check(self, expected: int | None) -> None:
        """Raise if there are more shards than were expected.

        >>> Shards({"a": START, "b": START}).check(1)
        Traceback (most recent call last):
            ...
        graphtide.errors.GraphtideError: the stream has 2 shards (a, b) and not 1
          hint: shards=… is the number of different values in the column shard
        """
        if expected is not None and len(self.seen) > expected:
            names = ", ".join(sorted(self.seen)[:10])
            raise GraphtideError(
                f"the stream has {len(self.seen)} shards ({names}) and not {expected}",
                hint="shards=… is the number of different values in the column shard",
            )

    def to_text(self) -> str:
        """A text from which `from_text` makes the same again."""
        return json.dumps([self.first, self.seen, self.heard])

    @classmethod
    def from_text(cls, text: str) -> Shards:
        """The shards of a text.

        >>> seen = Shards({"a": Frontier(7, 0, 0)}, 7)
        >>> Shards.from_text(seen.to_text()) == seen
        True
        """
        first, seen, *heard = json.loads(text)
        return cls({name: Frontier(*frontier) for name, frontier in seen.items()}, first, *heard)


NO_SHARDS = Shards()
