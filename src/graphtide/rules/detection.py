"""Detection: the patterns of a program, the events they see, and the complex events they make.

A complex event is told to the rules like any other: an event of its own, which comes right after
the one that completes it, or when the time is over that completes it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.engine.events import EventBatch, concat_events, typed_events
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import make_detector
from graphtide.patterns.tokens import NEVER
from graphtide.rules.firing import MAX_LISTED
from graphtide.rules.matching.types import TypeIndex, TypeMatcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.kernel.tokens.token_table import SavedTokens
    from graphtide.lang.tide.ast import PatternDeclaration
    from graphtide.lang.tide.program import Program
    from graphtide.patterns.detector import AnyDetector, FoundColumns, SavedDetector
    from graphtide.patterns.tokens import PatternMatch
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.compile import Compiler
    from graphtide.rules.model import EventType


# --- TokenHistory: a way back to the tokens that a pattern had when a cascade began.
#
# Tokens are laid down now and then, and what came since is kept: the way back is to take up those
# tokens and to go through it again. So a mark costs nothing, however many tokens there are, and
# laying them down costs little for each event, as it is done once for many.

MIN_HISTORY = 1024
"""Events that are gone through again at most, if there are few tokens; else two for each token."""


class TokenHistory:
    """A detector, and what has come to it since its tokens were last laid down."""

    def __init__(self, detector: AnyDetector) -> None:
        self.detector = detector
        self._saved: SavedTokens | SavedDetector | None = None
        self._now: int | None = None
        self._since: list[tuple[Ints, Ints, Longs] | int] = []
        self._events = 0
        self._most = 0

    def feed(self, types: Ints, values: Ints, times: Longs) -> FoundColumns:
        """Let the detector take in events."""
        if self._saved is not None:
            self._since.append((types, values, times))
            self._events += len(times)
        return self.detector.feed(types, values, times)

    def advance(self, to: int) -> list[PatternMatch]:
        """Let times before `to` be over; events may still come at the last of them."""
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
        """Nobody comes back to where it was; too long a history is dropped."""
        if self._events > self._most:
            self._saved, self._events = None, 0
            self._since.clear()

    def savepoint(self) -> int:
        """The state of now, to come back to, until `begin`."""
        if self._saved is None:
            self._saved, self._now = self.detector.save(), self.detector.now
            self._most = max(MIN_HISTORY, 2 * len(self._saved.tokens))
        return len(self._since)

    def rollback(self, mark: int) -> None:
        """Come back to a state."""
        assert self._saved is not None  # noqa: S101 - there was a mark
        self.detector.load(self._saved)  # type: ignore[arg-type] # it is the detector's own
        self.detector.now = self._now
        del self._since[mark:]
        for each in self._since:
            if isinstance(each, int):
                self._advance(each)
            else:
                self.detector.feed(*each)


# --- PatternRunner: a pattern of a program at work, and the complex events that it has made.

PatternSavepoint = tuple[int, int]
"""The state of a pattern to come back to: its tokens, and how many complex events it had made."""


@dataclass(frozen=True, slots=True)
class ComplexEvent:
    """A match of a pattern: from when to when it went, and the values of its parameters."""

    pattern: str
    values: dict[str, Term]
    start: int
    time: int


class PatternRunner:
    """A pattern at work: its detector, and the last complex events that it has made."""

    def __init__(self, detector: AnyDetector, type_: EventType) -> None:
        self.detector = detector
        self.seen = 0
        self._history = TokenHistory(detector)
        self._notices_all = detector.automaton.context != "CHRONICLE"
        self._named = {letter.type for letter in detector.automaton.letters()}
        self.found: deque[tuple[tuple[int, ...], int, int]] = deque(maxlen=MAX_LISTED)
        self.type_id = type_.id
        self._name, self._parameters = type_.name, type_.parameters

    def passed(self, to: int) -> list[PatternMatch]:
        """What is complete because a time before `to` is over.

        Actions may still cause events at the time that is over.
        """
        now = self.detector.now
        if now is not None and to <= now:
            return []
        found = self._history.advance(to)
        for each in found:
            self._note(each.values, each.start, each.time)
        return found

    def fed(self, types: Ints, values: Ints, times: Longs) -> Iterator[tuple[list[int], int, int]]:
        """What some events complete: values, time, and the event it was found with."""
        found = self._history.feed(types, values, times)
        columns = (found.values, found.start, found.time, found.at)
        for row, start, time, at in zip(*(column.tolist() for column in columns), strict=True):
            self._note(row, start, time)
            yield row, time, at

    def concerns(self, types: Iterable[int]) -> bool:
        """Whether events of some types can mean anything to the pattern."""
        return self._notices_all or not self._named.isdisjoint(types)

    def begin(self) -> None:
        """Nobody comes back to where the pattern was."""
        self._history.begin()

    def savepoint(self) -> PatternSavepoint:
        """The state of now, to come back to."""
        return self._history.savepoint(), self.seen

    def rollback(self, mark: PatternSavepoint) -> None:
        """Come back to a state: what was found since has not been."""
        self._history.rollback(mark[0])
        for _ in range(min(self.seen - mark[1], len(self.found))):
            self.found.pop()
        self.seen = mark[1]

    def _note(self, values: Sequence[int], start: int, time: int) -> None:
        self.seen += 1
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

    `types` are the events that it declares, by name; `complex_types` those that its patterns make.
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
                make_detector(compile_pattern(pattern, numbers, terms.encode, tick_ms)),
                complex_types[pattern.name],
            )
            for pattern in patterns
        }

    def next_time(self) -> int:
        """When the next time is over that a pattern waits for; there may be nothing to it then."""
        return min((each.detector.next_time() for each in self.patterns.values()), default=NEVER)

    def pass_time(self, to: int) -> list[CompleteEvent]:
        """The complex events that are complete because a time before `to` is over."""
        found = [
            CompleteEvent(0, each.time, number, detected.type_id, each.values)
            for number, detected in enumerate(self.patterns.values())
            for each in detected.passed(to)
        ]
        return sorted(found, key=lambda each: each.order)

    def begin(self) -> None:
        """A cascade begins: nobody comes back to where another one began."""
        for each in self.patterns.values():
            each.begin()

    def savepoint(self) -> list[PatternSavepoint]:
        """The state of all patterns, to come back to."""
        return [each.savepoint() for each in self.patterns.values()]

    def rollback(self, marks: list[PatternSavepoint]) -> None:
        """Come back to a state."""
        for each, mark in zip(self.patterns.values(), marks, strict=True):
            each.rollback(mark)

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
        """What some events complete, in order."""
        hits = self._types.hits(events)
        places, types, values = self._seen(hits, together=events.simultaneous)
        times = events.ends[places]
        more: list[CompleteEvent] = []
        for number, detected in enumerate(self.patterns.values()):
            for row, time, at in detected.fed(types, values, times):
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
        """What one event completes: only the patterns that it can concern look at it."""
        hits, now = self._types.hits(event), int(event.ends[0])
        more: list[CompleteEvent] = []
        if hits and any(each.concerns(hits) for each in self.patterns.values()):
            _, types, values = self._seen(hits, together=False)
            times = np.full(len(types), now, np.int64)
            for number, each in enumerate(self.patterns.values()):
                if each.concerns(hits):
                    for row, time, _ in each.fed(types, values, times):
                        place = int(time == now)
                        more.append(CompleteEvent(place, time, number, each.type_id, row))
        if self.next_time() < now:
            last = len(self.patterns)
            more += [each._replace(pattern=last) for each in self.pass_time(now)]
        return sorted(more, key=lambda each: each.order) if len(more) > 1 else more

    def _seen(self, found: dict[int, Ints], *, together: bool) -> tuple[Longs, Ints, Ints]:
        """What patterns see of some events: of each its types in order, with their values.

        What happens together has no order of its own: it is seen as if it were one event.
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
