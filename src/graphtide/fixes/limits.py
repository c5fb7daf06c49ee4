"""Limits: how far an exploration goes, and why it stops."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from graphtide.errors import GraphtideError

MOST_STATES: Final = 100_000
MOST_SECONDS: Final = 10.0
MOST_PLANS: Final = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """At most so many steps in a plan, seconds, states looked at, and plans."""

    depth: int | None = None
    seconds: float = MOST_SECONDS
    states: int = MOST_STATES
    plans: int = MOST_PLANS

    def __post_init__(self) -> None:
        least = {"depth": (self.depth, 0), "states": (self.states, 1), "plans": (self.plans, 1)}
        for name, (value, low) in least.items():
            if value is not None and value < low:
                raise GraphtideError(f"{name}={value} is no limit", hint=f"use {low} or more")
        if not 0 < self.seconds <= inf:
            raise GraphtideError(f"seconds={self.seconds} is no limit", hint="use more than 0")


class Stopped(Exception):  # noqa: N818 - no error: a limit is reached
    """Exploring ends here; says why."""
