"""Registered: a rule at work in an engine, and what to do when it fires."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.rules.firing import Firing
    from graphtide.rules.matcher import Matcher

Action = Callable[["Firing"], object]
"""What to do when a rule fires."""


@dataclass(slots=True, eq=False)
class Registered:
    """A rule at work: its number in order of declaration, its memories, its action."""

    number: int
    matcher: Matcher
    action: Action | None
