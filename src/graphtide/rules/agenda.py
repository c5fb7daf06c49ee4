"""Agenda: the matches of some events in the order in which they fire, in columns.

At each moment they fire by priority, then as the rules were added, then by values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.lang.tide.ast import QueryChange, QueryUpdate
from graphtide.rules.firing import Firing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Longs
    from graphtide.lang.tide.ast import RuleDeclaration
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.change_events import RowTracker
    from graphtide.rules.matching.types import Match, Matches
    from graphtide.rules.rule_set import RuleEntry


# --- PendingFiring: a match whose turn it is to fire, made into an object only when somebody looks.


class PendingFiring:
    """One of the matches that were found, which is the firing of a number."""

    __slots__ = ("_found", "_place", "_terms", "entry", "number")

    def __init__(
        self, entry: RuleEntry, found: Matches, place: int, number: int, terms: TermDictionary
    ) -> None:
        self.entry = entry
        self.number = number
        self._found = found
        self._place = place
        self._terms = terms

    @property
    def rule(self) -> str:
        """The rule's name."""
        return self.entry.matcher.rule.name

    def binding(self) -> dict[Var, int]:
        """The ids of the variables' values."""
        row = self._found.rows[self._place].tolist()
        return dict(zip(self.entry.matcher.shape.variables, row[1:], strict=True))

    def firing(self) -> Firing:
        """All that is known of it."""
        match = self.entry.matcher.shape.match(self._found, self._place)
        return make_firing(match, self.number, self._terms)


class ChosenFiring(PendingFiring):
    """The turn of an activation that has waited."""

    __slots__ = ("_firing",)

    def __init__(self, firing: Firing, entry: RuleEntry) -> None:
        self.entry = entry
        self.number = firing.number
        self._firing = firing

    def binding(self) -> dict[Var, int]:
        """The ids of the variables' values."""
        return {} if self._firing.match is None else self._firing.match.binding

    def firing(self) -> Firing:
        """All that is known of it."""
        return self._firing


def make_firing(match: Match, number: int, terms: TermDictionary) -> Firing:
    """A match as a firing with a number."""
    spans = {n: (e.span.start, e.span.end) for n, e in match.events.items()}
    values = {v.name: terms.decode(i) for v, i in match.binding.items() if i}
    return Firing(match.rule.name, match.time, values, spans, number, match)


class RuleMatches(NamedTuple):
    """What one rule has on an agenda."""

    entry: RuleEntry
    found: Matches


class Agenda(Sequence[Firing]):
    """Some matches in order; each is made into an object when it is asked for.

    `first` is the number of the first of them among all firings.
    """

    def __init__(self, shares: list[RuleMatches], terms: TermDictionary, first: int) -> None:
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

    def _turn(self, place: int) -> PendingFiring:
        entry, found = self.shares[self.which[place]]
        return PendingFiring(entry, found, int(self.place[place]), self.first + place, self._terms)

    def groups(self) -> Iterator[tuple[int, range]]:
        """Each moment, with the places of what fires then."""
        begins = np.flatnonzero(np.diff(self.moments, prepend=-1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(self)], strict=True):
            yield int(self.moments[begin]), range(begin, end)

    def turns(self, places: range) -> Iterator[PendingFiring]:
        """Some of them, one after the other."""
        return map(self._turn, places)

    def times(self) -> Longs:
        """When each of them fires."""
        found = np.empty(len(self), np.int64)
        for number, share in enumerate(self.shares):
            mine = self.which == number
            found[mine] = share.found.times[self.place[mine]]
        return found


def in_firing_order(
    shares: list[RuleMatches], terms: TermDictionary, first: int
) -> Iterator[PendingFiring]:
    """All matches of one moment in their order, without columns: most often there is one."""
    for entry, found in _by_priority(shares):
        for place in range(len(found.rows)):
            yield PendingFiring(entry, found, place, first, terms)
            first += 1


def _by_priority(shares: list[RuleMatches]) -> list[RuleMatches]:
    """Shares as their rules fire, each with its matches in order."""
    if len(shares) > 1:
        shares.sort(key=lambda s: (-s.entry.matcher.rule.priority, s.entry.number))
    return [RuleMatches(share.entry, _in_order(share)) for share in shares]


def _in_order(share: RuleMatches) -> Matches:
    """One rule's matches by moment, then by values in order of their variables' names."""
    found = share.found
    moments = found.moments
    if len(moments) < 2 or (moments[1:] > moments[:-1]).all():
        return found
    names = [v.name for v in share.entry.matcher.shape.variables]
    columns = [1 + names.index(name) for name in sorted(names, reverse=True)]
    keys = np.column_stack([found.rows[:, columns], moments])
    return found.chosen(np.lexsort(keys.T))


# --- ConflictSet: activations that wait to be fired, one at a time, in an order that can be
# chosen.
#
# An activation is a match of a rule. One that came of a row of a query is good only while the row is
# as it was: if an action takes the row away before its turn comes, it is dropped. So each of them
# has a life: it has *appeared* (or its row was *updated*, or has *disappeared*, where the rule waits
# for that), is *fired*, may be *updated* after that, and is gone with its row.

Order = Literal["priority", "oldest", "newest", "random"]
Resolver = Order | Callable[["Activation"], object]
"""Which activation is next: a known order, or a key of which the smallest is first."""

RowChange = QueryChange | QueryUpdate
MIN_PRUNED = 1024
"""Activations below which it is not worth looking for those that can no longer fire."""

