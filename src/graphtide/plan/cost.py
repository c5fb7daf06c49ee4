"""The cost of a plan: what an average change costs, and how many rows it stores.

From a changed quad, a search joins pattern by pattern (`plan.walks`); its rows are passed up
through the nodes above. The unit is one candidate that a search looks at. Which quads will change
is not known: it may be any of them, or those of one pattern only. So the cost of a change is the
geometric mean of an average one and of one of the dearest pattern, by which a plan that is a factor
better in one and as much worse in the other is as good. Once enough changes were observed, an
average one of these counts as much as both together. What a plan costs for each pattern is compared
with other plans (`plan.choose`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import log2, prod, sqrt
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import pattern_variables
from graphtide.kernel.search.program import ExistsCheck, SearchProgram, needed_indexes
from graphtide.plan import physical as phys
from graphtide.plan.counting import ROOT, is_counted, sent
from graphtide.plan.estimate import (
    EVERY_PREDICATE,
    Estimate,
    Estimator,
    Statistics,
    joined,
    pattern_estimate,
)
from graphtide.plan.walks import walks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.kernel.search.program import Pattern
    from graphtide.plan.estimate import IndexColumns
    from graphtide.rdf.terms import Term

ANYWAY = 25.0
"""What a change costs whatever the plan: to be read, stored and reported."""

SENT, STORED, GROUPED, DISTINCT = 2.5, 15.0, 12.0, 5.0
"""What a row costs that a node of a network receives; one that it puts into a memory, adds to a
group, and counts among equal ones."""

NODE = 10.0
"""What it costs to run a node of a network for a change, however few its rows are, if some ten
changes are taken in at a time."""

COUNTING, COUNTED, TOTAL = 20.0, 8.0, 2.0
"""What a change costs that is counted, each key of a join tree that it touches, and each group."""

MEMORY = 0.2
"""A plan that stores as many bytes as the quads without indexes is charged so much more."""

QUAD_BYTES, ROW_BYTES, CELL_BYTES = 32, 16, 4
"""A quad; a row in a memory, beside each of its columns (`kernel.rowtable`, without spare room)."""

LINK_BYTES, KEY_BYTES = 8, 12
"""What an index takes for each quad of the graph or row of a memory, and for each of its keys."""


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What an average change costs, the rows that the plan stores, and their bytes with indexes.

    Also what a change of each pattern costs.
    """

    change: float
    stored: float
    stored_bytes: float
    quads: int
    patterns: Mapping[TriplePattern, float] = field(default_factory=dict, repr=False)

    @property
    def score(self) -> float:
        """What plans are compared by: time, weighted by memory."""
        return self.change * (1 + MEMORY * self.stored_bytes / (QUAD_BYTES * max(self.quads, 1)))

    def regret(self, least: Mapping[TriplePattern, float]) -> float:
        """How many times the least known cost a change of a pattern may have."""
        return max((cost / least[each] for each, cost in self.patterns.items()), default=1.0)


def plan_cost(root: phys.Physical, expect: Estimator) -> PlanCost:
    """The cost of a plan."""
    statistics = expect.statistics
    every = phys.nodes(root)
    above, depths = _rows_above(every, expect), _depths(every)
    quads: list[float] = []
    rates: list[float] = []
    costs: list[float] = []
    patterns: dict[TriplePattern, float] = {}
    for leaf in above:
        if isinstance(leaf, phys.Search):
            rows_out = expect(leaf).rows
            for walk in walks(leaf, statistics):
                found = rows_out / max(walk.quads, 1.0)
                quads.append(walk.quads)
                rates.append(statistics.observed(walk.pattern, walk.quads))
                cost = walk.touched + found * above[leaf] + min(1.0, found) * NODE * depths[leaf]
                costs.append(cost)
                patterns[walk.pattern] = patterns.get(walk.pattern, ANYWAY) + cost
    change = ANYWAY
    if costs:
        change = sqrt((ANYWAY + _weighted(costs, quads)) * (ANYWAY + max(costs)))
        if sum(rates):
            change = sqrt(change * (ANYWAY + _weighted(costs, rates)))
    rows = list(_stored(every, expect))
    held = sum(n * each for n, each in rows)
    held += index_bytes((n for n in every if isinstance(n, phys.Search)), statistics)
    return PlanCost(change, sum(n for n, _ in rows), held, statistics.quads, patterns)


