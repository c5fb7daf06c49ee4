"""Bodies before a camera that turn their right arms: the scene of the gesture dataset (paper 4).

One recorded turn of the arm is played back for many bodies at once, each at its own delay. Posture
queries find positions of the arm; a posture that appears or disappears is an event; four of these
events make a gesture.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from benchmarks.datasets.triples import check_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.datasets.triples import Longs

DATA: Final = "http://example.org/stage/"
XSD_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

POINTS: Final = (
    "head",
    "shoulderCentre",
    "spine",
    "hipCentre",
    *(
        f"{side}{part}"
        for side in ("left", "right")
        for part in ("Shoulder", "Elbow", "Wrist", "Hand", "Hip", "Knee", "Ankle", "Foot")
    ),
)
"""The control points of a body; its references to them have the same names."""

ATTRIBUTES: Final = ("x", "y", "z", "screenX", "screenY", "distance")
"""Attributes of each point, in whole millimetres; the first two are measured in every frame."""

MEASURED: Final = ATTRIBUTES[:2]

CHANGES: Final = len(POINTS) * len(MEASURED)
"""Attributes of a body that change from frame to frame."""


CYCLE: Final = 12
"""Frames of a turn."""

UPPER, LOWER = 280, 260
"""Millimetres from shoulder to elbow, and from elbow to hand."""

ANGLES: Final = (
    (-60, 10),
    (-8, 4),  # forward start: stretched, at the height of the shoulder
    (8, 14),
    (-25, 55),
    (-40, 165),  # forward end: bent, the hand before the chest
    (-50, 150),
    (-65, 20),
    (-10, 70),
    (70, 80),  # backward start: stretched, above the head
    (80, 88),
    (45, 120),
    (10, 85),
    (-88, -85),  # at rest, outside of the turn: the arm hangs down
    (-86, -84),
)
"""Degrees of upper and lower arm in each position: 0 is away from the body, 90 is up."""

AT_REST: Final = (CYCLE, CYCLE + 1)

SWAY: Final = (
    (0, 5, 9, 10, 9, 5, 0, -5, -9, -10, -9, -5, 2, -2),
    (10, 9, 5, 0, -5, -9, -10, -9, -5, 0, 5, 9, 3, -3),
)
"""Sway of the whole body in each position: millimetres in x and y."""

STANDING: Final = {
    "head": (0, 1620),
    "shoulderCentre": (0, 1430),
    "spine": (0, 1150),
    "hipCentre": (0, 960),
    "Shoulder": (200, 1400),
    "Elbow": (230, 1130),
    "Wrist": (240, 920),
    "Hand": (245, 870),
    "Hip": (120, 930),
    "Knee": (130, 510),
    "Ankle": (135, 100),
    "Foot": (150, 30),
}
"""Points of a standing body, relative to the ground between its feet; the left side is mirrored."""


def _standing(point: str) -> tuple[int, int]:
    for side, sign in (("left", -1), ("right", 1)):
        if point.startswith(side):
            x, y = STANDING[point.removeprefix(side)]
            return sign * x, y
    return STANDING[point]


def recorded() -> Longs:
    """Millimetres by position, point and axis.

    >>> recorded().shape
    (14, 20, 2)
    >>> recorded()[2, POINTS.index("rightHand")].tolist()
    [739, 1507]
    """
    points = np.empty((len(ANGLES), len(POINTS), len(MEASURED)))
    points[:] = [_standing(point) for point in POINTS]
    upper, lower = np.radians(np.array(ANGLES, float)).T
    elbow = UPPER * np.column_stack((np.cos(upper), np.sin(upper)))
    hand = elbow + LOWER * np.column_stack((np.cos(lower), np.sin(lower)))
    shoulder = points[:, POINTS.index("rightShoulder")]
    points[:, POINTS.index("rightElbow")] = shoulder + elbow
    points[:, POINTS.index("rightHand")] = shoulder + hand
    points[:, POINTS.index("rightWrist")] = shoulder + (elbow + 4 * hand) / 5
    rounded: Longs = np.rint(points + np.array(SWAY).T[:, None]).astype(np.int64)
    return rounded


FRAME_MS: Final = 40
"""25 frames a second."""

FRAMES_PER_SECOND: Final = 1000 // FRAME_MS

MAX_BODIES: Final = 20_000
MAX_CYCLES: Final = 1_000_000

APART: Final = 700
"""Millimetres between two bodies, which stand in a row."""

HEIGHT_STEP, HEIGHTS = 13, 7
"""Body heights differ by multiples of 13 mm, in 7 steps."""

_STRIDE = 5
"""Delay of each body relative to its neighbour, in frames: neighbours are never in step."""


@dataclass(frozen=True, slots=True)
class GestureScene:
    """Each body turns its arm `cycles` times; before and after that it is at rest.

    >>> scene = GestureScene(bodies=25, cycles=4)
    >>> scene.frames, scene.gestures, scene.atomic_events, scene.updates
    (60, 100, 600, 60000)
    """

    bodies: int = 25
    cycles: int = 4

    def __post_init__(self) -> None:
        check_range("number of bodies", self.bodies, MAX_BODIES)
        check_range("number of cycles", self.cycles, MAX_CYCLES)

    @property
    def delays(self) -> Longs:
        """The frame in which each body starts.

        >>> GestureScene(bodies=4).delays.tolist()
        [0, 5, 10, 3]
        """
        return np.arange(self.bodies) * _STRIDE % CYCLE

    @property
    def frames(self) -> int:
        """The number of frames until the last body is at rest again."""
        return CYCLE * (self.cycles + 1)

    @property
    def gestures(self) -> int:
        """The number of gestures: one per turn."""
        return self.bodies * self.cycles

    @property
    def atomic_events(self) -> int:
        """Six per turn: four are the gesture, two are noise."""
        return 6 * self.gestures

    @property
    def updates(self) -> int:
        """Attribute updates in all frames."""
        return self.frames * self.bodies * CHANGES

    @property
    def initial_triples(self) -> int:
        """Triples of the model before the first frame.

        >>> GestureScene(bodies=1).initial_triples
        161
        """
        return self.bodies * (1 + len(POINTS) * (2 + len(ATTRIBUTES)))

    def positions(self, frame: int) -> Longs:
        """The position of each body after a frame; frame -1 is the initial state.

        >>> [GestureScene(bodies=4).positions(frame).tolist() for frame in (-1, 0, 5)]
        [[13, 13, 13, 13], [0, 12, 12, 12], [5, 0, 13, 2]]
        """
        step = frame - self.delays
        moving = (step >= 0) & (step < CYCLE * self.cycles)
        return np.where(moving, step % CYCLE, AT_REST[frame % 2])

    def coordinates(self, frame: int) -> Longs:
        """Millimetres after a frame, by body, point and axis.

        >>> GestureScene(bodies=2).coordinates(0)[:, 0].tolist()
        [[0, 1630], [702, 1636]]
        """
        points = _RECORDED[self.positions(frame)]
        number = np.arange(self.bodies)
        points[:, :, 0] += APART * number[:, None]
        points[:, :, 1] += HEIGHT_STEP * (number % HEIGHTS)[:, None]
        return points

    def values(self) -> Longs:
        """All coordinates that occur, and 0, sorted."""
        x = np.unique(_RECORDED[:, :, 0]) + APART * np.arange(self.bodies)[:, None]
        y = np.unique(_RECORDED[:, :, 1]) + HEIGHT_STEP * np.arange(HEIGHTS)[:, None]
        return np.unique(np.concatenate([x.ravel(), y.ravel(), [0]]))

    def moves(self) -> Iterator[tuple[Longs, Longs]]:
        """Coordinates before and after each frame."""
        before = self.coordinates(-1)
        for frame in range(self.frames):
            after = self.coordinates(frame)
            yield before, after
            before = after


_RECORDED: Final = recorded()


def arm_angles(points: Longs) -> Longs:
    """Degrees between the upper and the lower right arm of each body: 0 is stretched.

    >>> arm_angles(GestureScene(bodies=1).coordinates(2)).tolist()  # 14 - 8 degrees
    [6]
    """
    names = ("rightShoulder", "rightElbow", "rightHand")
    shoulder, elbow, hand = (points[:, POINTS.index(name)] for name in names)
    (ux, uy), (lx, ly) = (elbow - shoulder).T, (hand - elbow).T
    degrees = np.degrees(np.arctan2(np.abs(ux * ly - uy * lx), ux * lx + uy * ly))
    rounded: Longs = np.rint(degrees).astype(np.int64)
    return rounded


class MovingAverage:
    """The mean of the last `width` values of each body, rounded; of fewer at the beginning.

    >>> average = MovingAverage(3)
    >>> [average.add(np.array([value])).item() for value in (6, 12, 90, 6)]
    [6, 9, 36, 36]
    """

    def __init__(self, width: int) -> None:
        self._last: deque[Longs] = deque(maxlen=width)

    def add(self, values: Longs) -> Longs:
        """Take in the values of a frame; the means."""
        self._last.append(values)
        means: Longs = np.rint(np.mean(list(self._last), axis=0)).astype(np.int64)
        return means


EVENT_AT: Final = {
    1: "StartFound",
    3: "StartLost",
    4: "EndFound",
    6: "EndLost",
    8: "BackFound",
    10: "BackLost",
}
"""The event when a body reaches a position."""

TYPES: Final = {name: number for number, name in enumerate(EVENT_AT.values())}


class AtomicEvents(NamedTuple):
    """Columns of events in order of time; `values` has one column, the body's number from 1."""

    types: Longs
    values: Longs
    times: Longs


def atomic_events(scene: GestureScene) -> AtomicEvents:
    """All events of a scene, computed from the recording.

    >>> types, values, times = atomic_events(GestureScene(bodies=1, cycles=1))
    >>> types.tolist(), times.tolist()
    ([0, 1, 2, 3, 4, 5], [80, 160, 200, 280, 360, 440])
    """
    turns = np.arange(scene.cycles) * CYCLE
    body, turn, position = np.meshgrid(
        np.arange(scene.bodies), turns, np.array(list(EVENT_AT)), indexing="ij"
    )
    frame = (scene.delays[body] + turn + position).ravel()
    types = np.broadcast_to(np.arange(len(EVENT_AT)), body.shape).ravel()
    order = np.lexsort((body.ravel(), types, frame))
    times = (frame[order] + 1) * FRAME_MS
    return AtomicEvents(types[order].astype(np.int64), (body.ravel()[order] + 1)[:, None], times)
