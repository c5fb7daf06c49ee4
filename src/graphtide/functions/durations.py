"""xsd:duration and its two halves: a number of months and a number of seconds.

https://www.w3.org/TR/xmlschema11-2/#duration
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from graphtide.functions.numbers import EXACT, decimal, split_units
from graphtide.functions.vocabulary import DAY_TIME_DURATION, DURATION, YEAR_MONTH_DURATION

_LEXICAL = re.compile(
    r"(-)?P(?=.*[0-9])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]*)?|\.[0-9]+)S)?)?",
    re.ASCII,
)
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Duration:
    """A value of xsd:duration, xsd:yearMonthDuration or xsd:dayTimeDuration."""

    datatype: str
    months: int
    seconds: Decimal

    def __str__(self) -> str:
        """The canonical lexical form."""
        if self.months == 0 and self.seconds == 0:
            return "P0M" if self.datatype == YEAR_MONTH_DURATION else "PT0S"
        sign = "-" if self.months < 0 or self.seconds < 0 else ""
        years, months = divmod(abs(self.months), 12)
        days, rest = split_units(self.seconds.copy_abs(), _DAY)
        hours, rest = split_units(rest, 3600)
        minutes, seconds = split_units(rest, 60)
        date = _parts((years, "Y"), (months, "M"), (days, "D"))
        time = _parts((hours, "H"), (minutes, "M"), (seconds, "S"))
        return f"{sign}P{date}{'T' + time if time else ''}"


def parse_duration(text: str, datatype: str = DURATION) -> Duration | None:
    """Read a duration; None when the text is not in the lexical space of `datatype`.

    >>> str(parse_duration("P13MT90S"))
    'P1Y1MT1M30S'
    """
    match = _LEXICAL.fullmatch(text)
    if match is None:
        return None
    sign, years, months, days, hours, minutes, seconds = match.groups()
    has_months = years is not None or months is not None
    has_seconds = any(part is not None for part in (days, hours, minutes, seconds))
    if datatype == YEAR_MONTH_DURATION and has_seconds:
        return None
    if datatype == DAY_TIME_DURATION and has_months:
        return None
    whole = int(days or 0) * _DAY + int(hours or 0) * 3600 + int(minutes or 0) * 60
    total = EXACT.add(Decimal(whole), Decimal(seconds or 0))
    duration = Duration(datatype, int(years or 0) * 12 + int(months or 0), total)
    return negate_duration(duration) if sign else duration


def add_durations(left: Duration, right: Duration) -> Duration | None:
    """`left + right`; None when months and seconds have opposite signs: no duration has that."""
    months = left.months + right.months
    seconds = EXACT.add(left.seconds, right.seconds)
    if (months < 0 < seconds) or (seconds < 0 < months):
        return None
    datatype = left.datatype if left.datatype == right.datatype else DURATION
    return Duration(datatype, months, seconds)


def negate_duration(duration: Duration) -> Duration:
    """The duration of the same length in the other direction."""
    return Duration(duration.datatype, -duration.months, duration.seconds.copy_negate())


def convert_duration(duration: Duration, datatype: str) -> Duration | None:
    """The same duration in another duration type; None when that type has no such value."""
    if duration.datatype not in (DURATION, datatype) and datatype != DURATION:
        return None
    if datatype == YEAR_MONTH_DURATION and duration.seconds != 0:
        return None
    if datatype == DAY_TIME_DURATION and duration.months != 0:
        return None
    return Duration(datatype, duration.months, duration.seconds)


def _parts(*parts: tuple[int | Decimal, str]) -> str:
    return "".join(f"{decimal(Decimal(n))}{unit}" for n, unit in parts if n != 0)
