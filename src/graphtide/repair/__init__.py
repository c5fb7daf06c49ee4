"""Quick fixes (paper 4): goals for a graph, what may be done, and the plans that get there."""

from __future__ import annotations

from graphtide.repair.model import Fix, Goal
from graphtide.repair.plan import Candidate, QuadChange, RepairPlan, Repairs, Step
from graphtide.repair.search import explore

__all__ = ["Candidate", "Fix", "Goal", "QuadChange", "RepairPlan", "Repairs", "Step", "explore"]
