"""Embeddings: how the nodes of a query are laid on the nodes of a data graph.

A data graph is a set of `(subject, predicate, object)`, with a fourth part for a named graph. A
partial mapping is a dictionary: a node that is not a key is undefined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph
from graphtide.plan.decomposition.nodes import query_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.decomposition.nodes import QueryNode

    Mapped = Mapping[QueryNode, QueryNode]
    Data = Collection[tuple[QueryNode, ...]]


def is_embedding(mapping: Mapped, query: Sequence[TriplePattern], data: Data) -> bool:
    """Whether a mapping is defined on all nodes and lays every pattern on a triple (Definition 2).

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
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
    >>> from graphtide.rdf.term import NamedNode
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
