"""The order in which variables are instantiated, so that what is left falls apart soonest.

A value for a variable makes an *instance* of the part it is in. What is left of the instance is
decomposed again, and so on until no variable is left. Which variable goes first is fixed when the
query is registered: this makes a tree of variables, and two variables of one pattern are always on
one way from its root. Variables that occur in the same patterns only are instantiated together.

An instance is told apart from its siblings by the variables above it that it still depends on. If
these are the variables of a pattern, there are no more instances than triples of that pattern; if
not, instances have to be made for whatever its parts have in common. So orders of the second kind
are avoided where possible, then long dependences, then deep trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from graphtide.algebra.variables import pattern_variables
from graphtide.plan.decomposition.nodes import query_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.algebra.variables import Schema

MOST_EXACT = 7
"""Variables of a part up to which every order is weighed."""

Cost = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Instantiated:
    """Variables that get values together, after those at place `above`; -1 is the query itself."""

    variables: Schema
    above: int


@dataclass(frozen=True, slots=True)
class _Subtree:
    root: Schema
    below: tuple[_Subtree, ...]
    cost: Cost


def instantiation_order(query: Sequence[TriplePattern]) -> tuple[Instantiated, ...]:
    """The variables of a query from the first to be instantiated to the last.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
    >>> x, y, z, p = Var("x"), Var("y"), Var("z"), NamedNode("ex:p")
    >>> order = instantiation_order([TriplePattern(x, p, y), TriplePattern(y, p, z)])
    >>> [([v.name for v in each.variables], each.above) for each in order]
    [(['y'], -1), (['x'], 0), (['z'], 0)]
    """
    edges = frozenset(frozenset(pattern_variables(p)) for p in query)
    classes = _classes(query_variables(query), edges)
    best = _planner(edges)
    out: list[Instantiated] = []

    def place(tree: _Subtree, above: int) -> None:
        out.append(Instantiated(tree.root, above))
        at = len(out) - 1
        for each in tree.below:
            place(each, at)

    for part in _components(frozenset(classes), edges):
        place(best(part), -1)
    return tuple(out)


def _classes(variables: Schema, edges: Iterable[frozenset[Var]]) -> list[Schema]:
    """Variables grouped by the patterns that they occur in."""
    found: dict[frozenset[frozenset[Var]], list[Var]] = {}
    for v in variables:
        found.setdefault(frozenset(e for e in edges if v in e), []).append(v)
    return [tuple(group) for group in found.values()]


def _components(
    nodes: frozenset[Schema], edges: Iterable[frozenset[Var]]
) -> Iterator[frozenset[Schema]]:
    """The parts of a set of nodes that hang together by patterns, in a fixed order."""
    rest = sorted(nodes, key=lambda node: [v.name for v in node])
    while rest:
        part = [rest.pop(0)]
        for node in part:
            near = {v for e in edges if not e.isdisjoint(node) for v in e}
            part += [n for n in rest if not near.isdisjoint(n)]
            rest = [n for n in rest if near.isdisjoint(n)]
        yield frozenset(part)


def _planner(edges: frozenset[frozenset[Var]]) -> Callable[[frozenset[Schema]], _Subtree]:
    """Gives the best tree over connected nodes; each set of nodes is worked out once."""

    def candidates(part: frozenset[Schema]) -> list[Schema]:
        ordered = sorted(part, key=lambda node: [v.name for v in node])
        if len(ordered) <= MOST_EXACT:
            return ordered
        return [min(ordered, key=lambda node: _ahead(part - {node}, edges))]

    @cache
    def best(part: frozenset[Schema]) -> _Subtree:
        outside = _outside(part, edges)
        unguarded = int(bool(outside) and outside not in edges)
        trees = []
        for node in candidates(part):
            below = tuple(best(rest) for rest in _components(part - {node}, edges))
            costs = [tree.cost for tree in below]
            cost = (
                unguarded + sum(c[0] for c in costs),
                len(outside) + sum(c[1] for c in costs),
                1 + max((c[2] for c in costs), default=0),
            )
            trees.append(_Subtree(node, below, cost))
        return min(trees, key=lambda tree: tree.cost)

    return best


def _outside(part: frozenset[Schema], edges: frozenset[frozenset[Var]]) -> frozenset[Var]:
    """The variables that a part shares patterns with and that are not in it."""
    inside = frozenset(v for node in part for v in node)
    return frozenset(v for e in edges if not e.isdisjoint(inside) for v in e) - inside


def _ahead(rest: frozenset[Schema], edges: frozenset[frozenset[Var]]) -> Cost:
    """What is left when a node is taken out, in short: for parts too large to weigh every order."""
    parts = list(_components(rest, edges))
    around = [_outside(part, edges) for part in parts]
    unguarded = sum(bool(o) and o not in edges for o in around)
    return unguarded, max(map(len, parts), default=0), sum(map(len, around))
