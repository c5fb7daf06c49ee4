"""RepairPlan: a way to a better graph, what it changes, and what queries would tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from graphtide.engine.results import DeltaRow
from graphtide.errors import GraphtideError
from graphtide.repair.space import Space
from graphtide.repair.state import net_changes, path, way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.engine.results import Delta
    from graphtide.graph import LiveGraph
    from graphtide.rdf.terms import Term
    from graphtide.repair.model import RepairTask
    from graphtide.repair.state import GraphState, Net


class QuadChange(NamedTuple):
    """A quad that comes (+1) or goes (-1)."""

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
    """One fix, applied to one row; and what it changes at that point."""

    fix: str
    bindings: dict[str, Term]
    changes: tuple[QuadChange, ...] = field(repr=False)

    def __str__(self) -> str:
        values = ", ".join(f"{name}={term}" for name, term in self.bindings.items())
        return f"{self.fix}({values})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a cost function is asked about: steps, net changes, and rows of each goal's query."""

    steps: tuple[Step, ...]
    changes: tuple[QuadChange, ...]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Steps, and what they come to.

    `changes` is what differs in the end; `violations` what is then left of each hard goal, `counts`
    how many rows the query of each goal has. `preview` has, for each query, the delta that its
    watch would get.
    """

    steps: tuple[Step, ...]
    changes: tuple[QuadChange, ...]
    cost: float
    violations: dict[str, int]
    counts: dict[str, int]
    preview: dict[str, tuple[DeltaRow, ...]] = field(repr=False)
    check: Callable[[RepairPlan, LiveGraph], None] = field(repr=False, compare=False)

    @property
    def solves(self) -> bool:
        """Whether it meets all hard goals."""
        return not any(self.violations.values())

    def apply(self, graph: LiveGraph, *, time: int | None = None) -> int:
        """Carry out the net changes as one transaction; how many there are.

        If the graph has changed since, the plan is first tried on a copy; it is refused unless each
        step still finds its row, changes the same, and all together do for the goals what they did.
        """
        self.check(self, graph)
        if self.changes:
            with graph.transaction(time=time) as transaction:
                for diff, s, p, o, g in self.changes:
                    (transaction.insert if diff > 0 else transaction.delete)(s, p, o, g)
        return len(self.changes)

    def __str__(self) -> str:
        return " ; ".join(map(str, self.steps)) or "nothing to do"


class Repairs(list[RepairPlan]):
    """Plans that meet all hard goals, the best first.

    `complete` says that every state within the limit of depth was looked at; otherwise `stopped`
    says why not. `closest` is the best plan there is, even if it leaves violations.
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
        """Whether nothing within the limit of depth was left out."""
        return self.stopped is None


def steps_of(space: Space, state: GraphState) -> tuple[Step, ...]:
    """The steps that lead to a state."""
    return tuple(
        Step(
            space.task.fixes[each.fix].name,
            {v.name: term for v, term in space.bindings((each.fix, each.row)).items()},
            quad_changes(space.graph, {quad: diff for diff, quad in each.changes}),
        )
        for each in path(state)
    )


def quad_changes(
    graph: LiveGraph, net: Net | Mapping[tuple[int, ...], int]
) -> tuple[QuadChange, ...]:
    """Changes as terms: what goes before what comes, then by text."""
    decode = graph.terms.decode
    found = [
        QuadChange(diff, decode(s), decode(p), decode(o), decode(g) if g else None)
        for (s, p, o, g), diff in net.items()
    ]
    return tuple(sorted(found, key=lambda c: (c.diff, [str(term) for term in c[1:]])))


# --- Fit: whether a plan still does on a graph what it was made for.

_HINT = "the graph has changed since: explore it anew"


class Fit:
    """Checks plans for the graph that they were made for, and for others.

    As long as nothing has happened to that graph, there is nothing to check.
    """

    def __init__(self, graph: LiveGraph, task: RepairTask, before: tuple[int, ...]) -> None:
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

    def _taken(self, space: Space, state: GraphState, number: int, step: Step) -> GraphState:
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


# --- From states to plans: the changes, and the deltas of standing queries.


class Planner:
    """Makes plans of states; queries that are told of stand on the space's graph from now on."""

    def __init__(self, space: Space, check: Callable[[RepairPlan, LiveGraph], None]) -> None:
        self._space = space
        self._check = check
        space.go(space.start)
        queries = space.task.queries.items()
        self._watches = {name: space.graph.watch(query, history=0) for name, query in queries}

    def plan(self, state: GraphState) -> RepairPlan:
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

    def _deltas(self, state: GraphState) -> dict[str, tuple[DeltaRow, ...]]:
        space = self._space
        space.change(way({}, net_changes(state)))
        found = {name: _rows(watch.delta()) for name, watch in self._watches.items()}
        space.go(space.start)
        return found


def _rows(delta: Delta) -> tuple[DeltaRow, ...]:
    """Rows in a fixed order; their transaction has no number yet."""
    rows = [DeltaRow(row.time, 0, row.diff, row.row) for row in delta]
    return tuple(sorted(rows, key=lambda r: (r.diff > 0, [str(term) for term in r.row.values()])))
