"""RuleMemory: the events of a rule that wait, in arrays as large as need be, and ways back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.rules.kernel.journal import undo
from graphtide.rules.kernel.layout import (
    FREE,
    LIVE,
    NEWEST,
    NO_PLACE,
    NOTED,
    PEAK,
    Memory,
    Work,
)
from graphtide.rules.kernel.places import expire_events, refill, remove_event

if TYPE_CHECKING:
    from graphtide.kernel.batch import Longs
    from graphtide.rules.kernel.layout import Plan

FEWEST = 16
LONG_AGO = -(1 << 62)


class Mark(NamedTuple):
    """A state to come back to: which arrays were in use then, and the cells of their `meta`."""

    outgrown: int
    meta: Longs


class RuleMemory:
    """The events that wait for partners. From the first mark on, what changes is noted.

    Arrays that became too small are kept as they are while there are marks, with their journals.
    """

    def __init__(self, plan: Plan) -> None:
        self.arrays = make_memory(plan)
        self._plan = plan
        self._outgrown: list[Memory] = []
        self._now = LONG_AGO

    @property
    def live(self) -> int:
        """How many events wait."""
        while not expire_events(self._plan, self.arrays, self._now):
            self.make_room(0)
        return int(self.arrays.meta[LIVE])

    @property
    def peak(self) -> int:
        """How many have waited at once."""
        return int(self.arrays.meta[PEAK])

    def pass_time(self, now: int) -> None:
        """Time goes on. What nothing can need any more goes when the next event comes."""
        self._now = now

    def remove(self, order: int) -> None:
        """Let go an event before its time, if it is here."""
        while not remove_event(self._plan, self.arrays, order):
            self.make_room(0)

    def make_room(self, what: int) -> None:
        """Places or entries of the journal ran out: have twice as many."""
        old = self.arrays
        if what == NO_PLACE:
            self.arrays = make_memory(self._plan, 2 * len(old.cells))
            refill(self._plan, old, self.arrays)
            if old.meta[NOTED] >= 0:
                self._outgrown.append(old)
                self.arrays.meta[NOTED] = 0
        else:
            journal = np.empty((2 * len(old.journal) + 64 * FEWEST, 4), np.int64)
            journal[: len(old.journal)] = old.journal
            self.arrays = old._replace(journal=journal)

    def mark(self) -> Mark:
        """The state of now, to come back to; it is good until `release`."""
        meta = self.arrays.meta
        meta[NOTED] = max(meta[NOTED], 0)
        return Mark(len(self._outgrown), meta.copy())

    def back_to(self, mark: Mark) -> None:
        """Come back to a state; marks that were made after it are no good any more."""
        if mark.outgrown < len(self._outgrown):
            self.arrays = self._outgrown[mark.outgrown]
            del self._outgrown[mark.outgrown :]
        undo(self.arrays, int(mark.meta[NOTED]))
        self.arrays.meta[:] = mark.meta

    def release(self) -> None:
        """Nobody comes back: note no more."""
        self.arrays.meta[NOTED] = -1
        self._outgrown.clear()


def make_memory(plan: Plan, places: int = FEWEST) -> Memory:
    """Room for a number of events, a power of two."""
    indexes = len(plan.keys)
    links = np.full((places, 1 + indexes), -1, np.int32)
    links[:-1, 0] = np.arange(1, places)
    meta = np.zeros(5, np.int64)
    meta[FREE], meta[NEWEST], meta[NOTED] = 0, LONG_AGO, -1
    return Memory(
        cells=np.zeros((places, max(1, plan.variables)), np.int32),
        when=np.zeros((places, 4), np.int64),
        links=links,
        heads=np.full((indexes, places), -1, np.int32),
        tails=np.full((indexes, places), -1, np.int32),
        ends=np.full((len(plan.keeps), 2), -1, np.int32),
        meta=meta,
        journal=np.empty((0, 4), np.int64),
    )


def make_work(plan: Plan, variables: int, depth: int) -> Work:
    """Room for one match."""
    many = len(plan.keeps)
    return Work(
        binding=np.zeros(variables, np.int32),
        at=np.zeros(many, np.int32),
        span=np.zeros(2 * many, np.int64),
        who=np.zeros(2 * many, np.int64),
        stack=np.zeros(depth + 1, np.int32),
    )
