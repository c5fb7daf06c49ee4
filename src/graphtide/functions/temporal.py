"""Dates, times and durations: values of the XSD date and time types.

xsd:dateTime, date, time and the five g-types share one value of seven properties,
https://www.w3.org/TR/xmlschema11-2/#theSevenPropertyModel. Seconds count from midnight, so hour,
minute and second are one number; a property that a type lacks is None. A duration is a number of
months and a number of seconds, https://www.w3.org/TR/xmlschema11-2/#duration.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from graphtide.functions import xsd
from graphtide.functions.numbers import EXACT, decimal, split_units, whole, whole_text

_DAY = 86_400
_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY_OF_MONTH = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_CLOCK = (
    r"(?:(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]+)?)"
    r"|(?P<midnight>24:00:00(?:\.0+)?))"
)
_ZONE = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_LEXICAL: Final = {
    datatype: re.compile(pattern + _ZONE, re.ASCII)
    for datatype, pattern in {
        xsd.DATE_TIME: f"{_YEAR}-{_MONTH}-{_DAY_OF_MONTH}T{_CLOCK}",
        xsd.DATE: f"{_YEAR}-{_MONTH}-{_DAY_OF_MONTH}",
        xsd.TIME: _CLOCK,
        xsd.G_YEAR: _YEAR,
        xsd.G_YEAR_MONTH: f"{_YEAR}-{_MONTH}",
        xsd.G_MONTH: f"--{_MONTH}",
        xsd.G_MONTH_DAY: f"--{_MONTH}-{_DAY_OF_MONTH}",
        xsd.G_DAY: f"---{_DAY_OF_MONTH}",
    }.items()
}
_DURATION = re.compile(
    r"(-)?P(?=.*[0-9])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]*)?|\.[0-9]+)S)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Duration:
    """A value of xsd:duration, xsd:yearMonthDuration or xsd:dayTimeDuration."""

    datatype: str
    months: int
    seconds: Decimal

    def __str__(self) -> str:
        """The canonical lexical form."""
        if self.months == 0 and self.seconds == 0:
            return "P0M" if self.datatype == xsd.YEAR_MONTH_DURATION else "PT0S"
        sign = "-" if self.months < 0 or self.seconds < 0 else ""
        years, months = divmod(abs(self.months), 12)
        days, rest = split_units(self.seconds.copy_abs(), _DAY)
        hours, rest = split_units(rest, 3600)
        minutes, seconds = split_units(rest, 60)
        date = _units_text((years, "Y"), (months, "M"), (days, "D"))
        time = _units_text((hours, "H"), (minutes, "M"), (seconds, "S"))
        return f"{sign}P{date}{'T' + time if time else ''}"


def parse_duration(text: str, datatype: str = xsd.DURATION) -> Duration | None:
    """Read a duration; None when the text is not in the lexical space of `datatype`.

    >>> str(parse_duration("P13MT90S"))
    'P1Y1MT1M30S'
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    sign, years, months, days, hours, minutes, seconds = match.groups()
    has_months = years is not None or months is not None
    has_seconds = any(part is not None for part in (days, hours, minutes, seconds))
    if datatype == xsd.YEAR_MONTH_DURATION and has_seconds:
        return None
    if datatype == xsd.DAY_TIME_DURATION and has_months:
        return None
    minutes_of = whole(days or "0") * 1440 + whole(hours or "0") * 60 + whole(minutes or "0")
    total = EXACT.add(Decimal(minutes_of * 60), Decimal(seconds or 0))
    duration = Duration(datatype, whole(years or "0") * 12 + whole(months or "0"), total)
    return negate_duration(duration) if sign else duration


def add_durations(left: Duration, right: Duration) -> Duration | None:
    """`left + right`; None when months and seconds have opposite signs: no duration has that."""
    months = left.months + right.months
    seconds = EXACT.add(left.seconds, right.seconds)
    if (months < 0 < seconds) or (seconds < 0 < months):
        return None
    datatype = left.datatype if left.datatype == right.datatype else xsd.DURATION
    return Duration(datatype, months, seconds)


def negate_duration(duration: Duration) -> Duration:
    """The duration of the same length in the other direction."""
    return Duration(duration.datatype, -duration.months, duration.seconds.copy_negate())


def convert_duration(duration: Duration, datatype: str) -> Duration | None:
    """The same duration in another duration type; None when that type has no such value."""
    if duration.datatype not in (xsd.DURATION, datatype) and datatype != xsd.DURATION:
        return None
    if datatype == xsd.YEAR_MONTH_DURATION and duration.seconds != 0:
        return None
    if datatype == xsd.DAY_TIME_DURATION and duration.months != 0:
        return None
    return Duration(datatype, duration.months, duration.seconds)


def _units_text(*parts: tuple[int | Decimal, str]) -> str:
    return "".join(f"{decimal(Decimal(n))}{unit}" for n, unit in parts if n != 0)


@dataclass(frozen=True, slots=True)
class DateTimeValue:
    """A value of one of the eight date and time types; `offset` is its time zone in minutes."""

    datatype: str
    year: int | None
    month: int | None
    day: int | None
    seconds: Decimal | None
    offset: int | None

    def __str__(self) -> str:
        """The canonical lexical form, in the value's own time zone."""
        zone = zone_text(self.offset)
        date = {
            xsd.DATE_TIME: f"{_year_text(self.year)}-{self.month or 0:02}-{self.day or 0:02}T",
            xsd.DATE: f"{_year_text(self.year)}-{self.month or 0:02}-{self.day or 0:02}",
            xsd.TIME: "",
            xsd.G_YEAR: _year_text(self.year),
            xsd.G_YEAR_MONTH: f"{_year_text(self.year)}-{self.month or 0:02}",
            xsd.G_MONTH: f"--{self.month or 0:02}",
            xsd.G_MONTH_DAY: f"--{self.month or 0:02}-{self.day or 0:02}",
            xsd.G_DAY: f"---{self.day or 0:02}",
        }[self.datatype]
        return f"{date}{_clock_text(self.seconds)}{zone}"


