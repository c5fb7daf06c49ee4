"""TypeIndex: of which types a single event may be, by an id that all events of a type have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.engine.graph_events import GraphEvents
    from graphtide.kernel.batch import Ints
    from graphtide.rules.happening import TypeMatcher


class TypeIndex:
    """Types by number. Most events are of few of them, and only those are looked at closely."""

    def __init__(self) -> None:
        self._matchers: list[TypeMatcher] = []
        self._by_id: dict[int, list[int]] = {}
        self._others: list[int] = []

    def add(self, matcher: TypeMatcher) -> None:
        """Another type."""
        number = len(self._matchers)
        self._matchers.append(matcher)
        mark = matcher.mark
        if mark is None:
            self._others.append(number)
        else:
            self._by_id.setdefault(mark, []).append(number)

    def hits(self, events: GraphEvents) -> dict[int, Ints]:
        """By number of a type, the places of the events of that type, with their parameters."""
        if len(events.ends) == 1:
            return self._hits_of_one(events)
        found = ((number, matcher.hits(events)) for number, matcher in enumerate(self._matchers))
        return {number: rows for number, rows in found if len(rows)}

    def _hits_of_one(self, event: GraphEvents) -> dict[int, Ints]:
        by_id = self._by_id
        numbers = [n for i in set(event.triples.ravel().tolist()) if i in by_id for n in by_id[i]]
        numbers += self._others
        if len(numbers) > 1:
            numbers.sort()
        hits = {}
        for number in numbers:
            rows = self._matchers[number].hits(event)
            if len(rows):
                hits[number] = rows
        return hits
