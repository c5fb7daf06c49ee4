"""Strategies: in which order states are looked at.

bfs, dfs and best-first look at every state within the limits. hill-climbing goes to the best state
next to it until none is better; random-restarts does so again and again, from places where it
was led by chance.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final, Literal, assert_never, get_args

from graphtide.errors import GraphtideError
from graphtide.fixes.limits import Stopped
from graphtide.fixes.search import rank
from graphtide.lang.hints import name_hint

if TYPE_CHECKING:
    from graphtide.fixes.search import Search
    from graphtide.fixes.state import State

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


def run_strategy(strategy: Strategy, search: Search, seed: int) -> None:
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


def breadth_first(search: Search) -> None:
    """Step by step: all plans of n steps before any of n + 1."""
    level = [search.start]
    while level:
        level = [child for state in level for child in search.expand(state)]
        search.stop_if_enough()


def depth_first(search: Search) -> None:
    """Each fix to the end before the next one."""
    ahead = [search.expand(search.start)]
    while ahead:
        child = next(ahead[-1], None)
        if child is None:
            ahead.pop()
        else:
            ahead.append(search.expand(child))
            search.stop_if_enough()


def best_first(search: Search) -> None:
    """From the best state so far, wherever it is; of equals, the one that was found first."""
    numbers = count()
    ahead = [(rank(search.start), next(numbers), search.start)]
    while ahead:
        state = heappop(ahead)[-1]
        for child in search.expand(state):
            heappush(ahead, (rank(child), next(numbers), child))
        search.stop_if_enough()


def hill_climbing(search: Search) -> None:
    """Always to the best neighbour, as long as it is better."""
    state = search.start
    while True:
        best = min(search.neighbours(state), key=rank, default=state)
        if rank(best)[:2] >= rank(state)[:2]:
            raise Stopped("no step makes it better")
        state = best


def random_restarts(search: Search, seed: int) -> None:
    """From some steps at random, to any better neighbour until there is none; again and again."""
    random = Random(seed)  # noqa: S311 - no secret
    fruitless = 0
    while fruitless < FRUITLESS:
        before = search.visited
        state = search.start
        for _ in range(random.randint(0, FARTHEST_START)):
            state = _any_neighbour(search, state, random) or state
        better: State | None = state
        while better is not None:
            state, better = better, _any_neighbour(search, better, random, better=True)
        search.stop_if_enough()
        fruitless = fruitless + 1 if search.visited == before else 0
    raise Stopped("nothing new was found by chance")


def _any_neighbour(
    search: Search, state: State, random: Random, *, better: bool = False
) -> State | None:
    found = (search.look(step) for step in search.next_steps(state, random))
    return next((s for s in found if not better or rank(s)[:2] < rank(state)[:2]), None)
