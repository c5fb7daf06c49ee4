"""Times and durations that users give: whole numbers of ticks."""

from __future__ import annotations

from typing import Final

import numpy as np

from graphtide.errors import GraphtideError

LATEST: Final = 2**62
"""The latest time; as far before 0 is the earliest. Sums of two times are still int64."""


def ticks(value: object, name: str = "time") -> int:
    """A time as an int; raise if it is no whole number, or out of bounds.

    Integers of NumPy are converted. A bool or a float is a mistake: a time in seconds, or a
    comparison, and a float does not hold each time exactly.

    >>> ticks(np.int32(5)), ticks(-3)
    (5, -3)
    >>> ticks(1.5)
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: time=1.5 is a float, and a time is a whole number of ticks
      hint: give an int
    >>> ticks(2**63, "to")
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: to=9223372036854775808 is out of bounds
      hint: give a time from -2**62 to 2**62
    """
    if type(value) is not int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            kind = type(value).__name__
            raise GraphtideError(
                f"{name}={value!r:.80} is a {kind}, and a time is a whole number of ticks",
                hint="give an int",
            )
        value = int(value)
    if not -LATEST <= value <= LATEST:
        raise GraphtideError(
            f"{name}={str(value)[:80]} is out of bounds", hint="give a time from -2**62 to 2**62"
        )
    return value


def ticks_or_none(value: object, name: str = "time") -> int | None:
    """A time as an int, or None if none is given."""
    return None if value is None else ticks(value, name)
