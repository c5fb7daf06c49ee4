"""Firing, FiringLog and Cascade: a rule that fired, the last firings, and what they cause.

A cascade that exceeds its limit is rolled back: rules, patterns and the log of firings return to
the savepoint that was taken before its first action.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from logging import getLogger
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Bgp, Filter, Join, Node, Project, TriplePattern
from graphtide.errors import CascadeError
from graphtide.functions.templates import fill_template
from graphtide.rdf.holders import Holders
from graphtide.rules.identity import FiringIds

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.terms import Term
    from graphtide.rules.agenda import PendingFiring
    from graphtide.rules.conflicts import ConflictSet, ConflictsSavepoint
    from graphtide.rules.detection import Detection, DetectionSavepoint, PatternSavepoint
    from graphtide.rules.effects import Effects, EffectsSavepoint
    from graphtide.rules.matching.types import Match
    from graphtide.rules.model import EventCondition
    from graphtide.rules.rule_set import RuleSavepoints, RuleSet

log = getLogger(__name__)


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
        """The events and facts that matched, as text."""
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
    """The triple patterns that every row of a query matches."""
    match node:
        case Bgp(patterns):
            return patterns
        case Join(left, right):
            return _patterns(left) + _patterns(right)
        case Filter(_, child) | Project(child, _):
            return _patterns(child)
        case _:
            return ()


# --- FiringLog: the last firings, retained in columns and decoded on access.

MAX_LISTED = 100_000
"""Firings that the log retains."""


class PendingFirings(Sequence["Firing"]):
    """Firings that are decoded on access."""

    def __init__(self) -> None:
        self.pending: list[PendingFiring] = []
        self._ids = array("i")

    def append(self, firing: PendingFiring) -> None:
        """Add one; its ids first, so that an interrupt in between leaves it out."""
        self._ids.extend(firing.ids())
        self.pending.append(firing)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all of them."""
        yield np.array(self._ids, np.int32)

    def __len__(self) -> int:
        return len(self.pending)

    @overload
    def __getitem__(self, place: int) -> Firing: ...
    @overload
    def __getitem__(self, place: slice) -> list[Firing]: ...
    def __getitem__(self, place: int | slice) -> Firing | list[Firing]:
        if isinstance(place, slice):
            return [each.firing() for each in self.pending[place]]
        return self.pending[place].firing()


class RecentEvents:
    """The last complex events of a pattern: their values, starts and times in one array."""

    def __init__(self, parameters: int) -> None:
        self.total = 0
        self._rows: Longs = np.empty((16, parameters + 2), np.int64)
        self._size = 0

    def held_ids(self) -> Iterator[Longs]:
        """The ids of the values."""
        yield self._rows[max(0, self._size - MAX_LISTED) : self._size, :-2]

    def add(self, values: Longs, starts: Longs, times: Longs) -> None:
        """Add complex events; of the older ones, MAX_LISTED are retained."""
        end = self._size + len(times)
        if end > len(self._rows):
            retained = self._rows[max(0, self._size - MAX_LISTED) : self._size]
            end = len(retained) + len(times)
            self._rows = np.empty((2 * end, self._rows.shape[1]), np.int64)
            self._rows[: len(retained)] = retained
        added = self._rows[end - len(times) : end]
        added[:, :-2], added[:, -2], added[:, -1] = values, starts, times
        self._size, self.total = end, self.total + len(times)

    def cut(self, total: int) -> None:
        """Remove all but the first ones."""
        self._size, self.total = max(0, self._size - self.total + total), total

    def rows(self, last: int | None) -> list[list[int]]:
        """Values, start and time of the last ones, oldest first; of all that are retained."""
        many = MAX_LISTED if last is None else min(last, MAX_LISTED)
        rows: list[list[int]] = self._rows[max(0, self._size - many) : self._size].tolist()
        return rows


