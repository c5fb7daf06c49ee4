"""Which values' streams an event belongs to (PER), and what a pattern looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.events.automaton import SLOT

if TYPE_CHECKING:
    from graphtide.events.automaton import Automaton, Letter
    from graphtide.events.configuration import Event


class Streams:
    """The streams of a pattern: one, or with PER one for each value."""

    def __init__(self, automaton: Automaton) -> None:
        self.per = automaton.per
        self.arity: dict[int, int] = {}
        self._columns: dict[int, list[tuple[int, ...]]] = {}
        self._everywhere: set[int] = set()
        for letter in automaton.letters():
            self.arity[letter.type] = len(letter.arguments)
            columns = self._columns_of(letter)
            if columns is None:
                self._everywhere.add(letter.type)
            elif columns not in self._columns.setdefault(letter.type, []):
                self._columns[letter.type].append(columns)

    def keys(self, event: Event) -> list[tuple[int, ...]]:
        """The streams of an event; without PER all events are of the one there is."""
        if not self.per:
            return [()]
        found = self._columns.get(event.type, [])
        return list(dict.fromkeys(tuple(event.values[i] for i in columns) for columns in found))

    def everywhere(self, event: Event) -> bool:
        """Does a NOT without the variables of PER look at events of this type?"""
        return event.type in self._everywhere

    def _columns_of(self, letter: Letter) -> tuple[int, ...] | None:
        """Which arguments are the variables of PER; None if one of them is missing."""
        place = {n: i for i, (kind, n) in reversed([*enumerate(letter.arguments)]) if kind == SLOT}
        return tuple(place[slot] for slot in self.per) if place.keys() >= set(self.per) else None
