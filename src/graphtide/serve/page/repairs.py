"""Repairs on the page: goals that are violated, plans with their previewed deltas, their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from graphtide.errors import GraphtideError
from graphtide.serve.page.terms import row_json, term_json

if TYPE_CHECKING:
    from graphtide.graph import LiveGraph
    from graphtide.lang.tide.program import Program
    from graphtide.repair.plan import QuadChange, RepairPlan
    from graphtide.rules.program import RunningProgram

MAX_PLANS: Final = 5
MAX_SECONDS: Final = 5.0
"""The search holds the lock of the graph."""

KEPT_PLANS: Final = 50
SHOWN_ROWS: Final = 100
"""Rows and changes that are shown of a plan."""


class RepairDesk:
    """The goals of running programs, and the plans that were made for them."""

    def __init__(self, graph: LiveGraph) -> None:
        self._graph = graph
        self._plans: dict[str, RepairPlan] = {}
        self._made = 0

    def programs(self) -> dict[str, RunningProgram]:
        """The programs with goals, by name."""
        return {each.name: each for each in self._graph.programs if each.program.goals}

    def goals(self) -> dict[str, Any]:
        """The goals of each program, and by how many rows they are violated."""
        with self._graph.lock:
            return {
                "programs": [
                    {
                        "name": name,
                        "goals": [
                            {
                                "name": goal.name,
                                "query": goal.query,
                                "most": goal.most,
                                "rows": (rows := running.queries[goal.query].count()),
                                "violations": max(0, rows - (goal.most or 0)),
                                "soft": goal.most is None,
                            }
                            for goal in running.program.goals
                        ],
                        "fixes": [fix.name for fix in running.program.fixes],
                    }
                    for name, running in self.programs().items()
                ]
            }

    def preview(self, name: str) -> dict[str, Any]:
        """Plans that meet the goals of a program, best first, with the deltas they would have."""
        with self._graph.lock:
            found = self._graph.repairs(
                self._program(name), max_plans=MAX_PLANS, max_seconds=MAX_SECONDS
            )
            plans = list(found) or ([found.closest] if found.closest.steps else [])
            return {"plans": [self._shown(plan) for plan in plans], "stopped": found.stopped}

    def apply(self, plan: str) -> dict[str, Any]:
        """Apply a plan that was previewed; it is rejected if the graph has moved on too far."""
        with self._graph.lock:
            if plan not in self._plans:
                raise GraphtideError("this plan is not known any more", hint="search again")
            return {"changed": self._plans.pop(plan).apply()}

    def _program(self, name: str) -> Program:
        known = self.programs()
        if name not in known:
            raise GraphtideError(f"there is no program named {name} with goals")
        return known[name].program

    def _shown(self, plan: RepairPlan) -> dict[str, Any]:
        self._made += 1
        key = f"plan-{self._made}"
        self._plans[key] = plan
        while len(self._plans) > KEPT_PLANS:
            self._plans.pop(next(iter(self._plans)))
        return {
            "id": key,
            "cost": plan.cost,
            "solves": plan.solves,
            "steps": [
                {"fix": step.fix, "row": row_json(step.bindings)}
                for step in plan.steps[:SHOWN_ROWS]
            ],
            "step_count": len(plan.steps),
            "changes": [_change(each) for each in plan.changes[:SHOWN_ROWS]],
            "change_count": len(plan.changes),
            "violations": plan.violations,
            "preview": {
                query: [{"diff": row.diff, "row": row_json(row.row)} for row in rows[:SHOWN_ROWS]]
                for query, rows in plan.preview.items()
                if rows
            },
        }


def _change(change: QuadChange) -> dict[str, Any]:
    quad = [term_json(term) for term in change[1:] if term is not None]
    return {"diff": change.diff, "quad": quad}
