"""The gesture scene as changes of a graph, one transaction per frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.datasets import gesture_scene
from benchmarks.datasets.queries import BODY
from benchmarks.datasets.triples import IndexedTriples, Ints, Longs
from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term_tables import Strings


class FrameColumns(NamedTuple):
    """The columns of a change batch."""

    time: NDArray[np.int64]
    tx: NDArray[np.int64]
    diff: NDArray[np.int8]
    s: Strings
    p: Strings
    o: Strings
    g: Strings


_CONSTANTS: Final = (
    gesture_scene.RDF_TYPE,
    *(f"<{BODY}{name}>" for name in gesture_scene.ATTRIBUTES),
    *(f"<{BODY}{name}>" for name in gesture_scene.POINTS),
    f"<{BODY}Body>",
    *(f"<{BODY}{name[0].upper()}{name[1:]}>" for name in gesture_scene.POINTS),
    f"<{BODY}angle>",
)
_TYPE, _ATTRIBUTE, _REFERENCE = 0, 1, 1 + len(gesture_scene.ATTRIBUTES)
_BODY_CLASS = _REFERENCE + len(gesture_scene.POINTS)
_POINT_CLASS = _BODY_CLASS + 1
_ANGLE = _POINT_CLASS + len(gesture_scene.POINTS)
_ELBOW = gesture_scene.POINTS.index("rightElbow")
_DEGREES = np.arange(181)


@dataclass(frozen=True, slots=True, eq=False)
class GestureFrame:
    """The changes of one transaction, in order: old values are removed, new ones added."""

    triples: IndexedTriples
    diff: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.diff)

    def timestamps(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Time and transaction of each change."""
        time, tx = self.triples.time, self.triples.tx
        assert time is not None  # noqa: S101 - every frame has its time
        assert tx is not None  # noqa: S101
        return time.reshape(-1), tx.reshape(-1)

    def columns(self) -> FrameColumns:
        """Time, transaction, diff, then subjects, predicates, objects and graphs as texts."""
        texts, (time, tx) = self.triples.columns(), self.timestamps()
        graph: Strings = pa.nulls(len(self), pa.string())
        return FrameColumns(time, tx, self.diff, texts.s, texts.p, texts.o, graph)

    def changes(self) -> ChangeBatch:
        """The changes as a validated batch."""
        return ChangeBatch(*self.columns())


