"""What a term is here: pyoxigraph's immutable term classes, under the names of our vocabulary."""

from __future__ import annotations

from pyoxigraph import BlankNode, Literal, NamedNode

type_of_term = (NamedNode, BlankNode, Literal)

Term = NamedNode | BlankNode | Literal

__all__ = ["BlankNode", "Literal", "NamedNode", "Term", "type_of_term"]
