"""ConflictSet: activations that wait to be fired one at a time, in an order that can be chosen.

An activation is valid while all that its match needs is there: its facts, its events, and the rows
of queries whose changes are its events; and while no forbidden event (NO EVENT) has come. Retracted
and forbidden events remove activations at once, by an index. Facts and rows are looked up when an
activation is about to fire or to be listed: one look-up each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from graphtide.errors import GraphtideError
from graphtide.lang.tide.ast import QueryChange, QueryUpdate, RuleDeclaration
from graphtide.rdf.holders import flat_ids
from graphtide.rules.agenda import make_firing
from graphtide.rules.matching.types import dump_matches, saved_matches

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.change_events import RowTracker
    from graphtide.rules.firing import Firing
    from graphtide.rules.matching.absence import Absence
    from graphtide.rules.matching.no_events import Denial
    from graphtide.rules.rule_set import RuleEntry, RuleSet

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
    place: int = 0
    """Its place among those that were fired."""

    @property
    def rule(self) -> str:
        """The rule's name."""
        return self.firing.rule

    @property
    def values(self) -> dict[str, Term]:
        """The values of the rule's variables."""
        return self.firing.values


TrackedQuery = tuple[str, tuple["Var", ...]]
"""A query, and the variables that its rows are projected to."""

RowOfRule = tuple[str, tuple[int, ...]]
"""A rule, and the row whose change alone makes it fire."""


Change = tuple[Any, ...]
"""What has changed, by name, with what undoes it."""

ConflictsSavepoint = tuple[int, "tuple[Any, ...] | None", "list[tuple[Denial, ...]]"]
"""How many activations there had been; the state of the random numbers, if they count; forbidden
events that were to be read."""


@dataclass(frozen=True, slots=True)
class RowCondition:
    """An event of a rule that is the change of a query's row."""

    query: TrackedQuery
    arguments: tuple[Var | Term, ...]
    present: bool
    """Whether the row has to be there; of a row that disappeared, it must not."""


