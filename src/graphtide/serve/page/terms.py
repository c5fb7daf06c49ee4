"""Terms and rows in the shape of SPARQL results in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyoxigraph import BlankNode, NamedNode

from graphtide.rdf.kinds import XSD
from graphtide.rdf.terms import parse_term

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from graphtide.rdf.terms import Term


def term_json(term: Term) -> dict[str, str]:
    """A term.

    >>> from pyoxigraph import Literal
    >>> term_json(Literal("hi", language="en"))
    {'type': 'literal', 'value': 'hi', 'xml:lang': 'en'}
    >>> term_json(NamedNode("http://example.org/a"))
    {'type': 'uri', 'value': 'http://example.org/a'}
    """
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    found = {"type": "literal", "value": term.value}
    if term.language:
        return found | {"xml:lang": term.language}
    return (
        found
        if term.datatype.value == f"{XSD}string"
        else found | {"datatype": term.datatype.value}
    )


def row_json(row: Mapping[str, Term | None]) -> dict[str, Any]:
    """A row; what is unbound is left out."""
    return {name: term_json(term) for name, term in row.items() if term is not None}


def table_json(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table of N-Triples texts."""
    return [
        {name: term_json(parse_term(text)) for name, text in row.items() if text is not None}
        for row in table.to_pylist()
    ]
