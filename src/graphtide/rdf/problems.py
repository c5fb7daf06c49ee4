"""Broken lines: raise at the first, or collect them all and go on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphtide.errors import DataError

OnError: TypeAlias = Literal["raise", "collect"]


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line (of a table: a row) that could not be read, and why.

    `line` and `column` count from 1; a row of a table counts from 0 as its line.

    >>> print(BrokenLine("log.rdfp", 3, 7, "A <a b> .", "a space in an IRI"))
    log.rdfp:3:7: a space in an IRI
    """

    file: str
    line: int
    column: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.reason}"


@dataclass(frozen=True, slots=True)
class BrokenLines:
    """Where a reader reports broken lines of one source: it raises, or fills a list."""

    source: str
    on_error: OnError = "raise"
    found: list[BrokenLine] | None = None

    def report(self, line: int, column: int, text: str, reason: str) -> None:
        """Raise `DataError`, or add to the list and return.

        >>> lines = BrokenLines("a.nt", "collect", [])
        >>> lines.report(1, 2, "x", "no term")
        >>> len(lines.found)
        1
        """
        if self.on_error == "raise":
            raise DataError(reason, source=self.source, line=line, column=column)
        if self.found is not None:
            self.found.append(BrokenLine(self.source, line, column, text, reason))


# --- Place and reason out of pyoxigraph's syntax errors.

_PLACE = re.compile(
    r"^Parser error (?:at|between) line .*?(?:columns? [0-9]+(?: and .*?[0-9]+)?): "
)


def place_and_reason(error: SyntaxError) -> tuple[int, int, str]:
    """Return line, column and reason of an error that `pyoxigraph.parse` raised.

    >>> place_and_reason(SyntaxError("bad", (None, 3, 7, None, 3, 9)))
    (3, 7, 'bad')
    """
    reason = _PLACE.sub("", error.msg)
    return error.lineno or 1, error.offset or 1, reason
