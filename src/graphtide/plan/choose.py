"""Cost-based choice of the strategy that maintains a query.

`search` is the default: it stores nothing but the quads and orders its joins at run time. `rete`
is chosen if it is expected to touch far fewer rows per change, on average or for changes of one
pattern, and its memories stay within bounds: for example, if a search has a large fan-out and
mostly finds nothing.

`decomposed` is chosen for a product of three or more parts that share no variable and are stars or
ground: binary joins would store products of the first parts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from graphtide.algebra.nodes import Bgp
from graphtide.algebra.traverse import walk
from graphtide.errors import GraphtideError
from graphtide.plan import physical as phys
from graphtide.plan.build import build_plan, build_prepared, prepared
from graphtide.plan.decomposition import decompose, is_loosely_connected
from graphtide.plan.estimate import NOTHING_KNOWN, Estimate, Estimator, Statistics, pattern_estimate
from graphtide.plan.patterns import STRATEGIES, Choices, Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import SelectQuery, TriplePattern
    from graphtide.plan.order import Pin


# --- cost: the expected rows that a change touches, and that a plan stores ---
#
# Changes are assumed to be distributed over the patterns as the quads are. From a changed quad, a
# search joins pattern by pattern; its rows are passed up through the nodes above.


def change_cost(root: phys.Physical, statistics: Statistics) -> float:
    """The rows that an average change touches: looked up, or passed on."""
    expect = Estimator(statistics)
    above = _rows_above(root, expect)
    arrivals = 0.0
    touched = 0.0
    for leaf in above:
        if isinstance(leaf, phys.Search):
            rows_out = expect(leaf).rows
            for weight, walked in _walks(leaf, statistics):
                arrivals += weight
                touched += weight * walked + rows_out * above[leaf]
    return touched / arrivals if arrivals else 0.0


def pattern_costs(root: phys.Physical, statistics: Statistics) -> dict[TriplePattern, float]:
    """For each triple pattern, the rows that a change of one of its quads touches."""
    expect = Estimator(statistics)
    above = _rows_above(root, expect)
    costs: dict[TriplePattern, float] = {}
    for leaf in above:
        if isinstance(leaf, phys.Search):
            patterns = (*leaf.patterns, *(p for check in leaf.checks for p in check.patterns))
            passed_on = expect(leaf).rows * above[leaf]
            for pattern, (quads, walked) in zip(patterns, _walks(leaf, statistics), strict=True):
                touched = walked + passed_on / max(quads, 1.0)
                costs[pattern] = costs.get(pattern, 0.0) + touched
    return costs


def stored_rows(root: phys.Physical, statistics: Statistics) -> float:
    """The rows in the memories of a plan."""
    expect = Estimator(statistics)
    return sum(
        expect(child).rows
        for node in phys.nodes(root)
        if isinstance(
            node,
            phys.HashJoin
            | phys.SemiJoin
            | phys.Unique
            | phys.GroupBy
            | phys.TopK
            | phys.Closure
            | phys.Decomposed,
        )
        for child in phys.children(node)
    )


def _rows_above(root: phys.Physical, expect: Estimator) -> dict[phys.Physical, float]:
    """For each node, the rows that the nodes above it touch for one row of its output."""
    above = dict.fromkeys(phys.nodes(root), 0.0)
    for node in reversed(above):  # from the root down: a node after its consumers
        for child in phys.children(node):
            through = expect(node).rows / max(expect(child).rows, 1.0)
            above[child] += 1 + through * (1 + above[node])
    return above


def _walks(leaf: phys.Search, statistics: Statistics) -> list[tuple[float, float]]:
    """For each pattern of a search: its quads, and the rows looked up for a change of one."""
    found: list[tuple[float, float]] = []
    for checked in ((), *(check.patterns for check in leaf.checks)):
        group = (*leaf.patterns, *checked)
        expected = [pattern_estimate(p, statistics) for p in group]
        readers: dict[Var, list[int]] = {}
        for i, each in enumerate(expected):
            for var in each.values:
                readers.setdefault(var, []).append(i)
        starts = range(len(leaf.patterns) if checked else 0, len(group))
        found += [(expected[at].rows, _walked(expected, readers, at)) for at in starts]
    return found


def _walked(
    expected: Sequence[Estimate], readers: Mapping[Var, Sequence[int]], start: int
) -> float:
    """The rows looked up by a search from one matched pattern, greedily by fewest matches."""
    matches = {i: each.rows for i, each in enumerate(expected)}
    near: set[int] = set()
    known: set[Var] = set()
    rows, walked = 1.0, 1.0
    following = start
    while True:
        del matches[following]
        near.discard(following)
        new = expected[following].values.keys() - known
        known |= new
        for i in {i for var in new for i in readers[var] if i in matches}:
            near.add(i)
            bound = (expected[i].of(v) for v in expected[i].values if v in known)
            matches[i] = expected[i].rows / prod(bound)
        if not matches:
            return walked
        following = min(sorted(near) or matches, key=matches.__getitem__)
        walked += rows * (1 + matches[following])
        rows *= matches[following]


LONG_WALK = 50
"""Rows per average change up to which `search` is always chosen."""

LONGEST_WALK = 500
"""Rows per change of any one pattern up to which the same holds."""

ADVANTAGE = 4
"""Factor by which `rete` must touch fewer rows: passing a row costs more than a lookup."""

LONG_PRODUCT = 3
"""Parts with variables from which on binary joins store more than the parts."""

MAX_STORED = 20
"""Rows that a network may store per quad of the graph."""


def choose_plan(
    query: SelectQuery,
    statistics: Statistics,
    *,
    strategy: Strategy | None = None,
    pinned: Pin | None = None,
    union: bool = False,
) -> phys.QueryPlan:
    """The plan of a query: with the given strategy or join tree, or else the cheapest."""
    if strategy is not None and strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise GraphtideError(f"strategy {strategy!r} is unknown", hint=f"choose from {known}")
    if pinned is not None:
        if strategy in ("search", "decomposed"):
            why = "orders its joins at run time"
            if strategy == "decomposed":
                why = "binds one variable after the other"
            raise GraphtideError(
                f"{strategy!r} has no join tree to pin: it {why}",
                hint='use strategy="rete" with plan=…, or leave the plan out',
            )
        return build_plan(query, Choices("rete", statistics, pinned, union))
    if not statistics.known:
        return _plan_for_empty(query, strategy, union=union)
    return _plan(query, statistics, strategy, union=union)


@lru_cache(maxsize=64)
def _plan_for_empty(
    query: SelectQuery, strategy: Strategy | None, *, union: bool
) -> phys.QueryPlan:
    """The plan for an empty graph depends on the query alone: many graphs may watch it."""
    return _plan(query, NOTHING_KNOWN, strategy, union=union)


def _plan(
    query: SelectQuery, statistics: Statistics, strategy: Strategy | None, *, union: bool
) -> phys.QueryPlan:
    if strategy is not None:
        return build_plan(query, Choices(strategy, statistics, union=union))
    return _cheapest(query, Choices("search", statistics, union=union))


def _cheapest(query: SelectQuery, choices: Choices) -> phys.QueryPlan:
    statistics = choices.statistics
    query = prepared(query, choices)
    if _has_long_product(query):
        decomposed = build_prepared(query, replace(choices, strategy="decomposed"))
        if _is_long_product(decomposed.root):
            return decomposed
    search = build_prepared(query, choices)
    if not statistics.known:
        return search
    average = change_cost(search.root, statistics)
    walks = pattern_costs(search.root, statistics)
    if average <= LONG_WALK and max(walks.values(), default=0.0) <= LONGEST_WALK:
        return search
    rete = build_prepared(query, replace(choices, strategy="rete"))
    if stored_rows(rete.root, statistics) > MAX_STORED * statistics.quads:
        return search
    sent = change_cost(rete.root, statistics)
    if average > LONG_WALK and sent * ADVANTAGE < average:
        return rete
    sent_for = pattern_costs(rete.root, statistics)
    saves = any(
        cost > LONGEST_WALK and sent_for[pattern] * ADVANTAGE < cost
        for pattern, cost in walks.items()
        if pattern in sent_for
    )
    return rete if saves and sent <= average else search


def reason(
    query: SelectQuery,
    plan: phys.QueryPlan,
    statistics: Statistics,
    strategy: Strategy | None = None,
    pinned: Pin | None = None,
) -> str:
    """Why a plan has its strategy, in words; `strategy` and `pinned` are what was asked for.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> query = parse_query("SELECT * { ?a <ex:p> ?b }")
    >>> reason(query, choose_plan(query, NOTHING_KNOWN), NOTHING_KNOWN)
    'search is the default: it stores nothing but the quads'
    """
    if pinned is not None:
        return "its join tree was given"
    if strategy is not None:
        return f"{strategy} was asked for"
    if plan.strategy == "decomposed":
        return "parts of the pattern share no variable: joins would store their products"
    if not statistics.known:
        return "search is the default: it stores nothing but the quads"
    choices = Choices("search", statistics)
    ready = prepared(query, choices)
    search = build_prepared(ready, choices)
    rete = build_prepared(ready, replace(choices, strategy="rete"))
    walked, sent = (change_cost(each.root, statistics) for each in (search, rete))
    stored = stored_rows(rete.root, statistics)
    return (
        f"an average change is expected to touch {walked:,.0f} rows with search and {sent:,.0f} "
        f"with rete, which {'would store' if plan.strategy == 'search' else 'stores'} "
        f"{stored:,.0f} rows"
    )


def _has_long_product(query: SelectQuery) -> bool:
    """Whether a basic graph pattern is a product of several stars: if none is, none is planned."""
    every = (part.patterns for part in walk(query.root) if isinstance(part, Bgp))
    return any(map(_is_product_of_stars, every))


def _is_product_of_stars(patterns: Sequence[TriplePattern]) -> bool:
    return is_loosely_connected(patterns) and len(decompose(patterns).open) >= LONG_PRODUCT


def _is_long_product(root: phys.Physical) -> bool:
    """Whether a decomposed plan reads the quads only in one product of several stars."""
    every = phys.nodes(root)
    products = [node for node in every if isinstance(node, phys.Decomposed)]
    if len(products) != 1 or not _is_product_of_stars(products[0].patterns):
        return False
    own = frozenset(phys.nodes(products[0]))
    return all(node in own for node in every if isinstance(node, phys.Search))
