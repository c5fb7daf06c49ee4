"""Functions on RDF terms, relative IRIs, and the non-deterministic functions.

https://www.w3.org/TR/sparql11-query/#func-rdfTerms. Relative IRIs are resolved as in RFC 3986,
section 5.2. RAND, NOW, UUID, STRUUID and BNODE are for one-off queries and updates only.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions import xsd
from graphtide.functions.numbers import Number
from graphtide.functions.values import Text, boolean_term, plain_of, to_term, value_of
from graphtide.rdf.terms import DIRECTIONS, TripleTerm, triple_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.rdf.terms import Term


_PARTS: Final = re.compile(
    r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


def resolve_iri(base: str, reference: str) -> str:
    """The IRI that `reference` means in a document at `base`.

    >>> resolve_iri("http://a/b/c/d;p?q", "../g?y#s")
    'http://a/b/g?y#s'
    """
    scheme, authority, path, query, fragment = _split(reference)
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if scheme is None:
        scheme = base_scheme
        if authority is None:
            authority = base_authority
            if not path:
                path, query = base_path, base_query if query is None else query
            elif not path.startswith("/"):
                path = _merge(base_path, path, has_authority=base_authority is not None)
    return _join(scheme, authority, _without_dots(path), query, fragment)


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    if match is None:
        return None, None, iri, None, None
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _merge(base_path: str, path: str, *, has_authority: bool) -> str:
    if has_authority and not base_path:
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    output: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(output) > 1 or (output and output[0] != ""):
                output.pop()
        elif segment != ".":
            output.append(segment)
    if segments[-1] in (".", ".."):
        output.append("")
    return "/".join(output)


def _join(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> str:
    result = f"{scheme}:" if scheme is not None else ""
    result += f"//{authority}" if authority is not None else ""
    result += path
    result += f"?{query}" if query is not None else ""
    return result + (f"#{fragment}" if fragment is not None else "")


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
    if isinstance(term, BlankNode | TripleTerm):
        raise ExpressionError(f"{term} has no text")
    return to_term(Text(term.value))


def lang(term: Term) -> Term:
    """LANG: the language tag, empty for a literal without one."""
    return to_term(Text(_literal(term).language or ""))


def has_lang(term: Term) -> Term:
    """hasLANG: whether a term is a literal with a language tag."""
    return boolean_term(isinstance(term, Literal) and term.language is not None)


def has_lang_dir(term: Term) -> Term:
    """hasLANGDIR: whether a term is a literal with a base direction."""
    return boolean_term(isinstance(term, Literal) and term.direction is not None)


def lang_dir(term: Term) -> Term:
    """LANGDIR: the base direction, empty for a literal without one."""
    direction = _literal(term).direction
    return to_term(Text("" if direction is None else str(direction)))


def datatype(term: Term) -> Term:
    """DATATYPE."""
    return _literal(term).datatype


def iri(term: Term, base: Term | None = None) -> Term:
    """IRI, URI: the IRI that a string names.

    `base` is the base IRI of the query, for relative references: the parser appends it as a second
    argument. Without one, a relative reference is an error.

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


def strlangdir(lexical: Term, tag: Term, direction: Term) -> Term:
    """STRLANGDIR: a string with a language tag and a base direction."""
    wanted = DIRECTIONS.get(plain_of(direction))
    if wanted is None:
        raise ExpressionError(f"{direction} is not a base direction: ltr or rtl")
    try:
        return Literal(plain_of(lexical), language=plain_of(tag), direction=wanted)
    except ValueError as error:
        raise ExpressionError(f"{tag} is not a language tag") from error


def is_triple(term: Term) -> Term:
    """IsTRIPLE."""
    return boolean_term(isinstance(term, TripleTerm))


def triple(subject: Term, predicate: Term, object_: Term) -> Term:
    """TRIPLE: a triple term; an error if a part cannot stand where it is."""
    try:
        return triple_term(subject, predicate, object_)
    except ValueError as error:
        raise ExpressionError(str(error)) from error


def part_function(name: str, *, strict: bool) -> Callable[[Term], Term]:
    """SUBJECT, PREDICATE or OBJECT; other terms are errors or, unless `strict`, their own part."""

    def part(term: Term) -> Term:
        if isinstance(term, TripleTerm):
            found: Term = getattr(term, name)
            return found
        if strict:
            raise ExpressionError(f"{term} is not a triple term")
        return term

    return part


def _literal(term: Term) -> Literal:
    if isinstance(term, Literal):
        return term
    raise ExpressionError(f"{term} is not a literal")


ARITIES: Final = {"RAND": (0, 0), "NOW": (0, 0), "UUID": (0, 0), "STRUUID": (0, 0), "BNODE": (0, 1)}
"""The least and the greatest number of arguments of each non-deterministic function."""


class Volatile:
    """The non-deterministic functions for one evaluation: NOW is fixed, BNODE per row and label."""

    def __init__(self) -> None:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        self._now = Literal(now, datatype=NamedNode(xsd.DATE_TIME))
        self._labels: dict[str, BlankNode] = {}

    def next_row(self) -> None:
        """Start another row: BNODE("x") now gives another node than before."""
        self._labels = {}

    @property
    def functions(self) -> Mapping[str, Callable[..., Term]]:
        """The functions by name, for `evaluate`.

        >>> from pyoxigraph import Literal
        >>> bnode = Volatile().functions["BNODE"]
        >>> bnode(Literal("x")) == bnode(Literal("x")), bnode() == bnode()
        (True, False)
        """
        return {
            "RAND": lambda: Literal(random.random()),  # noqa: S311 - not a secret
            "NOW": lambda: self._now,
            "UUID": lambda: NamedNode(f"urn:uuid:{uuid4()}"),
            "STRUUID": lambda: Literal(str(uuid4())),
            "BNODE": self._bnode,
        }

    def _bnode(self, label: Term | None = None) -> Term:
        if label is None:
            return BlankNode()
        return self._labels.setdefault(plain_of(label), BlankNode())
