"""Repair (paper 4): goals for a graph, fixes, and the search for plans that meet the goals."""

from __future__ import annotations

from graphtide.repair.model import Fix, Goal
from graphtide.repair.plan import Candidate, QuadChange, RepairPlan, Repairs, Step
from graphtide.repair.search import find_repairs

__all__ = [
    "Candidate",
    "Fix",
    "Goal",
    "QuadChange",
    "RepairPlan",
    "Repairs",
    "Step",
    "find_repairs",
]
