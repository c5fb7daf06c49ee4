"""Source: the text of one program file, its SPARQL pieces, and the mistakes found in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from graphtide.errors import QueryError
from graphtide.lang.hints import word_hint
from graphtide.lang.scanner import excerpt, place
from graphtide.lang.tide_lexer import TOP_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Token

_EXCERPT: Final = re.compile(r"\n  \d+ \| [^\n]*\n +\| *\^\Z")
T = TypeVar("T")


class Source:
    """A file of a program while it is read."""

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text = text
        self.name = name
        self.prefixes: dict[str, str] = {}
        self.errors: list[QueryError] = []

    @property
    def prologue(self) -> str:
        """The prefixes, as a SPARQL text has them."""
        return " ".join(f"PREFIX {name} {iri}" for name, iri in self.prefixes.items())

    def add(self, error: QueryError) -> None:
        """Note a mistake whose place is known."""
        error.source = error.source or self.name
        self.errors.append(error)

    def report(self, token: Token, message: str, hint: str | None = None) -> None:
        """Note a mistake at a token."""
        self.report_at(token.start_pos or 0, message, hint)

    def report_at(self, offset: int, message: str, hint: str | None = None) -> None:
        """Note a mistake at an offset of the text."""
        line, column = place(self.text, offset)
        shown = f"{message}\n{excerpt(self.text, line, column)}"
        self.add(QueryError(shown, line=line, column=column, hint=hint))

    def report_variable(self, token: Token, name: str, message: str, hint: str | None) -> None:
        """Note a mistake about a variable inside a piece, where it is first written."""
        written = re.search(rf"[?$]{re.escape(name)}\b", token)
        inside = written.start() if written else 0
        self.report_at((token.start_pos or 0) + inside, message, hint)

    def piece(
        self, token: Token, read: Callable[[str], T], head: str = "", tail: str = ""
    ) -> T | None:
        """Let a SPARQL parser read a piece; None, and a mistake noted, if it cannot.

        The parser sees a line of prefixes and `head`, then the piece, then a line `tail`.
        """
        try:
            return read(f"{self.prologue} {head}\n{token}" + (f"\n{tail}" if tail else ""))
        except QueryError as error:
            self.add(self._placed(error, token))
            return None

    def _placed(self, error: QueryError, token: Token) -> QueryError:
        """Turn the place of an error inside a piece into that in the file."""
        lines = token.count("\n") + 1
        if error.line is None or error.column is None or not 2 <= error.line <= lines + 1:
            error.line, error.column = token.line or 1, token.column or 1
        else:
            error.column += (token.column or 1) - 1 if error.line == 2 else 0
            error.line += (token.line or 1) - 2
        misspelt = re.match(r"expected the end of the query, found '(\w+)'", error.message)
        if misspelt and error.hint is None:
            error.hint = word_hint(misspelt[1], TOP_LEVEL)
        shown = excerpt(self.text, error.line, error.column)
        error.message = f"{_EXCERPT.sub('', error.message)}\n{shown}"
        return error
