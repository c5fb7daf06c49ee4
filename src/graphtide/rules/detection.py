"""Detection: the patterns of a program, the events they see, and the complex events they make.

A complex event is told to the rules like any other: an event of its own, which comes right after
the one that completes it, or when the time is over that completes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.graph_events import GraphEvents, make_events
from graphtide.events.compile import compile_pattern
from graphtide.events.detect import make_detector
from graphtide.events.token import NEVER
from graphtide.rules.compile import HAPPENS, parameter
from graphtide.rules.happening import TypeMatcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.events.detect import AnyDetector
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.lang.event_algebra import PatternDeclaration
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.happening import Ids
    from graphtide.rules.model import EventType


class Detected:
    """A pattern at work, and how its complex events are told in triples of ids."""

    def __init__(self, detector: AnyDetector, type_: EventType, terms: TermDictionary) -> None:
        self.detector = detector
        self._kind = terms.encode(type_.pattern[0].object)  # type: ignore[arg-type]
        self._happens = terms.encode(HAPPENS)
        self._numbers = [terms.encode(parameter(n)) for n in range(len(type_.parameters))]

    def told(self, values: Sequence[int]) -> tuple[Ids, ...]:
        """A complex event with these parameters."""
        pairs = zip(self._numbers, values, strict=True)
        return (
            (self._kind, self._happens, self._kind),
            *((self._kind, predicate, value) for predicate, value in pairs),
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
        self._matchers = [TypeMatcher(type_, terms) for type_ in types.values()]
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
            for each in detected.detector.advance(to)
        ]
        return [(time, told) for time, _, told in sorted(found, key=lambda row: row[:2])]

    def expand(self, events: GraphEvents) -> GraphEvents:
        """Events with the complex events that they complete, each in its place."""
        places, types, values = self._seen(events)
        times = events.ends[places]
        more: list[tuple[int, int, int, tuple[Ids, ...]]] = []
        for number, detected in enumerate(self.patterns.values()):
            found = detected.detector.feed(types, values, times)
            rows = zip(found.values.tolist(), found.time.tolist(), found.at.tolist(), strict=True)
            for row, time, at in rows:
                after = 2 * int(places[at]) + 1
                if time < times[at]:
                    after = 2 * int(np.searchsorted(events.ends, time, side="right"))
                more.append((after, time, number, detected.told(row)))
        if len(events):
            for time, told in self.pass_time(int(events.ends[-1])):
                after = 2 * int(np.searchsorted(events.ends, time, side="right"))
                more.append((after, time, len(self.patterns), told))
        return _inserted(events, sorted(more, key=lambda row: row[:3])) if more else events

    def _seen(self, events: GraphEvents) -> tuple[Longs, Ints, Ints]:
        """What patterns see of some events: of each its types in order, with their values."""
        parts = []
        for number, matcher in enumerate(self._matchers):
            hits = matcher.hits(events)
            if len(hits):
                rows = np.zeros((len(hits), 2 + self._width), np.int32)
                rows[:, 0], rows[:, 1] = hits[:, 0], number
                rows[:, 2 : 1 + hits.shape[1]] = hits[:, 1:]
                parts.append(rows)
        if not parts:
            empty = np.zeros((0, 2 + self._width), np.int32)
            return empty[:, 0].astype(np.int64), empty[:, 1], empty[:, 2:]
        rows = np.concatenate(parts)
        rows = rows[np.lexsort(rows.T[::-1])]
        return rows[:, 0].astype(np.int64), rows[:, 1], np.ascontiguousarray(rows[:, 2:])


def _inserted(
    events: GraphEvents, more: list[tuple[int, int, int, tuple[Ids, ...]]]
) -> GraphEvents:
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