class FiringLog(Sequence["Firing"]):
    """The last firings; `total` counts all there have been.

    Its parts are lists of firings, or sequences that decode them on access. Who looks at it from
    outside sees what waited: `settle` fires it first.

    >>> log = FiringLog()
    >>> for number in range(3):
    ...     log.add([number])
    >>> len(log), log[-1], list(log), log[1:]
    (3, 2, [0, 1, 2], [1, 2])
    """

    def __init__(
        self,
        holders: Holders | None = None,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._holders = Holders() if holders is None else holders
        self._settle = settle
        self._parts: deque[tuple[int, Sequence[Firing]]] = deque([(0, [])])
        """Each with the number of firings before it. What a firing adds is one step, which an
        interrupt cannot divide."""
        self.ids = FiringIds()

    @property
    def total(self) -> int:
        """How many firings there have been."""
        before, last = self._parts[-1]
        return before + len(last)

    def add(self, part: Sequence[Firing]) -> None:
        """Append firings; the oldest are evicted if there are too many."""
        before, last = self._parts[-1]
        if isinstance(part, list) and isinstance(last, list) and len(last) < MAX_LISTED // 4:
            last += part
        else:
            self._parts.append((before + len(last), part))
        self._evict()

    def start_at(self, total: int) -> None:
        """Begin with a number of firings that are not retained."""
        self._parts = deque([(total, [])])

    def _evict(self) -> None:
        while len(self._parts) > 1 and self.total - self._parts[1][0] >= MAX_LISTED:
            self._parts.popleft()

    def add_pending(self, firing: PendingFiring) -> None:
        """Append one firing."""
        last = self._parts[-1][1]
        if isinstance(last, PendingFirings) and len(last.pending) < MAX_LISTED // 4:
            self._evict()
            last.append(firing)
        else:
            part = PendingFirings()
            part.append(firing)
            self._holders.add(part)
            self.add(part)

    def cut(self, total: int) -> None:
        """Remove all firings but the first ones.

        >>> log = FiringLog()
        >>> log.add([1, 2, 3])
        >>> log.cut(1)
        >>> list(log)
        [1]
        """
        self.ids.cut(total)
        while len(self._parts) > 1 and self._parts[-1][0] >= total:
            self._parts.pop()
        before, last = self._parts[-1]
        if before + len(last) > total:
            self._parts[-1] = min(before, total), list(last[: max(0, total - before)])

    def __len__(self) -> int:
        self._settle()
        return min(self.total - self._parts[0][0], MAX_LISTED)

    def __iter__(self) -> Iterator[Firing]:
        first = -len(self) + self.total
        for before, part in tuple(self._parts):
            for place in range(max(0, first - before), len(part)):
                yield part[place]

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
        number = -len(self) + self.total + at
        before, part = next(each for each in reversed(self._parts) if each[0] <= number)
        return part[number - before]


# --- Cascade: input and all firings that it causes in turn.

NAMED_RULES = 100
"""Last firings of an endless cascade whose rules are named in the error."""


class CascadeStart(NamedTuple):
    """The state to roll back to: memories of rules, number of firings, tokens of patterns."""

    states: RuleSavepoints
    fired: int
    tokens: list[PatternSavepoint]


class EngineSavepoint(NamedTuple):
    """An engine before a piece of input: its parts, number of firings, what ended last."""

    order: int
    detection: DetectionSavepoint | None
    conflicts: ConflictsSavepoint | None
    effects: EffectsSavepoint
    fired: int
    ended: dict[str, tuple[int, int]]


class Cascade:
    """Counts the firings that actions cause, and rolls back those of a cascade without end."""

    def __init__(
        self, rules: RuleSet, log: FiringLog, detection: Detection | None, max_firings: int
    ) -> None:
        self._rules = rules
        self._log = log
        self._detection = detection
        self._max = max_firings
        self._caused: deque[str] = deque(maxlen=NAMED_RULES)
        self._count = 0
        self.ended: dict[str, tuple[int, int]] = {}
        """By kind, the time at which timers or absences ended last, and how many once more."""
        self._start: CascadeStart | None = None

    def begin(self) -> None:
        """Begin another cascade: the savepoint of the last one is discarded."""
        self._count = 0
        self._caused.clear()
        self._start = None
        self._rules.begin()

    def protect(self, effects: Effects, conflicts: ConflictSet | None) -> EngineSavepoint:
        """A piece of input comes: what `roll_back` needs."""
        return EngineSavepoint(
            self._rules.order,
            None if self._detection is None else self._detection.protect(),
            None if conflicts is None else conflicts.savepoint(),
            effects.savepoint(),
            self._log.total,
            self.ended.copy(),
        )

    def roll_back(
        self, to: EngineSavepoint, effects: Effects, conflicts: ConflictSet | None
    ) -> None:
        """A piece of input was interrupted: restore everything."""
        effects.roll_back(to.effects)
        if conflicts is not None and to.conflicts is not None:
            conflicts.roll_back(to.conflicts)
        self._rules.roll_back(to.order)
        if self._detection is not None and to.detection is not None:
            self._detection.roll_back(to.detection)
        self._log.cut(to.fired)
        self.ended = to.ended.copy()

    @property
    def saved(self) -> bool:
        """Whether there is a savepoint."""
        return self._start is not None

    def save(self, fired: int) -> None:
        """Take a savepoint, at which there had been a number of firings."""
        tokens = [] if self._detection is None else self._detection.savepoint()
        self._start = CascadeStart(self._rules.savepoint(), fired, tokens)

    def save_tokens(self) -> None:
        """Let the savepoint, if there is one, have the tokens of now."""
        if self._start is not None and self._detection is not None:
            self._start = self._start._replace(tokens=self._detection.savepoint())

    def count(self, rule: str) -> bool:
        """Count a firing that was caused by an action; whether it is within the limit."""
        self._caused.append(rule)
        self._count += 1
        return self._count <= self._max

    def count_end(self, kind: str, time: int, names: Sequence[str]) -> None:
        """Count what ends with a time, if others of that kind have ended with it before.

        Actions have caused these. If they do so again and again, the clock never moves on.
        """
        ended, again = self.ended.get(kind, (None, 0))
        again = again + len(names) if ended == time else 0
        self.ended[kind] = time, again
        if again > self._max:
            self._caused.extend(names)
            raise self.endless(f", always at time {time}; the last of them have been dropped")

    def endless(self, undone: str) -> CascadeError:
        """The error of a cascade beyond the limit; the scheduler has it rolled back."""
        return CascadeError(
            f"rules fire without end: {', '.join(sorted(set(self._caused)))}{undone}",
            hint="an action causes the events that cause the action",
        )

    def rollback(self) -> None:
        """The cascade has no end: restore the savepoint, if there is one."""
        if self._start is not None:
            states, fired, tokens = self._start
            log.warning("rolled back a cascade without end, after %d firings", self._count)
            self._rules.rollback_all(states)
            self._log.cut(fired)
            if self._detection is not None:
                self._detection.rollback(tokens)
