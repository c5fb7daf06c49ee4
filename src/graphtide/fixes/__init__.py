"""Quick fixes (paper 4): goals for a graph, what may be done, and the plans that get there."""

from __future__ import annotations

from graphtide.fixes.explore import explore
from graphtide.fixes.model import Fix, Goal
from graphtide.fixes.plan import Candidate, QuadChange, RepairPlan, Repairs, Step

__all__ = ["Candidate", "Fix", "Goal", "QuadChange", "RepairPlan", "Repairs", "Step", "explore"]
