"""Power measurements of a house, like those of the SEAS project: ten triples per observation.

The dataset of paper 5 is not public; this one has its shape: meters of a house, each read every
five minutes, and an observation of the RDF Data Cube vocabulary for each reading. A circuit is on
or off with a probability that depends on the hour. Few readings have a voltage with a low crest
factor; the selective query matches those of them whose circuit is on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets.java_random import JavaRandom
from benchmarks.datasets.triples import IndexedTriples, Longs, check_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.term_tables import Strings

SEAS: Final = "http://purl.org/NET/seas#"
MEASURES: Final = "http://purl.org/NET/seas/measures#"
CUBE: Final = "http://purl.org/linked-data/cube#"
DIMENSION: Final = "http://purl.org/linked-data/sdmx/2009/dimension#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
DATA: Final = "http://example.org/seas/"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

MEASURED: Final = ("V_RMS", "V_THD", "V_CF", "W", "Wh", "DPF")
"""Voltage: effective value, distortion in percent, crest factor. Power, energy since the previous
reading, and displacement power factor."""

CONSTANTS: Final = (
    RDF_TYPE,
    f"<{CUBE}dataSet>",
    f"<{SEAS}meter>",
    f"<{DIMENSION}timePeriod>",
    *(f"<{MEASURES}{name}>" for name in MEASURED),
    f"<{CUBE}Observation>",
    f"<{DATA}power>",
)
"""The predicates of an observation, in order, and the objects of the first two."""

PREDICATES: Final = 4 + len(MEASURED)
"""Triples of an observation: one for each predicate."""

OBSERVATION, DATA_SET = PREDICATES, PREDICATES + 1


DRAWS: Final = 8
"""Random numbers for each reading."""

BOUND: Final = 10_000
"""Exclusive upper bound of each."""

RATED: Final = np.array([40, 60, 100, 150, 250, 400, 800, 1500, 2200, 3000])
"""Rated watts of the circuits; meters use them in turn."""

ON: Final = np.array(
    [15, 10, 10, 10, 10, 15, 30, 45, 40, 30, 25, 30, 40, 30, 25, 25, 30, 45, 60, 65, 60, 50, 35, 20]
)
"""Percentage of circuits that are on, by hour of the day."""

FLAT: Final = 3
"""Percentage of readings with a crest factor below 1.2; that of a sine is 1.41."""

READINGS_PER_HOUR: Final = 12


def readings(draws: Longs, meter: Longs, hour: Longs) -> Longs:
    """Hundredths of the six measured values, a row for each reading.

    >>> still = readings(np.full((1, 8), 9_999), np.array([0]), np.array([3]))
    >>> still.tolist()
    [[23999, 579, 138, 999, 83, 69]]
    """
    on = draws[:, 0] < ON[hour] * (BOUND // 100)
    level, spread = draws[:, 1], draws[:, 2] + draws[:, 3] - (BOUND - 1)
    watts = np.where(on, RATED[meter % len(RATED)] * (BOUND // 2 + level // 2) // 100, level // 10)
    flat = draws[:, 5] < FLAT * (BOUND // 100)
    return np.column_stack(
        (
            23_000 + spread // 10,
            80 + draws[:, 4] // 20,
            np.where(flat, 105 + draws[:, 6] % 15, 135 + draws[:, 6] % 14),
            watts,
            watts // READINGS_PER_HOUR,
            np.where(on, 80 + draws[:, 7] % 20, 30 + draws[:, 7] % 40),
        )
    )


SAMPLES_PER_DAY: Final = 288
"""One every five minutes."""

SAMPLE_SECONDS: Final = 300

START: Final = 1_356_998_400
"""2013-01-01T00:00:00Z, as a Unix time."""

MAX_DAYS: Final = 36_500
MAX_METERS: Final = 100_000

BLOCK_OBSERVATIONS: Final = 6_000

_CONSTANTS: Strings = pa.array(CONSTANTS, pa.string())

_HUNDREDTHS: Strings = pa.array([f'.{number:02d}"^^<{XSD}decimal>' for number in range(100)])


def _join(*parts: str | Strings) -> Strings:
    join: Any = pc.binary_join_element_wise
    texts: Strings = join(*parts, "")
    return texts


def _digits(numbers: Longs) -> Strings:
    return pa.array(numbers).cast(pa.string())


def decimals(hundredths: Longs) -> Strings:
    """Decimal literals with two digits behind the point.

    >>> decimals(np.array([23005]))[0].as_py()
    '"230.05"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    whole, rest = np.divmod(hundredths, 100)
    parts: Any = _HUNDREDTHS
    return _join('"', _digits(whole), parts.take(pa.array(rest)))


