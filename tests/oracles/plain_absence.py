"""What NO EVENT means: PlainAbsence, matches and events one by one, in plain Python.

It defines what `graphtide.rules.matching.absence` does in compiled loops.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.rdf.holders import flat_ids
from graphtide.rules.kernel.layout import END
from graphtide.rules.matching import types as kinds
from graphtide.rules.matching.no_events import Denial, NoEvents, PendingMatch
from graphtide.rules.matching.types import MatchedEvent
from graphtide.rules.temporal import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.expiry import Retention
    from graphtide.rules.matching.memory import FactMemory
    from graphtide.rules.matching.types import Binding
    from graphtide.rules.model import EventCondition

RetainedEvent = tuple["MatchedEvent", "Binding"]
Undo = list["Callable[[], object]"]
"""Functions that undo changes, to be called last first."""


class EventMemory:
    """The events of one condition in order of arrival, with an index by some variables.

    While `undo` is a list, each change appends its undo functions first: these work for half a
    change, too.
    """

    def __init__(self, retention: Retention, key: tuple[Var, ...]) -> None:
        self.ticks = retention.ticks
        self.undo: Undo | None = None
        self._key = key
        self._orders: deque[tuple[int, int]] = deque()
        self._events: dict[int, list[RetainedEvent]] = {}
        self._index: dict[tuple[int, ...], dict[int, RetainedEvent]] = {}

    def add(self, event: MatchedEvent, binding: Binding) -> None:
        """Retain an event, if a partner can come after it."""
        if self.ticks is None:
            return
        entry, last = (event, binding), (event.span.end, event.order)
        if self.undo is not None:
            self.undo += [lambda: self._unlist(entry), lambda: self._unqueue(last)]
        self._orders.append(last)
        self._list(entry)

    def expire(self, now: int) -> None:
        """Evict the events that no partner at or after a time can need."""
        if self.ticks is None:
            return
        while self._orders and self._orders[0][0] + self.ticks < now:
            first = self._orders[0]
            if self.undo is not None:
                self.undo.append(lambda first=first: self._queue_again(first))  # type: ignore[misc]
            self._orders.popleft()
            self.remove(first[1])

    def remove(self, order: int) -> None:
        """Remove an event, if it is here; `expire` skips its entry later."""
        for entry in tuple(self._events.get(order, ())):
            if self.undo is not None:
                self.undo.append(lambda entry=entry: self._list(entry))  # type: ignore[misc]
            self._unlist(entry)

    def _queue_again(self, first: tuple[int, int]) -> None:
        if not self._orders or self._orders[0] is not first:
            self._orders.appendleft(first)

    def _unqueue(self, last: tuple[int, int]) -> None:
        if self._orders and self._orders[-1] is last:
            self._orders.pop()

    def _list(self, entry: RetainedEvent) -> None:
        same = self._events.setdefault(entry[0].order, [])
        if not any(each is entry for each in same):
            same.append(entry)
        self._index.setdefault(self._key_of(entry[1]), {})[id(entry)] = entry

    def _unlist(self, entry: RetainedEvent) -> None:
        order, key = entry[0].order, self._key_of(entry[1])
        left = [each for each in self._events.get(order, ()) if each is not entry]
        if left:
            self._events[order] = left
        else:
            self._events.pop(order, None)
        same = self._index.get(key, {})
        same.pop(id(entry), None)
        if not same:
            self._index.pop(key, None)

    def _key_of(self, binding: Binding) -> tuple[int, ...]:
        return tuple(binding[v] for v in self._key)

    def held_ids(self) -> Iterator[Longs]:
        """The ids of all events."""
        yield flat_ids(
            binding.values() for entries in self._events.values() for _, binding in entries
        )

    def dump(self) -> dict[str, Any]:
        """The events in order of arrival: times, and values of the condition's variables."""
        entries = sorted(self, key=lambda entry: entry[0].order)
        when = [(e.span.start, e.span.end, e.order, e.since) for e, _ in entries]
        values = [list(binding.values()) for _, binding in entries]
        return {
            "when": np.array(when, np.int64).reshape(-1, 4),
            "values": np.array(values, np.int32).reshape(len(values), -1 if values else 0),
        }

    def load(self, saved: Mapping[str, Any], variables: Sequence[Var]) -> None:
        """Retain saved events, too."""
        for when, row in zip(saved["when"].tolist(), saved["values"].tolist(), strict=True):
            start, end, order, since = when
            event = MatchedEvent(Span(start, end), order, since)
            self.add(event, dict(zip(variables, row, strict=True)))

    def __iter__(self) -> Iterator[RetainedEvent]:
        return (entry for entries in self._events.values() for entry in entries)

    def find(self, binding: Binding) -> Collection[RetainedEvent]:
        """The events that agree with a binding on the index variables."""
        found = self._index.get(self._key_of(binding))
        return () if found is None else found.values()

    def __len__(self) -> int:
        return sum(map(len, self._events.values()))


