"""Rules over facts and time-stamped events (paper 2), and the programs that declare them."""

from __future__ import annotations

from graphtide.rules.firing import Firing
from graphtide.rules.program import RunningProgram, run

__all__ = ["Firing", "RunningProgram", "run"]
