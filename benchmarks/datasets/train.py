"""Railway models of the Train Benchmark, of any size.

Models equal those of the public benchmark: the same random numbers are drawn in the same order.
They are generated block by block, so that only one block is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets import train_kernel
from benchmarks.datasets.java_random import scrambled
from benchmarks.datasets.triples import Ints, Longs, TripleColumns, check_range
from benchmarks.harness import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.term_tables import Strings

NAMESPACE: Final = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
VERTEX_START: Final = f"<{NAMESPACE}_"

Scenario: TypeAlias = Literal["batch", "inject", "repair"]
SCENARIOS: Final[tuple[Scenario, ...]] = ("batch", "inject", "repair")

SEED: Final = 19871053

SEED_OFFSETS: Final = (0, 1, 2, 3, 4, 5, 8, 0, 0, 0, 0)
"""Added to the seed for each generator: those of errors differ, those of structure do not."""

ERROR_RATES: Final[dict[Scenario, tuple[int, ...]]] = {
    "batch": (0, 0, 0, 0, 0, 0, 0),
    "inject": (5, 2, 4, 7, 2, 8, 2),
    "repair": (5, 10, 10, 25, 18, 15, 1),
}
"""Errors of each kind per hundred, in the order of the generators; missing links per thousand."""

ROUTES_PER_SIZE: Final = 5

MAX_SIZE: Final = 1_000_000
"""Larger models have more vertices than there are ids."""

BLOCK_ROWS: Final = 1 << 16


def check_scenario(text: str) -> Scenario:
    """The scenario of that name.

    >>> check_scenario("repair")
    'repair'
    """
    for scenario in SCENARIOS:
        if scenario == text:
            return scenario
    raise BenchmarkError(f"unknown scenario {text!r}", hint=f"choose from {', '.join(SCENARIOS)}")


def name(local: str) -> str:
    """An IRI of the vocabulary, in N-Triples syntax.

    >>> name("Route")
    '<http://www.semanticweb.org/ontologies/2015/trainbenchmark#Route>'
    """
    return f"<{NAMESPACE}{local}>"


def vertex(number: int) -> str:
    """The IRI of a vertex.

    >>> vertex(17)
    '<http://www.semanticweb.org/ontologies/2015/trainbenchmark#_17>'
    """
    return f"{VERTEX_START}{number}>"


def length_literal(value: int) -> str:
    """A length as a literal.

    >>> length_literal(-5)
    '"-5"^^<http://www.w3.org/2001/XMLSchema#int>'
    """
    return f'"{value}"^^<{XSD}int>'


def length_value(text: str) -> int:
    """The length that a literal stands for.

    >>> length_value(length_literal(-5))
    -5
    """
    return int(text[1 : text.index('"', 1)])


def constant_texts() -> Strings:
    """The texts of all codes below the vertices.

    >>> len(constant_texts()) == train_kernel.VERTEX_0
    True
    """
    lengths = map(length_literal, range(train_kernel.LEAST_LENGTH, train_kernel.MAX_LENGTH + 1))
    texts = [*map(name, train_kernel.NAMES), RDF_TYPE, f'"true"^^<{XSD}boolean>', *lengths]
    return pa.array(texts, pa.string())


def vertex_texts(numbers: Longs) -> Strings:
    """The IRIs of many vertices.

    >>> vertex_texts(np.array([17])).to_pylist() == [vertex(17)]
    True
    """
    join: Any = pc.binary_join_element_wise
    texts: Strings = join(VERTEX_START, pa.array(numbers).cast(pa.string()), ">", "")
    return texts


def vertex_numbers(texts: Strings) -> Longs:
    """The numbers of vertices, from their IRIs.

    >>> vertex_numbers(pa.array([vertex(17)]))
    array([17])
    """
    digits = pc.utf8_slice_codeunits(texts, len(VERTEX_START), -1)
    numbers: Longs = digits.cast(pa.int64()).to_numpy()
    return numbers


_CONSTANTS: Strings = constant_texts()


@dataclass(frozen=True, slots=True, eq=False)
class TrainBlock:
    """Some whole routes: triples of codes, and the range of the vertices that are new in them.

    Vertices are numbered in order; a block may also refer to a few vertices of earlier blocks.
    """

    triples: Ints
    first_vertex: int
    last_vertex: int
    routes: int

    def columns(self) -> TripleColumns:
        r"""The triples as N-Triples texts.

        >>> block = next(TrainModel(1, "batch").blocks())
        >>> block.columns().o[:2].to_pylist() == [name("Semaphore"), name("SIGNAL_GO")]
        True
        >>> bytes(block.columns().lines()).count(b" .\n")
        4073
        """
        codes = self.triples.astype(np.int64)
        first = train_kernel.VERTEX_0 + self.first_vertex
        # Texts are made for the constants, the block's own vertices, and the older ones in it.
        is_older = (codes >= train_kernel.VERTEX_0) & (codes < first)
        older = np.unique(codes[is_older])
        own = np.arange(self.first_vertex, self.last_vertex + 1)
        parts = [_CONSTANTS, vertex_texts(own), vertex_texts(older - train_kernel.VERTEX_0)]
        texts: Any = pa.concat_arrays(parts)
        indexes = np.where(codes >= first, codes - self.first_vertex, codes)
        indexes[is_older] = (
            train_kernel.VERTEX_0 + len(own) + np.searchsorted(older, codes[is_older])
        )
        return TripleColumns(*(texts.take(pa.array(indexes[:, column])) for column in range(3)))


@dataclass(frozen=True, slots=True)
class TrainModel:
    """A model of the benchmark; size 1 has about 4,000 triples, and they grow with the size.

    >>> model = TrainModel(1, "batch")
    >>> sum(len(block.triples) for block in model.blocks())
    4073
    """

    size: int
    scenario: Scenario

    def __post_init__(self) -> None:
        check_range("size", self.size, MAX_SIZE)
        check_scenario(self.scenario)

    @property
    def routes(self) -> int:
        """How many routes the model has.

        >>> TrainModel(4, "repair").routes
        20
        """
        return ROUTES_PER_SIZE * self.size

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[TrainBlock]:
        """The triples, in blocks of at most `rows` rows (but at least one route)."""
        states = scrambled([SEED + offset for offset in SEED_OFFSETS])
        rates = np.array(ERROR_RATES[self.scenario], np.int64)
        cursors = np.zeros(train_kernel.CURSORS, np.int64)
        out = np.empty((max(rows, train_kernel.MAX_ROWS), 3), np.int32)
        while cursors[train_kernel.ROUTES] < self.routes:
            first, before = (
                int(cursors[train_kernel.VERTICES]) + 1,
                int(cursors[train_kernel.ROUTES]),
            )
            written = train_kernel.make_routes(states, rates, cursors, self.routes, out)
            last, after = int(cursors[train_kernel.VERTICES]), int(cursors[train_kernel.ROUTES])
            yield TrainBlock(out[:written].copy(), first, last, after - before)
