"""Agenda and ConflictSet: in which order matches fire.

The matches of one event (or transaction) fire by priority, then by declaration, then by values. An
`Agenda` has those of a batch of events in columns. A `ConflictSet` has activations that wait to be
fired one at a time, in an order that can be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.lang.tide.ast import QueryChange, QueryUpdate, RuleDeclaration
from graphtide.rdf.holders import flat_ids
from graphtide.rules.firing import Firing

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.change_events import RowTracker
    from graphtide.rules.matching.types import Match, Matches
    from graphtide.rules.rule_set import RuleEntry


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
        which = [np.full(len(part), n, np.int64) for n, part in enumerate(moments)]
        row = [np.arange(len(part), dtype=np.int64) for part in moments]
        self.moments, self.which, self.row = (
            np.concatenate(parts) if parts else np.empty(0, np.int64)
            for parts in (moments, which, row)
        )
        if len(self.shares) > 1:
            order = np.argsort(self.moments, kind="stable")
            self.moments, self.which = self.moments[order], self.which[order]
            self.row = self.row[order]
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

    def groups(self) -> Iterator[tuple[int, range]]:
        """Each moment, with the indices of the firings."""
        begins = np.flatnonzero(np.diff(self.moments, prepend=-1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(self)], strict=True):
            yield int(self.moments[begin]), range(begin, end)

    def pending(self, indices: range) -> Iterator[PendingFiring]:
        """Some of the firings."""
        return map(self._pending, indices)

    def times(self) -> Longs:
        """The times of the firings."""
        found = np.empty(len(self), np.int64)
        for number, share in enumerate(self.shares):
            mine = self.which == number
            found[mine] = share.matches.times[self.row[mine]]
        return found


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
    """One rule's matches by moment, then by the texts of values in order of the variables' names.

    Ids would not do: they depend on which terms were freed before.
    """
    found = share.matches
    moments = found.moments
    if len(moments) < 2 or (moments[1:] > moments[:-1]).all():
        return found
    names = [v.name for v in share.entry.matcher.shape.variables]
    columns = [1 + names.index(name) for name in sorted(names, reverse=True)]
    ordered = np.sort(moments, kind="stable")
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    same = np.isin(moments, shared)
    ranks = np.zeros((len(moments), len(columns)), np.int64)
    ids, places = np.unique(found.rows[same][:, columns], return_inverse=True)
    texts = np.array(terms.decode_column(ids.astype(np.int32)).fill_null("").to_pylist(), object)
    rank = np.empty(len(ids), np.int64)
    rank[np.argsort(texts, kind="stable")] = np.arange(len(ids))
    ranks[same] = rank[places].reshape(int(same.sum()), len(columns))
    return found.chosen(np.lexsort(np.column_stack([ranks, moments]).T))


# --- ConflictSet
#
# An activation of a rule that reacts to a row of a query is valid only while the row is as it was:
# if the row is removed before the activation fires, it is dropped.

Order = Literal["priority", "oldest", "newest", "random"]
Resolver = Order | Callable[["Activation"], object]
"""The order of activations: by name, or a key function (smallest first)."""

RowTrigger = QueryChange | QueryUpdate
MIN_PRUNED = 1024
"""Fewest activations at which invalid ones are looked for."""

ActivationState = Literal["appeared", "updated", "disappeared", "fired"]


@dataclass(slots=True, eq=False)
class Activation:
    """A match of a rule that waits to be fired, or was fired while its row is still there."""

    firing: Firing
    state: ActivationState
    priority: int
    number: int
    entry: RuleEntry
    depth: int

    @property
    def rule(self) -> str:
        """The rule's name."""
        return self.firing.rule

    @property
    def values(self) -> dict[str, Term]:
        """The values of the rule's variables."""
        return self.firing.values


