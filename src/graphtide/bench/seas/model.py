"""Measurements of some days, made block by block: nothing but the block at hand is in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.java_random import JavaRandom
from graphtide.bench.seas.values import BOUND, DRAWS, readings
from graphtide.bench.seas.vocabulary import PREDICATES
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Longs

SAMPLES_A_DAY: Final = 288
"""One every five minutes."""

SAMPLE_SECONDS: Final = 300

START: Final = 1_356_998_400
"""2013-01-01T00:00:00Z, in seconds since 1970."""

MOST_DAYS: Final = 36_500
MOST_METERS: Final = 100_000

BLOCK_OBSERVATIONS: Final = 6_000


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Observations in order of time: number, meter, seconds since 1970, and six values each."""

    number: Longs
    meter: Longs
    time: Longs
    values: Longs


@dataclass(frozen=True, slots=True)
class Seas:
    """Meters of a house over some days; a day of one meter has 2,880 triples.

    Three years of 20 meters are 63 million triples, about as many as paper 5 had.

    >>> Seas(days=1095).triples
    63072000
    """

    days: int = 1
    meters: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        limits = ("days", self.days, MOST_DAYS), ("meters", self.meters, MOST_METERS)
        for name, value, most in limits:
            if not 1 <= value <= most:
                raise GraphtideError(
                    f"{value} {name} are not possible",
                    hint=f"their number goes from 1 to {most:,}",
                )

    @property
    def observations(self) -> int:
        """How many readings there are.

        >>> Seas(days=2, meters=3).observations
        1728
        """
        return self.days * SAMPLES_A_DAY * self.meters

    @property
    def triples(self) -> int:
        """How many triples there are.

        >>> Seas(days=1, meters=1).triples
        2880
        """
        return self.observations * PREDICATES

    def blocks(self, observations: int = BLOCK_OBSERVATIONS) -> Iterator[Block]:
        """The observations, at most so many in a block."""
        random = JavaRandom(self.seed)
        for first in range(0, self.observations, observations):
            number = np.arange(first, min(first + observations, self.observations))
            sample, meter = np.divmod(number, self.meters)
            hour = sample % SAMPLES_A_DAY * SAMPLE_SECONDS // 3600
            draws = random.next_ints(BOUND, len(number) * DRAWS).reshape(-1, DRAWS)
            time = START + sample * SAMPLE_SECONDS
            yield Block(number, meter, time, readings(draws, meter, hour))
