"""Firing: a rule that fired, with which values, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Bgp, Filter, Join, Node, Project, TriplePattern
from graphtide.functions.templates import fill_template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.terms import Term
    from graphtide.rules.agenda import PendingFiring
    from graphtide.rules.matching.types import Match
    from graphtide.rules.model import EventCondition


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule that fired: when, with which values, because of which events.

    `events` has the first and last tick of each event. `number` counts the firings of an engine.
    """

    rule: str
    time: int
    values: dict[str, Term]
    events: dict[str, tuple[int, int]]
    number: int = 0
    match: Match | None = field(default=None, repr=False, compare=False)

    @property
    def row(self) -> dict[Var, Term]:
        """The values by variable."""
        if self.match is None:
            return {Var(name): term for name, term in self.values.items()}
        values = self.values
        return {v: values[v.name] for v in self.match.binding if v.name in values}

    def why(self) -> str:
        """The events and facts that matched, in words."""
        lines = [f"{self.rule} fired at {self.time}"]
        if self.match is not None:
            lines += (f"  {self._event(condition)}" for condition in self.match.rule.positive)
            lines += (f"  unless {condition.name}" for condition in self.match.rule.negative)
            lines += (f"  fact {fact}" for fact in self.facts())
        return "\n".join(lines)

    def facts(self) -> list[str]:
        """The facts that matched, as N-Triples texts."""
        query = self.match.rule.facts if self.match else None
        patterns = _patterns(query.root) if query else ()
        return [f"{s} {p} {o}" for s, p, o, _ in fill_template(patterns, self.row)]

    def _event(self, condition: EventCondition) -> str:
        start, end = self.events[condition.name]
        given = (
            self.values.get(a.name, a) if isinstance(a, Var) else a for a in condition.arguments
        )
        called = f"{condition.type.name}({', '.join(map(str, given))})"
        when = f"at {end}" if start == end else f"from {start} to {end}"
        return f"{condition.name} = {called} {when}"


def _patterns(node: Node) -> tuple[TriplePattern, ...]:
    """The triple patterns that each row of a query has matched."""
    match node:
        case Bgp(patterns):
            return patterns
        case Join(left, right):
            return _patterns(left) + _patterns(right)
        case Filter(_, child) | Project(child, _):
            return _patterns(child)
        case _:
            return ()


# --- FiringLog: what fired, oldest first; kept in columns, and made into objects when looked at.

MAX_LISTED = 100_000
"""Firings that are kept to be looked at; all are counted."""


class PendingFirings(Sequence["Firing"]):
    """Firings of single events, as turns."""

    def __init__(self, turns: list[PendingFiring]) -> None:
        self.turns = turns

    def __len__(self) -> int:
        return len(self.turns)

    @overload
    def __getitem__(self, place: int) -> Firing: ...
    @overload
    def __getitem__(self, place: slice) -> list[Firing]: ...
    def __getitem__(self, place: int | slice) -> Firing | list[Firing]:
        if isinstance(place, slice):
            return [turn.firing() for turn in self.turns[place]]
        return self.turns[place].firing()


class FiringLog(Sequence["Firing"]):
    """The last firings; `total` counts all there have been.

    Parts are lists of firings, or what makes them: turns, and agendas.

    >>> log = FiringLog()
    >>> for number in range(3):
    ...     log.add([number])
    >>> len(log), log[-1], list(log), log[1:]
    (3, 2, [0, 1, 2], [1, 2])
    """

    def __init__(self, most: int = MAX_LISTED) -> None:
        self.total = 0
        self._most = most
        self._parts: deque[Sequence[Firing]] = deque()
        self._size = 0
        self._gone = 0

    def add(self, part: Sequence[Firing]) -> None:
        """Add firings at the end; the oldest go if there are too many."""
        last = self._parts[-1] if self._parts else None
        if isinstance(part, list) and isinstance(last, list) and len(last) < self._most // 4:
            last += part
        else:
            self._parts.append(part)
        self._grown(len(part))

    def _grown(self, more: int) -> None:
        self.total += more
        self._size += more
        while self._size - len(self._parts[0]) >= self._most:
            self._size -= len(self._parts.popleft())
        self._gone = max(0, self._size - self._most)

    def add_pending(self, turn: PendingFiring) -> None:
        """Add one firing at the end."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, PendingFirings) and len(last.turns) < self._most // 4:
            last.turns.append(turn)
            self._grown(1)
        else:
            self.add(PendingFirings([turn]))

    def cut(self, many: int) -> None:
        """Forget the last firings, so many of them.

        >>> log = FiringLog()
        >>> log.add([1, 2, 3])
        >>> log.cut(2)
        >>> list(log)
        [1]
        """
        total, kept = self.total - many, list(self)[: max(0, len(self) - many)]
        self._parts.clear()
        self._size = self._gone = 0
        if kept:
            self.add(kept)
        self.total = total

    def __len__(self) -> int:
        return self._size - self._gone

    def __iter__(self) -> Iterator[Firing]:
        skipped = self._gone
        for part in tuple(self._parts):
            for place in range(min(skipped, len(part)), len(part)):
                yield part[place]
            skipped = max(0, skipped - len(part))

    @overload
    def __getitem__(self, place: int) -> Firing: ...
    @overload
    def __getitem__(self, place: slice) -> list[Firing]: ...
    def __getitem__(self, place: int | slice) -> Firing | list[Firing]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = place + len(self) if place < 0 else place
        if not 0 <= at < len(self):
            raise IndexError("there is no such firing")
        at += self._gone
        for part in self._parts:
            if at < len(part):
                return part[at]
            at -= len(part)
        raise AssertionError
