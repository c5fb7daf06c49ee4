"""How many matches a transformation takes, and which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from graphtide.datasets.java_random import JavaRandom
    from graphtide.datasets.train import Scenario
    from graphtide.kernel.batch import Ints


@dataclass(frozen=True, slots=True)
class Selection:
    """`fixed`: so many matches; `proportional`: so many in a hundred.

    >>> Selection("proportional", 5).count(39)
    1
    """

    kind: Literal["fixed", "proportional"]
    constant: int

    def count(self, matches: int) -> int:
        """How many to take of so many."""
        wanted = self.constant if self.kind == "fixed" else matches * self.constant // 100
        return min(wanted, matches)

    def choose(self, rows: Ints, random: JavaRandom) -> Ints:
        """Shuffle all rows and take the first; the generator goes on by as many draws."""
        chosen: Ints = rows[random.shuffled(len(rows))[: self.count(len(rows))]]
        return chosen

    def __str__(self) -> str:
        return f"{self.kind}:{self.constant}"


DEFAULTS: Final[dict[Scenario, tuple[Selection, int]]] = {
    "batch": (Selection("fixed", 10), 0),
    "inject": (Selection("fixed", 10), 12),
    "repair": (Selection("proportional", 5), 8),
}
"""What the benchmark's own workloads select, and in how many rounds."""


def parse_selection(text: str) -> Selection:
    """Read `fixed:N` or `proportional:P`.

    >>> parse_selection("fixed:10")
    Selection(kind='fixed', constant=10)
    """
    kind, _, number = text.partition(":")
    if number.isascii() and number.isdecimal():
        constant = int(number)
        if kind == "fixed" and constant > 0:
            return Selection("fixed", constant)
        if kind == "proportional" and 0 < constant <= 100:
            return Selection("proportional", constant)
    raise GraphtideError(
        f"selection {text!r} cannot be read",
        hint="write fixed:10 for ten matches, or proportional:5 for five in a hundred",
    )
