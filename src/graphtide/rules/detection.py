"""Detection: the patterns of a program, and their complex events.

A complex event is an event for the rules. It comes right after the event that completes it, or when
a timer completes it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.engine.events import EventBatch, concat_events, typed_events
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import AnyDetector, MatchColumns, SavedDetector, make_detector
from graphtide.patterns.tokens import NEVER, PatternMatch
from graphtide.rdf.holders import flat_ids
from graphtide.rules.firing import MAX_LISTED
from graphtide.rules.matching.types import TypeIndex, TypeMatcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.kernel.tokens.token_table import SavedTokens
    from graphtide.lang.tide.ast import PatternDeclaration
    from graphtide.lang.tide.program import Program
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.compile import Compiler
    from graphtide.rules.model import EventType


# --- TokenHistory
#
# Tokens are saved now and then, together with the input since: a rollback loads the saved tokens
# and replays the input. So a savepoint costs nothing, however many tokens there are, and saving
# costs little for each event, as it is done once for many.

MIN_HISTORY = 1024
"""Most events that are replayed if there are few tokens; else it is two for each token."""


class TokenHistory:
    """A detector with its saved tokens, and the input since they were saved."""

    def __init__(self, detector: AnyDetector) -> None:
        self.detector = detector
        self._saved: SavedTokens | SavedDetector | None = None
        self._now: int | None = None
        self._since: list[tuple[Ints, Ints, Longs] | int] = []
        self._events = 0
        self._most = 0

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of the tokens, of the saved ones, and of the input since."""
        yield from self.detector.held_ids()
        if self._saved is not None:
            yield from self._saved.held_ids()
        for each in self._since:
            if not isinstance(each, int):
                yield each[1]

    def feed(self, types: Ints, values: Ints, times: Longs) -> MatchColumns:
        """Feed events to the detector."""
        if self._saved is not None:
            self._since.append((types, values, times))
            self._events += len(times)
        return self.detector.feed(types, values, times)

    def advance(self, to: int) -> list[PatternMatch]:
        """Fire the timers before `to`; events may still come at `to - 1`."""
        if self._saved is not None:
            self._since.append(to)
            self._events += 1
        return self._advance(to)

    def _advance(self, to: int) -> list[PatternMatch]:
        now = self.detector.now
        found = self.detector.advance(to)
        self.detector.now = to - 1 if now is None else max(now, to - 1)
        return found

    def begin(self) -> None:
        """Discard savepoints; a history that became too long is dropped."""
        if self._events > self._most:
            self._saved, self._events = None, 0
            self._since.clear()

    def savepoint(self) -> int:
        """A savepoint, valid until `begin`."""
        if self._saved is None:
            self._saved, self._now = self.detector.save(), self.detector.now
            self._most = max(MIN_HISTORY, 2 * len(self._saved.tokens))
        return len(self._since)

    def rollback(self, to: int) -> None:
        """Restore a savepoint."""
        assert self._saved is not None  # noqa: S101 - there is a savepoint
        self.detector.load(self._saved)  # type: ignore[arg-type] # it is the detector's own
        self.detector.now = self._now
        del self._since[to:]
        for each in self._since:
            if isinstance(each, int):
                self._advance(each)
            else:
                self.detector.feed(*each)


# --- PatternRunner


class PatternSavepoint(NamedTuple):
    """A savepoint of the tokens of a pattern, and its number of complex events then."""

    history: int
    total: int


@dataclass(frozen=True, slots=True)
class ComplexEvent:
    """A match of a pattern: its parameters, the time of its first event, and its own time."""

    pattern: str
    values: dict[str, Term]
    start: int
    time: int


