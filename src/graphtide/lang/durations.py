"""Durations as people write them: `5` ticks, `500ms`, `10s`, `2h`, `PT10S`."""

from __future__ import annotations

import re
from typing import Final

UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds per unit."""

_ISO: Final = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3}))?S)?)?", re.IGNORECASE
)
_ISO_UNITS: Final = (7 * UNITS["d"], UNITS["d"], UNITS["h"], UNITS["m"], UNITS["s"])


def iso_milliseconds(text: str) -> int | None:
    """The length of an ISO 8601 duration; None if it is none, or has months or years.

    >>> iso_milliseconds("PT1M10.5S"), iso_milliseconds("P1D"), iso_milliseconds("P1Y")
    (70500, 86400000, None)
    """
    match = _ISO.fullmatch(text)
    if match is None or text[-1] in "PpTt":
        return None
    *whole, fraction = match.groups()
    total = sum(int(n or 0) * unit for n, unit in zip(whole, _ISO_UNITS, strict=True))
    return total + int((fraction or "").ljust(3, "0"))
