"""EventRows: the input of a detector, with a row for each type and way in which an event matches.

An event is one event, whatever types it has: each step of a pattern may match any of its rows. An
event that matches one type in several ways (several doors that were opened) counts as often, as
several *occurrences*. Rows of different types are of one occurrence if they have the same values of
the variables that all events of the pattern share; if a type has several rows of such a key, the
first ones of all types belong together, then the second ones.

Rows of types that the pattern does not name are left out. An event without other rows has one of
type -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from graphtide.kernel.tokens.tables import NEW_EVENT, NEW_KEY, NEW_OCCURRENCE, SAME_OCCURRENCE
from graphtide.patterns.tables import key_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.patterns.automaton import Automaton


UNNAMED: Final = -1
"""The type of an event that has none of the types that a pattern names."""


class EventRows(NamedTuple):
    """Events in order of time.

    `numbers` has the number of each row's event, as `used` lists it; `source` the index of each row
    in the input that was arranged.
    """

    types: Ints
    values: Ints
    times: Longs
    numbers: Longs
    begins: Ints
    source: Longs

    def without(self, number: int) -> EventRows:
        """All events but one."""
        return EventRows(*(column[self.numbers != number] for column in self))


class RowArranger:
    """Arranges rows of one automaton's events."""

    def __init__(self, automaton: Automaton) -> None:
        named = {letter.type for letter in automaton.letters()}
        numbers = [t if t in named else UNNAMED for t in range(len(automaton.types))]
        self._known = np.array([*numbers, UNNAMED], np.int32)
        self._key = key_of(automaton)[1]

    def rows(
        self,
        types: NDArray[np.integer],
        values: NDArray[np.integer],
        times: NDArray[np.integer],
        numbers: Longs | int,
    ) -> EventRows:
        """Rows in order of time; adjacent ones of one number are one event.

        Instead of numbers, the first may be given: then each row is an event.

        >>> from graphtide.patterns.compile import compile_pattern
        >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
        >>> body = Follows((Atom("A", ()), Atom("B", ())))
        >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
        >>> types = {"A": 0, "B": 1, "C": 2}
        >>> arranger = RowArranger(compile_pattern(pattern, types, lambda term: 1))
        >>> number, no_values = np.array([5, 5, 5, 6]), np.zeros((4, 0))
        >>> rows = arranger.rows(np.array([0, 1, 2, 2]), no_values, number, number)
        >>> rows.types.tolist(), rows.begins.tolist()
        ([0, 1, -1], [0, 3, 0])
        """
        known: Ints = self._known[types]
        rows: Ints = np.ascontiguousarray(values, np.int32)
        when: Longs = np.asarray(times, np.int64)
        if not when.flags.writeable:  # as Arrow's are, for which loops would be compiled once more
            when = when.copy()
        alone = isinstance(numbers, int)
        if isinstance(numbers, int):
            numbers = np.arange(numbers, numbers + len(known))
        if len(known) == 1:
            return EventRows(known, rows, when, numbers, _NEW_EVENT, _FIRST)
        source: Longs = np.arange(len(known))
        begins: Ints = np.zeros(len(known), np.int32)
        if alone or not (numbers[1:] == numbers[:-1]).any():
            return EventRows(known, rows, when, numbers, begins, source)
        is_first = np.ones(len(known), np.bool_)
        is_first[1:] = numbers[1:] != numbers[:-1]
        event: Longs = np.cumsum(is_first) - 1
        is_named = np.bincount(event, known >= 0) > 0
        source = np.flatnonzero((known >= 0) | (is_first & ~is_named[event]))
        begins, event = begins[source], event[source]
        if (np.diff(event) == 0).any():
            order, begins = self._occurrences(known[source], rows[source], event)
            source = source[order]
        return EventRows(known[source], rows[source], when[source], numbers[source], begins, source)

    def _occurrences(self, types: Ints, values: Ints, event: Longs) -> tuple[Longs, Ints]:
        """The order of rows by occurrence, and what each row begins."""
        many = np.arange(len(types))
        columns = self._key[types]
        key = np.where(columns >= 0, values[many[:, None], columns], 0)
        keyed = np.column_stack([event, key])
        _, firsts, group = np.unique(keyed, axis=0, return_index=True, return_inverse=True)
        first = firsts[group.reshape(-1)]
        by_type = np.lexsort((many, types, first))
        again = np.zeros(len(types), np.bool_)
        again[1:] = (np.diff(first[by_type]) == 0) & (np.diff(types[by_type]) == 0)
        run = many - np.maximum.accumulate(np.where(again, 0, many))
        rank = np.empty_like(run)
        rank[by_type] = run
        order = np.lexsort((many, rank, first, event))
        begins = np.full(len(types), SAME_OCCURRENCE, np.int32)
        begins[1:][np.diff(rank[order]) != 0] = NEW_OCCURRENCE
        begins[1:][np.diff(first[order]) != 0] = NEW_KEY
        begins[1:][np.diff(event[order]) != 0] = NEW_EVENT
        begins[0] = NEW_EVENT
        return order, begins


_NEW_EVENT: Ints = np.full(1, NEW_EVENT, np.int32)
_FIRST: Longs = np.zeros(1, np.int64)


def by_first_row(events: Ints | Longs) -> Longs:
    """The order of rows that puts those of one event together, where its first row is.

    >>> by_first_row(np.array([4, 9, 4, 9])).tolist()
    [0, 2, 1, 3]
    """
    _, firsts, inverse = np.unique(events, return_index=True, return_inverse=True)
    return np.argsort(firsts[inverse], kind="stable")
