"""Blocks of measurements as terms and codes, whole columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.bench.coded import Coded
from graphtide.bench.seas.vocabulary import CONSTANTS, DATA, DATA_SET, OBSERVATION, PREDICATES, XSD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.bench.seas.model import Block, Seas
    from graphtide.kernel.batch import Longs
    from graphtide.rdf.term_tables import Strings

_TICKS: Final = 1000
"""Times of observations are milliseconds."""

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


def coded_block(block: Block) -> Coded:
    """A block as terms and codes; each observation is a transaction at its time.

    >>> from graphtide.bench.seas.model import Seas
    >>> block = coded_block(next(Seas(days=1, meters=1).blocks()))
    >>> block.texts().s[0].as_py()
    '<http://example.org/seas/observation/0>'
    """
    count = len(block.number)
    seconds, sample = np.unique(block.time, return_inverse=True)
    meters, meter = np.unique(block.meter, return_inverse=True)
    parts = (
        _CONSTANTS,
        _join(f"<{DATA}meter/", _digits(meters), ">"),
        _times(seconds),
        _join(f"<{DATA}observation/", _digits(block.number), ">"),
        decimals(block.values.ravel()),
    )
    starts = np.cumsum([0, *map(len, parts)])
    rows = np.empty((count, PREDICATES, 3), np.int32)
    rows[:, :, 0] = (starts[3] + np.arange(count))[:, None]
    rows[:, :, 1] = np.arange(PREDICATES)
    rows[:, 0, 2], rows[:, 1, 2] = OBSERVATION, DATA_SET
    rows[:, 2, 2], rows[:, 3, 2] = starts[1] + meter, starts[2] + sample
    rows[:, 4:, 2] = starts[4] + np.arange(block.values.size).reshape(block.values.shape)
    return Coded(
        pa.concat_arrays(parts),
        rows.reshape(-1, 3),
        np.repeat(block.time * _TICKS, PREDICATES),
        np.repeat(block.number, PREDICATES),
    )


def coded_blocks(model: Seas) -> Iterator[Coded]:
    """The whole model, block by block.

    >>> from graphtide.bench.seas.model import Seas
    >>> sum(map(len, coded_blocks(Seas(days=1, meters=3))))
    8640
    """
    return map(coded_block, model.blocks())
