"""Stage: so many bodies that turn their right arms, frame by frame, out of step with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.gesture.positions import AT_REST, CYCLE, recorded
from graphtide.bench.gesture.vocabulary import ATTRIBUTES, CHANGES, POINTS
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Longs

FRAME_MS: Final = 40
"""25 frames a second."""

FRAMES_A_SECOND: Final = 1000 // FRAME_MS

MOST_BODIES: Final = 20_000
MOST_CYCLES: Final = 1_000_000

APART: Final = 700
"""Millimetres between two bodies, which stand in a row."""

TALLER, HEIGHTS = 13, 7
"""Some are taller: by so many millimetres each, and of so many heights."""

_STRIDE = 5
"""Positions by which a body is behind the one before it; this way any two neighbours differ."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Each body turns its arm `cycles` times; before and after that it is at rest.

    >>> stage = Stage(bodies=25, cycles=4)
    >>> stage.frames, stage.gestures, stage.atomic_events, stage.updates
    (60, 100, 600, 60000)
    """

    bodies: int = 25
    cycles: int = 4

    def __post_init__(self) -> None:
        limits = ("bodies", self.bodies, MOST_BODIES), ("cycles", self.cycles, MOST_CYCLES)
        for name, value, most in limits:
            if not 1 <= value <= most:
                raise GraphtideError(
                    f"{value} {name} are not possible",
                    hint=f"their number goes from 1 to {most:,}",
                )

    @property
    def delays(self) -> Longs:
        """The frame in which each body begins.

        >>> Stage(bodies=4).delays.tolist()
        [0, 5, 10, 3]
        """
        return np.arange(self.bodies) * _STRIDE % CYCLE

    @property
    def frames(self) -> int:
        """Until the last body is at rest again."""
        return CYCLE * (self.cycles + 1)

    @property
    def gestures(self) -> int:
        """Each turn of an arm is one."""
        return self.bodies * self.cycles

    @property
    def atomic_events(self) -> int:
        """Of each turn six: four are the gesture, two are noise."""
        return 6 * self.gestures

    @property
    def updates(self) -> int:
        """Attributes that get another value, in all frames."""
        return self.frames * self.bodies * CHANGES

    @property
    def initial_triples(self) -> int:
        """Triples of the model before the first frame.

        >>> Stage(bodies=1).initial_triples
        161
        """
        return self.bodies * (1 + len(POINTS) * (2 + len(ATTRIBUTES)))

    def positions(self, frame: int) -> Longs:
        """The position of each body after a frame; -1 is how they stand before the first.

        >>> [Stage(bodies=4).positions(frame).tolist() for frame in (-1, 0, 5)]
        [[13, 13, 13, 13], [0, 12, 12, 12], [5, 0, 13, 2]]
        """
        step = frame - self.delays
        moving = (step >= 0) & (step < CYCLE * self.cycles)
        return np.where(moving, step % CYCLE, AT_REST[frame % 2])

    def coordinates(self, frame: int) -> Longs:
        """Millimetres after a frame, by body, point and axis.

        >>> Stage(bodies=2).coordinates(0)[:, 0].tolist()
        [[0, 1630], [702, 1636]]
        """
        places = _RECORDED[self.positions(frame)]
        number = np.arange(self.bodies)
        places[:, :, 0] += APART * number[:, None]
        places[:, :, 1] += TALLER * (number % HEIGHTS)[:, None]
        return places

    def values(self) -> Longs:
        """All coordinates that occur, and 0, in order."""
        x = np.unique(_RECORDED[:, :, 0]) + APART * np.arange(self.bodies)[:, None]
        y = np.unique(_RECORDED[:, :, 1]) + TALLER * np.arange(HEIGHTS)[:, None]
        return np.unique(np.concatenate([x.ravel(), y.ravel(), [0]]))

    def moves(self) -> Iterator[tuple[Longs, Longs]]:
        """Coordinates before and after each frame."""
        before = self.coordinates(-1)
        for frame in range(self.frames):
            after = self.coordinates(frame)
            yield before, after
            before = after


_RECORDED: Final = recorded()
