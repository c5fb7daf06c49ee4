"""EventMemory: the events that one condition of a rule may still need, by the values they bind."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from graphtide.algebra.expressions import Var
    from graphtide.rules.expiry import Keeping
    from graphtide.rules.happening import Binding, Happening

Kept = tuple["Happening", "Binding"]


class EventMemory:
    """Events in order of arrival, with an index for each set of variables they are looked up by.

    They are kept as long as `keeping` says; one that nothing can come after is not taken in.
    """

    def __init__(self, keeping: Keeping, lookups: Iterable[tuple[Var, ...]]) -> None:
        self._keeping = keeping
        self.ticks = keeping.ticks
        self._events: deque[Kept] = deque()
        self._indexes: dict[tuple[Var, ...], dict[tuple[int, ...], dict[int, Kept]]] = {
            variables: defaultdict(dict) for variables in lookups
        }

    def add(self, event: Happening, binding: Binding) -> None:
        """Keep an event, if anything can come after it that needs it."""
        if self.ticks is None:
            return
        kept = (event, binding)
        self._events.append(kept)
        for variables, index in self._indexes.items():
            index[tuple(binding[v] for v in variables)][id(kept)] = kept

    def expire(self, now: int) -> None:
        """Let go what no event at or after a time can need."""
        if self.ticks is None:
            return
        while self._events and self._events[0][0].span.end + self.ticks < now:
            self._unlist(self._events.popleft())

    def remove(self, order: int) -> None:
        """Let go an event before its time, if it is here."""
        gone = [kept for kept in self._events if kept[0].order == order]
        if gone:
            self._events = deque(kept for kept in self._events if kept[0].order != order)
            for kept in gone:
                self._unlist(kept)

    def _unlist(self, kept: Kept) -> None:
        for variables, index in self._indexes.items():
            key = tuple(kept[1][v] for v in variables)
            del index[key][id(kept)]
            if not index[key]:
                del index[key]

    def copy(self) -> EventMemory:
        """The same events in a memory of its own."""
        found = EventMemory(self._keeping, self._indexes)
        for event, binding in self._events:
            found.add(event, binding)
        return found

    def find(self, variables: tuple[Var, ...], binding: Binding) -> Collection[Kept]:
        """The events that agree with a binding on some variables."""
        found = self._indexes[variables].get(tuple(binding[v] for v in variables))
        return () if found is None else found.values()

    def __len__(self) -> int:
        return len(self._events)
