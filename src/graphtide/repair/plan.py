"""Repair plans: steps, net changes, previewed deltas, and their application to a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from graphtide.engine.results import Delta, DeltaRow
from graphtide.engine.transaction import Transaction
from graphtide.errors import GraphtideError
from graphtide.repair.space import Option, SearchSpace
from graphtide.repair.state import GraphState, NetChanges, changes_between, net_changes, path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.engine.runtime import Runtime
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.repair.model import RepairTask


class QuadChange(NamedTuple):
    """An inserted (+1) or deleted (-1) quad."""

    diff: int
    s: Term
    p: Term
    o: Term
    g: Term | None

    def __str__(self) -> str:
        terms = " ".join(str(term) for term in self[1:] if term is not None)
        return f"{'+' if self.diff > 0 else '-'} {terms}"


@dataclass(frozen=True, slots=True)
class Step:
    """One fix, applied to one row, and its changes at that point."""

    fix: str
    bindings: dict[str, Term]
    changes: tuple[QuadChange, ...] = field(repr=False)

    def __str__(self) -> str:
        values = ", ".join(f"{name}={term}" for name, term in self.bindings.items())
        return f"{self.fix}({values})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The argument of a cost function: steps, net changes, and rows of each goal's query."""

    steps: tuple[Step, ...]
    changes: tuple[QuadChange, ...]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The steps of a repair, and their result.

    `changes` are the net changes, `violations` the remaining violations of hard goals, `counts` the
    resulting rows of each goal's query, `preview` the delta of each query of the program.
    """

    steps: tuple[Step, ...]
    changes: tuple[QuadChange, ...]
    cost: float
    violations: dict[str, int]
    counts: dict[str, int]
    preview: dict[str, tuple[DeltaRow, ...]] = field(repr=False)
    origin: PlanOrigin = field(repr=False, compare=False)

    @property
    def solves(self) -> bool:
        """Whether it meets all hard goals."""
        return not any(self.violations.values())

    def apply(self, *, time: int | None = None) -> int:
        """Commit the net changes as one transaction; returns their number.

        If the graph has changed since the plan was made, the plan is first tried on a copy, and
        rejected unless each step still has its row and its effect, and the hard goals improve as
        planned. `LiveGraph.repair` applies a plan to another graph.
        """
        return self.apply_to(self.origin.runtime(), time)

    def apply_to(self, runtime: Runtime, time: int | None) -> int:
        """Apply the plan to a graph, checked as by `apply`."""
        self.origin.check(self, runtime)
        if self.changes:
            with Transaction(runtime, time) as transaction:
                for diff, s, p, o, g in self.changes:
                    (transaction.insert if diff > 0 else transaction.delete)(s, p, o, g)
        return len(self.changes)

    def __str__(self) -> str:
        return " ; ".join(map(str, self.steps)) or "nothing to do"


class Repairs(list[RepairPlan]):
    """The plans that meet all hard goals, best first.

    `closest` is the best plan, even if it leaves violations. `stopped` says why the search ended
    early; `states` and `duplicates` count visited states, `seconds` is the time it took.
    """

    def __init__(self, plans: list[RepairPlan], closest: RepairPlan, stopped: str | None) -> None:
        super().__init__(plans)
        self.closest = closest
        self.stopped = stopped
        self.states = 0
        self.duplicates = 0
        self.seconds = 0.0

    @property
    def complete(self) -> bool:
        """Whether all states within `max_steps` were visited."""
        return self.stopped is None


def steps_of(space: SearchSpace, state: GraphState) -> tuple[Step, ...]:
    """The steps to a state."""
    return tuple(
        Step(
            space.task.fixes[each.fix].name,
            {v.name: term for v, term in space.bindings(Option(each.fix, each.row)).items()},
            quad_changes(space.graph.terms, {quad: diff for diff, quad in each.changes}),
        )
        for each in path(state)
    )


def quad_changes(
    terms: TermDictionary, net: NetChanges | Mapping[tuple[int, ...], int]
) -> tuple[QuadChange, ...]:
    """Changes with terms: deletions first, then by text."""
    decode = terms.decode
    found = [
        QuadChange(diff, decode(s), decode(p), decode(o), decode(g) if g else None)
        for (s, p, o, g), diff in net.items()
    ]
    return tuple(sorted(found, key=lambda c: (c.diff, [str(term) for term in c[1:]])))


_HINT = "the graph has changed since: search again"


class PlanOrigin:
    """The graph and the problem that plans were made for; checks plans before they are applied."""

    def __init__(self, runtime: Runtime, task: RepairTask, before: tuple[int, ...]) -> None:
        self._runtime = ref(runtime)
        self._transactions = runtime.transactions
        self._task = task
        self._before = before

    def runtime(self) -> Runtime:
        """The runtime of the graph that plans were made for."""
        runtime = self._runtime()
        if runtime is None:
            raise GraphtideError(
                "the graph of this plan no longer exists", hint="use repair(plan) of another graph"
            )
        return runtime

    def check(self, plan: RepairPlan, runtime: Runtime) -> None:
        """Raise `GraphtideError` unless the plan still has its effect on a graph."""
        if runtime is self._runtime() and runtime.transactions == self._transactions:
            return
        space = SearchSpace(runtime, self._task)
        state = space.start
        for number, step in enumerate(plan.steps, start=1):
            space.move_to(state)
            state = self._taken(space, state, number, step)
        space.move_to(state)
        self._check_goals(plan, space)

    def _taken(self, space: SearchSpace, state: GraphState, number: int, step: Step) -> GraphState:
        where = f"step {number}, {step},"
        names = [fix.name for fix in self._task.fixes]
        fix = self._task.fixes[names.index(step.fix)]
        values = (step.bindings.get(variable.name) for variable in fix.variables)
        row = tuple(0 if term is None else space.graph.terms.lookup(term) or -1 for term in values)
        option = Option(names.index(step.fix), row)
        if not space.can(option):
            raise GraphtideError(f"{where} no longer has its row", hint=_HINT)
        taken = space.step(state, option)
        changes = {} if taken is None else {quad: diff for diff, quad in taken.changes}
        if taken is None or quad_changes(space.graph.terms, changes) != step.changes:
            raise GraphtideError(f"{where} no longer makes the same changes", hint=_HINT)
        return taken

    def _check_goals(self, plan: RepairPlan, space: SearchSpace) -> None:
        """Each hard goal must improve by as much as planned."""
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


class Planner:
    """Makes plans of states; registers the previewed queries on the graph of the space."""

    def __init__(self, space: SearchSpace, origin: PlanOrigin) -> None:
        self._space = space
        self._origin = origin
        space.move_to(space.start)
        queries = space.task.queries.items()
        self._watches = {name: space.graph.watch(query, history=0) for name, query in queries}

    def plan(self, state: GraphState) -> RepairPlan:
        """The plan that leads to a state."""
        space, goals = self._space, self._space.task.goals
        net = net_changes(state)
        counted = list(zip(goals, state.counts, strict=True))
        return RepairPlan(
            steps_of(space, state),
            quad_changes(space.graph.terms, net),
            state.cost,
            {goal.name: goal.violations(rows) for goal, rows in counted if not goal.soft},
            {goal.name: rows for goal, rows in counted},
            self._deltas(state) if net else dict.fromkeys(self._watches, ()),
            self._origin,
        )

    def _deltas(self, state: GraphState) -> dict[str, tuple[DeltaRow, ...]]:
        space = self._space
        space.change(changes_between({}, net_changes(state)))
        found = {name: _rows(watch.delta()) for name, watch in self._watches.items()}
        space.move_to(space.start)
        return found


def _rows(delta: Delta) -> tuple[DeltaRow, ...]:
    """Rows in a fixed order, without a transaction number."""
    rows = [DeltaRow(row.time, 0, row.diff, row.row) for row in delta]
    return tuple(sorted(rows, key=lambda r: (r.diff > 0, [str(term) for term in r.row.values()])))