class PatternRunner:
    """The detector of a pattern, and its last complex events."""

    def __init__(self, detector: AnyDetector, type_: EventType) -> None:
        self.detector = detector
        self.total = 0
        self._history = TokenHistory(detector)
        self._reads_all = detector.automaton.context != "CHRONICLE"
        self._types_read = {letter.type for letter in detector.automaton.letters()}
        self.found: deque[tuple[tuple[int, ...], int, int]] = deque(maxlen=MAX_LISTED)
        self.type_id = type_.id
        self._name, self._parameters = type_.name, type_.parameters

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of the tokens, and of the retained complex events."""
        yield from self._history.held_ids()
        yield flat_ids(values for values, _, _ in self.found)

    def pass_time(self, to: int) -> list[PatternMatch]:
        """The complex events that timers before `to` complete."""
        now = self.detector.now
        if now is not None and to <= now:
            return []
        found = self._history.advance(to)
        for each in found:
            self._append(each.values, each.start, each.time)
        return found

    def feed(self, types: Ints, values: Ints, times: Longs) -> Iterator[tuple[list[int], int, int]]:
        """The complex events that some events complete: values, time, and index of the event."""
        found = self._history.feed(types, values, times)
        columns = (found.values, found.start, found.time, found.at)
        for row, start, time, at in zip(*(column.tolist() for column in columns), strict=True):
            self._append(row, start, time)
            yield row, time, at

    def reads(self, types: Iterable[int]) -> bool:
        """Whether events of some types can change the state of the pattern."""
        return self._reads_all or not self._types_read.isdisjoint(types)

    def begin(self) -> None:
        """Discard savepoints."""
        self._history.begin()

    def savepoint(self) -> PatternSavepoint:
        """A savepoint, valid until `begin`."""
        return PatternSavepoint(self._history.savepoint(), self.total)

    def rollback(self, to: PatternSavepoint) -> None:
        """Restore a savepoint, and remove the complex events since."""
        self._history.rollback(to.history)
        for _ in range(min(self.total - to.total, len(self.found))):
            self.found.pop()
        self.total = to.total

    def _append(self, values: Sequence[int], start: int, time: int) -> None:
        self.total += 1
        self.found.append((tuple(values), start, time))

    def events(self, terms: TermDictionary, last: int | None = None) -> list[ComplexEvent]:
        """The retained complex events of the pattern, or the `last` ones, oldest first."""
        names = [v.name for v in self._parameters]
        first = 0 if last is None else max(0, len(self.found) - last)
        return [
            ComplexEvent(
                self._name,
                {n: terms.decode(i) for n, i in zip(names, values, strict=True) if i},
                start,
                time,
            )
            for values, start, time in islice(self.found, first, None)
        ]


class CompleteEvent(NamedTuple):
    """A complex event: its place among other events, its time, type and values.

    Twice the index of an event is the place before it, one more the place after it.
    """

    place: int
    time: int
    pattern: int
    type: int
    values: Sequence[int]

    @property
    def order(self) -> tuple[int, int, int]:
        """By place, then by time, then by pattern."""
        return self.place, self.time, self.pattern


def complex_batch(events: Sequence[CompleteEvent]) -> EventBatch:
    """Complex events as a batch."""
    return typed_events(
        [each.type for each in events],
        [each.values for each in events],
        [each.time for each in events],
    )


class Detection:
    """All patterns of a program.

    `types` are the events that it declares, by name; `complex_types` those of its patterns.
    """

    def __init__(
        self,
        patterns: Sequence[PatternDeclaration],
        types: Mapping[str, EventType],
        complex_types: Mapping[str, EventType],
        terms: TermDictionary,
        tick_ms: int,
    ) -> None:
        numbers = {name: number for number, name in enumerate(types)}
        self._terms = terms
        self._types = TypeIndex()
        for type_ in types.values():
            self._types.add(TypeMatcher(type_, terms))
        self._width = max((len(type_.parameters) for type_ in types.values()), default=0)
        self.patterns = {
            pattern.name: PatternRunner(
                make_detector(
                    compile_pattern(pattern, numbers, terms.encode, tick_ms), self._texts
                ),
                complex_types[pattern.name],
            )
            for pattern in patterns
        }

    def _texts(self, row: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self._terms.text(i) if i else "" for i in row)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids that the patterns hold; constants are pinned."""
        for each in self.patterns.values():
            yield from each.held_ids()

    def next_time(self) -> int:
        """The time of the next timer, at which a token may be completed or dropped."""
        return min((each.detector.next_time() for each in self.patterns.values()), default=NEVER)

    def pass_time(self, to: int) -> list[CompleteEvent]:
        """The complex events that timers before `to` complete."""
        found = [
            CompleteEvent(0, each.time, number, detected.type_id, each.values)
            for number, detected in enumerate(self.patterns.values())
            for each in detected.pass_time(to)
        ]
        return sorted(found, key=lambda each: each.order)

    def begin(self) -> None:
        """A cascade begins: discard savepoints."""
        for each in self.patterns.values():
            each.begin()

    def savepoint(self) -> list[PatternSavepoint]:
        """A savepoint of each pattern."""
        return [each.savepoint() for each in self.patterns.values()]

    def rollback(self, to: list[PatternSavepoint]) -> None:
        """Restore savepoints."""
        for each, savepoint in zip(self.patterns.values(), to, strict=True):
            each.rollback(savepoint)

    def expand(self, events: EventBatch) -> EventBatch:
        """Events with the complex events that they complete, each in its place."""
        more = self._of_one(events) if len(events.ends) == 1 else self._of_many(events)
        return _inserted(events, more) if more else events

    def expand_one(self, event: EventBatch) -> list[EventBatch]:
        """An event and the complex events that it completes, one after the other."""
        made = [(each.place, complex_batch([each])) for each in self._of_one(event)]
        before = [batch for place, batch in made if not place]
        return [*before, event, *(batch for place, batch in made if place)]

    def _of_many(self, events: EventBatch) -> list[CompleteEvent]:
        """The complex events of several events, in order."""
        hits = self._types.hits(events)
        places, types, values = self._seen(hits, together=events.simultaneous)
        times = events.ends[places]
        more: list[CompleteEvent] = []
        for number, detected in enumerate(self.patterns.values()):
            for row, time, at in detected.feed(types, values, times):
                after = 2 * int(places[at]) + 1
                if time < times[at]:
                    after = 2 * int(np.searchsorted(events.ends, time, side="right"))
                more.append(CompleteEvent(after, time, number, detected.type_id, row))
        if len(events):
            for each in self.pass_time(int(events.ends[-1])):
                after = 2 * int(np.searchsorted(events.ends, each.time, side="right"))
                more.append(each._replace(place=after, pattern=len(self.patterns)))
        return sorted(more, key=lambda each: each.order)

    def _of_one(self, event: EventBatch) -> list[CompleteEvent]:
        """The complex events of one event; only patterns that read its types are fed."""
        hits, now = self._types.hits(event), int(event.ends[0])
        more: list[CompleteEvent] = []
        if hits and any(each.reads(hits) for each in self.patterns.values()):
            _, types, values = self._seen(hits, together=False)
            times = np.full(len(types), now, np.int64)
            for number, each in enumerate(self.patterns.values()):
                if each.reads(hits):
                    for row, time, _ in each.feed(types, values, times):
                        place = int(time == now)
                        more.append(CompleteEvent(place, time, number, each.type_id, row))
        if self.next_time() < now:
            last = len(self.patterns)
            more += [each._replace(pattern=last) for each in self.pass_time(now)]
        return sorted(more, key=lambda each: each.order) if len(more) > 1 else more

    def _seen(self, found: dict[int, Ints], *, together: bool) -> tuple[Longs, Ints, Ints]:
        """The input of patterns: of each event its types in order, with their values.

        Simultaneous events have no order of their own: they are ordered as if they were one.
        """
        parts = []
        for number, hits in found.items():
            rows = np.zeros((len(hits), 2 + self._width), np.int32)
            rows[:, 0], rows[:, 1] = hits[:, 0], number
            rows[:, 2 : 1 + hits.shape[1]] = hits[:, 1:]
            parts.append(rows)
        if not parts:
            empty = np.zeros((0, 2 + self._width), np.int32)
            return empty[:, 0].astype(np.int64), empty[:, 1], empty[:, 2:]
        seen = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if len(seen) > 1:
            seen = self._in_order(seen, together=together)
        return seen[:, 0].astype(np.int64), seen[:, 1], np.ascontiguousarray(seen[:, 2:])

    def _in_order(self, rows: Ints, *, together: bool) -> Ints:
        """Rows by event, then by type, then by the texts of their values."""
        event = np.zeros_like(rows[:, 0]) if together else rows[:, 0]
        order = np.lexsort((rows[:, 1], event))
        rows, event = rows[order], event[order]
        begins = np.ones(len(rows), np.bool_)
        begins[1:] = (event[1:] != event[:-1]) | (rows[1:, 1] != rows[:-1, 1])
        starts = [*np.flatnonzero(begins).tolist(), len(rows)]
        if len(starts) <= len(rows):
            text = self._terms.text
            for begin, end in pairwise(starts):
                if end - begin > 1:
                    own = rows[begin:end].tolist()
                    own.sort(key=lambda row: [text(i) if i else "" for i in row[2:]])
                    rows[begin:end] = own
        return rows


def detect(
    program: Program, compiler: Compiler, terms: TermDictionary, tick_ms: int
) -> Detection | None:
    """The patterns of a program, with the events that it declares; None if it has no pattern."""
    if not program.patterns:
        return None
    types = {event.name: compiler.type_of(event) for event in program.events}
    complex_types = {pattern.name: compiler.complex_type(pattern) for pattern in program.patterns}
    return Detection(program.patterns, types, complex_types, terms, tick_ms)


def _inserted(events: EventBatch, more: list[CompleteEvent]) -> EventBatch:
    """Events with complex events among them: those of place 2n before event n, of 2n + 1 after."""
    places = [4 * np.arange(len(events)) + 1, 2 * np.array([each.place for each in more])]
    order = np.argsort(np.concatenate(places), kind="stable")
    return concat_events(events, complex_batch(more)).take(order)
