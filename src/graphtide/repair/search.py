"""Search for repair plans: evaluation of states, search strategies, and `find_repairs`."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from math import isfinite
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, assert_never, get_args

from graphtide.errors import GraphtideError
from graphtide.lang.sparql.scanner import name_hint
from graphtide.limits import MAX_PLANS, MAX_SECONDS, MAX_STATES
from graphtide.progress import compile_seconds
from graphtide.repair import model
from graphtide.repair.plan import Candidate, Planner, PlanOrigin, Repairs, quad_changes, steps_of
from graphtide.repair.space import SearchSpace
from graphtide.repair.state import GraphState, KnownStates, SeenState, net_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from graphtide.engine.ingest import Ids
    from graphtide.engine.runtime import Runtime
    from graphtide.lang.tide.program import Program


class RepairSearch:
    """Evaluates states for a strategy, and collects solutions.

    `visited` counts states, `duplicates` those that were reached again.
    """

    def __init__(
        self,
        space: SearchSpace,
        limits: model.SearchLimits,
        cost: Callable[[Candidate], float] | None,
        *,
        started: float,
    ) -> None:
        self.space = space
        self.limits = limits
        self.start = space.start
        self.visited = 1
        self.duplicates = 0
        self.closest = space.start
        self._cost = cost
        self._ends = started + limits.max_seconds
        self._known = KnownStates()
        self._solutions: dict[int, GraphState] = {}
        self._enough_at = limits.max_plans
        self._soft = cost is not None or any(goal.soft for goal in space.task.goals)
        self._rate(space.start)
        self._record(self._known.add(space.start), space.start)

    # --- for strategies ---

    def expand(self, state: GraphState) -> Iterator[GraphState]:
        """The children of a state that are new, or reached in fewer steps or cheaper."""
        for step in self.next_steps(state):
            child, add_path = self._look(step)
            if add_path:
                yield child

    def neighbours(self, state: GraphState) -> list[GraphState]:
        """All children of a state, new or not."""
        return [self.look(child) for child in self.next_steps(state)]

    def next_steps(self, state: GraphState, random: Random | None = None) -> Iterator[GraphState]:
        """The children of a state, not yet evaluated; none if the state is good enough.

        With `random`, in random order. The graph is in `state` whenever one is yielded.
        """
        limit = self.limits.max_steps
        if (limit is not None and state.depth >= limit) or self._is_enough(state):
            return
        self.space.move_to(state)
        options = self.space.options()
        if random is not None:
            random.shuffle(options)
        for option in options:
            self.space.move_to(state)
            child = self.space.step(state, option)
            if child is not None:
                yield child

    def look(self, state: GraphState) -> GraphState:
        """Evaluate a state; the graph must be in its parent."""
        return self._look(state)[0]

    def stop_if_enough(self) -> None:
        """Stop if there are `max_plans` plans, and no better one is possible."""
        if self._soft or len(self._solutions) < self._enough_at:
            return
        if len(self.solutions()) >= self.limits.max_plans:
            raise model.SearchStopped(f"max_plans={self.limits.max_plans} reached")
        # Some make needless changes: try again when there are a quarter more.
        self._enough_at = len(self._solutions) * 5 // 4 + 1

    # --- results ---

    def solutions(self) -> list[GraphState]:
        """The best states that meet all hard goals, best first.

        States whose changes include all changes of a better one are left out.
        """
        best: list[GraphState] = []
        taken: list[set[tuple[Ids, int]]] = []
        for state in sorted(self._solutions.values(), key=rank):  # sorting is stable
            changes = set(net_changes(state).items())
            if not any(better <= changes for better in taken):
                best.append(state)
                taken.append(changes)
            if len(best) == self.limits.max_plans:
                break
        return best

    # --- evaluation ---

    def _is_enough(self, state: GraphState) -> bool:
        return not state.violations and not self._soft

    def _look(self, state: GraphState) -> tuple[GraphState, bool]:
        if working_time() > self._ends:
            raise model.SearchStopped(f"max_seconds={self.limits.max_seconds:g} reached")
        known = self._known.find(state)
        if known is None:
            self._count()
            state.counts = self.space.evaluate(state)
            self._rate(state)
            self._record(self._known.add(state), state)
            return state, True
        self.duplicates += 1
        state.counts = known.state.counts
        self._rate(state)
        add_path = known.add_path(state.depth, state.price)
        if add_path:
            self._count()
            self._record(known, state)
        return state, add_path

    def _count(self) -> None:
        if self.visited >= self.limits.max_states:
            raise model.SearchStopped(f"max_states={self.limits.max_states} reached")
        self.visited += 1

    def _rate(self, state: GraphState) -> None:
        """Set violations and cost from the counts."""
        counted = list(zip(self.space.task.goals, state.counts, strict=True))
        state.violations = sum(goal.violations(rows) for goal, rows in counted)
        soft = sum(goal.weight * rows for goal, rows in counted if goal.soft)
        state.cost = state.price + soft + (self._own_cost(state) if self._cost else 0.0)

    def _own_cost(self, state: GraphState) -> float:
        assert self._cost is not None  # noqa: S101 - the caller has checked
        goals = self.space.task.goals
        changes = quad_changes(self.space.graph.terms, net_changes(state))
        counts = {goal.name: rows for goal, rows in zip(goals, state.counts, strict=True)}
        found: object = self._cost(Candidate(steps_of(self.space, state), changes, counts))
        if not isinstance(found, int | float) or not isfinite(found):
            message = f"the cost function returned {found!r}"
            raise GraphtideError(message, hint="it must return a finite number")
        return found

    def _record(self, known: SeenState, state: GraphState) -> None:
        """Record a state if it is a solution, or the closest to one so far."""
        if rank(state) < rank(self.closest):
            self.closest = state
        if not state.violations:
            before = self._solutions.get(id(known))
            if before is None or rank(state) < rank(before):
                self._solutions[id(known)] = state


def working_time() -> float:
    """Seconds on a clock that stands still while loops are compiled."""
    return monotonic() - compile_seconds()


def rank(state: GraphState) -> tuple[int, float, int]:
    """The order of states: by violations, then cost, then steps."""
    return state.violations, state.cost, state.depth


# --- strategies ---
#
# bfs, dfs and best-first visit every state within the limits. hill-climbing moves to the best child
# until none is better; random-restarts repeats that from random states near the start.

RepairStrategy = Literal["bfs", "dfs", "best-first", "hill-climbing", "random-restarts"]

FARTHEST_START: Final = 3
"""Maximum number of random steps from the start."""

FRUITLESS: Final = 50
"""Consecutive rounds without a new state after which the search ends."""


def check_strategy(strategy: str) -> None:
    """Raise an error for an unknown strategy.

    >>> check_strategy("best-frist")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: strategy 'best-frist' is unknown
      hint: did you mean best-first?
    """
    if strategy not in get_args(RepairStrategy):
        hint = name_hint(strategy, get_args(RepairStrategy))
        raise GraphtideError(f"strategy {strategy!r} is unknown", hint=hint)


def run_strategy(strategy: RepairStrategy, search: RepairSearch, seed: int) -> None:
    """Visit all states, or raise `SearchStopped`."""
    match strategy:
        case "bfs":
            breadth_first(search)
        case "dfs":
            depth_first(search)
        case "best-first":
            best_first(search)
        case "hill-climbing":
            hill_climbing(search)
        case "random-restarts":
            random_restarts(search, seed)
        case _:
            assert_never(strategy)


def breadth_first(search: RepairSearch) -> None:
    """All plans of n steps before any of n + 1."""
    level = [search.start]
    while level:
        level = [child for state in level for child in search.expand(state)]
        search.stop_if_enough()


def depth_first(search: RepairSearch) -> None:
    """All plans that begin with a fix before those with the next one."""
    ahead = [search.expand(search.start)]
    while ahead:
        child = next(ahead[-1], None)
        if child is None:
            ahead.pop()
        else:
            ahead.append(search.expand(child))
            search.stop_if_enough()


def best_first(search: RepairSearch) -> None:
    """Expand the best open state; of equals, the one that was found first."""
    numbers = count()
    ahead = [(rank(search.start), next(numbers), search.start)]
    while ahead:
        state = heappop(ahead)[-1]
        for child in search.expand(state):
            heappush(ahead, (rank(child), next(numbers), child))
        search.stop_if_enough()


def hill_climbing(search: RepairSearch) -> None:
    """Move to the best child as long as it is better."""
    state = search.start
    while True:
        best = min(search.neighbours(state), key=rank, default=state)
        if rank(best)[:2] >= rank(state)[:2]:
            raise model.SearchStopped("local optimum")
        state = best


def random_restarts(search: RepairSearch, seed: int) -> None:
    """Some random steps, then better children until there are none; repeatedly."""
    random = Random(seed)  # noqa: S311 - not for secrets
    fruitless = 0
    while fruitless < FRUITLESS:
        before = search.visited
        state = search.start
        for _ in range(random.randint(0, FARTHEST_START)):
            state = _any_neighbour(search, state, random) or state
        better: GraphState | None = state
        while better is not None:
            state, better = better, _any_neighbour(search, better, random, better=True)
        search.stop_if_enough()
        fruitless = fruitless + 1 if search.visited == before else 0
    raise model.SearchStopped("no new states in random restarts")


def _any_neighbour(
    search: RepairSearch, state: GraphState, random: Random, *, better: bool = False
) -> GraphState | None:
    found = (search.look(step) for step in search.next_steps(state, random))
    return next((s for s in found if not better or rank(s)[:2] < rank(state)[:2]), None)


def find_repairs(
    runtime: Runtime,
    program: Program | Iterable[model.Goal],
    fixes: Iterable[model.Fix] | None = None,
    *,
    strategy: RepairStrategy = "best-first",
    max_steps: int | None = None,
    max_seconds: float = MAX_SECONDS,
    max_states: int = MAX_STATES,
    max_plans: int = MAX_PLANS,
    cost: Callable[[Candidate], float] | None = None,
    seed: int = 0,
) -> Repairs:
    """Search for plans that make a graph meet all hard goals, cheapest first.

    Goals and fixes are those of a program, or given directly; `fixes` replace those of a program.
    The search works on a copy of the graph: `plan.apply()` changes the graph itself.

    The cost of a plan is the cost of its fixes, plus the weighted rows of soft goals, plus the
    result of the function `cost`. The search is limited by `max_steps` of a plan, `max_seconds`,
    `max_states` visited, and `max_plans` found; with a soft goal or a cost function it does not
    stop at `max_plans`, but returns the best ones.
    """
    task = model.task_of(program, fixes)
    limits = model.SearchLimits(max_steps, max_seconds, max_states, max_plans)
    check_strategy(strategy)
    started = working_time()
    space = SearchSpace(runtime, task)
    search = RepairSearch(space, limits, cost, started=started)
    stopped = None
    try:
        run_strategy(strategy, search, seed)
    except model.SearchStopped as reason:
        stopped = str(reason)
    planner = Planner(space, PlanOrigin(runtime, task, space.start.counts))
    ranked = [planner.plan(state) for state in search.solutions()]
    closest = ranked[0] if ranked else planner.plan(search.closest)
    found = Repairs(ranked, closest, stopped)
    found.states, found.duplicates = search.visited, search.duplicates
    found.seconds = working_time() - started
    return found
