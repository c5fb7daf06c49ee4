"""Detection: the patterns of a program, and their complex events.

A complex event is an event for the rules. It comes right after the event that completes it, or when
a timer completes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphtide.engine import events as batches
from graphtide.lang.tide.ast import PatternDeclaration, Retract
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.complex_events import CompleteEvent, CompleteEvents, complex_batch, inserted
from graphtide.patterns.detector import AnyDetector, KernelDetector, make_detector
from graphtide.patterns.event_rows import UNNAMED, RowArranger, by_first_row
from graphtide.patterns.history import EventNumbers, HistorySavepoint, TokenHistory
from graphtide.patterns.measure import lifetime
from graphtide.patterns.tokens import NEVER, PatternMatch
from graphtide.rules.compile import Compiler, events_in_use
from graphtide.rules.firing import RecentEvents
from graphtide.rules.matching.types import TypeIndex, TypeMatcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from graphtide.engine.events import EventBatch
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.lang.tide.program import Program
    from graphtide.patterns.complex_events import ExpandedEvents
    from graphtide.patterns.general import MatchColumns, OnDrop, Rank
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.model import EventType


class PatternSavepoint(NamedTuple):
    """A savepoint of the tokens of a pattern, and its number of complex events then."""

    history: HistorySavepoint
    total: int


class DetectionSavepoint(NamedTuple):
    """All patterns before a piece of input: the number of events, the time, their tokens."""

    number: int
    now: int
    tokens: list[PatternSavepoint]


@dataclass(frozen=True, slots=True)
class ComplexEvent:
    """A match of a pattern: its parameters, the time of its first event, and its own time."""

    pattern: str
    values: dict[str, Term]
    start: int
    time: int


class TypedRows(NamedTuple):
    """The input of patterns: rows of events with a type and its values, in order.

    `events` are the indices of the events in their batch, `numbers` those of all events so far.
    """

    events: Longs
    types: Ints
    values: Ints
    times: Longs
    numbers: Longs


class PatternRunner:
    """The detector of a pattern, and its last complex events."""

    def __init__(
        self,
        detector: AnyDetector,
        type_: EventType,
        rank: Rank,
        *,
        retracts: bool,
        interval: bool = False,
    ) -> None:
        automaton = detector.automaton
        self._rank = rank
        self._retracts = retracts
        self.detector = detector
        self._interval = interval
        self.recent = RecentEvents(len(type_.parameters))
        self.reads_all = automaton.noisy and not automaton.per
        """Whether any event may be noise."""
        self._history = TokenHistory(detector, retracts=retracts)
        self._arranger = RowArranger(automaton)
        self._types_read = {letter.type for letter in automaton.letters()}
        self.type_id = type_.id
        self._name, self._parameters = type_.name, type_.parameters

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of the tokens, and of the retained complex events."""
        yield from self._history.held_ids()
        yield from self.recent.held_ids()

    @property
    def total(self) -> int:
        """How many complex events there were."""
        return self.recent.total

    def dump(self, terms: TermDictionary) -> dict[str, Any]:
        """Its tokens, and how many complex events there were."""
        return {"total": self.total, **self._history.dump(terms)}

    def load(self, saved: Mapping[str, Any], terms: TermDictionary) -> None:
        """Go on with a saved state; complex events from before are not retained."""
        self.recent.total = saved["total"]
        self._history.load(saved, terms)

    def take_over(
        self, other: PatternRunner, terms: TermDictionary, types: Mapping[int, int]
    ) -> None:
        """Go on with the tokens and complex events of another, whose `types` had other numbers."""
        if not isinstance(other.detector, KernelDetector) and other.detector.on_drop is not None:
            self.trace(other.detector.on_drop)
        saved = other.dump(terms)
        for entry in saved.get("input", ()):
            if not isinstance(entry, int):
                entry[0] = np.array([types.get(t, UNNAMED) for t in entry[0].tolist()], np.int64)
        self.load(saved, terms)
        self.recent = other.recent

    def trace(self, on_drop: OnDrop) -> None:
        """Move tokens in Python from here on, and report those that are dropped."""
        detector = self.detector
        if isinstance(detector, KernelDetector):
            self.detector = detector = detector.general(self._rank)
            self._history = TokenHistory(detector, retracts=self._retracts)
        detector.on_drop = on_drop

    def pass_time(self, to: int) -> list[PatternMatch]:
        """The complex events that timers before `to` complete."""
        now = self.detector.now
        if now is not None and to <= now:
            return []
        matches = self._history.advance(to)
        if matches:
            self.recent.add(
                np.array([each.values for each in matches], np.int64),
                np.array([each.start for each in matches]),
                np.array([each.time for each in matches]),
            )
        return matches

    def feed(self, rows: TypedRows) -> MatchColumns:
        """The complex events that some events complete; `at` are the indices of the rows."""
        arranged = self._arranger.rows(rows.types, rows.values, rows.times, rows.numbers)
        matches = self._history.feed(arranged).of_input(arranged)
        if len(matches.time):
            self.recent.add(matches.values, matches.start, matches.time)
        return matches if self._interval else replace(matches, start=matches.time)

    def began(self, match: PatternMatch) -> int:
        """Since when a complex event lasts for rules: it is an instant unless it is an INTERVAL."""
        return match.start if self._interval else match.time

    @property
    def longest(self) -> int:
        """How long its complex events may last for rules."""
        return int(lifetime(self.detector.automaton).ticks) if self._interval else 0

    def reads(self, types: Iterable[int]) -> bool:
        """Whether it names one of some types."""
        return not self._types_read.isdisjoint(types)

    def retract(self, number: int, now: int) -> None:
        """Take an event back: tokens become those of the other events; see `TokenHistory`."""
        self._history.retract(number, now)

    def begin(self) -> None:
        """Discard savepoints."""
        self._history.begin()

    def savepoint(self) -> PatternSavepoint:
        """A savepoint, valid until `begin`."""
        return PatternSavepoint(self._history.savepoint(), self.total)

    def rollback(self, to: PatternSavepoint) -> None:
        """Restore a savepoint, and remove the complex events since."""
        self._history.rollback(to.history)
        self.recent.cut(to.total)

    def events(self, terms: TermDictionary, last: int | None = None) -> list[ComplexEvent]:
        """The retained complex events of the pattern, or the `last` ones, oldest first."""
        names = [v.name for v in self._parameters]
        return [
            ComplexEvent(
                self._name,
                {n: terms.decode(i) for n, i in zip(names, values, strict=True) if i},
                start,
                time,
            )
            for *values, start, time in self.recent.rows(last)
        ]