def least_score(root: phys.Physical, inputs: int, expect: Estimator) -> float:
    """The score at least of a network with so many inputs in the place of a plan of searches.

    A changed row is stored, and goes through as many joins as a balanced tree has levels; the
    network stores the rows of its inputs.
    """
    change = ANYWAY + 1 + STORED + NODE * log2(max(inputs, 2))
    statistics = expect.statistics
    patterns = (p for leaf in phys.searches(root) for p in leaf.patterns)
    rows = sum(pattern_estimate(p, statistics).rows for p in patterns if pattern_variables(p)[1:])
    return PlanCost(change, rows, rows * ROW_BYTES, statistics.quads).score


def most_inputs(root: phys.Physical) -> int:
    """How many inputs a network has that takes the place of a plan's largest search."""
    return max(map(_inputs, phys.searches(root)), default=0)


def _inputs(leaf: phys.Search) -> int:
    """The inputs of a network for a search: patterns of one variable are part of others."""
    groups = (leaf.patterns, *(check.patterns for check in leaf.checks))
    many = sum(len(pattern_variables(p)) > 1 for group in groups for p in group)
    return max(many, len(groups))


def has_choice(root: phys.Physical) -> bool:
    """Whether a search has more than one input, or a node above stores rows."""
    return any(
        _inputs(node) > 1 if isinstance(node, phys.Search) else isinstance(node, STORING)
        for node in phys.nodes(root)
    )


def _weighted(costs: Sequence[float], weights: Sequence[float]) -> float:
    """The mean of costs with weights; at least one change is assumed."""
    total = sum(n * cost for n, cost in zip(weights, costs, strict=True))
    return total / max(sum(weights), 1.0)


STORING = (
    phys.HashJoin
    | phys.SemiJoin
    | phys.RangeJoin
    | phys.Unique
    | phys.GroupBy
    | phys.TopK
    | phys.Closure
    | phys.Decomposed
    | phys.Counting
)
"""Nodes that store something for the rows they receive."""


def _stored(every: Iterable[phys.Physical], expect: Estimator) -> Iterator[tuple[float, int]]:
    """The rows of each memory of a plan, and the bytes of one; of totals and sets, one each.

    Memories of joins are indexed: room for keys is made as if each row had another one.
    """
    for node in every:
        totals = isinstance(node, phys.GroupBy) and all(map(is_counted, node.aggregates))
        if totals or isinstance(node, phys.Unique):
            yield expect(node).rows, _row_bytes(node)
        elif isinstance(node, STORING):
            indexed = {phys.HashJoin: 2, phys.SemiJoin: 1}.get(type(node), 0)
            for number, child in enumerate(phys.children(node)):
                index = LINK_BYTES + KEY_BYTES if number < indexed else 0
                yield expect(child).rows, _row_bytes(child) + index


def _row_bytes(node: phys.Physical) -> int:
    return ROW_BYTES + CELL_BYTES * len(node.schema)


def index_bytes(leaves: Iterable[phys.Search], statistics: Statistics) -> float:
    """The bytes of the indexes that searches need and that are not kept for other queries.

    Every quad has the links of all indexes; keys are only those of the predicates in an index.
    """
    wanted: dict[IndexColumns, set[Term | Var]] = {}
    for leaf in leaves:
        for pattern, columns in _lookups(leaf.patterns, tuple(c.patterns for c in leaf.checks)):
            wanted.setdefault(columns, set()).add(pattern.predicate)
    found = 0.0
    for columns, predicates in wanted.items():
        kept = statistics.indexes.get(columns, ())
        found += 0 if kept else LINK_BYTES * statistics.quads
        for each in predicates if EVERY_PREDICATE not in kept else ():
            if isinstance(each, Var) or statistics.name(each) not in kept:
                found += KEY_BYTES * _index_keys(columns, each, statistics)
    return found


