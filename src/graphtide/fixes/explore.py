"""explore: which fixes, in which order, make a graph meet its goals."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from graphtide.fixes.fit import Fit
from graphtide.fixes.limits import MOST_PLANS, MOST_SECONDS, MOST_STATES, Limits, Stopped
from graphtide.fixes.model import task_of
from graphtide.fixes.plan import Repairs
from graphtide.fixes.preview import Planner
from graphtide.fixes.search import Search
from graphtide.fixes.space import Space
from graphtide.fixes.strategies import check_strategy, run_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from graphtide.engine import LiveGraph
    from graphtide.fixes.model import Fix, Goal
    from graphtide.fixes.plan import Candidate
    from graphtide.fixes.strategies import Strategy
    from graphtide.lang.program import Program


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
    search = Search(space, limits, cost, started=started)
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
