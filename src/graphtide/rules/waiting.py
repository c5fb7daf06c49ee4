"""WaitingRoom: the matches that wait until what must not happen no longer can."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.algebra.expressions import Var
    from graphtide.rules.event_memory import Undo
    from graphtide.rules.found import Match
    from graphtide.rules.happening import Binding


@dataclass(frozen=True, slots=True)
class Waiting:
    """A match that holds unless an event comes that must not, up to a time."""

    match: Match
    row: tuple[int, ...]
    spans: tuple[int, ...]
    until: float


class WaitingRoom:
    """Matches by the end of their wait, by their events, and by what an event that spoils them has.

    `known` has these variables for each event that must not happen. While `undo` is a list, each
    change puts there how to take it back.
    """

    def __init__(self, known: Mapping[str, tuple[Var, ...]]) -> None:
        self._known = known
        self._numbers = count()
        self._waiting: dict[int, Waiting] = {}
        self._ends: list[tuple[float, int, int]] = []
        self._index: dict[tuple[str, tuple[int, ...]], dict[int, Waiting]] = {}
        self._parts: dict[int, set[int]] = {}
        self.undo: Undo | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: Waiting) -> None:
        """Let a match wait."""
        number = next(self._numbers)
        self._put(number, waiting)
        if self.undo is not None:
            self.undo.append(lambda: self._take(number))

    def _put(self, number: int, waiting: Waiting) -> None:
        self._waiting[number] = waiting
        heappush(self._ends, (waiting.until, waiting.match.time, number))
        for key in self._keys(waiting.match.binding):
            self._index.setdefault(key, {})[number] = waiting
        for event in waiting.match.events.values():
            self._parts.setdefault(event.order, set()).add(number)

    def due(self, now: int) -> Iterator[Waiting]:
        """Let go those whose wait is over, in order of its end, then of their times."""
        while self._ends and self._ends[0][0] < now:
            _, _, number = heappop(self._ends)
            if number in self._waiting:
                yield self._remove(number)

    def like(self, name: str, binding: Binding) -> list[tuple[int, Waiting]]:
        """Those that an event may spoil, by its values, with their numbers."""
        key = name, tuple(binding[v] for v in self._known[name])
        return list(self._index.get(key, {}).items())

    def drop(self, number: int) -> None:
        """Let go a match that was spoilt."""
        self._remove(number)

    def retract(self, order: int) -> None:
        """Let go the matches that an event is part of."""
        for number in sorted(self._parts.get(order, ())):
            self._remove(number)

    def _remove(self, number: int) -> Waiting:
        waiting = self._take(number)
        if self.undo is not None:  # its end may still be noted: twice does no harm
            self.undo.append(lambda: self._put(number, waiting))
        return waiting

    def _take(self, number: int) -> Waiting:
        waiting = self._waiting.pop(number)
        for key in self._keys(waiting.match.binding):
            del self._index[key][number]
            if not self._index[key]:
                del self._index[key]
        for order in {event.order for event in waiting.match.events.values()}:
            self._parts[order].discard(number)
            if not self._parts[order]:
                del self._parts[order]
        return waiting

    def _keys(self, binding: Binding) -> Iterator[tuple[str, tuple[int, ...]]]:
        for name, variables in self._known.items():
            yield name, tuple(binding[v] for v in variables)