def parse_moment(text: str, datatype: str) -> DateTimeValue | None:
    """Read a date or time; None when the text is not in the lexical space of `datatype`.

    >>> str(parse_moment("2020-12-31T24:00:00.0-00:00", xsd.DATE_TIME))
    '2021-01-01T00:00:00Z'
    """
    match = _LEXICAL[datatype].fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    year, month, day = (_whole(part.get(name)) for name in ("year", "month", "day"))
    if day is not None and day > _days_in_month(1972 if year is None else year, month or 1):
        return None
    offset = _zone_minutes(part["zone"])
    if part.get("midnight"):
        midnight = DateTimeValue(datatype, year, month, day, Decimal(0), offset)
        return midnight if datatype == xsd.TIME else shift(midnight, 0, Decimal(_DAY))
    seconds = None
    if part.get("hour"):
        minutes = int(part["hour"]) * 60 + int(part["minute"])
        seconds = EXACT.add(Decimal(minutes * 60), Decimal(part["second"]))
    return DateTimeValue(datatype, year, month, day, seconds, offset)


def timeline(moment: DateTimeValue) -> Decimal:
    """Seconds on one line for all moments of a type; UTC when the moment has a time zone.

    https://www.w3.org/TR/xmlschema11-2/#vp-dt-timeOnTimeline: what a type lacks comes from the
    last moment of the year 1972.
    """
    year = 1972 if moment.year is None else moment.year
    month = 12 if moment.month is None else moment.month
    day = _days_in_month(year, month) if moment.day is None else moment.day
    if moment.day is None and moment.month is not None:
        day = 1 if moment.seconds is None else day
    start = Decimal(_day_number(year, month, day) * _DAY - (moment.offset or 0) * 60)
    return EXACT.add(start, moment.seconds or Decimal(0))


def shift(moment: DateTimeValue, months: int, seconds: Decimal) -> DateTimeValue:
    """`moment` plus a duration, as in https://www.w3.org/TR/xmlschema11-2/#sec-dt-dateTimePlusDuration.

    A day that the reached month does not have becomes its last day; a time wraps at midnight.
    """
    days, clock = split_units(EXACT.add(moment.seconds or Decimal(0), seconds), _DAY)
    if moment.datatype == xsd.TIME:
        return replace(moment, seconds=clock)
    year, month, day = moment.year or 0, moment.month or 1, moment.day or 1
    ahead, month0 = divmod(month - 1 + months, 12)
    year, month = year + ahead, month0 + 1
    number = _day_number(year, month, min(day, _days_in_month(year, month))) + days
    year, month, day = _date_of(number)
    kept = None if moment.seconds is None else clock
    return DateTimeValue(moment.datatype, year, month, day, kept, moment.offset)


def add_duration(moment: DateTimeValue, duration: Duration) -> DateTimeValue:
    """`moment + duration`."""
    return shift(moment, duration.months, duration.seconds)


def project(moment: DateTimeValue, datatype: str) -> DateTimeValue:
    """Keep the properties that `datatype` has: the cast from a longer date type to a shorter."""
    year = (
        moment.year if datatype in (xsd.DATE_TIME, xsd.DATE, xsd.G_YEAR, xsd.G_YEAR_MONTH) else None
    )
    month = None if datatype in (xsd.TIME, xsd.G_YEAR, xsd.G_DAY) else moment.month
    day = moment.day if datatype in (xsd.DATE_TIME, xsd.DATE, xsd.G_MONTH_DAY, xsd.G_DAY) else None
    seconds = (moment.seconds or Decimal(0)) if datatype in (xsd.DATE_TIME, xsd.TIME) else None
    return DateTimeValue(datatype, year, month, day, seconds, moment.offset)


def zone_text(offset: int | None) -> str:
    """A time zone as TZ shows it: empty, `Z` or `+hh:mm`."""
    if offset is None:
        return ""
    if offset == 0:
        return "Z"
    hours, minutes = divmod(abs(offset), 60)
    return f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"


def _zone_minutes(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "Z":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    return -minutes if text[0] == "-" else minutes


def _whole(text: str | None) -> int | None:
    return None if text is None else whole(text)


def _year_text(year: int | None) -> str:
    number = year or 0
    return f"{'-' if number < 0 else ''}{whole_text(abs(number)).zfill(4)}"


def _clock_text(seconds: Decimal | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = split_units(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    padding = "0" if rest < 10 else ""
    return f"{hours:02}:{minutes:02}:{padding}{decimal(rest)}"


def _days_in_month(year: int, month: int) -> int:
    # The calendar repeats every 400 years, and Python's starts only in the year 1.
    return monthrange(2000 + year % 400, month)[1]


def _day_number(year: int, month: int, day: int) -> int:
    """Days since 0000-03-01 in the proleptic Gregorian calendar, any year."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year


def _date_of(number: int) -> tuple[int, int, int]:
    """The inverse of `_day_number`."""
    era, day_of_era = divmod(number, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day
