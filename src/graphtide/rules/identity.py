"""FiringIds: ids of firings that depend on what fired, and on no counter.

An id is made of the rule, the values, the times of the events, and of how many equal firings came
before: two equal events at one time cause two firings. So it is the same whatever other rules and
programs do, however input is divided, and after a restart.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rules.firing import Firing


FEW: Final = 256
"""So many ids are kept without a search for those that may be forgotten."""


class _Given(NamedTuple):
    """An id that was given: to what, for a firing of which time, and what the clock was then."""

    content: str
    time: int
    clock: int
    id: str


class FiringIds:
    """The ids of the last firings, by their numbers.

    It is a log: `cut` undoes. Only ids that an action asks for are given.

    >>> from dataclasses import replace
    >>> from graphtide.rules.firing import Firing
    >>> ids, firing = FiringIds(), Firing("R", 7, {}, {"a": (7, 7)}, number=0)
    >>> first, second = ids.of(firing, clock=7), ids.of(replace(firing, number=1), clock=7)
    >>> first == second, first == ids.of(firing, clock=7)
    (False, True)
    >>> ids.cut(1)
    >>> second == ids.of(replace(firing, number=5), clock=7)
    True
    """

    def __init__(self) -> None:
        self._given: dict[int, _Given] = {}
        self._counts: dict[str, int] = {}
        self._search_at = FEW

    def of(self, firing: Firing, clock: int) -> str:
        """Returns the id of a firing: the same each time that it is asked for."""
        known = self._given.get(firing.number)
        if known is not None:
            return known.id
        content = _digest(
            firing.rule,
            str(firing.time),
            *(f"{name} {value}" for name, value in sorted(firing.values.items())),
            "",
            *(f"{name} {start} {end}" for name, (start, end) in sorted(firing.events.items())),
        )
        before = self._counts.get(content, 0)
        made = _Given(content, firing.time, clock, _digest(content, str(before)))
        self._given[firing.number] = made
        self._counts[content] = before + 1
        return made.id

    def cut(self, total: int) -> None:
        """Forget the ids of all firings but the first ones.

        Several rules that fire together are given their ids rule by rule, not by number.
        """
        for number in [each for each in self._given if each >= total]:
            self._forget(number)

    def forget_before(self, clock: int, waiting: Callable[[], float]) -> None:
        """Forget the ids that no later firing can share, when they may be half of all.

        Equal firings are of one time. They fire together, unless one is an activation: the
        earliest of these that waits is of the time that `waiting` returns.
        """
        if len(self._given) < self._search_at:
            return
        earliest = waiting()
        for number, given in list(self._given.items()):
            if given.clock < clock and given.time < earliest:
                self._forget(number)
        self._search_at = 2 * len(self._given) + FEW

    def _forget(self, number: int) -> None:
        content = self._given.pop(number).content
        left = self._counts[content] - 1
        if left:
            self._counts[content] = left
        else:
            del self._counts[content]

    def dump(self) -> list[list[Any]]:
        """Returns what is needed to give the ids that it would give."""
        return [[number, *given] for number, given in self._given.items()]

    def load(self, saved: list[list[Any]]) -> None:
        """Go on with what was saved."""
        self._given = {number: _Given(*given) for number, *given in saved}
        self._counts = {}
        for given in self._given.values():
            self._counts[given.content] = self._counts.get(given.content, 0) + 1


def _digest(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()[:32]