class ConflictSet:
    """Activations that wait to be fired, and those fired whose rows are still there."""

    def __init__(
        self,
        rules: Sequence[RuleDeclaration],
        tracker: Callable[[str, tuple[Var, ...]], RowTracker],
        resolver: Resolver,
        seed: int,
    ) -> None:
        self._heap: list[tuple[object, int, Activation]] = []
        self._waiting: dict[int, Activation] = {}
        self._last: dict[tuple[str, tuple[int, ...]], int] = {}
        self._fired: dict[tuple[str, tuple[int, ...]], Activation] = {}
        self._changes = {rule.name: _change(rule) for rule in rules}
        asked = {(c.query, c.variables) for c in self._changes.values() if c is not None}
        self._trackers = {key: tracker(*key) for key in sorted(asked, key=str)}
        self._rules = {
            key: [n for n, c in self._changes.items() if c and (c.query, c.variables) == key]
            for key in self._trackers
        }
        self._prune_at = MIN_PRUNED
        self._numbers = {rule.name: number for number, rule in enumerate(rules)}
        self._random = Random(seed)  # noqa: S311 - an order, not a secret
        self._key = self._key_of(resolver)
        self._count = 0

    def held_ids(self) -> Iterator[Longs]:
        """The ids of all activations, and of the rows that trackers follow."""
        for tracker in self._trackers.values():
            yield from tracker.held_ids()
        yield flat_ids(row for _, row in (*self._last, *self._fired))
        matches = (a.firing.match for a in (*self._waiting.values(), *self._fired.values()))
        yield flat_ids(match.binding.values() for match in matches if match is not None)

    def _key_of(self, resolver: Resolver) -> Callable[[Activation], object]:
        if callable(resolver):
            return resolver
        keys: dict[str, Callable[[Activation], object]] = {
            "priority": lambda a: (-a.priority, self._numbers[a.rule], a.number),
            "oldest": lambda a: a.number,
            "newest": lambda a: -a.number,
            "random": lambda _: self._random.random(),
        }
        if resolver not in keys:
            raise GraphtideError(
                f"{resolver!r} is no order of firing", hint=f"use {', '.join(keys)}, or a function"
            )
        return keys[resolver]

    def add(self, firing: Firing, entry: RuleEntry, depth: int) -> None:
        """Add an activation."""
        state = _state(self._changes[firing.rule])
        priority = entry.matcher.rule.priority
        activation = Activation(firing, state, priority, self._count, entry, depth)
        change, row = self._row(activation)
        if change is not None:  # it replaces the activation of an earlier change of the row
            self._waiting.pop(self._last.get((firing.rule, row), -1), None)
            self._last[firing.rule, row] = self._count
        self._waiting[self._count] = activation
        heappush(self._heap, (self._key(activation), self._count, activation))
        self._count += 1
        self._prune()

    def next(self) -> Activation | None:
        """Remove and return the first valid activation; None if there is none."""
        self.catch_up()
        while self._heap:
            _, number, chosen = heappop(self._heap)
            waited = self._waiting.pop(number, None) is not None
            if waited and self._forget_row(chosen) and self._is_valid(chosen):
                return chosen
        return None

    def take(self, activation: Activation) -> Activation:
        """Remove and return an activation that the caller has chosen."""
        self.catch_up()
        if activation.number not in self._waiting or not self._is_valid(activation):
            raise GraphtideError(
                f"this activation of {activation.rule} does not wait to be fired",
                hint="activations() lists those that do",
            )
        self._forget_row(activation)
        return self._waiting.pop(activation.number)

    def _forget_row(self, activation: Activation) -> bool:
        _, row = self._row(activation)
        self._last.pop((activation.rule, row), None)
        return True

    def fired(self, activation: Activation) -> None:
        """An activation was fired; one ON APPEAR is listed while its row is there."""
        change, row = self._row(activation)
        activation.state = "fired"
        if isinstance(change, QueryChange) and change.appears:
            self._fired[activation.rule, row] = activation

    def clear(self) -> None:
        """Drop all that wait."""
        self._waiting.clear()
        self._last.clear()
        self._heap.clear()

    def activations(self) -> list[Activation]:
        """All activations, those that wait first."""
        self.catch_up()
        waiting = [each for each in self._waiting.values() if self._is_valid(each)]
        return [*waiting, *self._fired.values()]

    def catch_up(self) -> None:
        """Apply the changes of queries: drop fired activations of removed rows."""
        for key, tracker in self._trackers.items():
            removed, updated = tracker.catch_up()
            for rule in self._rules[key] if removed or updated else ():
                for row in removed:
                    self._fired.pop((rule, row), None)
                for row in updated:
                    if (rule, row) in self._fired:
                        self._fired[rule, row].state = "updated"

    def _prune(self) -> None:
        """Drop invalid activations once the set has doubled."""
        if len(self._heap) < self._prune_at:
            return
        self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
        for _, number, lost in self._heap:
            if not self._is_valid(lost):
                self._forget_row(self._waiting.pop(number))
        self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
        heapify(self._heap)
        self._prune_at = max(MIN_PRUNED, 2 * len(self._heap))

    def _is_valid(self, activation: Activation) -> bool:
        change, row = self._row(activation)
        if change is None:
            return True
        there = row in self._trackers[change.query, change.variables].rows
        return there if not isinstance(change, QueryChange) or change.appears else not there

    def _row(self, activation: Activation) -> tuple[RowTrigger | None, tuple[int, ...]]:
        change = self._changes[activation.rule]
        match = activation.firing.match
        if change is None or match is None:
            return None, ()
        return change, tuple(match.binding.get(v, 0) for v in change.variables)


def _state(change: RowTrigger | None) -> ActivationState:
    """The state of an activation that waits."""
    if isinstance(change, QueryUpdate):
        return "updated"
    return "disappeared" if isinstance(change, QueryChange) and not change.appears else "appeared"


def _change(rule: RuleDeclaration) -> RowTrigger | None:
    """The row change that alone makes a rule fire; None if the rule has other conditions."""
    if len(rule.events) != 1 or rule.facts is not None:
        return None
    source = rule.events[0].type.source
    arguments = rule.events[0].arguments
    whole = isinstance(source, (QueryChange, QueryUpdate)) and source.variables == arguments
    return source if whole else None  # type: ignore[return-value]
