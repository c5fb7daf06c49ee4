"""LUBM(n, s), made block by block: nothing but the block at hand is in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.lubm.department_kernel import MOST_ROWS, count_departments, make_departments
from graphtide.bench.lubm.section_kernel import MARKS, MEMORIES, MEMORY, REPEATS, ROWS
from graphtide.bench.lubm.vocabulary import UNIVERSITIES
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Ints

MOST_UNIVERSITIES: Final = 1_000_000

BLOCK_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some whole departments: triples of codes, and (university, number) of each department."""

    triples: Ints
    departments: Ints


@dataclass(frozen=True, slots=True)
class Lubm:
    """So many universities; one has about 100,000 triples.

    Every triple comes once. With `repeats`, a university is declared again wherever UBA does so,
    at each degree from it: in a stream of which only the last part counts, that matters.

    >>> sum(len(block.triples) for block in Lubm(1).blocks())
    100543
    """

    universities: int
    seed: int = 0
    repeats: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.universities <= MOST_UNIVERSITIES:
            raise GraphtideError(
                f"{self.universities} universities are not possible",
                hint=f"their number goes from 1 to {MOST_UNIVERSITIES:,}",
            )
        if not 0 <= self.seed < 1 << 31:
            raise GraphtideError(
                f"seed {self.seed} is not possible", hint="seeds go from 0 to below 2^31"
            )

    @property
    def _first_seed(self) -> int:
        # UBA multiplies by the largest int plus one, which in Java is the least int.
        return -self.seed * (1 << 31)

    @property
    def departments(self) -> int:
        """How many departments all universities have.

        >>> Lubm(5).departments
        93
        """
        return int(count_departments(np.zeros(1, np.int64), self._first_seed, self.universities))

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The triples, in blocks of at most so many rows (but room for one department at least)."""
        states, marks = np.zeros(1, np.int64), np.zeros(MARKS, np.int64)
        seen = np.zeros(UNIVERSITIES, np.int64)
        memory = np.empty((MEMORIES, MEMORY), np.int64)
        out = np.empty((max(rows, MOST_ROWS), 3), np.int32)
        places = np.empty((len(out) // MOST_ROWS * 4, 2), np.int32)
        marks[REPEATS] = self.repeats
        made = 1
        while made:
            made = make_departments(
                states, self._first_seed, self.universities, marks, seen, memory, out, places
            )
            if made:
                yield Block(out[: marks[ROWS]].copy(), places[:made].copy())
