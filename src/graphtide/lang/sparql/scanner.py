"""Lexer for SPARQL, error reporting with line and column, and spelling hints.

https://www.w3.org/TR/sparql11-query/#sparqlGrammar: the longest token wins, so `?a<?b&&?c>?d`
contains an IRI, not comparisons.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from graphtide.errors import QueryError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable

_LETTER = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = f"{_LETTER}_0-9\u00b7\u0300-\u036f\u203f-\u2040"
_LOCAL = rf"(?:[{_NAME}:\-]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?#@%])"
_FIRST_LOCAL = rf"(?:[{_LETTER}_0-9:]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?#@%])"
_CHARACTER = r"(?:[^{quote}\\{more}]|\\.)"
_SHORT = [_CHARACTER.format(quote=quote, more=r"\r\n") for quote in "\"'"]
_LONG = [_CHARACTER.format(quote=quote, more="") for quote in "\"'"]

_TOKEN = re.compile(
    rf"""
      (?P<iri> <(?:[^<>"{{}}|^`\\\x00-\x20] | \\u[0-9A-Fa-f]{{4}} | \\U[0-9A-Fa-f]{{8}})*> )
    | (?P<blank> _:[{_LETTER}_0-9](?:[{_NAME}.\-]*[{_NAME}\-])? )
    | (?P<name> (?:[{_LETTER}](?:[{_NAME}.\-]*[{_NAME}\-])?)?
                :(?:{_FIRST_LOCAL}(?:(?:{_LOCAL}|\.)*{_LOCAL})?)? )
    | (?P<var> [?$][{_LETTER}_0-9][{_NAME}]* )
    | (?P<language> @[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)? )
    | (?P<string> \"\"\"(?:"{{0,2}}{_LONG[0]})*\"\"\" | '''(?:'{{0,2}}{_LONG[1]})*'''
                | "{_SHORT[0]}*" | '{_SHORT[1]}*' )
    | (?P<number> (?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+\-]?[0-9]+ | [0-9]*\.[0-9]+ | [0-9]+ )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<sign> <<\( | \)>> | \^\^ | \|\| | && | != | <= | >= | \{{\| | \|\}} | << | >>
              | [{{}}()\[\].;,=<>+\-*/!|^?~] )
    """,
    re.VERBOSE | re.DOTALL,
)
_SKIP = re.compile(r"(?:\s|#[^\r\n]*)*")


TOO_DEEP = "brackets or groups are nested too deeply"
MAX_DEPTH = 100
"""Levels of brackets in brackets: what the parser can read on Python's stack, wherever it is called
from. What stands in a row is read in a loop."""


class SparqlToken(NamedTuple):
    """A token with its offsets. `kind` is a group of the token regex, or `end`."""

    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return "the end of the query" if self.kind == "end" else f"'{self.text}'"


class Scanner:
    """A text and its current token. The parsers of the grammar share one."""

    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text
        self.token = self._scan(start or int(text.startswith("\ufeff")))  # a byte order mark
        self._depth = 0

    def enter(self) -> None:
        """Begin a bracket, group or call; what is nested in it is parsed by recursion."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            hint = "operators, lists and UNION in a row need no brackets, and have no limit"
            self.fail(f"{TOO_DEEP}: more than {MAX_DEPTH} levels", hint=hint)

    def leave(self) -> None:
        """End what `enter` began."""
        self._depth -= 1

    def advance(self) -> SparqlToken:
        """Step over the current token and return it."""
        token = self.token
        self.token = self._scan(token.end)
        return token

    def skip_to(self, offset: int) -> None:
        """Continue with the token at an offset of the text."""
        self.token = self._scan(offset)

    def at(self, *texts: str) -> bool:
        """Whether the current token is one of these signs or keywords (case-insensitive)."""
        token = self.token
        if token.kind == "word":
            return token.text.upper() in texts
        return token.kind == "sign" and token.text in texts

    def accept(self, *texts: str) -> SparqlToken | None:
        """Step over the current token if it is one of these."""
        return self.advance() if self.at(*texts) else None

    def expect(self, text: str) -> SparqlToken:
        """Step over this sign or keyword, or fail."""
        if not self.at(text):
            self.fail(f"expected '{text}', found {self.token}")
        return self.advance()

    def next_token(self) -> SparqlToken:
        """The token after the current one."""
        return self._scan(self.token.end)

    def follows(self, text: str) -> bool:
        """Whether this sign or keyword comes after the current token."""
        token = self.next_token()
        return token.kind in ("sign", "word") and token.text.upper() == text

    def fail(self, message: str, *, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise a `QueryError` at an offset, or at the current token."""
        offset = self.token.start if at is None else at
        line, column = place(self.text, offset)
        message = f"{message}\n{excerpt(self.text, line, column)}"
        raise QueryError(message, line=line, column=column, hint=hint)

    def refuse(self, what: str, hint: str, *, at: int | None = None) -> NoReturn:
        """Raise an `UnsupportedError`: valid SPARQL that cannot be maintained."""
        line, column = place(self.text, self.token.start if at is None else at)
        message = f"{what} cannot be maintained\n{excerpt(self.text, line, column)}"
        raise UnsupportedError(message, line=line, column=column, hint=hint)

    def _scan(self, offset: int) -> SparqlToken:
        skipped = _SKIP.match(self.text, offset)
        start = offset if skipped is None else skipped.end()
        if start == len(self.text):
            return SparqlToken("end", "", start, start)
        match = _TOKEN.match(self.text, start)
        if match is None or match.lastgroup is None:
            self._unreadable(start)
        return SparqlToken(match.lastgroup, match.group(), start, match.end())

    def _unreadable(self, start: int) -> NoReturn:
        character = self.text[start]
        if character in "\"'":
            self.fail("unterminated string", at=start, hint=f"close it with {character}")
        self.fail(f"unexpected character '{character}'", at=start)


def place(text: str, offset: int) -> tuple[int, int]:
    r"""Line and column of an offset, both counted from 1.

    >>> place("ab\ncd", 4)
    (2, 2)
    """
    starts = _line_starts(text)
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


@lru_cache(maxsize=1)  # every token of a program has a place
def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def excerpt(text: str, line: int, column: int) -> str:
    r"""The source line with a caret under the column.

    >>> print(excerpt("SELECT *\n{ ?s }", 2, 3))
      2 | { ?s }
        |   ^
    """
    lines = text.split("\n")
    source = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
    indent = re.sub(r"[^\t]", " ", source[: column - 1]).ljust(column - 1)
    margin = " " * len(str(line))
    return f"  {line} | {source}\n  {margin} | {indent}^"


# Hints for unknown prefixes and misspelt words

WELL_KNOWN_PREFIXES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "geof": "http://www.opengis.net/def/function/geosparql/",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "qudt": "http://qudt.org/schema/qudt/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "https://schema.org/",
    "sh": "http://www.w3.org/ns/shacl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "text": "http://jena.apache.org/text#",
    "uom": "http://www.opengis.net/def/uom/OGC/1.0/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

PATTERN_KEYWORDS = ("OPTIONAL", "FILTER", "UNION", "MINUS", "BIND", "VALUES", "GRAPH", "SERVICE")
QUERY_KEYWORDS = ("SELECT", "PREFIX", "BASE", "ASK", "CONSTRUCT", "DESCRIBE")


def prefix_hint(prefix: str, declared: Iterable[str]) -> str:
    """The hint for a prefix that is not declared.

    >>> prefix_hint("foaf", [])
    'add: PREFIX foaf: <http://xmlns.com/foaf/0.1/>'
    >>> prefix_hint("sensr", ["sensor", "ex"])
    "did you mean 'sensor:'?"
    """
    known = list(declared)
    if prefix in WELL_KNOWN_PREFIXES:
        return f"add: PREFIX {prefix}: <{WELL_KNOWN_PREFIXES[prefix]}>"
    near = difflib.get_close_matches(prefix, known, n=1)
    if near:
        return f"did you mean '{near[0]}:'?"
    names = ", ".join(f"{name}:" for name in known)
    return f"declared here: {names}" if known else f"add: PREFIX {prefix}: <...> above the query"


def word_hint(word: str, known: Iterable[str]) -> str | None:
    """A hint with the most similar known word, if there is one.

    >>> word_hint("FLTER", PATTERN_KEYWORDS)
    'did you mean FILTER?'
    """
    near = difflib.get_close_matches(word.upper(), list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def name_hint(name: str, known: Iterable[str], what: str = "name") -> str:
    """A hint with the most similar known name, or else with all names.

    >>> name_hint("alarms", ["Alarm", "Confirmation"])
    'did you mean Alarm?'
    >>> name_hint("x", ["Alarm", "Bell"]), name_hint("x", [], "event")
    ('there are Alarm, Bell', 'there is no event here')
    """
    names = list(dict.fromkeys(known))
    by_case = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), list(by_case), n=1)
    if near:
        return f"did you mean {by_case[near[0]]}?"
    if len(names) > 1:
        return f"there are {', '.join(names)}"
    return f"there is {names[0]}" if names else f"there is no {what} here"
