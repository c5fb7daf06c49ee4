"""How a basic graph pattern falls apart: the definitions behind the `decomposed` strategy."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeVar

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph
from graphtide.algebra.variables import merge, pattern_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from graphtide.algebra.nodes import MergedGraph, TriplePattern
    from graphtide.algebra.variables import Schema
    from graphtide.rdf.terms import Term


# --- The nodes and variables of a query graph.

if TYPE_CHECKING:
    QueryNode = Var | Term | DefaultGraph | MergedGraph


def nodes_of(pattern: TriplePattern) -> tuple[QueryNode, ...]:
    """The nodes that a triple pattern connects, each once.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> a, p = NamedNode("ex:a"), NamedNode("ex:p")
    >>> nodes_of(TriplePattern(Var("x"), p, a))
    (Var(name='x'), <NamedNode value=ex:a>)
    >>> nodes_of(TriplePattern(Var("x"), Var("p"), Var("x")))
    (Var(name='x'), Var(name='p'))
    """
    labels = (n for n in (pattern.predicate, pattern.graph) if isinstance(n, Var))
    return tuple(dict.fromkeys((pattern.subject, pattern.object, *labels)))


def query_nodes(query: Iterable[TriplePattern]) -> tuple[QueryNode, ...]:
    """All nodes of a query, in order of first appearance.

    >>> query_nodes([])
    ()
    """
    return tuple(dict.fromkeys(node for pattern in query for node in nodes_of(pattern)))


def query_variables(query: Iterable[TriplePattern]) -> Schema:
    """All variables of a query, in order of first appearance: its output pattern.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> query_variables([TriplePattern(Var("y"), Var("p"), Var("x"))])
    (Var(name='y'), Var(name='p'), Var(name='x'))
    """
    return merge(*(pattern_variables(p) for p in query))


# --- The order in which variables are instantiated, so that what is left falls apart soonest.
#
# A value for a variable makes an *instance* of the part it is in. What is left of the instance is
# decomposed again, and so on until no variable is left. Which variable goes first is fixed when the
# query is registered: this makes a tree of variables, and two variables of one pattern are always on
# one way from its root. Variables that occur in the same patterns only are instantiated together.
#
# An instance is told apart from its siblings by the variables above it that it still depends on. If
# these are the variables of a pattern, there are no more instances than triples of that pattern; if
# not, instances have to be made for whatever its parts have in common. So orders of the second kind
# are avoided where possible, then long dependences, then deep trees.

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


# --- Generalised paths: from node to node over patterns, whatever their direction.


def shortest_path(
    query: Sequence[TriplePattern],
    start: QueryNode,
    end: QueryNode,
    through: Iterable[QueryNode] | None = None,
) -> tuple[TriplePattern, ...] | None:
    """A shortest generalised path between two different nodes, or None (Definition 7).

    With `through`, only these nodes may be on the way, and the ends have to be among them.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> x, y, z, p = Var("x"), Var("y"), Var("z"), NamedNode("ex:p")
    >>> query = [TriplePattern(x, p, y), TriplePattern(z, p, y)]
    >>> len(shortest_path(query, x, z))
    2
    >>> shortest_path(query, x, z, through=[x, z])
    """
    allowed = set(query_nodes(query) if through is None else through)
    if start == end or start not in allowed or end not in allowed:
        return None
    ways: dict[QueryNode, tuple[TriplePattern, ...]] = {start: ()}
    ahead = deque([start])
    while ahead and end not in ways:
        here = ahead.popleft()
        for pattern in query:
            beside = nodes_of(pattern)
            for node in beside if here in beside else ():
                if node in allowed and node not in ways:
                    ways[node] = (*ways[here], pattern)
                    ahead.append(node)
    return ways.get(end)


def distance(query: Sequence[TriplePattern], start: QueryNode, end: QueryNode) -> int | None:
    """The number of patterns on the shortest path between two nodes; None if there is none.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> x, y, p = Var("x"), Var("y"), Var("p")
    >>> distance([TriplePattern(x, p, y)], y, x), distance([], x, y)
    (1, None)
    """
    path = shortest_path(query, start, end)
    return None if path is None else len(path)


# --- Connected variables: which hang together without a constant in between.


def is_var_connected(query: Sequence[TriplePattern]) -> bool:
    """Whether paths without constants connect all of several variables (Definition 8).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> x, y, a, p = Var("x"), Var("y"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> is_var_connected([TriplePattern(x, p, y)])
    True
    >>> is_var_connected([TriplePattern(x, p, a), TriplePattern(a, p, y)])
    False
    """
    variables = query_variables(query)
    return len(variables) > 1 and all(
        shortest_path(query, x, y, through=variables) for x, y in combinations(variables, 2)
    )


def variable_partition(query: Sequence[TriplePattern]) -> tuple[frozenset[Var], ...]:
    """The connected-variable partition: variables that share patterns, and so on (Definition 9).

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


# --- The connected-variable decomposition: the parts of a query that share no variable.

if TYPE_CHECKING:
    Query = tuple[TriplePattern, ...]

QueryClass = Literal["ground", "star", "loosely connected", "connected", "mixed"]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts with variables, in order of first appearance, and the patterns without any."""

    open: tuple[Query, ...]
    ground: Query


def decompose(query: Sequence[TriplePattern]) -> Parts:
    """The connected-variable decomposition; the same pattern twice counts once (Definition 10).

    The answers of a query are the product of the answers of its parts.

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
    """Whether every way between two variables leads over a constant (Definition 11).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> is_loosely_connected([TriplePattern(Var("x"), Var("p"), Var("y"))])
    False
    """
    return all(len(part) == 1 for part in variable_partition(query))


def is_connected_variable(query: Sequence[TriplePattern]) -> bool:
    """Whether a query has several variables and they are all connected (Definition 12).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> is_connected_variable([TriplePattern(Var("x"), Var("p"), Var("y"))])
    True
    """
    return len(query_variables(query)) > 1 and len(variable_partition(query)) == 1


def query_class(query: Sequence[TriplePattern]) -> QueryClass:
    """Which of the classes a query is in, the narrowest first; `mixed` has parts of several.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> x, a, p = Var("x"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> query_class([TriplePattern(a, p, a)]), query_class([TriplePattern(x, p, a)])
    ('ground', 'star')
    """
    parts = decompose(query)
    if not parts.open:
        return "ground"
    if is_loosely_connected(query):
        return "star" if len(parts.open) == 1 and not parts.ground else "loosely connected"
    return "connected" if len(parts.open) == 1 and not parts.ground else "mixed"


# --- Graph decomposition: a data or query graph as a tuple of parts that together are the whole.

Triple = TypeVar("Triple")


def is_decomposition(segments: Sequence[Collection[Triple]], whole: Collection[Triple]) -> bool:
    """Whether segments are parts of a graph and together all of it (Definition 1).

    >>> is_decomposition([{1, 2}, {2, 3}], {1, 2, 3}), is_decomposition([{1}], {1, 2})
    (True, False)
    """
    return bool(segments) and frozenset().union(*segments) == frozenset(whole)


def is_triple_partition(segments: Sequence[Collection[Triple]], whole: Collection[Triple]) -> bool:
    """Whether a decomposition is non-redundant: no triple is in two segments (Definition 1).

    >>> is_triple_partition([{1, 2}, {3}], {1, 2, 3}), is_triple_partition([{1, 2}, {2}], {1, 2})
    (True, False)
    """
    apart = all(frozenset(a).isdisjoint(b) for a, b in combinations(segments, 2))
    return apart and is_decomposition(segments, whole)


# --- Star queries: every pattern has one node in common.


def central_nodes(query: Sequence[TriplePattern]) -> tuple[QueryNode, ...]:
    """The nodes that every pattern has as subject or object; a single pattern has two.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> x, y, z, p = (Var(name) for name in "xyzp")
    >>> central_nodes([TriplePattern(x, p, y), TriplePattern(z, p, x)])
    (Var(name='x'), Var(name='p'))
    """
    common = [set(nodes_of(pattern)) for pattern in query]
    return tuple(n for n in query_nodes(query) if all(n in nodes for nodes in common))


def is_star(query: Sequence[TriplePattern]) -> bool:
    """Whether a query is a generalised star query (Definition 6).

    >>> is_star([])
    False
    """
    return bool(central_nodes(query))


def is_var_centric(query: Sequence[TriplePattern]) -> bool:
    """Whether a query is a star with a variable at its centre (Definition 6).

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> a, p = NamedNode("ex:a"), NamedNode("ex:p")
    >>> is_var_centric([TriplePattern(a, p, Var("x")), TriplePattern(a, p, Var("y"))])
    False
    """
    return any(isinstance(node, Var) for node in central_nodes(query))


def is_simple_star(query: Sequence[TriplePattern]) -> bool:
    """Whether a query is var-centric and all nodes around its centre are constants (Definition 6).

    Its centre is then its only variable, and each value of that makes every pattern one triple.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> a, p = NamedNode("ex:a"), NamedNode("ex:p")
    >>> is_simple_star([TriplePattern(Var("x"), p, a), TriplePattern(a, p, Var("x"))])
    True
    >>> is_simple_star([TriplePattern(Var("x"), p, Var("y"))])
    False
    """
    return is_var_centric(query) and len(query_variables(query)) == 1


# --- Embeddings: how the nodes of a query are laid on the nodes of a data graph.
#
# A data graph is a set of `(subject, predicate, object)`, with a fourth part for a named graph. A
# partial mapping is a dictionary: a node that is not a key is undefined.

if TYPE_CHECKING:
    Mapped = Mapping[QueryNode, QueryNode]
    Data = Collection[tuple[QueryNode, ...]]


def is_embedding(mapping: Mapped, query: Sequence[TriplePattern], data: Data) -> bool:
    """Whether a mapping is defined on all nodes and lays every pattern on a triple (Definition 2).

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> a, b, p = (NamedNode(f"ex:{name}") for name in "abp")
    >>> query = [TriplePattern(Var("x"), p, b)]
    >>> is_embedding({Var("x"): a, b: b}, query, {(a, p, b)})
    True
    >>> is_embedding({Var("x"): a}, query, {(a, p, b)})
    False
    """
    total = all(node in mapping for node in query_nodes(query))
    return total and is_partial_embedding(mapping, query, data)


def is_partial_embedding(mapping: Mapped, query: Sequence[TriplePattern], data: Data) -> bool:
    """Whether constants stay what they are, and patterns mapped in full are there (Definition 3).

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from pyoxigraph import NamedNode
    >>> a, b, p = (NamedNode(f"ex:{name}") for name in "abp")
    >>> is_partial_embedding({b: b}, [TriplePattern(Var("x"), p, b)], set())
    True
    >>> is_partial_embedding({b: a}, [TriplePattern(Var("x"), p, b)], set())
    False
    """
    if any(mapping.get(n, n) != n for n in query_nodes(query) if not isinstance(n, Var)):
        return False
    images = (_image(pattern, mapping) for pattern in query)
    return all(image in data for image in images if image is not None)


def _image(pattern: TriplePattern, mapping: Mapped) -> tuple[QueryNode, ...] | None:
    """The triple that a pattern is laid on; None if a node of it is undefined."""
    positions: list[QueryNode] = [pattern.subject, pattern.predicate, pattern.object]
    if not isinstance(pattern.graph, DefaultGraph):
        positions.append(pattern.graph)
    image: list[QueryNode] = []
    for at, node in enumerate(positions):
        label = at not in (0, 2) and not isinstance(node, Var)
        if not label and node not in mapping:
            return None
        image.append(node if label else mapping[node])
    return tuple(image)


def compatible(one: Mapped, other: Mapped) -> bool:
    """Whether two partial mappings agree wherever both are defined (Definition 4).

    >>> x, y, z = (Var(name) for name in "xyz")
    >>> compatible({x: y}, {x: y, y: z}), compatible({x: y}, {x: z})
    (True, False)
    """
    return all(other[node] == image for node, image in one.items() if node in other)


def joined(one: Mapped, other: Mapped) -> dict[QueryNode, QueryNode]:
    """The join of two compatible mappings: defined where either of them is (Definition 5).

    >>> x, y, z = (Var(name) for name in "xyz")
    >>> joined({x: y}, {x: y, y: z}) == {x: y, y: z}
    True
    """
    return {**other, **one}
