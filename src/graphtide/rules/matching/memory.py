"""RuleMemory: the events of a rule that wait, in arrays as large as need be, and ways back."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.kernel.batch import DIFF
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.rules.kernel.facts import ABSENT, change_facts, fact_number, refill_facts
from graphtide.rules.kernel.layout import (
    FREE,
    JOURNALED,
    LIVE,
    MEMORY_FULL,
    NEWEST,
    PEAK,
    FactArrays,
    MemoryArrays,
    WorkArrays,
)
from graphtide.rules.kernel.memory import expire_events, refill, remove_event, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.engine.results import TransactionTimes
    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.expiry import Retention
    from graphtide.rules.kernel.layout import PlanArrays
    from graphtide.rules.matching.types import Binding, MatchedEvent

MIN_CAPACITY = 16
LONG_AGO = -(1 << 62)


class Savepoint(NamedTuple):
    """A state to come back to: which arrays were in use then, and the cells of their `meta`."""

    outgrown: int
    meta: Longs


class RuleMemory:
    """The events that wait for partners. From the first mark on, what changes is noted.

    Arrays that became too small are kept as they are while there are marks, with their journals.
    """

    def __init__(self, plan: PlanArrays) -> None:
        self.arrays = make_memory(plan)
        self._plan = plan
        self._outgrown: list[MemoryArrays] = []
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
        if what == MEMORY_FULL:
            self.arrays = make_memory(self._plan, 2 * len(old.cells))
            refill(self._plan, old, self.arrays)
            if old.meta[JOURNALED] >= 0:
                self._outgrown.append(old)
                self.arrays.meta[JOURNALED] = 0
        else:
            journal = np.empty((2 * len(old.journal) + 64 * MIN_CAPACITY, 4), np.int64)
            journal[: len(old.journal)] = old.journal
            self.arrays = old._replace(journal=journal)

    def savepoint(self) -> Savepoint:
        """The state of now, to come back to; it is good until `release`."""
        meta = self.arrays.meta
        meta[JOURNALED] = max(meta[JOURNALED], 0)
        return Savepoint(len(self._outgrown), meta.copy())

    def rollback(self, mark: Savepoint) -> None:
        """Come back to a state; marks that were made after it are no good any more."""
        if mark.outgrown < len(self._outgrown):
            self.arrays = self._outgrown[mark.outgrown]
            del self._outgrown[mark.outgrown :]
        undo(self.arrays, int(mark.meta[JOURNALED]))
        self.arrays.meta[:] = mark.meta

    def release(self) -> None:
        """Nobody comes back: note no more."""
        self.arrays.meta[JOURNALED] = -1
        self._outgrown.clear()


def make_memory(plan: PlanArrays, places: int = MIN_CAPACITY) -> MemoryArrays:
    """Room for a number of events, a power of two."""
    indexes = len(plan.keys)
    links = np.full((places, 1 + indexes), -1, np.int32)
    links[:-1, 0] = np.arange(1, places)
    meta = np.zeros(5, np.int64)
    meta[FREE], meta[NEWEST], meta[JOURNALED] = 0, LONG_AGO, -1
    return MemoryArrays(
        cells=np.zeros((places, max(1, plan.variables)), np.int32),
        when=np.zeros((places, 4), np.int64),
        links=links,
        heads=np.full((indexes, places), -1, np.int32),
        tails=np.full((indexes, places), -1, np.int32),
        ends=np.full((len(plan.retention), 2), -1, np.int32),
        meta=meta,
        journal=np.empty((0, 4), np.int64),
    )


def make_work(plan: PlanArrays, variables: int, depth: int) -> WorkArrays:
    """Room for one match."""
    many = len(plan.retention)
    return WorkArrays(
        binding=np.zeros(variables, np.int32),
        at=np.zeros(many, np.int32),
        span=np.zeros(2 * many, np.int64),
        who=np.zeros(2 * many, np.int64),
        stack=np.zeros(depth + 1, np.int32),
    )


# --- EventMemory: the events that one condition of a rule may still need, by the values they
# bind.

Kept = tuple["MatchedEvent", "Binding"]
Undo = list["Callable[[], object]"]
"""How to take back what was done, the last first."""


class EventMemory:
    """Events in order of arrival, with an index by the variables that they are looked up by.

    They are kept as long as `retention` says; one that nothing can come after is not taken in.
    While `undo` is a list, each change puts there how to take it back.
    """

    def __init__(self, retention: Retention, key: tuple[Var, ...]) -> None:
        self.ticks = retention.ticks
        self.undo: Undo | None = None
        self._key = key
        self._orders: deque[tuple[int, int]] = deque()
        self._events: dict[int, list[Kept]] = {}
        self._index: dict[tuple[int, ...], dict[int, Kept]] = {}
        self._size = 0

    def add(self, event: MatchedEvent, binding: Binding) -> None:
        """Keep an event, if anything can come after it that needs it."""
        if self.ticks is None:
            return
        kept = (event, binding)
        self._orders.append((event.span.end, event.order))
        self._list(kept)
        if self.undo is not None:
            self.undo += [lambda: self._unlist(kept), self._orders.pop]

    def expire(self, now: int) -> None:
        """Let go what no event at or after a time can need."""
        if self.ticks is None:
            return
        while self._orders and self._orders[0][0] + self.ticks < now:
            first = self._orders.popleft()
            if self.undo is not None:
                self.undo.append(lambda first=first: self._orders.appendleft(first))  # type: ignore[misc]
            self.remove(first[1])

    def remove(self, order: int) -> None:
        """Let go an event, if it is here; its place among the others is skipped later."""
        for kept in tuple(self._events.get(order, ())):
            self._unlist(kept)
            if self.undo is not None:
                self.undo.append(lambda kept=kept: self._list(kept))  # type: ignore[misc]

    def _list(self, kept: Kept) -> None:
        self._events.setdefault(kept[0].order, []).append(kept)
        self._index.setdefault(self._key_of(kept[1]), {})[id(kept)] = kept
        self._size += 1

    def _unlist(self, kept: Kept) -> None:
        order, key = kept[0].order, self._key_of(kept[1])
        self._events[order].remove(kept)
        if not self._events[order]:
            del self._events[order]
        del self._index[key][id(kept)]
        if not self._index[key]:
            del self._index[key]
        self._size -= 1

    def _key_of(self, binding: Binding) -> tuple[int, ...]:
        return tuple(binding[v] for v in self._key)

    def find(self, binding: Binding) -> Collection[Kept]:
        """The events that agree with a binding on the variables of the index."""
        found = self._index.get(self._key_of(binding))
        return () if found is None else found.values()

    def __len__(self) -> int:
        return self._size


# --- FactMemory: the rows of a rule's fact conditions, and since when each has held.


class FactMemory:
    """Follows a standing query; rows are looked up by the variables that events share with it.

    `columns` are the variables of a row here: first the shared ones.
    """

    def __init__(self, watch: Query, columns: Sequence[Var], shared: int) -> None:
        self._watch = watch
        order = [DELTA_VALUES + watch.variables.index(v.name) for v in columns]
        self._columns = np.array(order, np.int32)
        self._shared = shared
        self.facts = make_facts(MIN_CAPACITY, len(columns))
        self._changes: list[tuple[Ints, TransactionTimes]] = []
        self._noted: list[tuple[Ints, int]] = []
        self._tracking = False

    def catch_up(self) -> bool:
        """Take in what has changed since last time, and say whether anything has.

        A row that went and came back is a new one.
        """
        changed = self.looks_changed()
        for net, stamps in self._changes:
            self._make_room(len(net))
            if self._tracking:
                self._note(net)
            change_facts(self.facts, self._columns, self._shared, net, stamps.first)
        self._changes.clear()
        return changed

    def looks_changed(self) -> bool:
        """Whether there is anything to take in."""
        self._changes += self._watch.drain()
        return bool(self._changes)

    def begin(self) -> None:
        """Forget what was noted; what is taken in next belongs to the cause, and stays."""
        self._noted.clear()
        self._tracking = False

    def track(self) -> None:
        """From here on, note what is taken in."""
        self._tracking = True

    def _note(self, net: Ints) -> None:
        """Note the rows that change, and since when each has held before."""
        for row in net[:, self._columns]:
            self._noted.append((row.copy(), int(fact_number(self.facts, row, self._shared))))

    def rollback_all(self) -> None:
        """The graph is again as it was when tracking began: so are the facts, and since when."""
        self.looks_changed()
        self._changes.clear()
        for row, number in reversed(self._noted):
            there = int(fact_number(self.facts, row, self._shared)) != ABSENT
            if there:
                self._set(row, -1, 1, 0)
            if number != ABSENT:
                self._set(row, 1, 0, number)
        self._noted.clear()

    def _set(self, row: Ints, diff: int, before: int, number: int) -> None:
        net = np.zeros((1, DELTA_VALUES + len(row)), np.int32)
        net[0, DIFF], net[0, COUNT_BEFORE] = diff, before
        net[0, self._columns] = row
        self._make_room(1)
        change_facts(self.facts, self._columns, self._shared, net, number)

    def _make_room(self, more: int) -> None:
        needed = int(self.facts.meta[LIVE]) + more
        if needed > len(self.facts.rows):
            larger = make_facts(2 * needed, len(self._columns))
            refill_facts(self.facts, larger, self._shared)
            self.facts = larger

    def held_since(self, row: Sequence[int], since: int) -> bool:
        """Whether a row has held since before a number of transactions."""
        values = np.array(row, np.int32)
        number = fact_number(self.facts, values, self._shared)
        return bool(ABSENT < number < since)

    def __len__(self) -> int:
        return int(self.facts.meta[LIVE])


def make_facts(places: int, width: int) -> FactArrays:
    """Room for some facts.

    >>> len(make_facts(5, 2).rows)
    8
    """
    size = max(MIN_CAPACITY // 2, 1 << (places - 1).bit_length())
    links = np.arange(1, size + 1, dtype=np.int32)
    links[-1] = -1
    meta = np.zeros(4, np.int64)
    meta[FREE] = 0
    rows = np.zeros((size, width), np.int32)
    heads = np.full(2 * size, -1, np.int32)
    return FactArrays(rows, np.zeros(size, np.int64), links, heads, meta)
