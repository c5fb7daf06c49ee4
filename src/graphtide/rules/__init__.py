"""Rules over facts and time-stamped events (paper 2), and programs that are made of them."""

from __future__ import annotations

from graphtide.rules.firing import Firing
from graphtide.rules.program import RunningProgram, run

__all__ = ["Firing", "RunningProgram", "run"]
