"""Connected-variable decomposition, and the order of variables for the `decomposed` strategy.

The answer of a basic graph pattern is the product of the answers of its parts that share no
variable (`decompose`). Binding a variable of a part makes an *instance* of it, which is decomposed
again, until no variable is left. `instantiation_order` fixes at registration which variable is
bound first: a tree of variables, in which two variables of one triple pattern are always on one
path from the root. Variables that occur in the same patterns only are bound together.

An instance is identified by the variables above it that it still depends on. If these are the
variables of one pattern, there are at most as many instances as triples of that pattern; if not,
there is one for every combination. So the cost of an order is, lexicographically: the number of
dependences of the second kind, their total length, and the depth of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.variables import Schema, merge, pattern_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import TriplePattern

    BasicPattern = tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts with variables, in order of first occurrence, and the patterns without any."""

    open: tuple[BasicPattern, ...]
    ground: BasicPattern


def query_variables(query: Iterable[TriplePattern]) -> Schema:
    """The variables of a basic graph pattern, in order of first occurrence.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> query_variables([TriplePattern(Var("y"), Var("p"), Var("x"))])
    (Var(name='y'), Var(name='p'), Var(name='x'))
    """
    return merge(*(pattern_variables(p) for p in query))


def variable_partition(query: Sequence[TriplePattern]) -> tuple[frozenset[Var], ...]:
    """The connected components of variables that share patterns (paper 3, Definition 9).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> x, y, z, a, p = Var("x"), Var("y"), Var("z"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> query = [TriplePattern(x, p, y), TriplePattern(y, p, a), TriplePattern(a, p, z)]
    >>> [sorted(v.name for v in part) for part in variable_partition(query)]
    [['x', 'y'], ['z']]
    """
    parts: list[frozenset[Var]] = []
    for pattern in query:
        together = frozenset(pattern_variables(pattern))
        if together:
            meeting = [part for part in parts if part & together]
            at = parts.index(meeting[0]) if meeting else len(parts)
            parts = [part for part in parts if part not in meeting]
            parts.insert(at, together.union(*meeting))
    return tuple(parts)


def decompose(query: Sequence[TriplePattern]) -> Parts:
    """The connected-variable decomposition, without duplicate patterns (Definition 10).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> x, y, a, p = Var("x"), Var("y"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> parts = decompose([TriplePattern(x, p, a), TriplePattern(a, p, a), TriplePattern(a, p, y)])
    >>> len(parts.open), len(parts.ground)
    (2, 1)
    """
    patterns = tuple(dict.fromkeys(query))
    open_parts = tuple(
        tuple(p for p in patterns if variables & frozenset(pattern_variables(p)))
        for variables in variable_partition(patterns)
    )
    return Parts(open_parts, tuple(p for p in patterns if not pattern_variables(p)))


def is_loosely_connected(query: Sequence[TriplePattern]) -> bool:
    """Whether no two variables share a pattern (Definition 11).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> is_loosely_connected([TriplePattern(Var("x"), Var("p"), Var("y"))])
    False
    """
    return all(len(part) == 1 for part in variable_partition(query))


# --- the order in which variables are bound ---

MAX_EXACT = 7
"""Variables of a part up to which every order is considered."""


class OrderCost(NamedTuple):
    """What an order of variables is compared by; for large parts, an approximation."""

    unguarded: int
    dependences: int
    depth: int


@dataclass(frozen=True, slots=True)
class Instantiated:
    """Variables that are bound together, after those at index `above`; -1 is the root."""

    variables: Schema
    above: int


@dataclass(frozen=True, slots=True)
class _Subtree:
    root: Schema
    below: tuple[_Subtree, ...]
    cost: OrderCost


def instantiation_order(query: Sequence[TriplePattern]) -> tuple[Instantiated, ...]:
    """The variables of a query in the order in which they are bound.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
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
    """Variables grouped by the set of patterns that they occur in."""
    found: dict[frozenset[frozenset[Var]], list[Var]] = {}
    for v in variables:
        found.setdefault(frozenset(e for e in edges if v in e), []).append(v)
    return [tuple(group) for group in found.values()]


def _components(
    nodes: frozenset[Schema], edges: Iterable[frozenset[Var]]
) -> Iterator[frozenset[Schema]]:
    """The connected components of a set of nodes, in a fixed order."""
    rest = sorted(nodes, key=lambda node: [v.name for v in node])
    while rest:
        part = [rest.pop(0)]
        for node in part:
            near = {v for e in edges if not e.isdisjoint(node) for v in e}
            part += [n for n in rest if not near.isdisjoint(n)]
            rest = [n for n in rest if near.isdisjoint(n)]
        yield frozenset(part)


def _planner(edges: frozenset[frozenset[Var]]) -> Callable[[frozenset[Schema]], _Subtree]:
    """A function that gives the best tree over connected nodes, memoised by set of nodes."""

    def candidates(part: frozenset[Schema]) -> list[Schema]:
        ordered = sorted(part, key=lambda node: [v.name for v in node])
        if len(ordered) <= MAX_EXACT:
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
            cost = OrderCost(
                unguarded + sum(c.unguarded for c in costs),
                len(outside) + sum(c.dependences for c in costs),
                1 + max((c.depth for c in costs), default=0),
            )
            trees.append(_Subtree(node, below, cost))
        return min(trees, key=lambda tree: tree.cost)

    return best


def _outside(part: frozenset[Schema], edges: frozenset[frozenset[Var]]) -> frozenset[Var]:
    """The variables outside of a part that share a pattern with it."""
    inside = frozenset(v for node in part for v in node)
    return frozenset(v for e in edges if not e.isdisjoint(inside) for v in e) - inside


def _ahead(rest: frozenset[Schema], edges: frozenset[frozenset[Var]]) -> OrderCost:
    """A greedy cost of binding a node first, for parts with too many orders."""
    parts = list(_components(rest, edges))
    around = [_outside(part, edges) for part in parts]
    unguarded = sum(bool(o) and o not in edges for o in around)
    return OrderCost(unguarded, max(map(len, parts), default=0), sum(map(len, around)))
