"""Cost: the rows that one change is expected to touch under a plan, and the rows a plan stores.

A change arrives at a pattern as often as the pattern has quads. From there a search walks to its
partners, pattern by pattern; every row that comes out is passed up through the nodes above.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from graphtide.algebra.variables import pattern_variables
from graphtide.plan.estimate import Estimate, Estimator, pattern_estimate
from graphtide.plan.physical import (
    Closure,
    Decomposed,
    GroupBy,
    HashJoin,
    Physical,
    Search,
    SemiJoin,
    TopK,
    Unique,
    children,
    nodes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.statistics import Statistics


def change_cost(root: Physical, statistics: Statistics) -> float:
    """The rows that an average change touches, looked up or passed on."""
    expect = Estimator(statistics)
    above = _rows_above(root, expect)
    arrivals = 0.0
    touched = 0.0
    for leaf in above:
        if isinstance(leaf, Search):
            rows_out = expect(leaf).rows
            for weight, walked in _walks(leaf, statistics):
                arrivals += weight
                touched += weight * walked + rows_out * above[leaf]
    return touched / arrivals if arrivals else 0.0


def pattern_costs(root: Physical, statistics: Statistics) -> dict[TriplePattern, float]:
    """For each triple pattern, the rows that a change of one of its quads touches."""
    expect = Estimator(statistics)
    above = _rows_above(root, expect)
    costs: dict[TriplePattern, float] = {}
    for leaf in above:
        if isinstance(leaf, Search):
            patterns = (*leaf.patterns, *(p for check in leaf.checks for p in check.patterns))
            passed_on = expect(leaf).rows * above[leaf]
            for pattern, (quads, walked) in zip(patterns, _walks(leaf, statistics), strict=True):
                touched = walked + passed_on / max(quads, 1.0)
                costs[pattern] = costs.get(pattern, 0.0) + touched
    return costs


def stored_rows(root: Physical, statistics: Statistics) -> float:
    """The rows that the memories of a plan hold."""
    expect = Estimator(statistics)
    return sum(
        expect(child).rows
        for node in nodes(root)
        if isinstance(node, HashJoin | SemiJoin | Unique | GroupBy | TopK | Closure | Decomposed)
        for child in children(node)
    )


def _rows_above(root: Physical, expect: Estimator) -> dict[Physical, float]:
    """For each node, the rows that the nodes above it touch for one row that comes out of it."""
    above = dict.fromkeys(nodes(root), 0.0)
    for node in reversed(above):  # from the root down: a node after all that it feeds
        for child in children(node):
            through = expect(node).rows / max(expect(child).rows, 1.0)
            above[child] += 1 + through * (1 + above[node])
    return above


def _walks(leaf: Search, statistics: Statistics) -> list[tuple[float, float]]:
    """For each pattern of a search: its quads, and the rows walked for a change of one."""
    found: list[tuple[float, float]] = []
    for checked in ((), *(check.patterns for check in leaf.checks)):
        group = (*leaf.patterns, *checked)
        expected = [pattern_estimate(p, statistics) for p in group]
        starts = range(len(leaf.patterns) if checked else 0, len(group))
        found += [(expected[at].rows, _walked(group, expected, at)) for at in starts]
    return found


def _walked(patterns: Sequence[TriplePattern], expected: Sequence[Estimate], start: int) -> float:
    """The rows looked at when a search goes outwards from one matched pattern, fewest first."""
    known = set(pattern_variables(patterns[start]))
    rest = [i for i in range(len(patterns)) if i != start]
    rows, walked = 1.0, 1.0
    while rest:
        matches = {
            i: expected[i].rows / prod(expected[i].of(v) for v in expected[i].values if v in known)
            for i in rest
        }
        near = [i for i in rest if known & expected[i].values.keys()] or rest
        following = min(near, key=matches.__getitem__)
        rest.remove(following)
        walked += rows * (1 + matches[following])
        rows *= matches[following]
        known |= expected[following].values.keys()
    return walked
