"""Agenda: the matches of some events in the order in which they fire, in columns.

At each moment they fire by priority, then as the rules were added, then by values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from graphtide.rules.firing import Firing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.found import Found, Match
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
        shares = [share for share in shares if len(share.found)]
        shares.sort(key=lambda s: (-s.registered.matcher.rule.priority, s.registered.number))
        self.shares = [Share(s.registered, _in_order(s)) for s in shares]
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
        share = self.shares[self.which[place]]
        match = share.registered.matcher.shape.match(share.found, int(self.place[place]))
        return make_firing(match, self.first + place, self._terms)

    def groups(self) -> Iterator[tuple[int, range]]:
        """Each moment, with the places of what fires then."""
        begins = np.flatnonzero(np.diff(self.moments, prepend=-1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(self)], strict=True):
            yield int(self.moments[begin]), range(begin, end)

    def times(self) -> Longs:
        """When each of them fires."""
        found = np.empty(len(self), np.int64)
        for number, share in enumerate(self.shares):
            mine = self.which == number
            found[mine] = share.found.times[self.place[mine]]
        return found


def make_firing(match: Match, number: int, terms: TermDictionary) -> Firing:
    """A match as a firing with a number."""
    spans = {n: (e.span.start, e.span.end) for n, e in match.events.items()}
    values = {v.name: terms.decode(i) for v, i in match.binding.items() if i}
    return Firing(match.rule.name, match.time, values, spans, number, match)


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
