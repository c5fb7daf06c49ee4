"""Every error that Graphtide raises on purpose.

A message says what was wrong, where in the user's own text or file, and what to do about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class GraphtideError(Exception):
    """Base class: catch this to catch everything that Graphtide raises on purpose."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class PlacedError(GraphtideError):
    """An error at a known position in a text: a query, a program or a data file."""

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.line = line
        self.column = column

    def __str__(self) -> str:
        position = ":".join(
            str(part) for part in (self.source, self.line, self.column) if part is not None
        )
        text = super().__str__()
        return f"{position}: {text}" if position else text


class QueryError(PlacedError):
    """An invalid query: a syntax error, an unknown prefix, a misused variable."""


class UnsupportedError(QueryError):
    """Valid SPARQL that Graphtide does not support; says which part and why."""


class ProgramError(QueryError):
    """All errors in one program, each with its own position, in order."""

    def __init__(self, errors: Sequence[QueryError]) -> None:
        first = errors[0]
        super().__init__(first.message, source=first.source, line=first.line, column=first.column)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


class DataError(PlacedError):
    """An invalid line or value in input data, with its file, line, column and reason.

    `transactions_are_whole` says that the changes read before it are complete transactions.
    """

    transactions_are_whole = False


class TermError(GraphtideError):
    """A Python value or text that is not an RDF term, or not allowed at that position of a quad."""


class LimitError(PlacedError):
    """Work or input over one of the limits of `graphtide.Limits`; says which, and how to raise it.

    `limit` is its name and `value` what it was.
    """

    def __init__(
        self,
        message: str,
        *,
        limit: str,
        value: float | None,
        source: str | None = None,
        line: int | None = None,
    ) -> None:
        hint = (
            f"the limit {limit} is {value}; raise it with Limits({limit}=…), "
            f"or on the command line with --limit {limit}=…"
        )
        super().__init__(message, source=source, line=line, hint=hint)
        self.limit = limit
        self.value = value


class DataLimitError(LimitError, DataError):
    """Input data over a limit, with its file and line."""


class StrictError(GraphtideError):
    """Strict mode: insert of a quad that is in the graph, or delete of one that is not."""


class StoreError(GraphtideError):
    """The store of a durable graph cannot be read or written; `reason` does not name its files."""

    def __init__(self, path: object, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.reason = reason


class ActionError(GraphtideError):
    """An action of a rule failed; says which rule, when, and with which values."""


class CascadeError(GraphtideError):
    """Actions cause each other without end; what they changed has been rolled back."""


class ExpressionError(GraphtideError):
    """A SPARQL expression has no value for this row (the spec's *error*); never reaches a user."""
