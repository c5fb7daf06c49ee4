"""Parse durations: `5` (ticks), `500ms`, `10s`, `2h`, `1w`, `PT10S`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import Final

from graphtide.errors import GraphtideError

UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
         "w": 604_800_000}  # fmt: skip
"""Milliseconds per unit."""

LONGEST: Final = 2**61
"""The largest number of ticks or milliseconds: a time and twice as many are still an int64."""

_DIGITS: Final = 20


def whole(digits: str) -> int:
    """Return a number of ticks, or of anything else, that may be too large: it is cut off then.

    >>> whole("007"), whole("9" * 5000) > LONGEST
    (7, True)
    """
    return int(digits.lstrip("0")[:_DIGITS] or 0)


_ISO: Final = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3}))?S)?)?", re.IGNORECASE
)
_ISO_UNITS: Final = (7 * UNITS["d"], UNITS["d"], UNITS["h"], UNITS["m"], UNITS["s"])


def iso_milliseconds(text: str) -> int | None:
    """An ISO 8601 duration in milliseconds; None if invalid or too long, or with months or years.

    >>> iso_milliseconds("PT1M10.5S"), iso_milliseconds("P1D"), iso_milliseconds("P1Y")
    (70500, 86400000, None)
    """
    match = _ISO.fullmatch(text)
    if match is None or text[-1] in "PpTt":
        return None
    *parts, fraction = match.groups()
    total = sum(whole(n or "0") * unit for n, unit in zip(parts, _ISO_UNITS, strict=True))
    total += int((fraction or "").ljust(3, "0"))
    return total if total <= LONGEST else None


_WRITTEN: Final = re.compile(r"([+-]?)\s*(?:(\d+)\s*([A-Za-z]*)|(P[0-9A-Za-z.]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WrittenDuration:
    """A duration as written: milliseconds if `in_time`, else ticks, whose length the graph sets."""

    amount: float
    in_time: bool = False

    def ticks(self, tick_ms: int) -> float:
        """The duration in ticks.

        >>> WrittenDuration(10_000, in_time=True).ticks(1000), WrittenDuration(5).ticks(1000)
        (10, 5)
        """
        if not self.in_time or abs(self.amount) == inf:
            return self.amount
        ticks, rest = divmod(int(self.amount), tick_ms)
        if rest:
            raise GraphtideError(
                f"{self.amount:g} ms is not a whole number of ticks of {tick_ms} ms",
                hint="set a shorter tick with LiveGraph(tick_ms=…), and give times in that tick",
            )
        return ticks


def parse_duration(text: str) -> WrittenDuration | None:
    """Parse a duration; None if invalid or too long.

    >>> parse_duration("-2h"), parse_duration("5x")
    (WrittenDuration(amount=-7200000, in_time=True), None)
    >>> parse_duration("5"), parse_duration("PT1S").amount
    (WrittenDuration(amount=5, in_time=False), 1000)
    >>> parse_duration("1w") == parse_duration("7d") == parse_duration("P1W")
    True
    """
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        return None
    sign = -1 if match[1] == "-" else 1
    if match[4]:
        found = iso_milliseconds(match[4])
        return None if found is None else WrittenDuration(sign * found, in_time=True)
    unit = match[3].lower()
    if unit and unit not in UNITS:
        return None
    amount = whole(match[2]) * UNITS.get(unit, 1)
    return WrittenDuration(sign * amount, in_time=bool(unit)) if amount <= LONGEST else None
