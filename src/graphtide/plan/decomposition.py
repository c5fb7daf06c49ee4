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
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.trees import Steps, finish
from graphtide.algebra.variables import Schema, merge, pattern_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    return tuple(frozenset(part) for part in _partition(query)[0].values())


def _partition(query: Iterable[TriplePattern]) -> tuple[dict[int, list[Var]], dict[Var, int]]:
    """The components by number, in order of first occurrence, and the number of each variable."""
    parts: dict[int, list[Var]] = {}
    numbers: dict[Var, int] = {}
    for pattern in query:
        together = pattern_variables(pattern)
        if not together:
            continue
        first, *others = sorted({numbers[v] for v in together if v in numbers}) or [len(numbers)]
        joined = [v for number in others for v in parts.pop(number)]
        joined += (v for v in together if v not in numbers)
        parts.setdefault(first, []).extend(joined)
        numbers.update(dict.fromkeys(joined, first))
    return parts, numbers


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
    parts, numbers = _partition(patterns)
    found: dict[int, list[TriplePattern]] = {number: [] for number in parts}
    for pattern in patterns:
        if variables := pattern_variables(pattern):
            found[numbers[variables[0]]].append(pattern)
    ground = tuple(p for p in patterns if not pattern_variables(p))
    return Parts(tuple(map(tuple, found.values())), ground)


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

MAX_LOOKED_AT = 48
"""Variables of a larger part of which one is chosen: planning stays fast for hundreds."""


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


Nodes = frozenset[int]
"""Numbers of classes of variables that occur in the same patterns."""


@dataclass(frozen=True, slots=True)
class _Subtree:
    root: int
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
    near = _Neighbours(_classes(query_variables(query), edges), edges)
    trees: dict[Nodes, _Subtree] = {}
    out: list[Instantiated] = []
    for part in near.components(range(len(near.classes))):
        rest = [(finish(_best(part, near, trees)), -1)]
        while rest:
            tree, above = rest.pop()
            rest += [(below, len(out)) for below in reversed(tree.below)]
            out.append(Instantiated(near.classes[tree.root], above))
    return tuple(out)


def _classes(variables: Schema, edges: Iterable[frozenset[Var]]) -> list[Schema]:
    """Variables grouped by the set of patterns that they occur in."""
    inside: dict[Var, set[frozenset[Var]]] = {v: set() for v in variables}
    for edge in edges:
        for v in edge:
            inside[v].add(edge)
    found: dict[frozenset[frozenset[Var]], list[Var]] = {}
    for v in variables:
        found.setdefault(frozenset(inside[v]), []).append(v)
    return [tuple(group) for group in found.values()]


class _Neighbours:
    """Which classes of variables share a pattern, by number in order of their names."""

    def __init__(self, classes: Iterable[Schema], edges: Iterable[frozenset[Var]]) -> None:
        self.classes = sorted(classes, key=lambda each: [v.name for v in each])
        self._sizes = [*map(len, self.classes)]
        number = {v: i for i, each in enumerate(self.classes) for v in each}
        self._edges = {frozenset(number[v] for v in edge) for edge in edges}
        self._near: list[set[int]] = [set() for _ in self.classes]
        for edge in self._edges:
            for node in edge:
                self._near[node] |= edge

    def components(self, nodes: Iterable[int]) -> Iterator[Nodes]:
        """The connected components of a set of nodes, in a fixed order."""
        rest = set(nodes)
        for first in sorted(rest):
            if first in rest:
                rest.remove(first)
                part = [first]
                for node in part:
                    if found := self._near[node] & rest:
                        rest -= found
                        part += found
                yield frozenset(part)

    def outside(self, part: Nodes) -> Nodes:
        """The nodes outside of a part that share a pattern with it."""
        return frozenset().union(*map(self._near.__getitem__, part)) - part

    def degree(self, node: int) -> int:
        """How many nodes share a pattern with a node."""
        return len(self._near[node])

    def size(self, nodes: Nodes) -> int:
        """The number of variables of some nodes."""
        return sum(map(self._sizes.__getitem__, nodes))

    def is_unguarded(self, outside: Nodes) -> bool:
        """Whether some nodes are not those of one pattern."""
        return bool(outside) and outside not in self._edges


def _best(part: Nodes, near: _Neighbours, known: dict[Nodes, _Subtree]) -> Steps[_Subtree]:
    """The best tree over connected nodes; those of parts of it are remembered."""
    if part in known:
        return known[part]
    outside = near.outside(part)
    trees = []
    for node in _candidates(part, near):
        below: list[_Subtree] = []
        for rest in near.components(part - {node}):
            below += ((yield _best(rest, near, known)),)
        costs = [tree.cost for tree in below]
        cost = OrderCost(
            near.is_unguarded(outside) + sum(c.unguarded for c in costs),
            near.size(outside) + sum(c.dependences for c in costs),
            1 + max((c.depth for c in costs), default=0),
        )
        trees.append(_Subtree(node, tuple(below), cost))
    known[part] = min(trees, key=lambda tree: tree.cost)
    return known[part]


def _candidates(part: Nodes, near: _Neighbours) -> list[int]:
    """The nodes that may be bound first: in a large part, the one that looks best."""
    ordered = sorted(part)
    if len(ordered) <= MAX_EXACT:
        return ordered
    if len(ordered) > MAX_LOOKED_AT:  # hubs, and some that lie anywhere
        hubs = sorted(ordered, key=near.degree, reverse=True)[: MAX_LOOKED_AT // 2]
        ordered = sorted({*hubs, *ordered[:: 2 * len(ordered) // MAX_LOOKED_AT]})
    return [min(ordered, key=lambda node: _ahead(part - {node}, near))]


def _ahead(rest: Nodes, near: _Neighbours) -> OrderCost:
    """A greedy cost of binding a node first, for parts with too many orders."""
    parts = list(near.components(rest))
    around = [near.outside(part) for part in parts]
    unguarded = sum(map(near.is_unguarded, around))
    return OrderCost(unguarded, max(map(len, parts), default=0), sum(map(near.size, around)))