class ConflictSet:
    """Activations that wait to be fired, and those fired whose rows are still there."""

    def __init__(
        self,
        rules: Sequence[RuleDeclaration],
        entries: Iterable[RuleEntry],
        tracker: Callable[[str, tuple[Var, ...]], RowTracker],
        resolver: Resolver,
        seed: int,
    ) -> None:
        self._heap: list[tuple[object, int]] = []
        self._waiting: dict[int, Activation] = {}
        self._last: dict[RowOfRule, int] = {}
        self._fired: dict[RowOfRule, Activation] = {}
        self._index: dict[tuple[object, ...], set[int]] = {}
        self._conditions = {rule.name: list(_row_conditions(rule)) for rule in rules}
        self._triggers = {rule.name: _trigger(rule) for rule in rules}
        queries = {each.query for of_rule in self._conditions.values() for each in of_rule}
        self._trackers = {key: tracker(*key) for key in sorted(queries, key=str)}
        self._rules: dict[TrackedQuery, list[str]] = {key: [] for key in self._trackers}
        for name, trigger in self._triggers.items():
            if trigger is not None:
                self._rules[self._conditions[name][0].query].append(name)
        self._denying = [each for each in entries if each.matcher.absence is not None]
        for entry in self._denying:
            _absence(entry).denials = []
        self._prune_at = MIN_PRUNED
        self._numbers = {rule.name: number for number, rule in enumerate(rules)}
        self._random = Random(seed)  # noqa: S311 - an order, not a secret
        self._key = self._key_of(resolver)
        self._draws = resolver == "random"
        self._journal: list[Change] = []
        """What has changed since the savepoint."""
        self._by_priority = resolver == "priority"
        """Whether the order depends on where a rule is declared."""
        self._count = self._places = 0

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

    # --- what a snapshot has of it ---

    def dump(self) -> dict[str, Any]:
        """Its activations, and the order in which those that wait are looked at.

        Entries of the heap whose activations are gone are saved, too: they decide when invalid
        activations are dropped.
        """
        self.catch_up()
        groups: dict[str, list[Activation]] = {}
        for each in (*self._waiting.values(), *self._fired.values()):
            groups.setdefault(each.rule, []).append(each)
        return {
            "rules": {rule: _dump_activations(own) for rule, own in groups.items()},
            "waiting": list(self._waiting),
            "fired": [each.number for each in self._fired.values()],
            "heap": self._heap,
            "random": self._random.getstate(),
            "counts": [self._count, self._prune_at],
        }

    def load(self, saved: Mapping[str, Any], entries: RuleSet, terms: TermDictionary) -> None:
        """Go on with saved activations."""
        self.catch_up()
        loaded: dict[int, Activation] = {}
        for rule, own in saved["rules"].items():
            for each in _load_activations(own, entries[rule], terms):
                loaded[each.number] = each
        for number in saved["waiting"]:
            self._list(loaded[number])
        for each in map(loaded.__getitem__, saved["fired"]):
            self._list_fired((each.rule, self._row(each)), each)
        self._heap = [
            (tuple(key) if isinstance(key, list) else key, number) for key, number in saved["heap"]
        ]
        version, state, following = saved["random"]
        self._random.setstate((version, tuple(state), following))
        self._count, self._prune_at = saved["counts"]

    def load_kept(
        self,
        saved: Mapping[str, Any],
        entries: RuleSet,
        terms: TermDictionary,
        rules: Collection[str],
    ) -> None:
        """Go on with the saved activations of some rules; others may have come before them."""
        own = {rule: each for rule, each in saved["rules"].items() if rule in rules}
        known = {number for each in own.values() for _, number, _, _ in each["each"]}
        waiting = [number for number in saved["waiting"] if number in known]
        fired = [number for number in saved["fired"] if number in known]
        self.load({**saved, "rules": own, "waiting": waiting, "fired": fired}, entries, terms)
        if self._by_priority:
            self._heap = [
                (self._key(self._waiting[number]) if number in self._waiting else key, number)
                for key, number in self._heap
            ]
            heapify(self._heap)

    def first_time(self) -> float:
        """Returns the earliest time of a match that waits."""
        return min((each.firing.time for each in self._waiting.values()), default=inf)

    def first_since(self) -> dict[str, int]:
        """By rule, the least number of transactions before an event of an activation."""
        found: dict[str, int] = {}
        for each in self._waiting.values():
            for event in () if each.firing.match is None else each.firing.match.events.values():
                found[each.rule] = min(event.since, found.get(each.rule, event.since))
        return found

    # --- what waits ---

    def add(self, firing: Firing, entry: RuleEntry, depth: int) -> None:
        """Add an activation."""
        trigger, number = self._triggers[firing.rule], self._count
        priority = entry.matcher.rule.priority
        activation = Activation(firing, _state(trigger), priority, number, entry, depth)
        self._list(activation)
        entry_of_heap = self._key(activation), number
        self._journal.append(("pushed", entry_of_heap))
        heappush(self._heap, entry_of_heap)
        self._count += 1
        self._prune()

    def _list(self, activation: Activation) -> None:
        rule, number = activation.rule, activation.number
        if self._triggers[rule] is not None:  # it replaces that of an earlier change of the row
            row = self._row(activation)
            self._remove(self._last.get((rule, row), -1))
            self._last[rule, row] = number
        self._journal.append(("listed", activation))
        self._waiting[number] = activation
        for key in _keys(activation):
            self._index.setdefault(key, set()).add(number)

    def first(self) -> Activation | None:
        """The first valid activation; invalid ones before it are removed."""
        self.catch_up()
        while self._heap:
            found = self._waiting.get(self._heap[0][1])
            if found is not None and self._is_valid(found):
                return found
            self._pop()
            if found is not None:
                self._remove(found.number)
        return None

    def checked(self, activation: Activation) -> Activation:
        """An activation that the caller has chosen, if it waits and is valid."""
        self.catch_up()
        if activation.number not in self._waiting or not self._is_valid(activation):
            raise GraphtideError(
                f"this activation of {activation.rule} does not wait to be fired",
                hint="activations() lists those that do",
            )
        return activation

    def take(self, activation: Activation) -> None:
        """Remove an activation that is to be fired."""
        self._remove(activation.number)
        if self._heap and self._heap[0][1] == activation.number:
            self._pop()

    def _pop(self) -> None:
        self._journal.append(("popped", self._heap[0]))
        heappop(self._heap)

    def fired(self, activation: Activation) -> None:
        """An activation was fired; one ON APPEAR is listed while its row is there."""
        trigger = self._triggers[activation.rule]
        self._set_state(activation, "fired")
        if isinstance(trigger, QueryChange) and trigger.appears:
            self._list_fired((activation.rule, self._row(activation)), activation)

    def _list_fired(self, row: RowOfRule, activation: Activation) -> None:
        before = self._fired.get(row)
        activation.place = self._places if before is None else before.place
        self._journal.append(("fired", row, before))
        self._fired[row] = activation
        self._places += 1

    def _set_state(self, activation: Activation, state: ActivationState) -> None:
        self._journal.append(("state", activation, activation.state))
        activation.state = state

    def clear(self) -> None:
        """Drop all that wait."""
        self._journal.append(("cleared", self._waiting, self._heap, self._prune_at))
        self._waiting, self._heap, self._last, self._index = {}, [], {}, {}

    # --- a piece of input happens wholly, or not at all ---

    def savepoint(self) -> ConflictsSavepoint:
        """What `roll_back` needs: changes are journaled from here on."""
        self._journal = []
        for tracker in self._trackers.values():
            tracker.savepoint()
        denials = [tuple(_absence(entry).denials or ()) for entry in self._denying]
        return self._count, self._random.getstate() if self._draws else None, denials

    def roll_back(self, to: ConflictsSavepoint) -> None:
        """Go back to a savepoint."""
        waiting, heap, fired = self._waiting.copy(), self._heap.copy(), self._fired.copy()
        prune_at = self._prune_at
        for kind, what, *more in reversed(self._journal):
            match kind:
                case "listed":
                    waiting.pop(what.number, None)
                case "removed":
                    waiting[what.number] = what
                case "pushed":
                    heap = [entry for entry in heap if entry is not what]
                case "popped":
                    heap.append(what)
                case "cleared":
                    waiting, heap, prune_at = what.copy(), more[0].copy(), more[1]
                case "state":
                    what.state = more[0]
                case _ if more[0] is None:
                    fired.pop(what, None)
                case _:
                    fired[what] = more[0]
        self._restore(waiting, heap, fired, prune_at)
        for tracker in self._trackers.values():
            tracker.roll_back()
        self._count, drawn, denials = to
        if drawn is not None:
            self._random.setstate(drawn)
        for entry, own in zip(self._denying, denials, strict=True):
            _absence(entry).denials = list(own)

    def _restore(
        self,
        waiting: dict[int, Activation],
        heap: list[tuple[object, int]],
        fired: dict[RowOfRule, Activation],
        prune_at: int,
    ) -> None:
        """Replace all activations at once, so that this can be interrupted and done again."""
        ordered = dict(sorted(waiting.items()))
        fired = dict(sorted(fired.items(), key=lambda each: each[1].place))
        heapify(heap)
        last: dict[RowOfRule, int] = {}
        index: dict[tuple[object, ...], set[int]] = {}
        for number, each in ordered.items():
            if self._triggers[each.rule] is not None:
                last[each.rule, self._row(each)] = number
            for key in _keys(each):
                index.setdefault(key, set()).add(number)
        self._waiting, self._heap, self._fired, self._prune_at = ordered, heap, fired, prune_at
        self._last, self._index, self._journal = last, index, []

    def activations(self) -> list[Activation]:
        """All activations, those that wait first."""
        self.catch_up()
        waiting = [each for each in self._waiting.values() if self._is_valid(each)]
        return [*waiting, *self._fired.values()]

    # --- what removes activations ---

    def retract(self, order: int) -> None:
        """An event was retracted: drop the activations that it is part of."""
        for number in sorted(self._index.get((order,), ())):
            self._remove(number)

    def catch_up(self) -> None:
        """Apply the changes of queries to fired activations, and forbidden events to waiting ones.

        Changes of facts and rows that waiting ones need are seen when these are looked at.
        """
        for query, tracker in self._trackers.items():
            removed, updated = tracker.catch_up()
            for rule in self._rules[query] if removed or updated else ():
                for row in removed:
                    if (rule, row) in self._fired:
                        self._journal.append(("fired", (rule, row), self._fired.pop((rule, row))))
                for row in updated:
                    if (rule, row) in self._fired:
                        self._set_state(self._fired[rule, row], "updated")
        for entry in self._denying:
            denials = _absence(entry).denials
            if denials:
                _absence(entry).denials = []
                for denial in denials:
                    self._deny(entry, denial)

    def _deny(self, entry: RuleEntry, denial: Denial) -> None:
        """Drop the activations of a rule that a later event forbids."""
        absence, name = _absence(entry), denial.condition.name
        values = tuple(denial.binding[v] for v in absence.no_events.known[name])
        for number in sorted(self._index.get((entry.matcher.rule.name, name, values), ())):
            match = self._waiting[number].firing.match
            assert match is not None  # noqa: S101 - it is in the index
            last = max(event.order for event in match.events.values())
            if last < denial.event.order and absence.no_events.cancels(denial, match):
                self._remove(number)

    def _remove(self, number: int) -> Activation | None:
        """Remove an activation that waits, if there is one of this number."""
        activation = self._waiting.pop(number, None)
        if activation is not None:
            self._journal.append(("removed", activation))
            for key in _keys(activation):
                self._index[key].discard(number)
                if not self._index[key]:
                    del self._index[key]
            if self._triggers[activation.rule] is not None:
                self._last.pop((activation.rule, self._row(activation)), None)
        return activation

    def _prune(self) -> None:
        """Drop invalid activations once the set has doubled."""
        if len(self._heap) < self._prune_at:
            return
        for number, waiting in list(self._waiting.items()):
            if not self._is_valid(waiting):
                self._remove(number)
        self._journal.append(("cleared", self._waiting.copy(), self._heap, self._prune_at))
        self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
        heapify(self._heap)
        self._prune_at = max(MIN_PRUNED, 2 * len(self._heap))

    def _is_valid(self, activation: Activation) -> bool:
        """Whether facts and rows are still as the match found them."""
        match = activation.firing.match
        if match is None:
            return True
        for condition in self._conditions[activation.rule]:
            tracker = self._trackers[condition.query]
            if (tracker.row(condition.arguments, match.binding) in tracker.rows) is not (
                condition.present
            ):
                return False
        return activation.entry.matcher.facts_hold(match)

    def _row(self, activation: Activation) -> tuple[int, ...]:
        """The row whose change alone makes the rule fire."""
        match, condition = activation.firing.match, self._conditions[activation.rule][0]
        binding = {} if match is None else match.binding
        return self._trackers[condition.query].row(condition.arguments, binding)


