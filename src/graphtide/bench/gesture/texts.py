"""The model and its frames as terms and codes, whole columns at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from graphtide.bench.coded import Coded
from graphtide.bench.gesture.model import FRAME_MS
from graphtide.bench.gesture.vocabulary import (
    ATTRIBUTES,
    BODY,
    DATA,
    MEASURED,
    POINTS,
    RDF_TYPE,
    XSD_INTEGER,
)
from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.bench.gesture.model import Stage
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term_tables import Strings

Diffs = np.ndarray[tuple[int, ...], np.dtype[np.int8]]
Stamps = np.ndarray[tuple[int], np.dtype[np.int64]]
Columns = tuple[Stamps, Stamps, Diffs, "Strings", "Strings", "Strings", "Strings"]

_CONSTANTS: Final = (
    RDF_TYPE,
    *(f"<{BODY}{name}>" for name in ATTRIBUTES),
    *(f"<{BODY}{name}>" for name in POINTS),
    f"<{BODY}Body>",
    *(f"<{BODY}{name[0].upper()}{name[1:]}>" for name in POINTS),
)
_TYPE, _ATTRIBUTE, _REFERENCE = 0, 1, 1 + len(ATTRIBUTES)
_BODY_CLASS = _REFERENCE + len(POINTS)
_POINT_CLASS = _BODY_CLASS + 1


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The changes of one transaction, in order: old values go, new ones come."""

    coded: Coded
    diff: Diffs

    def __len__(self) -> int:
        return len(self.diff)

    def stamps(self) -> tuple[Stamps, Stamps]:
        """Time and transaction of each change."""
        time, tx = self.coded.time, self.coded.tx
        assert time is not None  # noqa: S101 - every frame has its time
        assert tx is not None  # noqa: S101
        return time.reshape(-1), tx.reshape(-1)

    def columns(self) -> Columns:
        """Time, transaction, diff, then subjects, predicates, objects and graphs as texts."""
        texts, (time, tx) = self.coded.texts(), self.stamps()
        graph: Strings = pa.nulls(len(self), pa.string())
        return time, tx, self.diff, texts.s, texts.p, texts.o, graph

    def changes(self) -> ChangeBatch:
        """The changes as a batch, checked."""
        return ChangeBatch(*self.columns())


class Coder:
    """Places of the terms of a stage: constants, bodies, their points, then whole numbers.

    >>> from graphtide.bench.gesture.model import Stage
    >>> coder = Coder(Stage(bodies=1, cycles=1))
    >>> len(coder.initial()), len(coder.frame(0, *next(coder.stage.moves())))
    (161, 80)
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        bodies, points = stage.bodies, len(POINTS)
        body = [f"<{DATA}body{number}>" for number in range(bodies)]
        point = [f"<{DATA}body{number}/{name}>" for number in range(bodies) for name in POINTS]
        self._bodies = len(_CONSTANTS) + np.arange(bodies)
        self._points = len(_CONSTANTS) + bodies + np.arange(bodies * points).reshape(bodies, -1)
        self._values = stage.values()
        numbers = [f'"{number}"^^<{XSD_INTEGER}>' for number in self._values.tolist()]
        self._numbers = len(_CONSTANTS) + len(body) + len(point)
        self.terms: Strings = pa.array([*_CONSTANTS, *body, *point, *numbers], pa.string())

    def _places(self, values: Longs) -> Longs:
        """The places of whole numbers."""
        return self._numbers + np.searchsorted(self._values, values)

    def initial(self) -> Frame:
        """The model before the first frame; of a point's attributes, two are measured."""
        bodies, points = self._points.shape
        rows = np.empty((bodies, points, 2 + len(ATTRIBUTES), 3), np.int32)
        rows[:, :, 0, 0] = self._bodies[:, None]
        rows[:, :, 0, 1] = _REFERENCE + np.arange(points)
        rows[:, :, 0, 2] = self._points
        rows[:, :, 1:, 0] = self._points[:, :, None]
        rows[:, :, 1, 1] = _TYPE
        rows[:, :, 1, 2] = _POINT_CLASS + np.arange(points)
        rows[:, :, 2:, 1] = _ATTRIBUTE + np.arange(len(ATTRIBUTES))
        rows[:, :, 2:, 2] = self._places(np.array(0))
        rows[:, :, 2 : 2 + len(MEASURED), 2] = self._places(self.stage.coordinates(-1))
        types = np.empty((bodies, 3), np.int32)
        types[:, 0], types[:, 1], types[:, 2] = self._bodies, _TYPE, _BODY_CLASS
        lines: Ints = np.concatenate([types, rows.reshape(-1, 3)])
        return self._frame(lines, np.ones(len(lines), np.int8), 0)

    def frame(self, number: int, before: Longs, after: Longs) -> Frame:
        """The changes of a frame: of each attribute, the old value goes and the new one comes."""
        rows = np.empty((*before.shape, 2, 3), np.int32)
        rows[..., 0] = self._points[:, :, None, None]
        rows[..., 1] = (_ATTRIBUTE + np.arange(len(MEASURED)))[:, None]
        rows[..., 0, 2] = self._places(before)
        rows[..., 1, 2] = self._places(after)
        diff = np.tile(np.array([-1, 1], np.int8), before.size)
        return self._frame(rows.reshape(-1, 3), diff, number + 1)

    def _frame(self, rows: Ints, diff: Diffs, tx: int) -> Frame:
        count = len(rows)
        time = np.full(count, tx * FRAME_MS, np.int64)
        return Frame(Coded(self.terms, rows, time, np.full(count, tx, np.int64)), diff)

    def frames(self) -> Iterator[Frame]:
        """The model, then frame by frame."""
        yield self.initial()
        for number, (before, after) in enumerate(self.stage.moves()):
            yield self.frame(number, before, after)

    def ids(self, dictionary: TermDictionary) -> Ints:
        """The id of the term at each place."""
        terms: Any = self.terms
        ids: Ints = dictionary.encode_column(terms)
        return ids
