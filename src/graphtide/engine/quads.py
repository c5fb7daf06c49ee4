"""Quads as people give them, checked and turned into ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.errors import TermError
from graphtide.rdf.term import BlankNode, Literal, NamedNode, Term, type_of_term

if TYPE_CHECKING:
    from graphtide.rdf.dictionary import TermDictionary

TermLike = Term | str
"""A term, or its N-Triples text such as `<http://example.org/a>` or `"a"@en`."""

ObjectLike = TermLike | int | float
"""Numbers and booleans are taken as literals at the object position."""

Ids = tuple[int, int, int, int]


def quad_ids(
    terms: TermDictionary, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None
) -> Ids:
    """The ids of a quad's terms; a term at a position where it cannot stand is refused.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> quad_ids(TermDictionary(), "<http://example.org/a>", "<http://example.org/p>", 5, None)
    (1, 2, 3, 0)
    """
    if s.__class__ is not str or s[:1] == '"':
        _refuse(s, "subject", (NamedNode, BlankNode))
    if p.__class__ is not str or p[:1] != "<":
        _refuse(p, "predicate", (NamedNode,))
    if o.__class__ is not str and not isinstance(o, type_of_term):
        o = as_term(o)
    known, encode = terms.known.get, terms.encode
    graph = 0
    if g is not None:
        if g.__class__ is not str or g[:1] == '"':
            _refuse(g, "graph name", (NamedNode, BlankNode))
        graph = known(g) or encode(g)
    return known(s) or encode(s), known(p) or encode(p), known(o) or encode(o), graph


def _refuse(term: object, position: str, kinds: tuple[type, ...]) -> None:
    if not isinstance(term, kinds):
        wanted = " or ".join("an IRI" if kind is NamedNode else "a blank node" for kind in kinds)
        raise TermError(
            f"{term!r} cannot be a {position}: {wanted} is needed",
            hint='write terms in N-Triples syntax, such as "<http://example.org/a>" or "_:b"',
        )


def as_term(value: object) -> TermLike:
    """A term or text as it is, a number or boolean as a literal.

    >>> str(as_term(True))
    '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
    """
    if isinstance(value, (str, type_of_term)):
        return value
    if isinstance(value, (bool, int, float)):
        return Literal(value)
    raise TermError(
        f"{value!r} is not an RDF term",
        hint="pass a term, its N-Triples text, or a number or boolean as object",
    )
