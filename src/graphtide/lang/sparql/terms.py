"""Terms: IRIs, prefixed names, literals, variables and the prologue.

https://www.w3.org/TR/sparql11-query/#QSynTerms. Literals keep their lexical form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from graphtide.algebra.expressions import Var
from graphtide.lang.sparql.scanner import Scanner, SparqlToken, prefix_hint
from graphtide.rdf.terms import DIRECTIONS

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = NamedNode(RDF + "type")
RDF_NIL = NamedNode(RDF + "nil")

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LONG_QUOTES = ('"""', "'''")
_CONTROL = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


class TermParser:
    """Parses terms and the prologue (BASE, PREFIX, VERSION)."""

    def __init__(self, text: str, base: str | None = None, *, standing: bool = True) -> None:
        self.tokens = Scanner(text)
        self.base = base
        self.standing = standing
        self.now_at: int | None = None  # where a standing query calls NOW
        self.prefixes: dict[str, str] = {}
        self.first_seen: dict[Var, int] = {}

    def prologue(self) -> None:
        """`BASE`, `PREFIX` and `VERSION` declarations; every version is read alike."""
        while token := self.tokens.accept("BASE", "PREFIX", "VERSION"):
            word = token.text.upper()
            if word == "BASE":
                self.base = self._iri_reference().value
            elif word == "VERSION":
                version = self.tokens.advance()
                if version.kind != "string" or version.text[:3] in _LONG_QUOTES:
                    self.tokens.fail(
                        f'expected a version such as "1.2", found {version}', at=version.start
                    )
            else:
                name = self.tokens.token
                if name.kind != "name" or name.text.find(":") != len(name.text) - 1:
                    self.tokens.fail(f"expected a prefix such as 'ex:', found {name}")
                self.tokens.advance()
                self.prefixes[name.text[:-1]] = self._iri_reference().value

    def declarations(self) -> str:
        """The prologue so far, as a text for others to read."""
        base = "" if self.base is None else f"BASE <{self.base}>\n"
        return base + "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in self.prefixes.items())

    def at_iri(self) -> bool:
        """Whether an IRI or prefixed name comes next."""
        return self.tokens.token.kind in ("iri", "name")

    def iri(self) -> NamedNode:
        """An IRI in either form."""
        if self.tokens.token.kind != "name":
            return self._iri_reference()
        token = self.tokens.advance()
        prefix, _, local = token.text.partition(":")
        if prefix not in self.prefixes:
            hint = prefix_hint(prefix, self.prefixes)
            self.tokens.fail(f"the prefix '{prefix}:' is not declared", at=token.start, hint=hint)
        return self._named_node(self.prefixes[prefix] + re.sub(r"\\(.)", r"\1", local), None, token)

    def at_literal(self) -> bool:
        """Whether a literal comes next; `+` and `-` count if a number follows without a space."""
        if self.tokens.token.kind in ("string", "number") or self.tokens.at("TRUE", "FALSE"):
            return True
        if not self.tokens.at("+", "-"):
            return False
        number = self.tokens.next_token()
        return number.kind == "number" and number.start == self.tokens.token.end

    def literal(self) -> Literal:
        """A string, number or boolean."""
        token = self.tokens.advance()
        if token.kind == "string":
            return self._string(token)
        if token.kind == "word":
            return Literal(token.text.lower(), datatype=NamedNode(XSD + "boolean"))
        sign = ""
        if token.kind == "sign":
            sign, token = token.text, self.tokens.advance()
        kind = "integer"
        if "e" in token.text.lower():
            kind = "double"
        elif "." in token.text:
            kind = "decimal"
        return Literal(sign + token.text, datatype=NamedNode(XSD + kind))

    def variable(self) -> Var:
        """`?name` or `$name`."""
        if self.tokens.token.kind != "var":
            self.tokens.fail(f"expected a variable, found {self.tokens.token}")
        token = self.tokens.advance()
        var = Var(token.text[1:])
        self.first_seen.setdefault(var, token.start)
        return var

    def constant(self, expected: str) -> Term:
        """An IRI or a literal."""
        if self.at_literal():
            return self.literal()
        if not self.at_iri():
            self.tokens.fail(f"expected {expected}, found {self.tokens.token}")
        return self.iri()

    def string(self) -> str:
        """The characters of a quoted string."""
        return self._characters(self.tokens.advance())

    def _characters(self, token: SparqlToken) -> str:
        quotes = 3 if token.text[:3] in _LONG_QUOTES else 1
        return self._unescaped(token.text[quotes:-quotes], token)

    def _string(self, token: SparqlToken) -> Literal:
        value = self._characters(token)
        if self.tokens.token.kind == "language":
            tag = self.tokens.advance()
            language, _, direction = tag.text[1:].partition("--")
            if not direction:
                return Literal(value, language=language)
            if direction not in DIRECTIONS:
                message = f"the base direction of a literal is ltr or rtl, not {direction}"
                self.tokens.fail(message, at=tag.start)
            return Literal(value, language=language, direction=DIRECTIONS[direction])
        if self.tokens.accept("^^"):
            return Literal(value, datatype=self.iri())
        return Literal(value)

    def _unescaped(self, text: str, token: SparqlToken) -> str:
        try:
            unescaped = _ESCAPE.sub(_character, text)
            unescaped.encode()  # rejects unpaired surrogates
        except (ValueError, OverflowError):
            self.tokens.fail("invalid character escape", at=token.start)
        return unescaped

    def _iri_reference(self) -> NamedNode:
        if self.tokens.token.kind != "iri":
            self.tokens.fail(f"expected an IRI, found {self.tokens.token}")
        token = self.tokens.advance()
        return self._named_node(self._unescaped(token.text[1:-1], token), self.base, token)

    def _named_node(self, iri: str, base: str | None, token: SparqlToken) -> NamedNode:
        try:
            return NamedNode(iri) if base is None else _resolve(iri, base)
        except (ValueError, SyntaxError):
            hint = None if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", iri) else "declare BASE <...>"
            self.tokens.fail(f"<{iri}> is not an absolute IRI", at=token.start, hint=hint)


def _character(escape: re.Match[str]) -> str:
    short, long, character = escape.groups()
    if character is None:
        return chr(int(short or long, 16))
    return _CONTROL.get(character, character)


def _resolve(iri: str, base: str) -> NamedNode:
    """Resolve a relative IRI by RFC 3986, with pyoxigraph as for data files."""
    line = f"<{iri}> <{iri}> <{iri}> ."
    resolved: NamedNode = next(parse(line, format=RdfFormat.TURTLE, base_iri=base)).predicate
    return resolved
