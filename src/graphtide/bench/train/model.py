"""A railway model, made block by block: nothing but the block at hand is in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.java_random import scrambled
from graphtide.bench.train.route_kernel import MARKS, MOST_ROWS, ROUTES, VERTICES, make_routes
from graphtide.bench.train.vocabulary import Scenario, check_scenario
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Ints

SEED: Final = 19871053

ROUTES_PER_SIZE: Final = 5

MOST_SIZE: Final = 1_000_000
"""Larger models have more vertices than there are ids."""

RATES: Final[dict[Scenario, tuple[int, ...]]] = {
    "batch": (0, 0, 0, 0, 0, 0, 0),
    "inject": (5, 2, 4, 7, 2, 8, 2),
    "repair": (5, 10, 10, 25, 18, 15, 1),
}
"""Errors of each kind, in the order of the generators: in a hundred; links left out in 1000."""

SEEDS: Final = (0, 1, 2, 3, 4, 5, 8, 0, 0, 0, 0)
"""What is added to the seed for each generator: those of errors differ, those of structure not."""

BLOCK_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some whole routes: triples of codes, and the vertices that are new in them.

    Vertices are numbered in order; a block may also mention a few of earlier ones.
    """

    triples: Ints
    first_vertex: int
    last_vertex: int
    routes: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the benchmark; size 1 has about 4,000 triples, and they grow with the size.

    >>> model = Model(1, "batch")
    >>> sum(len(block.triples) for block in model.blocks())
    4073
    """

    size: int
    scenario: Scenario

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MOST_SIZE:
            raise GraphtideError(
                f"size {self.size} is not possible", hint=f"sizes go from 1 to {MOST_SIZE:,}"
            )
        check_scenario(self.scenario)

    @property
    def routes(self) -> int:
        """How many routes the model has.

        >>> Model(4, "repair").routes
        20
        """
        return ROUTES_PER_SIZE * self.size

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The triples, in blocks of at most so many rows (but room for one route at least)."""
        states = scrambled([SEED + more for more in SEEDS])
        rates = np.array(RATES[self.scenario], np.int64)
        marks = np.zeros(MARKS, np.int64)
        out = np.empty((max(rows, MOST_ROWS), 3), np.int32)
        while marks[ROUTES] < self.routes:
            first, before = int(marks[VERTICES]) + 1, int(marks[ROUTES])
            written = make_routes(states, rates, marks, self.routes, out)
            last, after = int(marks[VERTICES]), int(marks[ROUTES])
            yield Block(out[:written].copy(), first, last, after - before)


def parse_size(text: str) -> int:
    """Read the size of a model.

    >>> parse_size("64")
    64
    """
    if not (text.isascii() and text.isdecimal()):
        raise GraphtideError(
            f"size {text!r} is not possible", hint="write a whole number, such as 1 or 64"
        )
    return int(text)
