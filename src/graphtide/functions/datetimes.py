"""The parts of a date or time: YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS, TIMEZONE, TZ.

https://www.w3.org/TR/sparql11-query/#func-date-time. Each part is read in the value's own time
zone, and from every type that has it: the year of an xsd:date or xsd:gYear too.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from graphtide.errors import ExpressionError
from graphtide.functions import xsd
from graphtide.functions.numbers import decimal, split_units
from graphtide.functions.temporal import DateTimeValue, Duration, zone_text
from graphtide.functions.values import Text, integer_term, to_term, value_of

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term


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