@lru_cache(maxsize=256)  # plans that are compared, now and later, have searches in common
def _lookups(
    searched: tuple[TriplePattern, ...], checked: tuple[tuple[TriplePattern, ...], ...]
) -> list[tuple[TriplePattern, IndexColumns]]:
    """The patterns of a search, each with the columns of an index that it may be looked up by."""
    if len(searched) == 1 and not checked:
        return []
    numbers: dict[object, int] = {}

    def pattern(triple: TriplePattern) -> Pattern:
        s, p, o, g = (
            -1 - numbers.setdefault(each, len(numbers)) if isinstance(each, Var) else 0
            for each in (triple.subject, triple.predicate, triple.object, triple.graph)
        )
        return s, p, o, g

    groups = (searched, *checked)
    outer, *checks = (tuple(map(pattern, group)) for group in groups)
    found = needed_indexes(
        SearchProgram(outer, len(numbers), tuple(ExistsCheck(False, each) for each in checks))
    )
    return [
        (triple, columns)
        for group in groups
        for triple in group
        for columns in found[pattern(triple)]
    ]


def _index_keys(columns: IndexColumns, predicate: Term | Var, statistics: Statistics) -> float:
    """How many keys the quads of a predicate have in an index."""
    some = None if isinstance(predicate, Var) else predicate
    own = statistics.any_predicate() if some is None else statistics.predicate(some)
    by_subject, by_object = (column in columns for column in (0, 2))
    if by_subject and by_object:
        return own.count
    return own.subjects if by_subject else own.objects if by_object else 1.0


def _rows_above(every: Sequence[phys.Physical], expect: Estimator) -> dict[phys.Physical, float]:
    """For each node, what one row of its output costs the nodes above it."""
    above = dict.fromkeys(every, 0.0)
    above[every[-1]] = SENT  # the answer
    for node in reversed(above):  # from the root down: a node after its consumers
        if isinstance(node, phys.Counting):
            for child, (keys, groups) in zip(node.inputs, counted_keys(node, expect), strict=True):
                above[child] += COUNTING + COUNTED * keys + groups * (TOTAL + above[node])
            continue
        own = _received(node)
        for child in phys.children(node):
            through = expect(node).rows / max(expect(child).rows, 1.0)
            above[child] += own + through * above[node]
    return above


def _received(node: phys.Physical) -> float:
    """What a row costs the node that receives it."""
    match node:
        case phys.GroupBy():
            return GROUPED
        case phys.Unique():
            return DISTINCT
        case _:
            return STORED if isinstance(node, STORING) else SENT


class CountedKeys(NamedTuple):
    """How many keys a changed row of an input touches on its way up, and how many groups."""

    touched: float
    groups: float


def counted_keys(node: phys.Counting, expect: Estimator) -> list[CountedKeys]:
    """What a changed row of each input of a join tree reaches."""
    found: list[CountedKeys] = []
    shared, groups = sent(node), expect(node)
    kept = [set(each) for each in shared]  # the columns of an input that its keys are made of
    for each, parent in zip(shared, node.parents, strict=True):
        if parent != ROOT:
            kept[parent].update(each)
    for number, part in enumerate(node.inputs):
        touched, keys, at = 1.0, 1.0, number
        reached = expect(part)
        while (parent := node.parents[at]) != ROOT:
            rows = expect(node.inputs[parent])
            # A changed row is more likely one of a hub: so many partners has one on average.
            before, reached = reached.rows, joined(reached, rows)
            partners = reached.rows / max(before, 1e-9)
            if kept[parent].issubset(shared[at]):
                keys *= min(partners, 1.0)  # the same key, if it is there
            else:
                keys *= partners * _different(rows, kept[parent]) / max(rows.rows, 1.0)
            touched += max(keys, 1.0)
            keys = min(keys, _different(rows, shared[parent]))
            at = parent
        own = _different(groups, shared[at])
        found.append(CountedKeys(touched, min(keys, own) * max(groups.rows / own, 1.0)))
    return found


def _different(rows: Estimate, variables: Iterable[Var]) -> float:
    """The expected number of combinations of some columns, at least one."""
    return max(1.0, min(prod(rows.of(v) for v in variables), rows.rows))


def _depths(every: Iterable[phys.Physical]) -> dict[phys.Physical, int]:
    """For each node, the nodes on its longest way up."""
    depths = dict.fromkeys(every, 0)
    for node in reversed(depths):
        for child in phys.children(node):
            depths[child] = max(depths[child], depths[node] + 1)
    return depths
