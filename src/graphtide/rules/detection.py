"""Detection: the patterns of a program, the events they see, and the complex events they make.

A complex event is told to the rules like any other: an event of its own, which comes right after
the one that completes it, or when the time is over that completes it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.graph_events import GraphEvents, make_events
from graphtide.events.compile import compile_pattern
from graphtide.events.detect import make_detector
from graphtide.events.token import NEVER
from graphtide.rules.detected import Detected
from graphtide.rules.happening import TypeMatcher
from graphtide.rules.type_index import TypeIndex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.lang.event_algebra import PatternDeclaration
    from graphtide.lang.program import Program
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.compile import Compiler
    from graphtide.rules.detected import TokenMark
    from graphtide.rules.happening import Ids
    from graphtide.rules.model import EventType


Placed = tuple[int, int, int, tuple["Ids", ...]]
"""A complex event: where it goes among others, its time, its pattern, and its triples.

Twice the place of an event is before it, one more is after it.
"""


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
            pattern.name: Detected(
                make_detector(compile_pattern(pattern, numbers, terms.encode, tick_ms)),
                complex_types[pattern.name],
                terms,
            )
            for pattern in patterns
        }

    def next_time(self) -> int:
        """When the next time is over that a pattern waits for; there may be nothing to it then."""
        return min((each.detector.next_time() for each in self.patterns.values()), default=NEVER)

    def pass_time(self, to: int) -> list[tuple[int, tuple[Ids, ...]]]:
        """The complex events that are complete because a time before `to` is over."""
        found = [
            (each.time, number, detected.told(each.values))
            for number, detected in enumerate(self.patterns.values())
            for each in detected.passed(to)
        ]
        return [(time, told) for time, _, told in sorted(found, key=lambda row: row[:2])]

    def begin(self) -> None:
        """A cascade begins: nobody comes back to where another one began."""
        for each in self.patterns.values():
            each.begin()

    def mark(self) -> list[TokenMark]:
        """The state of all patterns, to come back to."""
        return [each.mark() for each in self.patterns.values()]

    def back_to(self, marks: list[TokenMark]) -> None:
        """Come back to a state."""
        for each, mark in zip(self.patterns.values(), marks, strict=True):
            each.back_to(mark)

    def expand(self, events: GraphEvents, *, together: bool = False) -> GraphEvents:
        """Events with the complex events that they complete, each in its place."""
        one = len(events.ends) == 1
        more = self._of_one(events) if one else self._of_many(events, together=together)
        return _inserted(events, more) if more else events

    def expand_one(self, event: GraphEvents) -> list[GraphEvents]:
        """An event and the complex events that it completes, one after the other."""
        found = self._of_one(event)
        made = [(place, make_events([told], [time])) for place, time, _, told in found]
        before = [each for place, each in made if not place]
        return [*before, event, *(each for place, each in made if place)]

    def _of_many(self, events: GraphEvents, *, together: bool) -> list[Placed]:
        """What some events complete, in order."""
        places, types, values = self._seen(self._types.hits(events), together=together)
        times = events.ends[places]
        more: list[Placed] = []
        for number, detected in enumerate(self.patterns.values()):
            for row, time, at in detected.fed(types, values, times):
                after = 2 * int(places[at]) + 1
                if time < times[at]:
                    after = 2 * int(np.searchsorted(events.ends, time, side="right"))
                more.append((after, time, number, detected.told(row)))
        if len(events):
            for time, told in self.pass_time(int(events.ends[-1])):
                after = 2 * int(np.searchsorted(events.ends, time, side="right"))
                more.append((after, time, len(self.patterns), told))
        return sorted(more, key=lambda row: row[:3])

    def _of_one(self, event: GraphEvents) -> list[Placed]:
        """What one event completes: only the patterns that it can concern look at it."""
        hits, now = self._types.hits(event), int(event.ends[0])
        more: list[Placed] = []
        if hits and any(each.concerns(hits) for each in self.patterns.values()):
            _, types, values = self._seen(hits, together=False)
            times = np.full(len(types), now, np.int64)
            for number, each in enumerate(self.patterns.values()):
                if each.concerns(hits):
                    for row, time, _ in each.fed(types, values, times):
                        more.append((int(time == now), time, number, each.told(row)))
        if self.next_time() < now:
            last = len(self.patterns)
            more += [(0, time, last, told) for time, told in self.pass_time(now)]
        return sorted(more, key=lambda row: row[:3]) if len(more) > 1 else more

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


def _inserted(events: GraphEvents, more: list[Placed]) -> GraphEvents:
    """Events with others among them: those with 2n before event n, those with 2n + 1 after it."""
    added = make_events([told for *_, told in more], [time for _, time, *_ in more])
    at = np.concatenate([4 * np.arange(len(events)) + 1, 2 * np.array([row[0] for row in more])])
    order = np.argsort(at, kind="stable")
    sizes = np.concatenate([np.diff(events.begins), np.diff(added.begins)])
    firsts = np.concatenate([events.begins[:-1], len(events.triples) + added.begins[:-1]])
    triples = np.concatenate([events.triples, added.triples])
    picked = [np.arange(firsts[i], firsts[i] + sizes[i]) for i in order.tolist()]
    return GraphEvents(
        np.ascontiguousarray(triples[np.concatenate(picked)]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[order])]),
        np.concatenate([events.starts, added.starts])[order],
        np.concatenate([events.ends, added.ends])[order],
        np.concatenate([events.numbers, added.numbers])[order],
    )
