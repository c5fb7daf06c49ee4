"""Generalised paths: from node to node over patterns, whatever their direction."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from graphtide.plan.decomposition.nodes import nodes_of, query_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.decomposition.nodes import QueryNode


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
    >>> from graphtide.rdf.term import NamedNode
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
