"""Agenda: the matches of some events in the order in which they fire, in columns.

At each moment they fire by priority, then as the rules were added, then by values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from graphtide.rules.firing import Firing
from graphtide.rules.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.found import Found
    from graphtide.rules.registered import Registered


class Share(NamedTuple):
    """What one rule has on an agenda."""

    registered: Registered
    found: Found


class Agenda(Sequence[Firing]):
    """Some matches in order; each is made into an object when it is asked for.

    `first` is the number of the first of them among all firings.
    """

    def __init__(self, shares: list[Share], terms: TermDictionary, first: int) -> None:
        self.shares = _by_priority([share for share in shares if len(share.found)])
        self.first = first
        self._terms = terms
        moments = [share.found.moments for share in self.shares]
        which = [np.full(len(part), n, np.int64) for n, part in enumerate(moments)]
        place = [np.arange(len(part), dtype=np.int64) for part in moments]
        self.moments, self.which, self.place = (
            np.concatenate(parts) if parts else np.empty(0, np.int64)
            for parts in (moments, which, place)
        )
        if len(self.shares) > 1:
            order = np.argsort(self.moments, kind="stable")
            self.moments, self.which = self.moments[order], self.which[order]
            self.place = self.place[order]

    def __len__(self) -> int:
        return len(self.moments)

    @overload
    def __getitem__(self, place: int) -> Firing: ...
    @overload
    def __getitem__(self, place: slice) -> list[Firing]: ...
    def __getitem__(self, place: int | slice) -> Firing | list[Firing]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        return self._turn(place).firing()

    def _turn(self, place: int) -> Turn:
        registered, found = self.shares[self.which[place]]
        return Turn(registered, found, int(self.place[place]), self.first + place, self._terms)

    def groups(self) -> Iterator[tuple[int, range]]:
        """Each moment, with the places of what fires then."""
        begins = np.flatnonzero(np.diff(self.moments, prepend=-1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(self)], strict=True):
            yield int(self.moments[begin]), range(begin, end)

    def turns(self, places: range) -> Iterator[Turn]:
        """Some of them, one after the other."""
        return map(self._turn, places)

    def times(self) -> Longs:
        """When each of them fires."""
        found = np.empty(len(self), np.int64)
        for number, share in enumerate(self.shares):
            mine = self.which == number
            found[mine] = share.found.times[self.place[mine]]
        return found


def in_turn(shares: list[Share], terms: TermDictionary, first: int) -> Iterator[Turn]:
    """All matches of one moment in their order, without columns: most often there is one."""
    for registered, found in _by_priority(shares):
        for place in range(len(found.rows)):
            yield Turn(registered, found, place, first, terms)
            first += 1


def _by_priority(shares: list[Share]) -> list[Share]:
    """Shares as their rules fire, each with its matches in order."""
    if len(shares) > 1:
        shares.sort(key=lambda s: (-s.registered.matcher.rule.priority, s.registered.number))
    return [Share(share.registered, _in_order(share)) for share in shares]


def _in_order(share: Share) -> Found:
    """One rule's matches by moment, then by values in order of their variables' names."""
    found = share.found
    moments = found.moments
    if len(moments) < 2 or (moments[1:] > moments[:-1]).all():
        return found
    names = [v.name for v in share.registered.matcher.shape.variables]
    columns = [1 + names.index(name) for name in sorted(names, reverse=True)]
    keys = np.column_stack([found.rows[:, columns], moments])
    return found.chosen(np.lexsort(keys.T))
