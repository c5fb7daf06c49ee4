"""Concepts of paper 3 (definitions 1 to 12) that the engine does not need, and tests check."""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeVar

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph
from graphtide.plan.decomposition import (
    decompose,
    is_loosely_connected,
    query_variables,
    variable_partition,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from graphtide.algebra.nodes import MergedGraph, TriplePattern
    from graphtide.rdf.terms import Term

    QueryNode = Var | Term | DefaultGraph | MergedGraph
    Mapped = Mapping[QueryNode, QueryNode]
    Data = Collection[tuple[QueryNode, ...]]

QueryClass = Literal["ground", "star", "loosely connected", "connected", "mixed"]
Triple = TypeVar("Triple")


# --- nodes, paths and connected variables ---


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


# --- decompositions of a graph, and star queries ---


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


# --- embeddings: mappings of query nodes to data nodes; nodes that are not keys are undefined ---


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
