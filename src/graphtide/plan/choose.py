"""Cost-based choice of the plan that maintains a query.

The candidates are compared by what an average change is expected to cost, weighted by what they
store (`plan.cost`):

    search     stores nothing but the quads, and orders its joins at run time
    rete       a network with memories: for searches that fan out and mostly find nothing
    … reduced  with (NOT) EXISTS by joins that start from the rows in question (`plan.patterns`)
    counting   aggregates over acyclic joins, by counts per key (`plan.counting`)

`decomposed` is chosen for a product of three or more parts that share no variable and are stars or
ground: binary joins would store products of the first parts.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Exists
from graphtide.algebra.traverse import walk
from graphtide.algebra.variables import pattern_variables
from graphtide.errors import GraphtideError, UnsupportedError
from graphtide.plan import physical as phys
from graphtide.plan.build import build_plan, build_prepared, prepared
from graphtide.plan.cost import PlanCost, has_choice, least_score, most_inputs, plan_cost
from graphtide.plan.decomposition import decompose, is_loosely_connected
from graphtide.plan.estimate import NOTHING_KNOWN, Estimator, Statistics
from graphtide.plan.patterns import STRATEGIES, Choices, Strategy, edges, input_with
from graphtide.plan.ranges import with_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from graphtide.algebra.nodes import SelectQuery, TriplePattern
    from graphtide.plan.order import Pin


ANALYSED = 256
"""Queries of which is known what does not depend on the data: many graphs may watch them."""

LONG_PRODUCT = 3
"""Parts with variables from which on binary joins store more than the parts."""


RISK = 2
"""Factor by which a reduction by joins must be better: one row with very many candidates makes it
slow and large. A search chooses its way for each row, and stores nothing on it."""


GOOD_ENOUGH = 2.0
"""How many times the least cost of a network a search may have to be taken without a comparison:
that would take longer than to evaluate the query on a small graph."""


OTHER_CHANGES = ": much slower for changes of some patterns"

REGRET = 0.25
"""How much it counts that another plan is more than `GOOD_ENOUGH` times better for one pattern: as
a power of the factor, since many mixes of changes are possible, and estimates may be off."""


def choose_plan(
    query: SelectQuery,
    statistics: Statistics,
    *,
    strategy: Strategy | None = None,
    pinned: Pin | None = None,
    union: bool = False,
    once: bool = False,
) -> phys.QueryPlan:
    """The plan of a query: with the given strategy or join tree, or else the cheapest.

    For a query that is evaluated `once`, there are no rows to be kept in order.
    """
    if strategy is not None and strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise GraphtideError(f"strategy {strategy!r} is unknown", hint=f"choose from {known}")
    if pinned is not None:
        why = {
            "search": "orders its joins at run time",
            "decomposed": "binds one variable after the other",
            "counting": "joins nothing",
        }.get(strategy or "")
        if why is not None:
            raise GraphtideError(
                f"{strategy!r} has no join tree to pin: it {why}",
                hint='use strategy="rete" with plan=…, or leave the plan out',
            )
        return build_plan(query, Choices("rete", statistics, pinned, union))
    if not statistics.known:
        return _plan_for_empty(query, strategy, union=union, once=once)
    plan = _plan(query, statistics, strategy, union=union)
    return plan if once else _with_ranges(plan)


BRANCHING = (
    alg.Join | alg.LeftJoin | alg.Union | alg.Minus | alg.Values | alg.Path | alg.GraphNames
    | alg.Group | alg.Distinct | alg.MergedGraph | Exists
)  # fmt: skip
"""Parts of a query that can be planned in several ways."""


@lru_cache(maxsize=ANALYSED)
def depends_on_data(query: SelectQuery, *, union: bool) -> bool:
    """Whether statistics may matter for the plan of a query.

    They do not for one triple pattern and tests of its variables.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> query = parse_query("SELECT * { ?a <ex:p> ?b ; a <ex:C> FILTER (?b > 1) }")
    >>> depends_on_data(query, union=False)
    False
    """
    parts = list(walk(query.root))
    if union or query.dataset is not None or any(isinstance(each, BRANCHING) for each in parts):
        return True
    patterns = [each for each in parts if isinstance(each, alg.TriplePattern)]
    variables = sorted((frozenset(pattern_variables(each)) for each in patterns), key=len)
    return not variables or any(
        len(each) != 1 or not each <= variables[-1] for each in variables[:-1]
    )


def _with_ranges(plan: phys.QueryPlan) -> phys.QueryPlan:
    return replace(plan, root=with_ranges(plan.root))


@lru_cache(maxsize=ANALYSED)
def _plan_for_empty(
    query: SelectQuery, strategy: Strategy | None, *, union: bool, once: bool
) -> phys.QueryPlan:
    """The plan for an empty graph depends on the query alone: many graphs may watch it."""
    plan = _plan(query, NOTHING_KNOWN, strategy, union=union)
    return plan if once else _with_ranges(plan)


def _plan(
    query: SelectQuery, statistics: Statistics, strategy: Strategy | None, *, union: bool
) -> phys.QueryPlan:
    if strategy is not None:
        return build_plan(query, Choices(strategy, statistics, union=union))
    return _cheapest(query, Choices("search", statistics, union=union))


def _cheapest(query: SelectQuery, choices: Choices) -> phys.QueryPlan:
    query = prepared(query, choices)
    if _has_long_product(query):
        decomposed = build_prepared(query, replace(choices, strategy="decomposed"))
        if _is_long_product(decomposed.root):
            return decomposed
    if not choices.statistics.known:
        return build_prepared(query, choices)
    first = build_prepared(query, choices)
    if not has_choice(first.root):
        return first
    others = _alternatives(query, choices, first)
    second = next(others, None)  # the rest is looked for if the search is not good enough
    if second is None:
        return first
    candidates = _candidates(query, choices, first, chain([second], others))
    searched = next(candidates)
    if _is_enough(searched):
        return first
    return _ranked([searched, *candidates])[0].plan


def _is_enough(searched: CandidatePlan) -> bool:
    """Whether no network could be much better than a search."""
    root, expect = searched.plan.root, searched.choices.expect
    return searched.cost.score <= GOOD_ENOUGH * least_score(root, most_inputs(root), expect)


class CandidatePlan(NamedTuple):
    """A plan that was considered, and its cost."""

    choices: Choices
    plan: phys.QueryPlan
    cost: PlanCost


def _candidates(
    query: SelectQuery, choices: Choices, searched: phys.QueryPlan, others: Iterable[Choices]
) -> Iterator[CandidatePlan]:
    """The plans of a prepared query; `search` first, which is taken if others are no better."""
    yield CandidatePlan(choices, searched, plan_cost(searched.root, choices.expect))
    for other in others:
        with suppress(UnsupportedError):  # not everything can be counted
            yield _candidate(query, other)


def _alternatives(
    query: SelectQuery, choices: Choices, searched: phys.QueryPlan
) -> Iterator[Choices]:
    """By what a prepared query may be planned beside a search."""
    if most_inputs(searched.root) > 1:  # a network would not have the same inputs
        yield replace(choices, strategy="rete")
        if choices.statistics.rates:
            yield replace(choices, strategy="rete", observed=True)
    tested = [size for node in walk(query.root) for size in _tested(node)]
    # A network that joins one pattern with the rows in question stores no less than a semijoin.
    if max(tested, default=0) > 1:
        yield replace(choices, strategy="search", reduced=True)
        yield replace(choices, strategy="rete", reduced=True)
        if any(map(_can_be_pushed, walk(query.root))):
            yield replace(choices, strategy="search", reduced=True, pushed=True)
            yield replace(choices, strategy="rete", reduced=True, pushed=True)
    if tested or any(isinstance(node, COUNTABLE) for node in walk(query.root)):
        yield replace(choices, strategy="counting")


COUNTABLE = alg.Group | alg.Distinct
"""Nodes by which a query may be counted."""


def _candidate(query: SelectQuery, choices: Choices) -> CandidatePlan:
    # Nodes of one plan are the same objects: to compare those of several takes long.
    choices = replace(choices, expect=Estimator(choices.statistics))
    plan = build_prepared(query, choices)
    cost = plan_cost(plan.root, choices.expect)
    return CandidatePlan(choices, plan, cost)


def _ranked(candidates: Sequence[CandidatePlan]) -> list[CandidatePlan]:
    """Plans, the best one first.

    Which pattern will change is not known: where another plan is far better for one of them, this
    may be the one that changes.
    """
    least: dict[TriplePattern, float] = {}
    for each in candidates:
        for pattern, cost in each.cost.patterns.items():
            least[pattern] = min(least.get(pattern, cost), cost)

    def rank(candidate: CandidatePlan) -> float:
        regret = max(candidate.cost.regret(least) / GOOD_ENOUGH, 1.0)
        risk = RISK if _is_risky(candidate.choices, candidate.plan) else 1
        return candidate.cost.score * math.pow(regret, REGRET) * risk

    return sorted(candidates, key=rank)


def _is_risky(choices: Choices, plan: phys.QueryPlan) -> bool:
    """Whether a plan was reduced to tests of rows by joins."""
    return choices.reduced and any(map(_has_joins, phys.nodes(plan.root)))


def _has_joins(node: phys.Physical) -> bool:
    """Whether a node tests rows by joins."""
    return isinstance(node, phys.SemiJoin) and any(
        isinstance(each, phys.HashJoin) for each in phys.nodes(node.right)
    )


def _tested(node: alg.Node) -> Iterator[int]:
    """The numbers of triple patterns of each (NOT) EXISTS over some that a node filters by."""
    for each in walk(node.condition) if isinstance(node, alg.Filter) else ():
        if isinstance(each, Exists) and isinstance(each.pattern, alg.Bgp):
            yield len(each.pattern.patterns)


def _can_be_pushed(node: alg.Node) -> bool:
    """Whether a node filters several inputs by an EXISTS that one of them has all variables of."""
    if not isinstance(node, alg.Filter) or not isinstance(node.child, alg.Bgp):
        return False
    tested = (each.pattern for each in walk(node.condition) if isinstance(each, Exists))
    groups = edges(list(dict.fromkeys(node.child.patterns)))
    return len(groups) > 1 and any(
        isinstance(each, alg.Bgp) and input_with(groups, each) for each in tested
    )


def reason(
    query: SelectQuery,
    plan: phys.QueryPlan,
    statistics: Statistics,
    strategy: Strategy | None = None,
    pinned: Pin | None = None,
    *,
    union: bool = False,
) -> str:
    """Why a plan was chosen, in words; `strategy` and `pinned` are what was asked for.

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
    choices = Choices("search", statistics, union=union)
    query = prepared(query, choices)
    first = build_prepared(query, choices)
    others = _alternatives(query, choices, first)
    searched, *rest = _candidates(query, choices, first, others)
    enough = _is_enough(searched)
    every = [searched, *_ranked(rest)] if enough else _ranked([searched, *rest])
    best = every[0].cost
    lines = ["expected for an average change, with the rows that are stored; the best is first:"]
    for tried, other, cost in every:
        work = f"{cost.change:,.0f} candidates and rows, {cost.stored:,.0f} stored"
        work += f", {cost.stored_bytes / 1e6:,.2f} MB with indexes"
        name = f"{tried.strategy}{', reduced' * tried.reduced}{', pushed down' * tried.pushed}"
        name += ", for observed changes" * tried.observed
        text = f"{name}: {work}"
        if plan in (other, _with_ranges(other)):
            text += ", which is running"
        elif cost is best:
            text += ", which would be chosen now"
        elif cost.change > best.change:
            text += f": {cost.change / best.change:,.1f} times the work"
        elif cost.score > best.score:
            text += ": stores too much for what it saves"
        else:
            risky = _is_risky(tried, other)
            text += ": not much better" if enough else ": risky" if risky else OTHER_CHANGES
        lines.append(text)
    return "\n".join(lines)


@lru_cache(maxsize=ANALYSED)
def _has_long_product(query: SelectQuery) -> bool:
    """Whether a basic graph pattern is a product of several stars: if none is, none is planned."""
    every = (part.patterns for part in walk(query.root) if isinstance(part, alg.Bgp))
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
