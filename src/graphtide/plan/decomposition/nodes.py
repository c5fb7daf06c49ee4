"""The nodes and variables of a query graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import merge, pattern_variables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.algebra.nodes import DefaultGraph, MergedGraph, TriplePattern
    from graphtide.algebra.variables import Schema
    from graphtide.rdf.term import Term

    QueryNode = Var | Term | DefaultGraph | MergedGraph


def nodes_of(pattern: TriplePattern) -> tuple[QueryNode, ...]:
    """The nodes that a triple pattern connects, each once.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
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
