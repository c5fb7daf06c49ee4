"""The atomic events of a stage, as the recording tells them: no graph and no query is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.bench.gesture.model import FRAME_MS
from graphtide.bench.gesture.positions import CYCLE

if TYPE_CHECKING:
    from graphtide.bench.gesture.model import Stage
    from graphtide.kernel.batch import Longs

EVENT_AT: Final = {
    1: "StartFound",
    3: "StartLost",
    4: "EndFound",
    6: "EndLost",
    8: "BackFound",
    10: "BackLost",
}
"""What happens when a body comes to a position."""

TYPES: Final = {name: number for number, name in enumerate(EVENT_AT.values())}


def atomic_events(stage: Stage) -> tuple[Longs, Longs, Longs]:
    """Types, values (body numbers from 1) and times of all events, in order.

    >>> from graphtide.bench.gesture.model import Stage
    >>> types, values, times = atomic_events(Stage(bodies=1, cycles=1))
    >>> types.tolist(), times.tolist()
    ([0, 1, 2, 3, 4, 5], [80, 160, 200, 280, 360, 440])
    """
    turns = np.arange(stage.cycles) * CYCLE
    body, turn, position = np.meshgrid(
        np.arange(stage.bodies), turns, np.array(list(EVENT_AT)), indexing="ij"
    )
    frame = (stage.delays[body] + turn + position).ravel()
    types = np.broadcast_to(np.arange(len(EVENT_AT)), body.shape).ravel()
    order = np.lexsort((body.ravel(), types, frame))
    times = (frame[order] + 1) * FRAME_MS
    return types[order].astype(np.int64), (body.ravel()[order] + 1)[:, None], times
