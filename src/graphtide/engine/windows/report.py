"""Report: what a windowed query puts out when a window closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term import Term


class Report:
    """The rows of one report; equal rows are repeated."""

    __slots__ = ("_rows", "_terms", "_variables", "time")

    def __init__(
        self,
        time: int,
        rows: Sequence[tuple[int, ...]],
        variables: tuple[str, ...],
        terms: TermDictionary,
    ) -> None:
        self.time = time
        self._rows = rows
        self._variables = variables
        self._terms = terms

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Term | None]]:
        decode = self._terms.decode
        for row in self._rows:
            yield {
                name: decode(i) if i else None for name, i in zip(self._variables, row, strict=True)
            }

    def __str__(self) -> str:
        lines = [" ".join(f"{name}={term}" for name, term in row.items()) for row in self]
        return "\n".join([f"at {self.time}", *(f"  {line}" for line in lines)])

    def __repr__(self) -> str:
        return f"<Report at {self.time}: {len(self)} rows>"