def _dump_activations(activations: Sequence[Activation]) -> dict[str, Any]:
    """Activations of one rule."""
    matches = [each.firing.match for each in activations if each.firing.match is not None]
    return {
        "each": [(a.state, a.number, a.depth, a.firing.number) for a in activations],
        **dump_matches(matches),
    }


def _load_activations(
    saved: Mapping[str, Any], entry: RuleEntry, terms: TermDictionary
) -> Iterator[Activation]:
    matches = saved_matches(saved)
    for place, (state, number, depth, fired) in enumerate(saved["each"]):
        firing = make_firing(entry.matcher.shape.match(matches, place), fired, terms)
        yield Activation(firing, state, entry.matcher.rule.priority, number, entry, depth)


def _keys(activation: Activation) -> Iterator[tuple[object, ...]]:
    """The keys of an activation in the index: its events, and what NO EVENT may cancel it by."""
    match, absence = activation.firing.match, activation.entry.matcher.absence
    if match is None:
        return
    yield from {(event.order,) for event in match.events.values()}
    if absence is not None:
        for name, known in absence.no_events.known.items():
            yield activation.rule, name, tuple(match.binding[v] for v in known)


def _absence(entry: RuleEntry) -> Absence:
    absence = entry.matcher.absence
    assert absence is not None  # noqa: S101 - the rule has NO EVENT
    return absence


def _state(change: RowTrigger | None) -> ActivationState:
    """The state of an activation that waits."""
    if isinstance(change, QueryUpdate):
        return "updated"
    return "disappeared" if isinstance(change, QueryChange) and not change.appears else "appeared"


def _row_conditions(rule: RuleDeclaration) -> Iterator[RowCondition]:
    """The events of a rule that are changes of rows."""
    for use in rule.events:
        source = use.type.source
        if isinstance(source, (QueryChange, QueryUpdate)) and not use.negated:
            present = isinstance(source, QueryUpdate) or source.appears
            yield RowCondition((source.query, use.type.parameters), use.arguments, present)


def _trigger(rule: RuleDeclaration) -> RowTrigger | None:
    """The row change that alone makes a rule fire; None if the rule has other conditions."""
    if len(rule.events) != 1 or rule.facts is not None:
        return None
    source = rule.events[0].type.source
    return source if isinstance(source, (QueryChange, QueryUpdate)) else None
