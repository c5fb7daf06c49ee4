"""Star queries: every pattern has one node in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.plan.decomposition.nodes import nodes_of, query_nodes, query_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.decomposition.nodes import QueryNode


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
    >>> from graphtide.rdf.term import NamedNode
    >>> a, p = NamedNode("ex:a"), NamedNode("ex:p")
    >>> is_var_centric([TriplePattern(a, p, Var("x")), TriplePattern(a, p, Var("y"))])
    False
    """
    return any(isinstance(node, Var) for node in central_nodes(query))


def is_simple_star(query: Sequence[TriplePattern]) -> bool:
    """Whether a query is var-centric and all nodes around its centre are constants (Definition 6).

    Its centre is then its only variable, and each value of that makes every pattern one triple.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
    >>> a, p = NamedNode("ex:a"), NamedNode("ex:p")
    >>> is_simple_star([TriplePattern(Var("x"), p, a), TriplePattern(a, p, Var("x"))])
    True
    >>> is_simple_star([TriplePattern(Var("x"), p, Var("y"))])
    False
    """
    return is_var_centric(query) and len(query_variables(query)) == 1
