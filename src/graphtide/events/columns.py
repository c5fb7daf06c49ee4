"""Complex events as columns: what a batch gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.events.token import Found


@dataclass(frozen=True, slots=True)
class FoundColumns:
    """A line for each complex event; `used[first_used[i]:first_used[i + 1]]` are i's events.

    `at` is the row of the batch with which it was found: a timer fires with the event that shows
    that its time has passed.
    """

    values: NDArray[np.int64]
    time: NDArray[np.int64]
    start: NDArray[np.int64]
    at: NDArray[np.int64]
    first_used: NDArray[np.int64]
    used: NDArray[np.int64]


def as_columns(found: list[tuple[int, Found]], parameters: int) -> FoundColumns:
    """Rows with the place where they were found, as columns.

    >>> from graphtide.events.token import Found
    >>> as_columns([(3, Found((7,), 12, 10, (1, 3)))], 1).used.tolist()
    [1, 3]
    """
    lengths = [0, *(len(one.used) for _, one in found)]
    values = [one.values for _, one in found]
    return FoundColumns(
        values=np.array(values, np.int64).reshape(len(found), parameters),
        time=np.array([one.time for _, one in found], np.int64),
        start=np.array([one.start for _, one in found], np.int64),
        at=np.array([row for row, _ in found], np.int64),
        first_used=np.cumsum(np.array(lengths, np.int64)),
        used=np.array([number for _, one in found for number in one.used], np.int64),
    )
