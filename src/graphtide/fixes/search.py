"""Search: the states that have been looked at, what they are worth, and when to stop."""

from __future__ import annotations

from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING

from graphtide.errors import GraphtideError
from graphtide.fixes.limits import Stopped
from graphtide.fixes.plan import Candidate, quad_changes, steps_of
from graphtide.fixes.state import KnownStates, net_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from graphtide.engine.quads import Ids
    from graphtide.fixes.limits import Limits
    from graphtide.fixes.space import Space
    from graphtide.fixes.state import Known, State


class Search:
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
        self._solutions: dict[int, State] = {}
        self._enough_at = limits.plans
        self._soft = cost is not None or any(goal.soft for goal in space.task.goals)
        self._rate(space.start)
        self._note(self._known.add(space.start), space.start)

    # --- what strategies use ---

    def expand(self, state: State) -> Iterator[State]:
        """The states one step further that are new, or now reached in fewer steps or cheaper."""
        for step in self.next_steps(state):
            child, is_news = self._look(step)
            if is_news:
                yield child

    def neighbours(self, state: State) -> list[State]:
        """All states one step further, known or not."""
        return [self.look(child) for child in self.next_steps(state)]

    def next_steps(self, state: State, random: Random | None = None) -> Iterator[State]:
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

    def look(self, state: State) -> State:
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

    def solutions(self) -> list[State]:
        """The best states that meet all hard goals, the best first.

        What changes all that a better one changes, and more, is left out.
        """
        best: list[State] = []
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

    def _is_enough(self, state: State) -> bool:
        return not state.violations and not self._soft

    def _look(self, state: State) -> tuple[State, bool]:
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

    def _rate(self, state: State) -> None:
        """Work out violations and cost from the counts."""
        counted = list(zip(self.space.task.goals, state.counts, strict=True))
        state.violations = sum(goal.violations(rows) for goal, rows in counted)
        soft = sum(goal.weight * rows for goal, rows in counted if goal.soft)
        state.cost = state.price + soft + (self._own_cost(state) if self._cost else 0.0)

    def _own_cost(self, state: State) -> float:
        assert self._cost is not None  # noqa: S101 - it is asked for only if there is one
        goals = self.space.task.goals
        changes = quad_changes(self.space.graph, net_changes(state))
        counts = {goal.name: rows for goal, rows in zip(goals, state.counts, strict=True)}
        found: object = self._cost(Candidate(steps_of(self.space, state), changes, counts))
        if not isinstance(found, int | float) or not isfinite(found):
            message = f"the cost function gave {found!r}"
            raise GraphtideError(message, hint="it has to give a finite number")
        return found

    def _note(self, known: Known, state: State) -> None:
        """Remember a state if it is a solution, or the nearest to one so far."""
        if rank(state) < rank(self.closest):
            self.closest = state
        if not state.violations:
            before = self._solutions.get(id(known))
            if before is None or rank(state) < rank(before):
                self._solutions[id(known)] = state


def rank(state: State) -> tuple[int, float, int]:
    """What makes a state better than another: fewer violations, less cost, fewer steps."""
    return state.violations, state.cost, state.depth
