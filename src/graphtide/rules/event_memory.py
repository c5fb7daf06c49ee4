"""EventMemory: the events that one condition of a rule may still need, by the values they bind."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from graphtide.algebra.expressions import Var
    from graphtide.rules.expiry import Keeping
    from graphtide.rules.happening import Binding, Happening

Kept = tuple["Happening", "Binding"]
Undo = list["Callable[[], object]"]
"""How to take back what was done, the last first."""


class EventMemory:
    """Events in order of arrival, with an index by the variables that they are looked up by.

    They are kept as long as `keeping` says; one that nothing can come after is not taken in.
    While `undo` is a list, each change puts there how to take it back.
    """

    def __init__(self, keeping: Keeping, key: tuple[Var, ...]) -> None:
        self.ticks = keeping.ticks
        self.undo: Undo | None = None
        self._key = key
        self._orders: deque[tuple[int, int]] = deque()
        self._events: dict[int, list[Kept]] = {}
        self._index: dict[tuple[int, ...], dict[int, Kept]] = {}
        self._size = 0

    def add(self, event: Happening, binding: Binding) -> None:
        """Keep an event, if anything can come after it that needs it."""
        if self.ticks is None:
            return
        kept = (event, binding)
        self._orders.append((event.span.end, event.order))
        self._list(kept)
        if self.undo is not None:
            self.undo += [lambda: self._unlist(kept), self._orders.pop]

    def expire(self, now: int) -> None:
        """Let go what no event at or after a time can need."""
        if self.ticks is None:
            return
        while self._orders and self._orders[0][0] + self.ticks < now:
            first = self._orders.popleft()
            if self.undo is not None:
                self.undo.append(lambda first=first: self._orders.appendleft(first))  # type: ignore[misc]
            self.remove(first[1])

    def remove(self, order: int) -> None:
        """Let go an event, if it is here; its place among the others is skipped later."""
        for kept in tuple(self._events.get(order, ())):
            self._unlist(kept)
            if self.undo is not None:
                self.undo.append(lambda kept=kept: self._list(kept))  # type: ignore[misc]

    def _list(self, kept: Kept) -> None:
        self._events.setdefault(kept[0].order, []).append(kept)
        self._index.setdefault(self._key_of(kept[1]), {})[id(kept)] = kept
        self._size += 1

    def _unlist(self, kept: Kept) -> None:
        order, key = kept[0].order, self._key_of(kept[1])
        self._events[order].remove(kept)
        if not self._events[order]:
            del self._events[order]
        del self._index[key][id(kept)]
        if not self._index[key]:
            del self._index[key]
        self._size -= 1

    def _key_of(self, binding: Binding) -> tuple[int, ...]:
        return tuple(binding[v] for v in self._key)

    def find(self, binding: Binding) -> Collection[Kept]:
        """The events that agree with a binding on the variables of the index."""
        found = self._index.get(self._key_of(binding))
        return () if found is None else found.values()

    def __len__(self) -> int:
        return self._size
