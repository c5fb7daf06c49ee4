"""Delta: the rows that one or more transactions added to an answer and took from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from graphtide.kernel.batch import DIFF, TX, Ints
from graphtide.kernel.net import NET_BEFORE, NET_VALUES

if TYPE_CHECKING:
    from graphtide.engine.stamps import Stamps
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term import Term


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """One row of a delta: `diff` more (or, negative, fewer) copies of `row` in the answer.

    >>> from graphtide.rdf.term import Literal
    >>> print(DeltaRow(time=17, tx=0, diff=-1, row={"x": Literal("a"), "y": None}))
    - x="a"
    """

    time: int
    tx: int
    diff: int
    row: dict[str, Term | None]

    def __str__(self) -> str:
        sign = "+" if self.diff > 0 else "-"
        times = f"{abs(self.diff)}× " if abs(self.diff) > 1 else ""
        values = " ".join(f"{name}={term}" for name, term in self.row.items() if term is not None)
        return f"{sign} {times}{values}".rstrip()


class Delta(Sequence[DeltaRow]):
    """Delta rows, turned into terms only when they are looked at."""

    __slots__ = ("_net", "_stamps", "_terms", "_variables")

    def __init__(
        self, net: Ints, stamps: Stamps, variables: tuple[str, ...], terms: TermDictionary
    ) -> None:
        self._net = net
        self._stamps = stamps
        self._variables = variables
        self._terms = terms

    def __len__(self) -> int:
        return len(self._net)

    def __iter__(self) -> Iterator[DeltaRow]:
        return (self._row(line) for line in self._net.tolist())

    @overload
    def __getitem__(self, index: int) -> DeltaRow: ...
    @overload
    def __getitem__(self, index: slice) -> Delta: ...
    def __getitem__(self, index: int | slice) -> DeltaRow | Delta:
        """One row, or a slice of the delta."""
        if isinstance(index, slice):
            return Delta(self._net[index], self._stamps, self._variables, self._terms)
        return self._row(self._net[index].tolist())

    def appeared(self) -> Delta:
        """The rows whose count rose from 0."""
        net = self._net
        rows = net[(net[:, NET_BEFORE] == 0) & (net[:, DIFF] > 0)]
        return Delta(rows, self._stamps, self._variables, self._terms)

    def disappeared(self) -> Delta:
        """The rows whose count fell to 0."""
        net = self._net
        rows = net[(net[:, DIFF] < 0) & (net[:, NET_BEFORE] + net[:, DIFF] == 0)]
        return Delta(rows, self._stamps, self._variables, self._terms)

    def _row(self, line: list[int]) -> DeltaRow:
        time, tx = self._stamps.stamp(line[TX])
        values = {
            name: self._terms.decode(i) if i else None
            for name, i in zip(self._variables, line[NET_VALUES:], strict=True)
        }
        return DeltaRow(time, tx, line[DIFF], values)

    def __repr__(self) -> str:
        return "\n".join(str(row) for row in self) or "(no change)"
