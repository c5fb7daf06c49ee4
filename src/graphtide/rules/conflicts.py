"""ConflictSet: activations that wait to be fired, one at a time, in an order that can be chosen.

An activation is a match of a rule. One that came of a row of a query is good only while the row is
as it was: if an action takes the row away before its turn comes, it is dropped. So each of them
has a life: it has *appeared* (or its row was *updated*, or has *disappeared*, where the rule waits
for that), is *fired*, may be *updated* after that, and is gone with its row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Literal

from graphtide.errors import GraphtideError
from graphtide.lang.declarations import QueryChange, QueryUpdate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.lang.declarations import RuleDeclaration
    from graphtide.rdf.term import Term
    from graphtide.rules.firing import Firing
    from graphtide.rules.presence import Presence
    from graphtide.rules.registered import Registered

Order = Literal["priority", "oldest", "newest", "random"]
Resolver = Order | Callable[["Activation"], object]
"""Which activation is next: a known order, or a key of which the smallest is first."""

RowChange = QueryChange | QueryUpdate
State = Literal["appeared", "updated", "disappeared", "fired"]


@dataclass(slots=True, eq=False)
class Activation:
    """A match of a rule, and how far it is: waiting to be fired, or fired and still there."""

    firing: Firing
    state: State
    priority: int
    number: int
    registered: Registered
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
        presence: Callable[[str, tuple[Var, ...]], Presence],
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

    def add(self, firing: Firing, registered: Registered, depth: int) -> None:
        """A match waits to be fired."""
        state = _state(self._changes[firing.rule])
        priority = registered.matcher.rule.priority
        activation = Activation(firing, state, priority, self._count, registered, depth)
        change, row = self._row(activation)
        if change is not None:  # what waited for an earlier change of the row has come to nothing
            self._waiting.pop(self._last.get((firing.rule, row), -1), None)
            self._last[firing.rule, row] = self._count
        self._waiting[self._count] = activation
        heappush(self._heap, (self._key(activation), self._count, activation))
        self._count += 1

    def next(self) -> Activation | None:
        """The activation whose turn it is; those whose rows are not as they were are dropped."""
        while self._heap:
            _, number, chosen = heappop(self._heap)
            waited = self._waiting.pop(number, None) is not None
            if waited and self._forgotten(chosen) and self._is_good(chosen):
                return chosen
        return None

    def take(self, activation: Activation) -> Activation:
        """One that the caller has chosen."""
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
        self._look()
        waiting = [each for each in self._waiting.values() if self._is_good(each)]
        return [*waiting, *self._fired.values()]

    def _look(self) -> None:
        """Note what has become of the rows of what was fired."""
        updated = {key: each.catch_up() for key, each in self._presences.items()}
        for (rule, row), activation in list(self._fired.items()):
            change, _ = self._row(activation)
            assert isinstance(change, QueryChange)  # noqa: S101 - others are not kept
            key = change.query, change.variables
            if row not in self._presences[key].rows:
                del self._fired[rule, row]
            elif row in updated[key]:
                activation.state = "updated"

    def _is_good(self, activation: Activation) -> bool:
        change, row = self._row(activation)
        if change is None:
            return True
        presence = self._presences[change.query, change.variables]
        presence.catch_up_rows()
        there = row in presence.rows
        return there if not isinstance(change, QueryChange) or change.appears else not there

    def _row(self, activation: Activation) -> tuple[RowChange | None, tuple[int, ...]]:
        change = self._changes[activation.rule]
        match = activation.firing.match
        if change is None or match is None:
            return None, ()
        return change, tuple(match.binding.get(v, 0) for v in change.variables)


def _state(change: RowChange | None) -> State:
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
