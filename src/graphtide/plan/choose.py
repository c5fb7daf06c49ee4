"""The planner's choice: which strategy maintains a query at the least cost.

`search` stores nothing but the quads and finds its order by itself: it is the choice unless `rete`
is expected to touch far fewer rows per change (a walk with a large fan-out that mostly ends
nowhere, where a memory of the few rows that matter saves the walk) and to hold them in bounds.
Changes may not be spread over the patterns as the quads are, so one pattern from which all walks
are long is reason enough, if a network is no worse on average.

A pattern of three or more parts that have no variable in common is `decomposed` if each part is a
simple star or has no variables: a product two by two would store products of the first parts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from graphtide.errors import GraphtideError
from graphtide.plan.build import build_plan
from graphtide.plan.cost import change_cost, pattern_costs, stored_rows
from graphtide.plan.decomposition.parts import decompose, is_loosely_connected
from graphtide.plan.patterns import STRATEGIES, Choices, Strategy
from graphtide.plan.physical import Decomposed, Search, nodes

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery
    from graphtide.plan.physical import Physical, QueryPlan
    from graphtide.plan.pinned import Pin
    from graphtide.plan.statistics import Statistics

LONG_WALK = 50
"""Rows touched per change up to which a search is as good as anything."""

LONGEST_WALK = 500
"""Rows touched for a change of any one pattern up to which the same holds."""

ADVANTAGE = 4
"""How many times fewer rows `rete` must touch: a row through a network costs more than a lookup."""

LONG_PRODUCT = 3
"""Parts with variables from which on a product two by two stores more than the parts."""

MOST_STORED = 20
"""Rows that a network may hold per quad of the graph."""


def choose_plan(
    query: SelectQuery,
    statistics: Statistics,
    *,
    strategy: Strategy | None = None,
    pinned: Pin | None = None,
    union: bool = False,
) -> QueryPlan:
    """The plan of a query: as told, and where nothing is told, as statistics advise."""
    if strategy is not None and strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise GraphtideError(f"strategy {strategy!r} is unknown", hint=f"choose from {known}")
    if pinned is not None:
        if strategy in ("search", "decomposed"):
            why = "chooses its order anew for every change"
            if strategy == "decomposed":
                why = "instantiates one variable after the other"
            raise GraphtideError(
                f"{strategy!r} has no join tree to pin: it {why}",
                hint='use strategy="rete" with plan=…, or leave the plan out',
            )
        return build_plan(query, Choices("rete", statistics, pinned, union))
    if strategy is not None:
        return build_plan(query, Choices(strategy, statistics, union=union))
    return _cheapest(query, Choices("search", statistics, union=union))


def _cheapest(query: SelectQuery, choices: Choices) -> QueryPlan:
    statistics = choices.statistics
    search = build_plan(query, choices)
    decomposed = build_plan(query, replace(choices, strategy="decomposed"))
    if _is_long_product(decomposed.root):
        return decomposed
    if not statistics.known:
        return search
    walk = change_cost(search.root, statistics)
    walks = pattern_costs(search.root, statistics)
    if walk <= LONG_WALK and max(walks.values(), default=0.0) <= LONGEST_WALK:
        return search
    rete = build_plan(query, replace(choices, strategy="rete"))
    if stored_rows(rete.root, statistics) > MOST_STORED * statistics.quads:
        return search
    sent = change_cost(rete.root, statistics)
    if walk > LONG_WALK and sent * ADVANTAGE < walk:
        return rete
    sent_for = pattern_costs(rete.root, statistics)
    saves = any(
        cost > LONGEST_WALK and sent_for[pattern] * ADVANTAGE < cost
        for pattern, cost in walks.items()
        if pattern in sent_for
    )
    return rete if saves and sent <= walk else search


def _is_long_product(root: Physical) -> bool:
    """Whether all that a decomposed plan looks at is one product of several stars."""
    every = nodes(root)
    products = [node for node in every if isinstance(node, Decomposed)]
    if len(products) != 1 or not is_loosely_connected(products[0].patterns):
        return False
    own = frozenset(nodes(products[0]))
    only = all(node in own for node in every if isinstance(node, Search))
    return only and len(decompose(products[0].patterns).open) >= LONG_PRODUCT
