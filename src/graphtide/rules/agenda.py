"""Agenda: in which order matches fire.

The matches of one event (or transaction) fire by priority, then by declaration, then by values. An
`Agenda` has those of a batch of events in columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, overload

import numpy as np

from graphtide.rules.firing import Firing

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.matching.types import Match, Matches
    from graphtide.rules.rule_set import RuleEntry


FEW: Final = 32
"""Ids up to which texts are compared one by one: columns cost more than that."""


class PendingFiring:
    """A match that is to fire, decoded on access."""

    __slots__ = ("_matches", "_row", "_terms", "entry", "number")

    def __init__(
        self, entry: RuleEntry, matches: Matches, row: int, number: int, terms: TermDictionary
    ) -> None:
        self.entry = entry
        self.number = number
        self._matches = matches
        self._row = row
        self._terms = terms

    @property
    def rule(self) -> str:
        """The rule's name."""
        return self.entry.matcher.rule.name

    def binding(self) -> dict[Var, int]:
        """The ids of the variables' values."""
        row = self._matches.rows[self._row].tolist()
        return dict(zip(self.entry.matcher.shape.variables, row[1:], strict=True))

    def ids(self) -> list[int]:
        """The ids of its values."""
        row: list[int] = self._matches.rows[self._row, 1:].tolist()
        return row

    def firing(self) -> Firing:
        """The firing, with all its values."""
        match = self.entry.matcher.shape.match(self._matches, self._row)
        return make_firing(match, self.number, self._terms)


class ChosenFiring(PendingFiring):
    """A pending firing made from an activation of the conflict set."""

    __slots__ = ("_firing",)

    def __init__(self, firing: Firing, entry: RuleEntry) -> None:
        self.entry = entry
        self.number = firing.number
        self._firing = firing

    def binding(self) -> dict[Var, int]:
        """The ids of the variables' values."""
        return {} if self._firing.match is None else self._firing.match.binding

    def ids(self) -> list[int]:
        """None: it is decoded."""
        return []

    def firing(self) -> Firing:
        """The firing, with all its values."""
        return self._firing


def make_firing(match: Match, number: int, terms: TermDictionary) -> Firing:
    """A match as a firing."""
    spans = {n: (e.span.start, e.span.end) for n, e in match.events.items()}
    values = {v.name: terms.decode(i) for v, i in match.binding.items() if i}
    return Firing(match.rule.name, match.time, values, spans, number, match)


class RuleMatches(NamedTuple):
    """The matches of one rule."""

    entry: RuleEntry
    matches: Matches


class Agenda(Sequence[Firing]):
    """The matches of a batch in firing order, decoded on access.

    `first` is the number of the first firing. For each firing, `which` has the index of its rule in
    `shares`, `row` that of its match there, and `moments` when it fires, as in `Matches`.
    """

    def __init__(self, shares: list[RuleMatches], terms: TermDictionary, first: int) -> None:
        self.shares = _by_priority([share for share in shares if len(share.matches)], terms)
        self.first = first
        self._terms = terms
        moments = [share.matches.moments for share in self.shares]
        ends = [share.matches.times for share in self.shares]
        which = [np.full(len(part), n, np.int64) for n, part in enumerate(moments)]
        row = [np.arange(len(part), dtype=np.int64) for part in moments]
        self.moments, self._ends, self.which, self.row = (
            np.concatenate(parts) if parts else np.empty(0, np.int64)
            for parts in (moments, ends, which, row)
        )
        waited = self.moments % 2 == 0
        if len(self.shares) > 1 or waited.any():
            # Matches that have waited fire in order of the times until which they have.
            order = np.lexsort((np.where(waited, self._ends, 0), self.moments))
            self.moments, self._ends = self.moments[order], self._ends[order]
            self.which, self.row = self.which[order], self.row[order]
        terms.holders.add(self)  # a log of firings retains it

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all matches."""
        for share in self.shares:
            yield share.matches.rows[:, 1:]

    def __len__(self) -> int:
        return len(self.moments)

    @overload
    def __getitem__(self, index: int) -> Firing: ...
    @overload
    def __getitem__(self, index: slice) -> list[Firing]: ...
    def __getitem__(self, index: int | slice) -> Firing | list[Firing]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return self._pending(index).firing()

    def _pending(self, index: int) -> PendingFiring:
        entry, found = self.shares[self.which[index]]
        return PendingFiring(entry, found, int(self.row[index]), self.first + index, self._terms)

    def groups(self) -> Iterator[tuple[int, int, range]]:
        """Each moment, its time, and the indices of the firings."""
        changes = np.diff(self.moments, prepend=-1) != 0
        changes[1:] |= (self.moments[1:] % 2 == 0) & (self._ends[1:] != self._ends[:-1])
        begins = np.flatnonzero(changes).tolist()
        for begin, end in zip(begins, [*begins[1:], len(self)], strict=True):
            yield int(self.moments[begin]), int(self._ends[begin]), range(begin, end)

    def pending(self, indices: range) -> Iterator[PendingFiring]:
        """Some of the firings."""
        return map(self._pending, indices)

    def times(self) -> Longs:
        """The times of the firings."""
        return self._ends


def in_firing_order(
    shares: list[RuleMatches], terms: TermDictionary, first: int
) -> Iterator[PendingFiring]:
    """The matches of one event in firing order, without columns: most often there is one."""
    for entry, found in _by_priority(shares, terms):
        for row in range(len(found.rows)):
            yield PendingFiring(entry, found, row, first, terms)
            first += 1


def _by_priority(shares: list[RuleMatches], terms: TermDictionary) -> list[RuleMatches]:
    """Matches of rules, by priority and declaration, each in order."""
    if len(shares) > 1:
        shares.sort(key=lambda s: (-s.entry.matcher.rule.priority, s.entry.number))
    return [RuleMatches(share.entry, _in_order(share, terms)) for share in shares]


def _in_order(share: RuleMatches, terms: TermDictionary) -> Matches:
    """One rule's matches by moment, then by the texts of values in order of variables' names.

    Not by ids: these depend on which terms came first, and so on how the input was divided.
    """
    matches = share.matches
    moments = matches.moments
    if len(moments) < 2 or (moments[1:] > moments[:-1]).all():
        return matches
    names = [v.name for v in share.entry.matcher.shape.variables]
    columns = [1 + names.index(name) for name in sorted(names, reverse=True)]
    keys = [_ranks(matches.rows[:, column], terms) for column in columns]
    return matches.chosen(np.lexsort((*keys, moments)))


def _ranks(ids: Ints, terms: TermDictionary) -> Longs:
    """For each id, the rank of its text among those of all of them."""
    if len(ids) <= FEW:
        own = [terms.text(i) if i else "" for i in ids.tolist()]
        rank = {text: at for at, text in enumerate(sorted(set(own)))}
        return np.array([rank[text] for text in own], np.int64)
    different, which = np.unique(ids, return_inverse=True)
    texts = [text or "" for text in terms.decode_column(different).to_pylist()]
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[which]
