"""The parts of a date or time: YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS, TIMEZONE, TZ.

https://www.w3.org/TR/sparql11-query/#func-date-time. Each part is read in the value's own time
zone, and from every type that has it: the year of an xsd:date or xsd:gYear too.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Final

from graphtide.errors import ExpressionError
from graphtide.functions import temporal, xsd
from graphtide.functions.numbers import decimal, split_units
from graphtide.functions.temporal import DateTimeValue, Duration, zone_text
from graphtide.functions.values import Text, integer_term, to_term, value_of

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term


_EPOCH: Final = DateTimeValue(xsd.DATE_TIME, 1970, 1, 1, Decimal(0), 0)
_ANY_ZONE: Final = 14 * 3600
"""Seconds by which a moment without time zone may be earlier or later than in UTC."""


def moment_of(tick: int, tick_ms: int) -> Term:
    """The dateTime of a tick of so many milliseconds since 1970.

    >>> print(moment_of(90, 1500))
    "1970-01-01T00:02:15Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>
    """
    return to_term(temporal.shift(_EPOCH, 0, (Decimal(tick) * tick_ms).scaleb(-3)))


def turning_ticks(term: Term, ahead: str, tick_ms: int) -> list[int]:
    """The ticks at which a comparison of a term with the time may turn.

    `ahead` is the duration that the comparison adds to the time. There are two for a moment: the
    first tick that is not before it, and the first one after it. A term that is no dateTime has
    none.

    >>> moment = moment_of(7, 1000)
    >>> turning_ticks(moment, "PT2S", 1000), turning_ticks(moment, "PT0S", 2000)
    ([5, 6], [4, 4])
    """
    moment = value_of(term)
    duration = temporal.parse_duration(ahead, xsd.DAY_TIME_DURATION)
    if not isinstance(moment, DateTimeValue) or moment.datatype != xsd.DATE_TIME or not duration:
        return []
    at = (
        Fraction(temporal.timeline(moment))
        - Fraction(temporal.timeline(_EPOCH))
        - Fraction(duration.seconds)
    )
    instants = [at] if moment.offset is not None else [at - _ANY_ZONE, at + _ANY_ZONE]
    exact = [instant * 1000 / tick_ms for instant in instants]
    return [tick for each in exact for tick in (ceil(each), floor(each) + 1)]


def year(term: Term) -> Term:
    """YEAR."""
    return integer_term(_part(_date_time(term).year, "year", term))


def month(term: Term) -> Term:
    """MONTH."""
    return integer_term(_part(_date_time(term).month, "month", term))


def day(term: Term) -> Term:
    """DAY."""
    return integer_term(_part(_date_time(term).day, "day", term))


def hours(term: Term) -> Term:
    """HOURS."""
    return integer_term(split_units(_seconds(term), 3600)[0])


def minutes(term: Term) -> Term:
    """MINUTES."""
    return integer_term(split_units(_seconds(term), 60)[0] % 60)


def seconds(term: Term) -> Term:
    """SECONDS: a decimal, since seconds have fractions."""
    return to_term(decimal(split_units(_seconds(term), 60)[1]))


def timezone(term: Term) -> Term:
    """TIMEZONE: the offset as a duration; an error without a time zone."""
    offset = _part(_date_time(term).offset, "time zone", term)
    return to_term(Duration(xsd.DAY_TIME_DURATION, 0, Decimal(offset * 60)))


def tz(term: Term) -> Term:
    """TZ: the offset as written, `Z` for UTC, empty without a time zone."""
    return to_term(Text(zone_text(_date_time(term).offset)))


def _date_time(term: Term) -> DateTimeValue:
    value = value_of(term)
    if isinstance(value, DateTimeValue):
        return value
    raise ExpressionError(f"{term} is not a date or time")


def _part(part: int | None, name: str, term: Term) -> int:
    if part is None:
        raise ExpressionError(f"{term} has no {name}")
    return part


def _seconds(term: Term) -> Decimal:
    clock = _date_time(term).seconds
    if clock is None:
        raise ExpressionError(f"{term} has no time of day")
    return clock
