"""Registered: a rule at work in an engine, and what to do when it fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rules.firing import Firing
    from graphtide.rules.matcher import Matcher
    from graphtide.rules.turn import Turn


class Action(Protocol):
    """What to do when a rule fires."""

    def carry_out(self, turn: Turn) -> None:
        """Do it; it may look at as little of the match as it needs."""


@dataclass(frozen=True, slots=True)
class Told:
    """An action that is a function of a firing."""

    function: Callable[[Firing], object]

    def carry_out(self, turn: Turn) -> None:
        """Call it."""
        self.function(turn.firing())


@dataclass(slots=True, eq=False)
class Registered:
    """A rule at work: its number in order of declaration, its memories, its action."""

    number: int
    matcher: Matcher
    action: Action | None