class PendingMatches:
    """Pending matches, indexed by the end of their wait, by their events, and by `known`.

    `known` has the variables that each NO EVENT shares with the match. While `undo` is a list, each
    change appends its undo function first: that works for half a change, too.
    """

    def __init__(self, known: Mapping[str, tuple[Var, ...]]) -> None:
        self._known = known
        self._numbers = count()
        self._waiting: dict[int, PendingMatch] = {}
        self._ends: list[tuple[float, int, int]] = []
        self._index: dict[tuple[str, tuple[int, ...]], dict[int, PendingMatch]] = {}
        self._parts: dict[int, set[int]] = {}
        self.undo: Undo | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PendingMatch]:
        return iter(self._waiting.values())

    def held_ids(self) -> Iterator[Longs]:
        """The ids of all matches."""
        yield flat_ids(waiting.row[1:] for waiting in self._waiting.values())
        yield flat_ids(waiting.match.binding.values() for waiting in self._waiting.values())

    def dump(self) -> dict[str, Any]:
        """All matches, oldest first."""
        waiting = [self._waiting[number] for number in sorted(self._waiting)]
        until = np.array([each.until for each in waiting], np.int64)
        return {"until": until, **kinds.dump_matches([each.match for each in waiting])}

    def add(self, waiting: PendingMatch) -> None:
        """Add a match."""
        number = next(self._numbers)
        if self.undo is not None:
            self.undo.append(lambda: self._take(number, waiting))
        self._put(number, waiting)

    def _put(self, number: int, waiting: PendingMatch) -> None:
        self._waiting[number] = waiting
        heappush(self._ends, (waiting.until, waiting.match.time, number))
        for key in self._keys(waiting.match.binding):
            self._index.setdefault(key, {})[number] = waiting
        for event in waiting.match.events.values():
            self._parts.setdefault(event.order, set()).add(number)

    def due(self, now: int) -> Iterator[PendingMatch]:
        """Remove and yield the matches whose wait is over, by its end, then by their times."""
        while self._ends and self._ends[0][0] < now:
            _, _, number = heappop(self._ends)
            if number in self._waiting:
                yield self._remove(number)

    def next_end(self) -> float:
        """The first time with which a wait ends."""
        while self._ends and self._ends[0][2] not in self._waiting:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else inf

    def like(self, name: str, binding: kinds.Binding) -> list[tuple[int, PendingMatch]]:
        """The matches that a forbidden event may cancel, by its values, with their numbers."""
        key = name, tuple(binding[v] for v in self._known[name])
        return list(self._index.get(key, {}).items())

    def drop(self, number: int) -> None:
        """Remove a match that was cancelled."""
        self._remove(number)

    def retract(self, order: int) -> None:
        """Remove the matches that an event is part of."""
        for number in sorted(self._parts.get(order, ())):
            self._remove(number)

    def _remove(self, number: int) -> PendingMatch:
        waiting = self._waiting[number]
        if self.undo is not None:  # its end may still be in the heap: a duplicate does no harm
            self.undo.append(lambda: self._put(number, waiting))
        self._take(number, waiting)
        return waiting

    def _take(self, number: int, waiting: PendingMatch) -> None:
        """Remove a match, as far as it is there."""
        self._waiting.pop(number, None)
        for key in self._keys(waiting.match.binding):
            same = self._index.get(key, {})
            same.pop(number, None)
            if not same:
                self._index.pop(key, None)
        for order in {event.order for event in waiting.match.events.values()}:
            numbers = self._parts.get(order, set())
            numbers.discard(number)
            if not numbers:
                self._parts.pop(order, None)

    def _keys(self, binding: kinds.Binding) -> Iterator[tuple[str, tuple[int, ...]]]:
        for name, variables in self._known.items():
            yield name, tuple(binding[v] for v in variables)


