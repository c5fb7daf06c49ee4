"""Exploration: the states that have been looked at, what they are worth, and when to stop."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from math import isfinite
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, assert_never, get_args

from graphtide.errors import GraphtideError
from graphtide.lang.sparql.scanner import name_hint
from graphtide.repair.model import MOST_PLANS, MOST_SECONDS, MOST_STATES, Limits, Stopped, task_of
from graphtide.repair.plan import Candidate, Fit, Planner, Repairs, quad_changes, steps_of
from graphtide.repair.space import Space
from graphtide.repair.state import KnownStates, net_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from graphtide.engine.ingest import Ids
    from graphtide.graph import LiveGraph
    from graphtide.lang.tide.program import Program
    from graphtide.repair.model import Fix, Goal
    from graphtide.repair.state import GraphState, SeenState


class Exploration:
    """Looks at states on behalf of a strategy. `visited` counts them, `duplicates` came again."""

    def __init__(
        self,
        space: Space,
        limits: Limits,
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
        self._ends = started + limits.seconds
        self._known = KnownStates()
        self._solutions: dict[int, GraphState] = {}
        self._enough_at = limits.plans
        self._soft = cost is not None or any(goal.soft for goal in space.task.goals)
        self._rate(space.start)
        self._note(self._known.add(space.start), space.start)

    # --- what strategies use ---

    def expand(self, state: GraphState) -> Iterator[GraphState]:
        """The states one step further that are new, or now reached in fewer steps or cheaper."""
        for step in self.next_steps(state):
            child, is_news = self._look(step)
            if is_news:
                yield child

    def neighbours(self, state: GraphState) -> list[GraphState]:
        """All states one step further, known or not."""
        return [self.look(child) for child in self.next_steps(state)]

    def next_steps(self, state: GraphState, random: Random | None = None) -> Iterator[GraphState]:
        """Where fixes lead from a state, not yet looked at; nowhere if it is good enough.

        With `random`, in any order. With each of them, the graph is in the state.
        """
        limit = self.limits.depth
        if (limit is not None and state.depth >= limit) or self._is_enough(state):
            return
        self.space.go(state)
        options = self.space.options()
        if random is not None:
            random.shuffle(options)
        for option in options:
            self.space.go(state)
            child = self.space.step(state, option)
            if child is not None:
                yield child

    def look(self, state: GraphState) -> GraphState:
        """Find out what a state is worth; the graph must be one step before it."""
        return self._look(state)[0]

    def stop_if_enough(self) -> None:
        """Stop if there are plans enough, and none could be better for going on."""
        if self._soft or len(self._solutions) < self._enough_at:
            return
        if len(self.solutions()) >= self.limits.plans:
            raise Stopped("plans enough were found")
        # Some do more than is needed: look again when there are a quarter more.
        self._enough_at = len(self._solutions) * 5 // 4 + 1

    # --- what came of it ---

    def solutions(self) -> list[GraphState]:
        """The best states that meet all hard goals, the best first.

        What changes all that a better one changes, and more, is left out.
        """
        best: list[GraphState] = []
        taken: list[set[tuple[Ids, int]]] = []
        for state in sorted(self._solutions.values(), key=rank):  # sorting is stable
            changes = set(net_changes(state).items())
            if not any(better <= changes for better in taken):
                best.append(state)
                taken.append(changes)
            if len(best) == self.limits.plans:
                break
        return best

    # --- the machinery ---

    def _is_enough(self, state: GraphState) -> bool:
        return not state.violations and not self._soft

    def _look(self, state: GraphState) -> tuple[GraphState, bool]:
        if monotonic() > self._ends:
            raise Stopped(f"time is up after {self.limits.seconds:g} s")
        known = self._known.find(state)
        if known is None:
            self._count()
            state.counts = self.space.try_out(state)
            self._rate(state)
            self._note(self._known.add(state), state)
            return state, True
        self.duplicates += 1
        state.counts = known.state.counts
        self._rate(state)
        is_news = known.is_news(state.depth, state.price)
        if is_news:
            self._count()
            self._note(known, state)
        return state, is_news

    def _count(self) -> None:
        if self.visited >= self.limits.states:
            raise Stopped(f"the limit of states is reached, {self.limits.states:,}")
        self.visited += 1

    def _rate(self, state: GraphState) -> None:
        """Work out violations and cost from the counts."""
        counted = list(zip(self.space.task.goals, state.counts, strict=True))
        state.violations = sum(goal.violations(rows) for goal, rows in counted)
        soft = sum(goal.weight * rows for goal, rows in counted if goal.soft)
        state.cost = state.price + soft + (self._own_cost(state) if self._cost else 0.0)

    def _own_cost(self, state: GraphState) -> float:
        assert self._cost is not None  # noqa: S101 - it is asked for only if there is one
        goals = self.space.task.goals
        changes = quad_changes(self.space.graph, net_changes(state))
        counts = {goal.name: rows for goal, rows in zip(goals, state.counts, strict=True)}
        found: object = self._cost(Candidate(steps_of(self.space, state), changes, counts))
        if not isinstance(found, int | float) or not isfinite(found):
            message = f"the cost function gave {found!r}"
            raise GraphtideError(message, hint="it has to give a finite number")
        return found

    def _note(self, known: SeenState, state: GraphState) -> None:
        """Remember a state if it is a solution, or the nearest to one so far."""
        if rank(state) < rank(self.closest):
            self.closest = state
        if not state.violations:
            before = self._solutions.get(id(known))
            if before is None or rank(state) < rank(before):
                self._solutions[id(known)] = state


def rank(state: GraphState) -> tuple[int, float, int]:
    """What makes a state better than another: fewer violations, less cost, fewer steps."""
    return state.violations, state.cost, state.depth


# --- Strategies: in which order states are looked at.
#
# bfs, dfs and best-first look at every state within the limits. hill-climbing goes to the best state
# next to it until none is better; random-restarts does so again and again, from places where it
# was led by chance.

Strategy = Literal["bfs", "dfs", "best-first", "hill-climbing", "random-restarts"]

FARTHEST_START: Final = 3
"""Steps that chance may lead away from the start."""

FRUITLESS: Final = 50
"""Rounds without a new state after which chance is given up."""


def check_strategy(strategy: str) -> None:
    """Refuse a strategy that there is not.

    >>> check_strategy("best-frist")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: there is no strategy 'best-frist'
      hint: did you mean best-first?
    """
    if strategy not in get_args(Strategy):
        hint = name_hint(strategy, get_args(Strategy))
        raise GraphtideError(f"there is no strategy {strategy!r}", hint=hint)


def run_strategy(strategy: Strategy, search: Exploration, seed: int) -> None:
    """Look at states until there are no more; `Stopped` says why there are."""
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


def breadth_first(search: Exploration) -> None:
    """Step by step: all plans of n steps before any of n + 1."""
    level = [search.start]
    while level:
        level = [child for state in level for child in search.expand(state)]
        search.stop_if_enough()


def depth_first(search: Exploration) -> None:
    """Each fix to the end before the next one."""
    ahead = [search.expand(search.start)]
    while ahead:
        child = next(ahead[-1], None)
        if child is None:
            ahead.pop()
        else:
            ahead.append(search.expand(child))
            search.stop_if_enough()


def best_first(search: Exploration) -> None:
    """From the best state so far, wherever it is; of equals, the one that was found first."""
    numbers = count()
    ahead = [(rank(search.start), next(numbers), search.start)]
    while ahead:
        state = heappop(ahead)[-1]
        for child in search.expand(state):
            heappush(ahead, (rank(child), next(numbers), child))
        search.stop_if_enough()


def hill_climbing(search: Exploration) -> None:
    """Always to the best neighbour, as long as it is better."""
    state = search.start
    while True:
        best = min(search.neighbours(state), key=rank, default=state)
        if rank(best)[:2] >= rank(state)[:2]:
            raise Stopped("no step makes it better")
        state = best


def random_restarts(search: Exploration, seed: int) -> None:
    """From some steps at random, to any better neighbour until there is none; again and again."""
    random = Random(seed)  # noqa: S311 - no secret
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
    raise Stopped("nothing new was found by chance")


def _any_neighbour(
    search: Exploration, state: GraphState, random: Random, *, better: bool = False
) -> GraphState | None:
    found = (search.look(step) for step in search.next_steps(state, random))
    return next((s for s in found if not better or rank(s)[:2] < rank(state)[:2]), None)


# --- explore: which fixes, in which order, make a graph meet its goals.


def explore(
    graph: LiveGraph,
    program: Program | str | Path | Iterable[Goal],
    fixes: Iterable[Fix] | None = None,
    *,
    strategy: Strategy = "best-first",
    depth: int | None = None,
    seconds: float = MOST_SECONDS,
    states: int = MOST_STATES,
    plans: int = MOST_PLANS,
    cost: Callable[[Candidate], float] | None = None,
    seed: int = 0,
) -> Repairs:
    r"""Look for plans that make a graph meet all hard goals, at the least cost; the best first.

    Goals and fixes are those of a program (a text, the path of a file, or one that was read), or
    are given one by one; `fixes` take the place of those of a program. The graph itself stays as
    it is, and nobody who watches it is told of anything: fixes are tried on a copy.
    `plan.apply(graph)` carries one out.

    A plan's cost is that of its fixes, plus the rows of soft goals by their weights, plus what the
    function `cost` says. Exploring stops at the limits: `depth` steps in a plan, `seconds`, and
    `states` looked at. It also stops when so many `plans` are found, unless there is a soft goal or
    a cost function: then it goes on, and the best are kept.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> graph.insert("<http://example.org/kitchen>", "<http://example.org/temperature>", 31)
    >>> found = explore(
    ...     graph,
    ...     '''PREFIX : <http://example.org/>
    ...     QUERY Hot AS SELECT ?room ?t { ?room :temperature ?t FILTER (?t > 30) }
    ...     GOAL  Cool NONE OF Hot
    ...     FIX   Air ON Hot THEN DELETE { ?room :temperature ?t } ;
    ...                           INSERT { ?room :temperature 20 }''',
    ... )
    >>> for row in found[0].preview["Hot"]:
    ...     print(row)
    - room=<http://example.org/kitchen> t="31"^^<http://www.w3.org/2001/XMLSchema#integer>
    >>> found[0].apply(graph)
    2
    """
    task = task_of(program, fixes)
    limits = Limits(depth, seconds, states, plans)
    check_strategy(strategy)
    started = monotonic()
    space = Space(graph, task)
    search = Exploration(space, limits, cost, started=started)
    stopped = None
    try:
        run_strategy(strategy, search, seed)
    except Stopped as reason:
        stopped = str(reason)
    planner = Planner(space, Fit(graph, task, space.start.counts))
    ranked = [planner.plan(state) for state in search.solutions()]
    closest = ranked[0] if ranked else planner.plan(search.closest)
    found = Repairs(ranked, closest, stopped)
    found.states, found.duplicates = search.visited, search.duplicates
    found.seconds = monotonic() - started
    return found
