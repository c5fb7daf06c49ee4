"""Memories of a rule: its events (RuleMemory), those of NO EVENT too, and its facts.

All of them journal their changes after a savepoint, and can be rolled back to it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphtide.kernel.batch import DIFF, Ints, Longs
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.rules.kernel import facts as loops
from graphtide.rules.kernel import layout
from graphtide.rules.kernel.fact_numbers import fact_numbers
from graphtide.rules.kernel.memory import expire_events, refill, remove_event, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.engine.results import TransactionTimes
    from graphtide.engine.transaction import Protected
    from graphtide.engine.watch import Query
    from graphtide.rules.matching.types import Match

MIN_CAPACITY = 16
LONG_AGO = -(1 << 62)


class Savepoint(NamedTuple):
    """A savepoint: which arrays were in use, the cells of their `meta`, and the time."""

    outgrown: int
    meta: Longs
    now: int


class RuleMemory:
    """The events that may still find partners. Changes are journaled from the first savepoint on.

    Arrays that became too small are retained with their journals while there are savepoints.
    """

    def __init__(self, plan: layout.PlanArrays) -> None:
        self.arrays = make_memory(plan)
        self._plan = plan
        self._outgrown: list[layout.MemoryArrays] = []
        self._now = LONG_AGO

    def held_ids(self) -> Iterator[Ints]:
        """The values of all places, of free ones too; there is no rollback to what is outgrown."""
        yield self.arrays.cells

    @property
    def live(self) -> int:
        """How many events are retained."""
        while not expire_events(self._plan, self.arrays, self._now):
            self.make_room(0)
        return int(self.arrays.meta[layout.LIVE])

    @property
    def peak(self) -> int:
        """The most events retained at once."""
        return int(self.arrays.meta[layout.PEAK])

    def events(self, condition: int) -> Iterator[tuple[list[int], list[int]]]:
        """Values of the variables and times of a condition's retained events, oldest first."""
        for place in self._places(condition):
            yield self.arrays.cells[place].tolist(), self.arrays.when[place].tolist()

    def _places(self, condition: int) -> Iterator[int]:
        place = int(self.arrays.ends[condition, 0]) if self.live else -1
        while place >= 0:
            yield place
            place = int(self.arrays.links[place, 0])

    def dump(self) -> dict[str, Any]:
        """The retained events by condition: how many, their values and times."""
        lists = [list(self._places(condition)) for condition in range(len(self._plan.retention))]
        places = np.array([place for own in lists for place in own], np.int64)
        newest, peak = self.arrays.meta[[layout.NEWEST, layout.PEAK]].tolist()
        return {
            "at": [self._now, newest, peak],
            "sizes": np.array([len(own) for own in lists], np.int64),
            "values": self.arrays.cells[places],
            "when": self.arrays.when[places],
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Retain saved events instead."""
        many = len(saved["values"])
        size = max(MIN_CAPACITY, 1 << many.bit_length())
        listed = make_memory(self._plan, size)
        listed.cells[:many], listed.when[:many] = saved["values"], saved["when"]
        last = np.cumsum(saved["sizes"]) - 1
        some = saved["sizes"] > 0
        listed.ends[some, 0] = (last - saved["sizes"] + 1)[some]
        listed.ends[some, 1] = last[some]
        listed.links[last[some], 0] = -1
        self._now, listed.meta[layout.NEWEST], listed.meta[layout.PEAK] = saved["at"]
        self.arrays = make_memory(self._plan, size)
        refill(self._plan, listed, self.arrays)

    def pass_time(self, now: int) -> None:
        """Move time on; events are evicted when the next one comes."""
        self._now = now

    def remove(self, order: int) -> None:
        """Remove an event, if it is here."""
        while not remove_event(self._plan, self.arrays, order):
            self.make_room(0)

    def make_room(self, what: int) -> None:
        """Double the capacity of the memory, or of the journal."""
        old = self.arrays
        if what == layout.MEMORY_FULL:
            larger = make_memory(self._plan, 2 * len(old.cells))
            refill(self._plan, old, larger)
            if old.meta[layout.JOURNALED] >= 0:
                self._outgrown.append(old)
                larger.meta[layout.JOURNALED] = 0
            self.arrays = larger
        else:
            journal = np.empty((2 * len(old.journal) + 64 * MIN_CAPACITY, 4), np.int64)
            journal[: len(old.journal)] = old.journal
            self.arrays = old._replace(journal=journal)

    def savepoint(self) -> Savepoint:
        """A savepoint; it is valid until `release`."""
        meta = self.arrays.meta
        meta[layout.JOURNALED] = max(meta[layout.JOURNALED], 0)
        return Savepoint(len(self._outgrown), meta.copy(), self._now)

    def restart(self) -> Savepoint:
        """Discard all savepoints; a new one."""
        if self._outgrown:
            self._outgrown.clear()
        meta = self.arrays.meta
        meta[layout.JOURNALED] = 0
        return Savepoint(0, meta.copy(), self._now)

    def rollback(self, to: Savepoint) -> None:
        """Restore a savepoint; later ones become invalid."""
        if to.outgrown < len(self._outgrown):
            self.arrays = self._outgrown[to.outgrown]
            del self._outgrown[to.outgrown :]
        undo(self.arrays, int(to.meta[layout.JOURNALED]))
        self.arrays.meta[:] = to.meta
        self._now = to.now


def make_memory(plan: layout.PlanArrays, places: int = MIN_CAPACITY) -> layout.MemoryArrays:
    """An empty memory for a number of events, a power of two."""
    indexes = len(plan.keys)
    links = np.full((places, 1 + indexes), -1, np.int32)
    links[:-1, 0] = np.arange(1, places)
    meta = np.zeros(5, np.int64)
    meta[layout.FREE], meta[layout.NEWEST], meta[layout.JOURNALED] = 0, LONG_AGO, -1
    return layout.MemoryArrays(
        cells=np.zeros((places, max(1, plan.variables)), np.int32),
        when=np.zeros((places, 4), np.int64),
        links=links,
        heads=np.full((indexes, places), -1, np.int32),
        tails=np.full((indexes, places), -1, np.int32),
        ends=np.full((len(plan.retention), 2), -1, np.int32),
        meta=meta,
        journal=np.empty((0, 4), np.int64),
    )


def make_work(plan: layout.PlanArrays, variables: int, depth: int) -> layout.WorkArrays:
    """The working arrays of a join."""
    many = len(plan.retention)
    return layout.WorkArrays(
        binding=np.zeros(variables, np.int32),
        at=np.zeros(many, np.int32),
        span=np.zeros(2 * many, np.int64),
        who=np.zeros(2 * many, np.int64),
        stack=np.zeros(depth + 1, np.int32),
    )


# --- FactMemory

FactsSavepoint = tuple[tuple["Ints", "TransactionTimes"], ...]
"""The changes that were to be applied."""


class FactMemory:
    """The facts of a rule, each with the transaction since which it holds, from a standing query.

    `columns` are the variables of a row: those shared with events, the key of the index, first.
    `protect` is called before anything changes.
    """

    def __init__(
        self,
        watch: Query,
        columns: Sequence[Var],
        shared: int,
        protect: Callable[[Protected], None] = lambda _: None,
    ) -> None:
        self._watch = watch
        self._protect = protect
        self._variables = tuple(columns)
        order = [DELTA_VALUES + watch.variables.index(v.name) for v in columns]
        self._columns = np.array(order, np.int32)
        self._shared = shared
        self.facts = make_facts(MIN_CAPACITY, len(columns))
        self._changes: deque[tuple[Ints, TransactionTimes]] = deque()
        self._journal: list[tuple[Ints, Longs]] = []
        """Rows that have changed, with the transactions since which they had held."""
        self._journaling = False
        self._tracked: int | None = None
        """How much was in the journal at `track`."""

    def held_ids(self) -> Iterator[Ints]:
        """The ids of the facts, of free places too, of changes to come, and of the journal."""
        yield self.facts.rows
        for net, _ in self._changes:
            yield net[:, DELTA_VALUES:]
        for rows, _ in self._journal:
            yield rows

    def dump(self, since: float) -> dict[str, Any]:
        """The facts that do not hold since before a transaction, and since which they do."""
        self.catch_up()
        many = int(self.facts.meta[layout.LIVE])
        listed = make_facts(max(many, 1), len(self._columns))
        loops.refill_facts(self.facts, listed, self._shared)
        recent = np.flatnonzero(listed.number[:many] >= since)
        return {"rows": listed.rows[recent], "since": listed.number[recent]}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take the facts of the query; all but saved ones hold since long ago."""
        self.catch_up()
        self.facts.number[:] = -1
        for row, since in zip(saved["rows"], saved["since"].tolist(), strict=True):
            self._set(self.facts, row, -1, 1, 0)
            self._set(self.facts, row, 1, 0, since)

    def catch_up(self) -> bool:
        """Apply the changes of the query; whether there were any.

        A row that was removed and added again is a new fact.
        """
        changed = self.looks_changed()
        if self._changes:
            self._protect(self)
        while self._changes:
            net, stamps = self._changes[0]
            self._make_room(len(net))
            if self._journaling:
                self._journal_rows(np.ascontiguousarray(net[:, self._columns]))
            loops.change_facts(self.facts, self._columns, self._shared, net, stamps.first)
            self._changes.popleft()
        return changed

    def looks_changed(self) -> bool:
        """Whether the query has changed."""
        drained = self._watch.drain()
        if drained:
            self._protect(self)
            self._changes += drained
        return bool(self._changes)

    def savepoint(self) -> FactsSavepoint:
        """What `roll_back` needs: changes are journaled from here on."""
        self._journal, self._journaling = [], True
        self._tracked = None if self._tracked is None else 0
        return tuple(self._changes)

    def roll_back(self, to: FactsSavepoint) -> None:
        """Go back to a savepoint."""
        rows, number, links, heads, meta = self.facts
        copies = rows.copy(), number.copy(), links.copy(), heads.copy(), meta.copy()
        facts = layout.FactArrays(*copies)
        for changed, numbers in reversed(self._journal):
            for row, since in zip(changed[::-1], numbers[::-1].tolist(), strict=True):
                if int(loops.fact_number(facts, row, self._shared)) != loops.ABSENT:
                    self._set(facts, row, -1, 1, 0)
                if since != loops.ABSENT:
                    self._set(facts, row, 1, 0, since)
        self.facts, self._journal, self._changes = facts, [], deque(to)

    def begin(self) -> None:
        """A cascade begins."""
        self._tracked = None

    def track(self) -> None:
        """Journal changes from here on."""
        self._journaling = True
        if self._tracked is None:
            self._tracked = len(self._journal)

    def _journal_rows(self, rows: Ints) -> None:
        """Journal rows that are to change, with the transactions since which they hold."""
        numbers = np.empty(len(rows), np.int64)
        fact_numbers(self.facts, rows, self._shared, numbers)
        self._journal.append((rows, numbers))

    def rollback(self) -> None:
        """The graph itself was rolled back: what held at `track` and still does held all along.

        The facts are those of the graph. Some may have come or gone before `track`, unnoticed.
        """
        self._protect(self)
        self.catch_up()
        for rows, numbers in reversed(self._journal[self._tracked :]):
            for at in range(len(rows) - 1, -1, -1):
                row, number = rows[at], int(numbers[at])
                held = number != loops.ABSENT
                if held and int(loops.fact_number(self.facts, row, self._shared)) != loops.ABSENT:
                    self._journal_rows(rows[at : at + 1])
                    self._set(self.facts, row, -1, 1, 0)
                    self._set(self.facts, row, 1, 0, number)
        self._tracked = None

    def _set(
        self, facts: layout.FactArrays, row: Ints, diff: int, before: int, number: int
    ) -> None:
        net = np.zeros((1, DELTA_VALUES + len(row)), np.int32)
        net[0, DIFF], net[0, COUNT_BEFORE] = diff, before
        net[0, self._columns] = row
        loops.change_facts(facts, self._columns, self._shared, net, number)

    def _make_room(self, more: int) -> None:
        needed = int(self.facts.meta[layout.LIVE]) + more
        if needed > len(self.facts.rows):
            larger = make_facts(2 * needed, len(self._columns))
            loops.refill_facts(self.facts, larger, self._shared)
            self.facts = larger

    def hold_for(self, match: Match) -> bool:
        """Whether the facts of a match have held since before its first event."""
        values = np.array([match.binding[v] for v in self._variables], np.int32)
        since = min(event.since for event in match.events.values())
        return bool(loops.ABSENT < loops.fact_number(self.facts, values, self._shared) < since)

    def hold_since(self, rows: Ints, since: Longs) -> Ints:
        """For each row of values, 1 if the fact has held since before a transaction, else 0."""
        hold = np.empty(len(rows), np.int32)
        loops.facts_hold(self.facts, rows, self._shared, since, hold)
        return hold

    def __len__(self) -> int:
        return int(self.facts.meta[layout.LIVE])


def make_facts(places: int, width: int) -> layout.FactArrays:
    """An empty table for some facts.

    >>> len(make_facts(5, 2).rows)
    8
    """
    size = max(MIN_CAPACITY // 2, 1 << (places - 1).bit_length())
    links = np.arange(1, size + 1, dtype=np.int32)
    links[-1] = -1
    meta = np.zeros(4, np.int64)
    meta[layout.FREE] = 0
    rows = np.zeros((size, width), np.int32)
    heads = np.full(2 * size, -1, np.int32)
    return layout.FactArrays(rows, np.zeros(size, np.int64), links, heads, meta)