class Detection:
    """All patterns of a program.

    `types` are the declared events that rules and patterns use, `complex_types` those of patterns.
    With `retracts`, events can be taken back.
    """

    def __init__(
        self,
        patterns: Sequence[PatternDeclaration],
        types: Mapping[str, EventType],
        complex_types: Mapping[str, EventType],
        terms: TermDictionary,
        tick_ms: int,
        *,
        retracts: bool = False,
    ) -> None:
        numbers = {name: number for number, name in enumerate(types)}
        self._type_numbers = numbers
        self._terms = terms
        self._types = TypeIndex()
        for type_ in types.values():
            self._types.add(TypeMatcher(type_, terms))
        self._width = max((len(type_.parameters) for type_ in types.values()), default=0)
        self.patterns = {
            pattern.name: PatternRunner(
                make_detector(
                    compile_pattern(pattern, numbers, terms.encode, tick_ms, terms), self._texts
                ),
                complex_types[pattern.name],
                self._texts,
                retracts=retracts,
                interval=pattern.interval,
            )
            for pattern in patterns
        }
        self._reads_all = any(each.reads_all for each in self.patterns.values())
        self._numbers = EventNumbers() if retracts else None
        self._number = 0
        self._now = 0

    def _texts(self, row: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self._terms.text(i) if i else "" for i in row)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids that the patterns hold; constants are pinned."""
        for each in self.patterns.values():
            yield from each.held_ids()

    def dump(self) -> dict[str, Any]:
        """The state of all patterns."""
        return {
            "at": [self._number, self._now],
            "numbers": None if self._numbers is None else self._numbers.dump(),
            "patterns": {name: each.dump(self._terms) for name, each in self.patterns.items()},
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state."""
        self._number, self._now = saved["at"]
        if self._numbers is not None:
            self._numbers.load(saved["numbers"])
        for name, each in self.patterns.items():
            each.load(saved["patterns"][name], self._terms)

    def take_over(self, other: Detection, names: Iterable[str]) -> None:
        """Go on with some patterns of another program, which are as they are here."""
        self._number, self._now = other._number, other._now
        if self._numbers is not None and other._numbers is not None:
            self._numbers = other._numbers
        before = other._type_numbers
        types = {n: self._type_numbers[t] for t, n in before.items() if t in self._type_numbers}
        for name in names:
            self.patterns[name].take_over(other.patterns[name], self._terms, types)

    def longest(self) -> int:
        """How long a complex event that is an INTERVAL may last."""
        every = (each.longest for each in self.patterns.values())
        return max((ticks for ticks in every), default=0)

    def next_time(self) -> int:
        """The time of the next timer, at which a token may be completed or dropped."""
        return min((each.detector.next_time() for each in self.patterns.values()), default=NEVER)

    def pass_time(self, to: int) -> list[CompleteEvent]:
        """The complex events that timers before `to` complete."""
        self._now = max(self._now, to - 1)
        completed = [
            CompleteEvent(0, each.time, number, run.type_id, each.values, run.began(each))
            for number, run in enumerate(self.patterns.values())
            for each in run.pass_time(to)
        ]
        return sorted(completed, key=lambda each: each.order)

    def retract(self, order: int) -> None:
        """Take an event back, given by its number among the events of the rules.

        The instances of each pattern are then those that they would be if it had never come.
        Complex events that are out stay out.
        """
        number = None if self._numbers is None else self._numbers.of(order)
        if number is not None:
            for each in self.patterns.values():
                each.retract(number, self._now)

    @property
    def retracts(self) -> bool:
        """Whether events can be taken back."""
        return self._numbers is not None

    def protect(self) -> DetectionSavepoint:
        """A piece of input comes: discard savepoints; what `roll_back` needs."""
        for each in self.patterns.values():
            each.begin()
        return DetectionSavepoint(self._number, self._now, self.savepoint())

    def roll_back(self, to: DetectionSavepoint) -> None:
        """A piece of input was interrupted: restore all tokens and numbers."""
        self._number, self._now, tokens = to
        self.rollback(tokens)
        if self._numbers is not None:
            self._numbers.cut(self._number)

    def savepoint(self) -> list[PatternSavepoint]:
        """A savepoint of each pattern."""
        return [each.savepoint() for each in self.patterns.values()]

    def rollback(self, to: list[PatternSavepoint]) -> None:
        """Restore savepoints."""
        for each, savepoint in zip(self.patterns.values(), to, strict=True):
            each.rollback(savepoint)

    def expand(self, events: EventBatch, order: int, read: Sequence[int]) -> ExpandedEvents:
        """Events with the complex events that they complete, each in its place.

        `order` is the number that the first of them will have among the events of the rules, `read`
        has the types that rules have conditions on: complex events of others are left out.
        """
        number = self._number
        if len(events.ends) == 1:
            one = [each for each in self._of_one(events) if each.type in read]
            more = CompleteEvents(np.array([e.place for e in one], np.int64), complex_batch(one))
        else:
            more = self._of_many(events, read)
        if self._numbers is not None:
            index = np.arange(len(events))
            before = np.searchsorted(more.places, 2 * index, side="right")
            self._numbers.add(order + index + before, number)
        return inserted(events, more)

    def expand_one(self, event: EventBatch, order: int, read: Sequence[int]) -> list[EventBatch]:
        """An event and the complex events that it completes, one after the other; see `expand`."""
        number = self._number
        found = [each for each in self._of_one(event) if each.type in read]
        made = [(each.place, complex_batch([each])) for each in found]
        before = [batch for place, batch in made if not place]
        if self._numbers is not None:
            self._numbers.add(np.array([order + len(before)]), number)
        return [*before, event, *(batch for place, batch in made if place)]

    def _of_many(self, events: EventBatch, read: Sequence[int]) -> CompleteEvents:
        """The complex events of several events that rules read, in order."""
        rows = self._rows(events)
        places, made, patterns = [_NONE], [], [_NONE]
        for number, detected in enumerate(self.patterns.values()):
            found = detected.feed(rows)
            if not len(found.time) or detected.type_id not in read:
                continue
            place = 2 * rows.events[found.at] + 1
            waited = np.flatnonzero(found.time < rows.times[found.at])
            place[waited] = 2 * np.searchsorted(events.ends, found.time[waited], side="right")
            types = np.full(len(place), detected.type_id, np.int32)
            made.append(batches.typed_batch(types, found.values, found.time, found.start))
            places.append(place)
            patterns.append(np.full(len(place), number))
        if len(events):
            last = int(events.ends[-1])
            timers = [each for each in self.pass_time(last) if each.type in read]
            if timers:
                made.append(complex_batch(timers))
                places.append(2 * np.searchsorted(events.ends, made[-1].ends, side="right"))
                patterns.append(np.full(len(timers), len(self.patterns)))
            self._now = max(self._now, last)
        if not made:
            return CompleteEvents(_NONE, complex_batch(()))
        place, every = np.concatenate(places), reduce(batches.concat_events, made)
        order = np.lexsort((np.concatenate(patterns), every.ends, place))
        return CompleteEvents(place[order], every.take(order))

    def _of_one(self, event: EventBatch) -> list[CompleteEvent]:
        """The complex events of one event; only patterns that it concerns are fed."""
        hits, now = self._types.hits(event), int(event.ends[0])
        noise = self._reads_all and (bool(hits) or bool(_are_graph_events(event)[0]))
        more: list[CompleteEvent] = []
        if noise or hits:
            rows = self._row(event, hits) or self._rows(event, hits)
            for number, each in enumerate(self.patterns.values()):
                if (noise and each.reads_all) or each.reads(hits):
                    found = each.feed(rows)
                    columns = found.values.tolist(), found.start.tolist(), found.time.tolist()
                    for row, start, time in zip(*columns, strict=True):
                        place = int(time == now)
                        more.append(CompleteEvent(place, time, number, each.type_id, row, start))
        else:
            self._number += 1
        if self.next_time() < now:
            last = len(self.patterns)
            more += [each._replace(pattern=last) for each in self.pass_time(now)]
        self._now = max(self._now, now)
        return sorted(more, key=lambda each: each.order) if len(more) > 1 else more

    def _row(self, event: EventBatch, hits: dict[int, Ints]) -> TypedRows | None:
        """The input that a single event is, if it has one row: the common case, without detours."""
        if len(hits) != 1:
            return None
        ((type_, values),) = hits.items()
        if len(values) != 1:
            return None
        row = np.zeros((1, self._width), np.int32)
        row[:, : values.shape[1] - 1] = values[:, 1:]
        number = np.array([self._number])
        self._number += 1
        return TypedRows(_FIRST, np.array([type_], np.int32), row, event.ends, number)

    def _rows(self, events: EventBatch, hits: dict[int, Ints] | None = None) -> TypedRows:
        """The input of patterns: of each event its types in order, with their values.

        Simultaneous events have no order of their own: they are ordered as if they were one. A
        graph event has a row even if it has no type, where it may be noise.
        """
        hits = self._types.hits(events) if hits is None else hits
        if not events.simultaneous:
            plain = self._plain_rows(events, hits)
            if plain is not None:
                return plain
        parts = [np.zeros((0, 2 + self._width), np.int32)]
        for type_, found in hits.items():
            rows = np.zeros((len(found), 2 + self._width), np.int32)
            rows[:, 0], rows[:, 1] = found[:, 0], type_
            rows[:, 2 : 1 + found.shape[1]] = found[:, 1:]
            parts.append(rows)
        if self._reads_all:
            other = _are_graph_events(events)
            for found in hits.values():
                other[found[:, 0]] = False
            rows = np.zeros((int(other.sum()), 2 + self._width), np.int32)
            rows[:, 0], rows[:, 1] = np.flatnonzero(other), UNNAMED
            parts.append(rows)
        seen = np.concatenate(parts)
        if len(seen) > 1:
            seen = self._in_order(seen, together=events.simultaneous)
        index = seen[:, 0].astype(np.int64)
        numbers = self._number + index
        self._number += len(events)
        values = np.ascontiguousarray(seen[:, 2:])
        return TypedRows(index, seen[:, 1], values, events.ends[index], numbers)

    def _plain_rows(self, events: EventBatch, hits: dict[int, Ints]) -> TypedRows | None:
        """The rows of events that have one each, or none: the common case, without sorting."""
        types = np.full(len(events), _NO_ROW, np.int32)
        values = np.zeros((len(events), self._width), np.int32)
        if self._reads_all:
            types[_are_graph_events(events)] = UNNAMED
        for type_, found in hits.items():
            types[found[:, 0]] = type_
            values[found[:, 0], : found.shape[1] - 1] = found[:, 1:]
        if np.count_nonzero(types >= 0) < sum(map(len, hits.values())):
            return None
        index = np.flatnonzero(types > _NO_ROW)
        numbers = self._number + index
        self._number += len(events)
        if len(index) == len(events):
            return TypedRows(index, types, values, events.ends, numbers)
        return TypedRows(index, types[index], values[index], events.ends[index], numbers)

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
        return rows[by_first_row(rows[:, 0])] if together else rows


_FIRST = np.zeros(1, np.int64)
_NONE = np.zeros(0, np.int64)
_NO_ROW = UNNAMED - 1


def _are_graph_events(events: EventBatch) -> NDArray[np.bool_]:
    if events.types is None:
        return np.ones(len(events.ends), np.bool_)
    return np.asarray(events.types == batches.GRAPH_EVENT)


def types_of_patterns(
    program: Program, compiler: Compiler
) -> tuple[dict[str, EventType], dict[str, EventType]]:
    """The types of the events that a program uses, and of its complex events, by name."""
    types = {event.name: compiler.type_of(event) for event in events_in_use(program)}
    complex_types = {pattern.name: compiler.complex_type(pattern) for pattern in program.patterns}
    return types, complex_types


def detect(
    program: Program, compiler: Compiler, terms: TermDictionary, tick_ms: int
) -> Detection | None:
    """The patterns of a program, with the events that it uses; None if it has no pattern."""
    if not program.patterns:
        return None
    types, complex_types = types_of_patterns(program, compiler)
    retracts = any(isinstance(action, Retract) for r in program.rules for action in r.actions)
    return Detection(program.patterns, types, complex_types, terms, tick_ms, retracts=retracts)
