"""Registered: a rule at work in an engine, and what to do when it fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rules.firing import Firing
    from graphtide.rules.matcher import Matcher


@dataclass(slots=True)
class Registered:
    """A rule at work: its number in order of declaration, its memories, its action."""

    number: int
    matcher: Matcher
    action: Callable[[Firing], object] | None