class PlainAbsence:
    """The pending matches of a rule, and its memory of forbidden events."""

    def __init__(self, no_events: NoEvents, facts: FactMemory | None) -> None:
        self.no_events = no_events
        self._facts = facts
        self._waiting = PendingMatches(no_events.known)
        self._undo: Undo | None = None
        self.denials: list[Denial] | None = None
        """Forbidden events since they were last read; None if nobody reads them."""
        self._memories = {
            c.name: EventMemory(no_events.retained[c.name], no_events.known[c.name])
            for c in no_events.conditions
        }

    def dump(self) -> dict[str, Any]:
        """The pending matches, and the forbidden events that are retained."""
        memories = {name: memory.dump() for name, memory in self._memories.items()}
        return {"waiting": self._waiting.dump(), "memories": memories}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state."""
        for condition in self.no_events.conditions:
            own = saved["memories"][condition.name]
            self._memories[condition.name].load(own, condition.variables)
        waiting = saved["waiting"]
        found = kinds.saved_matches(waiting)
        for place, until in enumerate(waiting["until"].tolist()):
            match, row = self.no_events.shape.match(found, place), found.rows[place].tolist()
            spans = tuple(found.spans[place].tolist())
            self._waiting.add(PendingMatch(match, tuple(row), spans, until))

    def first_since(self) -> float:
        """The least number of transactions before an event of a pending match."""
        return min((e.since for w in self._waiting for e in w.match.events.values()), default=inf)

    def events(self, condition: EventCondition) -> Iterator[Denial]:
        """The retained events that a condition forbids, oldest first."""
        return (Denial(condition, *entry) for entry in self._memories[condition.name])

    def pending(self) -> list[PendingMatch]:
        """The matches that wait."""
        return [*self._waiting]

    @property
    def retained(self) -> int:
        """How many forbidden events and pending matches are retained."""
        return sum(map(len, self._memories.values())) + len(self._waiting)

    def held_ids(self) -> Iterator[Longs]:
        """The ids of pending matches and forbidden events, and of those that nobody has read."""
        yield from self._waiting.held_ids()
        yield flat_ids(denial.binding.values() for denial in self.denials or ())
        for memory in self._memories.values():
            yield from memory.held_ids()

    def savepoint(self) -> int:
        """A savepoint; changes are journaled from here on."""
        if self._undo is None:
            self._journal_in([])
        return len(self._undo or ())

    def rollback(self, to: int) -> None:
        """Restore a savepoint; if that is interrupted, it can be done again."""
        undo = [] if self._undo is None else self._undo
        self._waiting.undo = None
        for memory in self._memories.values():
            memory.undo = None
        while len(undo) > to:
            undo[-1]()
            undo.pop()
        self._journal_in(undo)

    def restart(self) -> int:
        """Discard all savepoints; a new one."""
        self._journal_in([])
        return 0

    def _journal_in(self, undo: Undo | None) -> None:
        self._undo = self._waiting.undo = undo
        for memory in self._memories.values():
            memory.undo = undo

    def next_deadline(self) -> float:
        """The first time with which the wait of a match ends."""
        return self._waiting.next_end()

    def pass_time(self, now: int) -> None:
        """Nothing of an earlier time comes any more."""
        for memory in self._memories.values():
            memory.expire(now)

    def advance(self, now: int, nothing: kinds.Matches) -> kinds.Matches:
        """Move time on without an event; the matches whose wait is over.

        What they cause happens at the time before.
        """
        self.pass_time(now - 1)
        due = self._due(now)
        return _columns([(0, waiting) for waiting in due], nothing)

    def retract(self, order: int) -> None:
        """Remove an event, and the matches that it is part of."""
        for memory in self._memories.values():
            memory.remove(order)
        self._waiting.retract(order)

    def take(self, hits: Mapping[int, Ints], events: Longs, found: kinds.Matches) -> kinds.Matches:
        """Take in events and the matches that they complete; the matches that fire, and when."""
        denials: dict[int, list[Denial]] = {}
        for event, denial in self.no_events.denials(self.no_events.hits(hits), events):
            denials.setdefault(event, []).append(denial)
        candidates: dict[int, list[int]] = {}
        for place, event in enumerate(found.rows[:, 0].tolist()):
            candidates.setdefault(event, []).append(place)
        fired: list[tuple[int, PendingMatch]] = []
        ends, passed = events[:, END], None
        listed = ends.tolist()
        for event in sorted(denials.keys() | candidates.keys()):
            if listed[event] != passed:  # at one time nothing more ends
                passed = listed[event]
                fired += self._passed(ends, passed)
            if event in denials:
                self._deny(denials[event])
            for place in candidates.get(event, ()):
                waiting = self._decided(found, place)
                if waiting is not None:
                    fired.append((2 * event + 1, waiting))
        fired += self._passed(ends, int(ends[-1]))
        return _columns(fired, found)

    def _passed(self, ends: Longs, now: int) -> list[tuple[int, PendingMatch]]:
        """The matches whose wait is over before now, each at the first event after that."""
        for memory in self._memories.values():
            memory.expire(now)
        return [
            (2 * int(np.searchsorted(ends, waiting.until, side="right")), waiting)
            for waiting in self._due(now)
        ]

    def _due(self, now: int) -> list[PendingMatch]:
        return [waiting for waiting in self._waiting.due(now) if self._still_holds(waiting)]

    def _still_holds(self, waiting: PendingMatch) -> bool:
        """Whether the facts of a pending match still hold."""
        return self._facts is None or self._facts.hold_for(waiting.match)

    def _deny(self, denials: list[Denial]) -> None:
        """Forbidden events came: cancel matches, and remember the events."""
        for denial in denials:
            name = denial.condition.name
            for at, waiting in self._waiting.like(name, denial.binding):
                if self.no_events.forbids(denial, waiting.match):
                    self._waiting.drop(at)
            self._memories[name].add(denial.event, denial.binding)
            if self.denials is not None:
                self.denials.append(denial)

    def _decided(self, found: kinds.Matches, place: int) -> PendingMatch | None:
        """The match, if no forbidden event can happen any more; else it is cancelled or pending."""
        match, no_events = self.no_events.shape.match(found, place), self.no_events
        until = -inf
        for condition in no_events.conditions:
            memory = self._memories[condition.name]
            past = memory.find(match.binding)
            if past and any(no_events.forbids(Denial(condition, *each), match) for each in past):
                return None
            bounds = no_events.bounds[condition.name]
            latest = min(
                (event.span.end + bounds[name, condition.name].high
                 for name, event in match.events.items() if (name, condition.name) in bounds),
                default=inf,
            )  # fmt: skip
            if latest < inf:
                until = max(until, latest)
        row = tuple(found.rows[place].tolist())
        waiting = PendingMatch(match, row, tuple(found.spans[place].tolist()), until)
        if until < match.time:
            return waiting
        self._waiting.add(waiting)
        return None


def _columns(fired: list[tuple[int, PendingMatch]], like: kinds.Matches) -> kinds.Matches:
    if not fired:
        return like.chosen(np.empty(0, np.int64))
    return kinds.Matches(
        np.array([waiting.row for _, waiting in fired], np.int32),
        np.array([waiting.spans for _, waiting in fired], np.int64),
        np.array([moment for moment, _ in fired], np.int64),
        np.array([max(waiting.until, waiting.match.time) for _, waiting in fired], np.int64),
    )
