"""Functions that look at a term as a term, and those that make one.

https://www.w3.org/TR/sparql11-query/#func-rdfTerms
"""

from __future__ import annotations

from graphtide.errors import ExpressionError
from graphtide.functions.iris import resolve_iri
from graphtide.functions.numbers import Number
from graphtide.functions.values import Text, boolean_term, plain_of, to_term, value_of
from graphtide.rdf.term import BlankNode, Literal, NamedNode, Term


def is_iri(term: Term) -> Term:
    """ISIRI, ISURI."""
    return boolean_term(isinstance(term, NamedNode))


def is_blank(term: Term) -> Term:
    """ISBLANK."""
    return boolean_term(isinstance(term, BlankNode))


def is_literal(term: Term) -> Term:
    """ISLITERAL."""
    return boolean_term(isinstance(term, Literal))


def is_numeric(term: Term) -> Term:
    """ISNUMERIC: a literal of a numeric type that is not ill-typed."""
    return boolean_term(isinstance(value_of(term), Number))


def str_of(term: Term) -> Term:
    """STR: an IRI's text or a literal's lexical form, as written."""
    if isinstance(term, BlankNode):
        raise ExpressionError("a blank node has no text")
    return to_term(Text(term.value))


def lang(term: Term) -> Term:
    """LANG: the language tag, empty for a literal without one."""
    return to_term(Text(_literal(term).language or ""))


def datatype(term: Term) -> Term:
    """DATATYPE."""
    return _literal(term).datatype


def iri(term: Term, base: Term | None = None) -> Term:
    """IRI, URI: the IRI that a string names.

    `base` is the base IRI of the query, for relative references: whoever builds the expression
    appends it as a second argument. Without one, a relative reference is an error.

    >>> print(iri(Literal("../b"), NamedNode("http://example.com/x/y")))
    <http://example.com/b>
    """
    if isinstance(term, NamedNode):
        return term
    reference = plain_of(term)
    if isinstance(base, NamedNode):
        reference = resolve_iri(base.value, reference)
    try:
        return NamedNode(reference)
    except ValueError as error:
        raise ExpressionError(f"{term} is not an IRI: {error}") from error


def strdt(lexical: Term, kind: Term) -> Term:
    """STRDT: a literal with a datatype."""
    if not isinstance(kind, NamedNode):
        raise ExpressionError(f"{kind} is not a datatype")
    return Literal(plain_of(lexical), datatype=kind)


def strlang(lexical: Term, tag: Term) -> Term:
    """STRLANG: a string with a language tag."""
    try:
        return Literal(plain_of(lexical), language=plain_of(tag))
    except ValueError as error:
        raise ExpressionError(f"{tag} is not a language tag") from error


def _literal(term: Term) -> Literal:
    if isinstance(term, Literal):
        return term
    raise ExpressionError(f"{term} is not a literal")
