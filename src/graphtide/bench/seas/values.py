"""What the meters read, in whole hundredths.

A circuit is on or off; when, depends on the hour. Few readings have
a voltage with a flat top, and of those the selective query keeps the ones of circuits that are on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from graphtide.kernel.batch import Longs

DRAWS: Final = 8
"""Random numbers for each reading."""

BOUND: Final = 10_000
"""Each is below this."""

RATED: Final = np.array([40, 60, 100, 150, 250, 400, 800, 1500, 2200, 3000])
"""Watts of the circuits, which go round and round."""

ON: Final = np.array(
    [15, 10, 10, 10, 10, 15, 30, 45, 40, 30, 25, 30, 40, 30, 25, 25, 30, 45, 60, 65, 60, 50, 35, 20]
)
"""Of a hundred circuits, how many are on at each hour."""

FLAT: Final = 3
"""Of a hundred readings, how many have a crest factor below 1.2; that of a sine is 1.41."""

READINGS_AN_HOUR: Final = 12


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
            watts // READINGS_AN_HOUR,
            np.where(on, 80 + draws[:, 7] % 20, 30 + draws[:, 7] % 40),
        )
    )
