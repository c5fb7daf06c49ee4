"""From query text to tokens, each with its place in the text.

https://www.w3.org/TR/sparql11-query/#sparqlGrammar: the longest token wins, so that `?a<?b&&?c>?d`
holds an IRI and no comparison.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from graphtide.errors import QueryError, UnsupportedError

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
    | (?P<sign> \^\^ | \|\| | && | != | <= | >= | \{{\| | \|\}} | << | >>
              | [{{}}()\[\].;,=<>+\-*/!|^?~] )
    """,
    re.VERBOSE | re.DOTALL,
)
_SKIP = re.compile(r"(?:\s|#[^\r\n]*)*")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the query text. `kind` is a group of the token grammar, or `end`."""

    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return "the end of the query" if self.kind == "end" else f"'{self.text}'"


class Scanner:
    """A text with a current token. Subclasses add the grammar, layer by layer."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.token = self._scan(0)

    def advance(self) -> Token:
        """Step over the current token and return it."""
        token = self.token
        self.token = self._scan(token.end)
        return token

    def skip_to(self, offset: int) -> None:
        """Go on with the token at an offset of the text."""
        self.token = self._scan(offset)

    def at(self, *texts: str) -> bool:
        """Whether the current token is one of these signs or (in any case) keywords."""
        token = self.token
        if token.kind == "word":
            return token.text.upper() in texts
        return token.kind == "sign" and token.text in texts

    def accept(self, *texts: str) -> Token | None:
        """Step over the current token if it is one of these."""
        return self.advance() if self.at(*texts) else None

    def expect(self, text: str) -> Token:
        """Step over this sign or keyword, or fail."""
        if not self.at(text):
            self.fail(f"expected '{text}', found {self.token}")
        return self.advance()

    def follows(self, text: str) -> bool:
        """Whether this sign or keyword comes after the current token."""
        token = self._scan(self.token.end)
        return token.kind in ("sign", "word") and token.text.upper() == text

    def fail(self, message: str, *, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Report a mistake in the query, at an offset or at the current token."""
        offset = self.token.start if at is None else at
        line, column = place(self.text, offset)
        message = f"{message}\n{excerpt(self.text, line, column)}"
        raise QueryError(message, line=line, column=column, hint=hint)

    def refuse(self, what: str, hint: str, *, at: int | None = None) -> NoReturn:
        """Report a part of the query that is valid SPARQL but not maintained."""
        line, column = place(self.text, self.token.start if at is None else at)
        message = f"{what} cannot be maintained\n{excerpt(self.text, line, column)}"
        raise UnsupportedError(message, line=line, column=column, hint=hint)

    def _scan(self, offset: int) -> Token:
        skipped = _SKIP.match(self.text, offset)
        start = offset if skipped is None else skipped.end()
        if start == len(self.text):
            return Token("end", "", start, start)
        match = _TOKEN.match(self.text, start)
        if match is None or match.lastgroup is None:
            self._unreadable(start)
        return Token(match.lastgroup, match.group(), start, match.end())

    def _unreadable(self, start: int) -> NoReturn:
        character = self.text[start]
        if character in "\"'":
            self.fail("this string is never closed", at=start, hint=f"close it with {character}")
        self.fail(f"unexpected character '{character}'", at=start)


def place(text: str, offset: int) -> tuple[int, int]:
    r"""Line and column, both from 1, of an offset.

    >>> place("ab\ncd", 4)
    (2, 2)
    """
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def excerpt(text: str, line: int, column: int) -> str:
    r"""The source line with a mark under the column.

    >>> print(excerpt("SELECT *\n{ ?s }", 2, 3))
      2 | { ?s }
        |   ^
    """
    lines = text.split("\n")
    source = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
    indent = re.sub(r"[^\t]", " ", source[: column - 1]).ljust(column - 1)
    margin = " " * len(str(line))
    return f"  {line} | {source}\n  {margin} | {indent}^"