class GestureEncoder:
    """Encodes frames of a scene. Its terms are constants, bodies, their points, then integers.

    With `smooth`, the right elbow has the angle of the arm too: the mean of that many frames.

    >>> from benchmarks.datasets.gesture_scene import GestureScene
    >>> encoder = GestureEncoder(gesture_scene.GestureScene(bodies=1, cycles=1))
    >>> len(encoder.initial()), len(encoder.frame(0, *next(encoder.scene.moves())))
    (161, 80)
    """

    def __init__(self, scene: gesture_scene.GestureScene, *, smooth: int = 0) -> None:
        self.scene = scene
        self.smooth = smooth
        bodies, points = scene.bodies, len(gesture_scene.POINTS)
        body = [f"<{gesture_scene.DATA}body{number}>" for number in range(bodies)]
        point = [
            f"<{gesture_scene.DATA}body{number}/{name}>"
            for number in range(bodies)
            for name in gesture_scene.POINTS
        ]
        self._bodies = len(_CONSTANTS) + np.arange(bodies)
        self._points = len(_CONSTANTS) + bodies + np.arange(bodies * points).reshape(bodies, -1)
        self._values = np.union1d(scene.values(), _DEGREES) if smooth else scene.values()
        numbers = [f'"{number}"^^<{gesture_scene.XSD_INTEGER}>' for number in self._values.tolist()]
        self._numbers = len(_CONSTANTS) + len(body) + len(point)
        self.terms: Strings = pa.array([*_CONSTANTS, *body, *point, *numbers], pa.string())

    def _indexes(self, values: Longs) -> Longs:
        """The indexes of integers."""
        return self._numbers + np.searchsorted(self._values, values)

    def initial(self) -> GestureFrame:
        """The graph before the first frame; unmeasured attributes are 0."""
        bodies, points = self._points.shape
        rows = np.empty((bodies, points, 2 + len(gesture_scene.ATTRIBUTES), 3), np.int32)
        rows[:, :, 0, 0] = self._bodies[:, None]
        rows[:, :, 0, 1] = _REFERENCE + np.arange(points)
        rows[:, :, 0, 2] = self._points
        rows[:, :, 1:, 0] = self._points[:, :, None]
        rows[:, :, 1, 1] = _TYPE
        rows[:, :, 1, 2] = _POINT_CLASS + np.arange(points)
        rows[:, :, 2:, 1] = _ATTRIBUTE + np.arange(len(gesture_scene.ATTRIBUTES))
        rows[:, :, 2:, 2] = self._indexes(np.array(0))
        rows[:, :, 2 : 2 + len(gesture_scene.MEASURED), 2] = self._indexes(
            self.scene.coordinates(-1)
        )
        types = np.empty((bodies, 3), np.int32)
        types[:, 0], types[:, 1], types[:, 2] = self._bodies, _TYPE, _BODY_CLASS
        lines: Ints = np.concatenate([types, rows.reshape(-1, 3)])
        return self._frame(lines, np.ones(len(lines), np.int8), 0)

    def frame(self, number: int, before: Longs, after: Longs) -> GestureFrame:
        """The changes of a frame: the old value of each attribute is removed, the new one added."""
        rows = np.empty((*before.shape, 2, 3), np.int32)
        rows[..., 0] = self._points[:, :, None, None]
        rows[..., 1] = (_ATTRIBUTE + np.arange(len(gesture_scene.MEASURED)))[:, None]
        rows[..., 0, 2] = self._indexes(before)
        rows[..., 1, 2] = self._indexes(after)
        diff = np.tile(np.array([-1, 1], np.int8), before.size)
        return self._frame(rows.reshape(-1, 3), diff, number + 1)

    def _frame(self, rows: Ints, diff: NDArray[np.int8], tx: int) -> GestureFrame:
        count = len(rows)
        time = np.full(count, tx * gesture_scene.FRAME_MS, np.int64)
        return GestureFrame(
            IndexedTriples(self.terms, rows, time, np.full(count, tx, np.int64)), diff
        )

    def frames(self) -> Iterator[GestureFrame]:
        """The initial graph, then all frames."""
        if not self.smooth:
            yield self.initial()
            for number, (before, after) in enumerate(self.scene.moves()):
                yield self.frame(number, before, after)
            return
        average = gesture_scene.MovingAverage(self.smooth)
        old = average.add(gesture_scene.arm_angles(self.scene.coordinates(-1)))
        yield self._with_angles(self.initial(), 0, None, old)
        for number, (before, after) in enumerate(self.scene.moves()):
            new = average.add(gesture_scene.arm_angles(after))
            yield self._with_angles(self.frame(number, before, after), number + 1, old, new)
            old = new

    def _with_angles(
        self, frame: GestureFrame, tx: int, before: Longs | None, after: Longs
    ) -> GestureFrame:
        """A frame whose changes include those of the angles."""
        rows, diffs = [frame.triples.rows], [frame.diff]
        for sign, angles in ((-1, before), (1, after)):
            if angles is not None:
                predicate = np.full(len(angles), _ANGLE)
                columns = (self._points[:, _ELBOW], predicate, self._indexes(angles))
                rows.append(np.column_stack(columns).astype(np.int32))
                diffs.append(np.full(len(angles), sign, np.int8))
        return self._frame(np.concatenate(rows), np.concatenate(diffs), tx)

    def ids(self, dictionary: TermDictionary) -> Ints:
        """The dictionary id of each term."""
        terms: Any = self.terms
        ids: Ints = dictionary.encode_column(terms)
        return ids
