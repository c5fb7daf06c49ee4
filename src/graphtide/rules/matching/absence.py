"""Absence: the matches of a rule that wait until a NO EVENT can no longer happen, in arrays."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphtide.kernel.batch import longer
from graphtide.limits import allowance
from graphtide.rdf.holders import flat_ids
from graphtide.rules import temporal
from graphtide.rules.kernel import absence as loops
from graphtide.rules.kernel import layout
from graphtide.rules.kernel.types import direct
from graphtide.rules.matching import memory as memories
from graphtide.rules.matching import types as kinds
from graphtide.rules.matching.no_events import Denial, NoEvents, PendingMatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.model import EventCondition


class AbsenceSavepoint(NamedTuple):
    """A savepoint: of the forbidden events, which arrays were in use, and their journal."""

    memory: memories.Savepoint
    outgrown: int
    journaled: int


class Absence:
    """The pending matches of a rule, and its memory of forbidden events.

    Arrays that became too small are retained with their journals while there are savepoints.
    """

    def __init__(
        self, no_events: NoEvents, facts: memories.FactMemory | None, fact_columns: Ints
    ) -> None:
        self.no_events = no_events
        self.denials: list[Denial] | None = None
        """Forbidden events since they were last read; None if nobody reads them."""
        self._facts, self._fact_columns = facts, fact_columns
        self._plan, depth = _plan_of(no_events)
        self._waits = _waits_of(no_events)
        self._memory = memories.RuleMemory(self._plan)
        self._pending = self._arrays(memories.MIN_CAPACITY)
        self._outgrown: list[layout.PendingArrays] = []
        self._savepoints: list[AbsenceSavepoint] = []
        times = np.zeros(2 * self._waits.shape[1] + 2, np.int64)
        unused = np.zeros(0, np.int32)
        stack = np.zeros(1 + depth, np.int32)
        self._work = layout.WorkArrays(unused, unused, times, times[:0], stack)
        self._out = np.empty(memories.MIN_CAPACITY, np.int64)
        self._state = np.zeros(8, np.int64)
        self._loop: Callable[..., None] | None = None
        self._next_end: Callable[..., int] | None = None

    def _arrays(self, places: int) -> layout.PendingArrays:
        """Empty arrays for a number of matches, a power of two."""
        conditions, events = self._waits.shape
        meta = np.zeros(5, np.int64)
        meta[layout.JOURNALED] = -1
        return layout.PendingArrays(
            rows=np.empty((places, 1 + len(self.no_events.shape.variables)), np.int32),
            spans=np.empty((places, 4 * events), np.int64),
            ends=np.empty((places, 2), np.int64),
            links=np.empty((places, 2 * conditions), np.int32),
            heads=np.full((conditions, places), -1, np.int32),
            alive=np.zeros(places, np.int32),
            heap=np.empty((2 * places, 3), np.int64),
            meta=meta,
            journal=np.empty(2 * places, np.int64),  # each place is taken once, and left once
        )

    def _make_room(self, more: int) -> None:
        """Have room for some more matches: those that wait go to other arrays if need be."""
        old = self._pending
        if old.meta[layout.FREE] + more <= len(old.rows):
            return
        needed = 2 * (int(old.meta[layout.LIVE]) + more)
        larger = self._arrays(max(memories.MIN_CAPACITY, 1 << needed.bit_length()))
        loops.refill_matches(self._plan, old, larger)
        if old.meta[layout.JOURNALED] >= 0:
            self._outgrown.append(old)
            larger.meta[layout.JOURNALED] = 0
        self._pending = larger

    # --- state ---

    def _places(self) -> Longs:
        """The places of the matches that wait, oldest first."""
        return np.flatnonzero(self._pending.alive[: self._pending.meta[layout.FREE]])

    def dump(self) -> dict[str, Any]:
        """The pending matches, and the forbidden events that are retained."""
        places, pending = self._places(), self._pending
        waiting = {
            "until": pending.ends[places, loops.UNTIL],
            "rows": pending.rows[places, 1:],
            "spans": pending.spans[places],
            "times": pending.ends[places, loops.TIME],
        }
        saved, begin, events = self._memory.dump(), 0, {}
        for condition, size in zip(self.no_events.conditions, saved["sizes"].tolist(), strict=True):
            columns = [self.no_events.number[v] for v in condition.variables]
            own, begin = slice(begin, begin + size), begin + size
            events[condition.name] = {
                "when": saved["when"][own],
                "values": saved["values"][own][:, columns],
            }
        return {"waiting": waiting, "memories": events}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state."""
        values, when = [], []
        for condition in self.no_events.conditions:
            own = saved["memories"][condition.name]
            rows = np.zeros((len(own["when"]), len(self.no_events.number)), np.int32)
            if len(rows):
                rows[:, [self.no_events.number[v] for v in condition.variables]] = own["values"]
            values.append(rows)
            when.append(own["when"])
        self._memory.load({
            "at": [memories.LONG_AGO, memories.LONG_AGO, 0],
            "sizes": np.array([len(each) for each in when], np.int64),
            "values": np.concatenate(values),
            "when": np.concatenate(when),
        })  # fmt: skip
        waiting, many = saved["waiting"], len(saved["waiting"]["times"])
        size = max(memories.MIN_CAPACITY, 1 << many.bit_length())
        listed, self._pending = self._arrays(size), self._arrays(size)
        if many:
            found = kinds.saved_matches(waiting)
            listed.rows[:many], listed.spans[:many] = found.rows, found.spans
            listed.ends[:many] = np.column_stack([waiting["until"], found.times])
            listed.alive[:many], listed.meta[layout.FREE] = 1, many
            loops.refill_matches(self._plan, listed, self._pending)

    def first_since(self) -> float:
        """The least number of transactions before an event of a pending match."""
        since = self._since(self._pending.spans[self._places()])
        return int(since.min()) if len(since) else inf

    def _since(self, spans: Longs) -> Longs:
        """For each match, the least number of transactions before one of its events."""
        least: Longs = spans[:, spans.shape[1] // 2 + 1 :: 2].min(axis=1)
        return least

    def events(self, condition: EventCondition) -> Iterator[Denial]:
        """The retained events that a condition forbids, oldest first."""
        number = self.no_events.conditions.index(condition)
        for values, event in self._memory.events(number):
            yield self.no_events.denial(number, values, event)

    def pending(self) -> list[PendingMatch]:
        """The matches that wait."""
        places, pending = self._places(), self._pending
        until, times = pending.ends[places].T
        found = kinds.Matches(pending.rows[places], pending.spans[places], times, times)
        return [
            PendingMatch(
                self.no_events.shape.match(found, at), tuple(found.rows[at].tolist()),
                tuple(found.spans[at].tolist()), int(until[at]),
            )
            for at in range(len(found))
        ]  # fmt: skip

    @property
    def retained(self) -> int:
        """How many forbidden events and pending matches are retained."""
        return self._memory.live + int(self._pending.meta[layout.LIVE])

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of pending matches and forbidden events, and of those that nobody has read."""
        yield self._pending.rows[self._places(), 1:]
        yield flat_ids(denial.binding.values() for denial in self.denials or ())
        yield from self._memory.held_ids()

    def savepoint(self) -> int:
        """A savepoint; changes are journaled from here on."""
        meta = self._pending.meta
        meta[layout.JOURNALED] = max(meta[layout.JOURNALED], 0)
        memory = self._memory.savepoint()
        saved = AbsenceSavepoint(memory, len(self._outgrown), int(meta[layout.JOURNALED]))
        self._savepoints.append(saved)
        return len(self._savepoints) - 1

    def rollback(self, to: int) -> None:
        """Restore a savepoint; later ones become invalid."""
        memory, outgrown, journaled = self._savepoints[to]
        del self._savepoints[to + 1 :]
        if outgrown < len(self._outgrown):
            self._pending = self._outgrown[outgrown]
            del self._outgrown[outgrown:]
        loops.undo_matches(self._plan, self._pending, journaled)
        self._memory.rollback(memory)

    def restart(self) -> int:
        """Discard all savepoints; a new one."""
        self._outgrown.clear()
        self._pending.meta[layout.JOURNALED] = 0
        self._savepoints = [AbsenceSavepoint(self._memory.restart(), 0, 0)]
        return 0

    # --- events and time ---

    def next_deadline(self) -> float:
        """The first time with which the wait of a match ends."""
        if not self._pending.meta[layout.LIVE]:
            return inf
        if self._next_end is None:
            self._next_end = direct(loops.next_end, self._pending)
        return self._next_end(self._pending)

    def pass_time(self, now: int) -> None:
        """Nothing of an earlier time comes any more."""
        self._memory.pass_time(now)

    def advance(self, now: int, nothing: kinds.Matches) -> kinds.Matches:
        """Move time on without an event; the matches whose wait is over."""
        self._memory.pass_time(now - 1)
        if self.next_deadline() >= now:
            return nothing
        end = np.array([[now, now, layout.END_OF_TIME, 0]])
        fired = self._take(self.no_events.hits({}), end, nothing)
        return self._fired(fired, nothing, np.empty(0, np.int64))

    def retract(self, order: int) -> None:
        """Remove an event, and the matches that it is part of."""
        self._memory.remove(order)
        loops.retract_matches(self._plan, self._pending, order)

    def take(self, hits: Mapping[int, Ints], events: Longs, found: kinds.Matches) -> kinds.Matches:
        """Take in events and the matches that they complete; the matches that fire, and when."""
        rows = self.no_events.hits(hits)
        if self.denials is not None:
            self.denials += [denial for _, denial in self.no_events.denials(rows, events)]
        return self._fired(self._take(rows, events, found), found, events[:, layout.END])

    def _take(self, hits: Ints, events: Longs, found: kinds.Matches) -> Longs:
        """What fires: the place of a match that has waited, or -1 - the index of a new one."""
        self._make_room(len(found))
        state = self._state
        state[:] = 0
        state[layout.LEFT] = layout.STEPS
        while True:
            given = (
                self._plan, self._waits, self._memory.arrays, self._pending, self._work, hits,
                found.rows, found.spans, found.times, events, self._out, state,
            )  # fmt: skip
            if self._loop is None:
                self._loop = direct(loops.take_batch, *given)
            self._loop(*given)
            room, state[layout.ROOM] = int(state[layout.ROOM]), layout.ENOUGH
            if room == layout.ENOUGH:
                return self._out[: state[layout.WRITTEN]]
            if room == layout.OUTPUT_FULL:
                self._out = longer(self._out)
            elif room == layout.TIME:
                allowance().check_time()
                state[layout.LEFT] = layout.STEPS
            elif room in (layout.WAITING, layout.RETAINED):
                allowance().check_time()
                state[loops.ANSWER] = self._forbids(room, hits, events, found)
            else:
                self._memory.make_room(room)

    def _forbids(self, room: int, hits: Ints, events: Longs, found: kinds.Matches) -> bool:
        """Whether an event forbids a match, where the loop has stopped because values decide."""
        state, pending, retained = self._state, self._pending, self._memory.arrays
        place, no_events = int(state[loops.ASKED]) - 1, self.no_events
        if room == layout.WAITING:
            hit = hits[state[layout.POSITION]].tolist()
            condition, values = hit[layout.CONDITION], hit[layout.HIT_VALUES :]
            event = events[hit[layout.EVENT]]
            waiting = kinds.Matches(
                pending.rows[[place]], pending.spans[[place]], *pending.ends[[place]].T
            )
            match = no_events.shape.match(waiting, 0)
        else:
            condition, values = int(state[loops.FORBIDDING]), retained.cells[place].tolist()
            event = retained.when[place]
            match = no_events.shape.match(found, int(state[loops.MATCHED]))
        return no_events.forbids(no_events.denial(condition, values, event.tolist()), match)

    def _fired(self, fired: Longs, found: kinds.Matches, ends: Longs) -> kinds.Matches:
        """Matches that fire, those that have waited at the first event after that."""
        if not len(fired):
            return found.chosen(fired) if len(found.rows) else found
        waited = fired >= 0
        places, new = fired[waited], found.chosen(-1 - fired[~waited])
        rows, spans = self._pending.rows[places], self._pending.spans[places]
        until = self._pending.ends[places, loops.UNTIL]
        moments = 2 * np.searchsorted(ends, until, side="right")
        if len(new):
            order = np.empty(len(fired), np.int64)
            order[waited], order[~waited] = np.arange(len(rows)), np.arange(len(rows), len(fired))
            rows, spans = np.concatenate([rows, new.rows]), np.concatenate([spans, new.spans])
            until = np.concatenate([until, new.times])
            moments = np.concatenate([moments, new.moments])
            every = kinds.Matches(rows, spans, moments, until).chosen(order)
        else:
            every = kinds.Matches(rows, spans, moments, until)
        if self._facts is None:
            return every
        columns = np.ascontiguousarray(every.rows[:, 1 + self._fact_columns])
        hold = self._facts.hold_since(columns, self._since(every.spans))
        return every.chosen(np.flatnonzero((hold > 0) | ~waited))


def _plan_of(no_events: NoEvents) -> tuple[layout.PlanArrays, int]:
    """The arrays of the memory of forbidden events with the tests, and the length of the longest.

    The events of a match are numbered as in its rule, a forbidden one comes last.
    """
    conditions, rule = no_events.conditions, no_events.shape.rule
    place = {c.name: at for at, c in enumerate(rule.positive)}
    code = [
        temporal.instructions(no_events.tests[c.name], {**place, c.name: len(place)})
        for c in conditions
    ]
    ends = np.cumsum([0, *map(len, code)])
    keys = [[no_events.number[v] for v in no_events.known[c.name]] for c in conditions]
    ticks = [layout.whole_ticks(no_events.retained[c.name].ticks) for c in conditions]
    none = np.zeros(0, np.int32)
    plan = layout.PlanArrays(
        steps=layout.table([]),
        lookups=layout.table([]),
        keys=layout.lists(keys),
        indexes=layout.lists([[at] for at in range(len(conditions))]),
        bound=layout.table([]),
        ready=np.zeros((0, 0, 2), np.int32),
        tests=none,
        parts=np.column_stack([ends[:-1], ends[1:]]).astype(np.int32),
        code=np.array([step for part in code for step in part], np.int64).reshape(-1, 5),
        retention=np.array(ticks, np.int64),
        fact_key=none,
        fact_columns=none,
        variables=len(no_events.number),
    )
    return plan, max(map(len, code), default=0)


def _waits_of(no_events: NoEvents) -> Longs:
    """By NO EVENT and event: the ticks after the event up to which the forbidden one may come."""
    names = [condition.name for condition in no_events.shape.rule.positive]
    ticks = [
        [
            layout.whole_ticks(no_events.bounds[c.name][name, c.name].high)
            if (name, c.name) in no_events.bounds[c.name]
            else layout.FOREVER
            for name in names
        ]
        for c in no_events.conditions
    ]
    return np.array(ticks, np.int64)