def _times(seconds: Longs) -> Strings:
    # Python's strings of a block are few: as many as there are samples in it.
    texts = np.datetime_as_string(seconds.astype("datetime64[s]"))
    return pa.array([f'"{text}Z"^^<{XSD}dateTime>' for text in texts.tolist()], pa.string())


@dataclass(frozen=True, slots=True, eq=False)
class SeasBlock:
    """Observations in order of time: number, meter, seconds since 1970, and six values each."""

    number: Longs
    meter: Longs
    time: Longs
    values: Longs

    def indexed(self) -> IndexedTriples:
        """The triples with their terms.

        >>> next(Seas(days=1, meters=1).blocks()).indexed().columns().s[0].as_py()
        '<http://example.org/seas/observation/0>'
        """
        count = len(self.number)
        seconds, sample = np.unique(self.time, return_inverse=True)
        meters, meter = np.unique(self.meter, return_inverse=True)
        parts = (
            _CONSTANTS,
            _join(f"<{DATA}meter/", _digits(meters), ">"),
            _times(seconds),
            _join(f"<{DATA}observation/", _digits(self.number), ">"),
            decimals(self.values.ravel()),
        )
        starts = np.cumsum([0, *map(len, parts)])
        rows = np.empty((count, PREDICATES, 3), np.int32)
        rows[:, :, 0] = (starts[3] + np.arange(count))[:, None]
        rows[:, :, 1] = np.arange(PREDICATES)
        rows[:, 0, 2], rows[:, 1, 2] = OBSERVATION, DATA_SET
        rows[:, 2, 2], rows[:, 3, 2] = starts[1] + meter, starts[2] + sample
        rows[:, 4:, 2] = starts[4] + np.arange(self.values.size).reshape(self.values.shape)
        return IndexedTriples(pa.concat_arrays(parts), rows.reshape(-1, 3))


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
        check_range("number of days", self.days, MAX_DAYS)
        check_range("number of meters", self.meters, MAX_METERS)

    @property
    def observations(self) -> int:
        """How many readings there are.

        >>> Seas(days=2, meters=3).observations
        1728
        """
        return self.days * SAMPLES_PER_DAY * self.meters

    @property
    def triples(self) -> int:
        """How many triples there are.

        >>> Seas(days=1, meters=1).triples
        2880
        """
        return self.observations * PREDICATES

    def blocks(self, observations: int = BLOCK_OBSERVATIONS) -> Iterator[SeasBlock]:
        """The observations, at most `observations` in a block."""
        random = JavaRandom(self.seed)
        for first in range(0, self.observations, observations):
            number = np.arange(first, min(first + observations, self.observations))
            sample, meter = np.divmod(number, self.meters)
            hour = sample % SAMPLES_PER_DAY * SAMPLE_SECONDS // 3600
            draws = random.next_ints(BOUND, len(number) * DRAWS).reshape(-1, DRAWS)
            time = START + sample * SAMPLE_SECONDS
            yield SeasBlock(number, meter, time, readings(draws, meter, hour))

    def indexed_blocks(self) -> Iterator[IndexedTriples]:
        """All triples with their terms, block by block.

        >>> sum(map(len, Seas(days=1, meters=3).indexed_blocks()))
        8640
        """
        return (block.indexed() for block in self.blocks())