ActivationState = Literal["appeared", "updated", "disappeared", "fired"]


@dataclass(slots=True, eq=False)
class Activation:
    """A match of a rule, and how far it is: waiting to be fired, or fired and still there."""

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
    """What waits to be fired, and what was fired and is still there."""

    def __init__(
        self,
        rules: Sequence[RuleDeclaration],
        presence: Callable[[str, tuple[Var, ...]], RowTracker],
        resolver: Resolver,
        seed: int,
    ) -> None:
        self._heap: list[tuple[object, int, Activation]] = []
        self._waiting: dict[int, Activation] = {}
        self._last: dict[tuple[str, tuple[int, ...]], int] = {}
        self._fired: dict[tuple[str, tuple[int, ...]], Activation] = {}
        self._changes = {rule.name: _change(rule) for rule in rules}
        asked = {(c.query, c.variables) for c in self._changes.values() if c is not None}
        self._presences = {key: presence(*key) for key in sorted(asked, key=str)}
        self._rules = {
            key: [n for n, c in self._changes.items() if c and (c.query, c.variables) == key]
            for key in self._presences
        }
        self._prune_at = MIN_PRUNED
        self._numbers = {rule.name: number for number, rule in enumerate(rules)}
        self._random = Random(seed)  # noqa: S311 - an order, not a secret
        self._key = self._key_of(resolver)
        self._count = 0

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
        """A match waits to be fired."""
        state = _state(self._changes[firing.rule])
        priority = entry.matcher.rule.priority
        activation = Activation(firing, state, priority, self._count, entry, depth)
        change, row = self._row(activation)
        if change is not None:  # what waited for an earlier change of the row has come to nothing
            self._waiting.pop(self._last.get((firing.rule, row), -1), None)
            self._last[firing.rule, row] = self._count
        self._waiting[self._count] = activation
        heappush(self._heap, (self._key(activation), self._count, activation))
        self._count += 1
        self._prune()

    def next(self) -> Activation | None:
        """The activation whose turn it is; those whose rows are not as they were are dropped."""
        self.catch_up()
        while self._heap:
            _, number, chosen = heappop(self._heap)
            waited = self._waiting.pop(number, None) is not None
            if waited and self._forgotten(chosen) and self._is_good(chosen):
                return chosen
        return None

    def take(self, activation: Activation) -> Activation:
        """One that the caller has chosen."""
        self.catch_up()
        if activation.number not in self._waiting or not self._is_good(activation):
            raise GraphtideError(
                f"this activation of {activation.rule} does not wait to be fired",
                hint="activations() lists those that do",
            )
        self._forgotten(activation)
        return self._waiting.pop(activation.number)

    def _forgotten(self, activation: Activation) -> bool:
        _, row = self._row(activation)
        self._last.pop((activation.rule, row), None)
        return True

    def fired(self, activation: Activation) -> None:
        """An activation was fired; one of a row is listed while the row is there."""
        change, row = self._row(activation)
        activation.state = "fired"
        if isinstance(change, QueryChange) and change.appears:
            self._fired[activation.rule, row] = activation

    def forget(self) -> None:
        """Nothing waits any more."""
        self._waiting.clear()
        self._last.clear()
        self._heap.clear()

    def activations(self) -> list[Activation]:
        """All there are, those that wait first."""
        self.catch_up()
        waiting = [each for each in self._waiting.values() if self._is_good(each)]
        return [*waiting, *self._fired.values()]

    def catch_up(self) -> None:
        """Note what has become of the rows of queries, and keep nothing of those that went."""
        for key, presence in self._presences.items():
            gone, updated = presence.catch_up()
            for rule in self._rules[key] if gone or updated else ():
                for row in gone:
                    self._fired.pop((rule, row), None)
                for row in updated:
                    if (rule, row) in self._fired:
                        self._fired[rule, row].state = "updated"

    def _prune(self) -> None:
        """Forget now and then what can no longer fire, so that the set does not outgrow it."""
        if len(self._heap) < self._prune_at:
            return
        self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
        for _, number, lost in self._heap:
            if not self._is_good(lost):
                self._forgotten(self._waiting.pop(number))
        self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
        heapify(self._heap)
        self._prune_at = max(MIN_PRUNED, 2 * len(self._heap))

    def _is_good(self, activation: Activation) -> bool:
        change, row = self._row(activation)
        if change is None:
            return True
        there = row in self._presences[change.query, change.variables].rows
        return there if not isinstance(change, QueryChange) or change.appears else not there

    def _row(self, activation: Activation) -> tuple[RowChange | None, tuple[int, ...]]:
        change = self._changes[activation.rule]
        match = activation.firing.match
        if change is None or match is None:
            return None, ()
        return change, tuple(match.binding.get(v, 0) for v in change.variables)


def _state(change: RowChange | None) -> ActivationState:
    """What an activation waits as."""
    if isinstance(change, QueryUpdate):
        return "updated"
    return "disappeared" if isinstance(change, QueryChange) and not change.appears else "appeared"


def _change(rule: RuleDeclaration) -> RowChange | None:
    """The change of a query's rows that alone makes a rule fire; None if it needs more."""
    if len(rule.events) != 1 or rule.facts is not None:
        return None
    source = rule.events[0].type.source
    arguments = rule.events[0].arguments
    whole = isinstance(source, (QueryChange, QueryUpdate)) and source.variables == arguments
    return source if whole else None  # type: ignore[return-value]
