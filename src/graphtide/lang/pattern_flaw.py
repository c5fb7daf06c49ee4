"""Flaw: a mistake in a pattern, wherever the pattern was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.lang.event_algebra import EventPattern


@dataclass(frozen=True, slots=True, eq=False)
class Flaw:
    """What is wrong, and what to do: about a part, or a variable of the head or PER, or all."""

    message: str
    hint: str | None
    part: EventPattern | None = None
    variable: Var | None = None
    per: bool = False
