"""The recorded turn of the right arm: where all points of a body are, position by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.gesture.vocabulary import MEASURED, POINTS

if TYPE_CHECKING:
    from graphtide.kernel.batch import Longs

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
    (-88, -85),  # at rest, which is no part of the turn: the arm hangs down
    (-86, -84),
)
"""Degrees of upper and lower arm in each position: 0 is away from the body, 90 is up."""

AT_REST: Final = (CYCLE, CYCLE + 1)

SWAY: Final = (
    (0, 5, 9, 10, 9, 5, 0, -5, -9, -10, -9, -5, 2, -2),
    (10, 9, 5, 0, -5, -9, -10, -9, -5, 0, 5, 9, 3, -3),
)
"""Nobody stands still: millimetres by which the whole body is off, in x and y."""

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
"""Where the points are, from between the feet; those of the left side are mirrored."""


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
    places = np.empty((len(ANGLES), len(POINTS), len(MEASURED)))
    places[:] = [_standing(point) for point in POINTS]
    upper, lower = np.radians(np.array(ANGLES, float)).T
    elbow = UPPER * np.column_stack((np.cos(upper), np.sin(upper)))
    hand = elbow + LOWER * np.column_stack((np.cos(lower), np.sin(lower)))
    shoulder = places[:, POINTS.index("rightShoulder")]
    places[:, POINTS.index("rightElbow")] = shoulder + elbow
    places[:, POINTS.index("rightHand")] = shoulder + hand
    places[:, POINTS.index("rightWrist")] = shoulder + (elbow + 4 * hand) / 5
    rounded: Longs = np.rint(places + np.array(SWAY).T[:, None]).astype(np.int64)
    return rounded
