"""Small pools of terms, so that random quads meet and random joins find rows.

`LITERALS` holds terms that pyoxigraph's Store gives back unchanged: many datatypes, several terms
of equal value among them. `TWINS` holds further spellings of the same values, which that Store
would rewrite (`"01"^^xsd:integer` comes back as `"1"`), so only an oracle that keeps them can
judge them.
"""

from __future__ import annotations

from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode

NAMESPACE: Final = "http://example.org/"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"


def iri(name: str) -> NamedNode:
    """An IRI of the pool's namespace.

    >>> str(iri("a"))
    '<http://example.org/a>'
    """
    return NamedNode(NAMESPACE + name)


def typed(text: str, datatype: str) -> Literal:
    """A literal of an XSD datatype.

    >>> str(typed("1", "integer"))
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    return Literal(text, datatype=NamedNode(XSD + datatype))


IRIS: Final = tuple(iri(name) for name in "abcd")
PREDICATES: Final = tuple(iri(name) for name in "pqr")
GRAPH_NAMES: Final = (iri("g1"), iri("g2"))
BLANKS: Final = (BlankNode("x"), BlankNode("y"))

NUMBERS: Final = (
    typed("1", "integer"),
    typed("2", "integer"),
    typed("-4", "integer"),
    typed("1", "decimal"),
    typed("2.5", "decimal"),
    typed("1", "double"),
    typed("2.5", "double"),
    typed("1", "float"),
)
STRINGS: Final = (
    Literal("a"),
    Literal("ab"),
    Literal("1"),
    Literal(""),
    Literal("a", language="en"),
    Literal("ab", language="en-gb"),
    Literal("a", language="fr"),
)
OTHERS: Final = (
    typed("true", "boolean"),
    typed("false", "boolean"),
    typed("2024-01-01T00:00:00Z", "dateTime"),
    typed("2024-01-01T01:00:00+01:00", "dateTime"),
    typed("2025-06-01T00:00:00Z", "dateTime"),
    typed("INF", "double"),
    typed("NaN", "double"),
    typed("one", "integer"),
    Literal("1", datatype=iri("unit")),
)
LITERALS: Final = NUMBERS + STRINGS + OTHERS

TWINS: Final = (
    typed("01", "integer"),
    typed("+1", "integer"),
    typed("1", "int"),
    typed("1.0", "decimal"),
    typed("2.50", "decimal"),
    typed("1.0E0", "double"),
    typed("25e-1", "double"),
    typed("1", "boolean"),
    typed("2024-01-01T00:00:00.000Z", "dateTime"),
)
