"""From states to plans: the changes, and the deltas of standing queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.engine import DeltaRow
from graphtide.fixes.plan import RepairPlan, quad_changes, steps_of
from graphtide.fixes.state import net_changes, way

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.engine import Delta, LiveGraph
    from graphtide.fixes.space import Space
    from graphtide.fixes.state import State


class Planner:
    """Makes plans of states; queries that are told of stand on the space's graph from now on."""

    def __init__(self, space: Space, check: Callable[[RepairPlan, LiveGraph], None]) -> None:
        self._space = space
        self._check = check
        space.go(space.start)
        queries = space.task.queries.items()
        self._watches = {name: space.graph.watch(query, history=0) for name, query in queries}

    def plan(self, state: State) -> RepairPlan:
        """The plan that leads to a state."""
        space, goals = self._space, self._space.task.goals
        net = net_changes(state)
        counted = list(zip(goals, state.counts, strict=True))
        return RepairPlan(
            steps_of(space, state),
            quad_changes(space.graph, net),
            state.cost,
            {goal.name: goal.violations(rows) for goal, rows in counted if not goal.soft},
            {goal.name: rows for goal, rows in counted},
            self._deltas(state) if net else dict.fromkeys(self._watches, ()),
            self._check,
        )

    def _deltas(self, state: State) -> dict[str, tuple[DeltaRow, ...]]:
        space = self._space
        space.change(way({}, net_changes(state)))
        found = {name: _rows(watch.delta()) for name, watch in self._watches.items()}
        space.go(space.start)
        return found


def _rows(delta: Delta) -> tuple[DeltaRow, ...]:
    """Rows in a fixed order; their transaction has no number yet."""
    rows = [DeltaRow(row.time, 0, row.diff, row.row) for row in delta]
    return tuple(sorted(rows, key=lambda r: (r.diff > 0, [str(term) for term in r.row.values()])))
