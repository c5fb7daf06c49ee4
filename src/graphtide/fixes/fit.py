"""Fit: whether a plan still does on a graph what it was made for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from graphtide.errors import GraphtideError
from graphtide.fixes.plan import quad_changes
from graphtide.fixes.space import Space

if TYPE_CHECKING:
    from graphtide.engine import LiveGraph
    from graphtide.fixes.model import Task
    from graphtide.fixes.plan import RepairPlan, Step
    from graphtide.fixes.state import State

_HINT = "the graph has changed since: explore it anew"


class Fit:
    """Checks plans for the graph that they were made for, and for others.

    As long as nothing has happened to that graph, there is nothing to check.
    """

    def __init__(self, graph: LiveGraph, task: Task, before: tuple[int, ...]) -> None:
        self._graph = ref(graph)
        self._transactions = graph.transactions
        self._task = task
        self._before = before

    def __call__(self, plan: RepairPlan, graph: LiveGraph) -> None:
        """Raise `GraphtideError` unless the plan fits."""
        if graph is self._graph() and graph.transactions == self._transactions:
            return
        space = Space(graph, self._task)
        state = space.start
        for number, step in enumerate(plan.steps, start=1):
            space.go(state)
            state = self._taken(space, state, number, step)
        space.go(state)
        self._check_goals(plan, space)

    def _taken(self, space: Space, state: State, number: int, step: Step) -> State:
        where = f"step {number}, {step},"
        names = [fix.name for fix in self._task.fixes]
        fix = self._task.fixes[names.index(step.fix)]
        values = (step.bindings.get(variable.name) for variable in fix.variables)
        row = tuple(0 if term is None else space.graph.terms.lookup(term) or -1 for term in values)
        option = names.index(step.fix), row
        if not space.can(option):
            raise GraphtideError(f"{where} finds no such row any more", hint=_HINT)
        taken = space.step(state, option)
        changes = {} if taken is None else {quad: diff for diff, quad in taken.changes}
        if taken is None or quad_changes(space.graph, changes) != step.changes:
            raise GraphtideError(f"{where} does not change the same any more", hint=_HINT)
        return taken

    def _check_goals(self, plan: RepairPlan, space: Space) -> None:
        """Each hard goal has to be helped by as much as it was."""
        now = zip(self._task.goals, self._before, space.start.counts, space.counts(), strict=True)
        for goal, before, start, end in now:
            promised = goal.violations(before) - goal.violations(plan.counts[goal.name])
            if goal.violations(start) - goal.violations(end) < min(
                promised, goal.violations(start)
            ):
                raise GraphtideError(
                    f"the plan would leave violations of {goal.name}: {goal.violations(end)}",
                    hint=_HINT,
                )
