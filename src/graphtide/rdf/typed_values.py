"""The kind and number of a term, in plain Python: twin and fallback of `rdf.kernels.values`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from graphtide.rdf import kinds
from graphtide.rdf.kinds import EXACT_DIGITS, EXACT_NUMBER, INTEGER_RANGES, XSD

Typed = tuple[int, float]
"""A kind and a number; the number is 0.0 where the kind has none."""

_OTHER: Final[Typed] = (kinds.OTHER, 0.0)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_DATETIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOOLEANS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


def typed_value(text: str) -> Typed:
    """Return the kind and number of a term given as canonical N-Triples text.

    >>> typed_value('"007"^^<http://www.w3.org/2001/XMLSchema#integer>')
    (6, 7.0)
    >>> typed_value("<http://example.org/a>")
    (1, 0.0)
    """
    match text[0]:
        case "<":
            return kinds.IRI, 0.0
        case "_":
            return kinds.BLANK, 0.0
    close = text.rindex('"')
    suffix = text[close + 1 :]
    if not suffix:
        return kinds.STRING, 0.0
    if suffix[0] == "@":
        return _OTHER if "--" in suffix else (kinds.LANG, 0.0)
    return literal_value(text[1:close], suffix[3:-1])


def literal_value(lexical: str, datatype: str) -> Typed:
    """Return the kind and number of a literal from its lexical form and datatype IRI.

    >>> literal_value("2.50", "http://www.w3.org/2001/XMLSchema#decimal")
    (6, 2.5)
    """
    if not datatype.startswith(XSD):
        return _OTHER
    name = datatype[len(XSD) :]
    if name in INTEGER_RANGES:
        return _integer(lexical, name)
    match name:
        case "decimal":
            return _exact(Decimal(lexical)) if _DECIMAL.fullmatch(lexical) else _OTHER
        case "double":
            return (kinds.DOUBLE, float(lexical)) if _DOUBLE.fullmatch(lexical) else _OTHER
        case "boolean":
            value = _BOOLEANS.get(lexical)
            return _OTHER if value is None else (kinds.BOOLEAN, value)
        case "dateTime":
            return _datetime(lexical)
        case _:
            return _OTHER


def _integer(lexical: str, name: str) -> Typed:
    # Python does not convert very long digit strings; their values would not be exact anyway.
    if not _INTEGER.fullmatch(lexical) or len(lexical) > 4000:
        return _OTHER
    value = int(lexical)
    low, high = INTEGER_RANGES[name]
    if (low is not None and value < low) or (high is not None and value > high):
        return _OTHER
    if len(lexical) <= EXACT_DIGITS:
        return kinds.EXACT, float(value)
    return _exact(Decimal(lexical))


def _exact(value: Decimal) -> Typed:
    digits = "".join(map(str, value.as_tuple().digits)).strip("0")
    number = float(value) if digits else 0.0
    # Outside this range float64 loses digits to overflow or to subnormal numbers.
    in_range = not digits or 1e-290 < abs(number) < 1e290
    return (kinds.EXACT, number) if len(digits) <= EXACT_DIGITS and in_range else _OTHER


def _datetime(lexical: str) -> Typed:
    found = _DATETIME.fullmatch(lexical)
    if found is None:
        return _OTHER
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, zone = found.group(7) or "", found.group(8)
    # XSD writes the end of a day also as 24:00:00, and nothing later than that.
    end_of_day = hour == 24 and minute == 0 and second == 0 and not fraction.strip("0")
    if fraction[6:].strip("0"):
        return _OTHER
    try:
        moment = datetime(year, month, day, 0 if end_of_day else hour, minute, second, tzinfo=UTC)
    except ValueError:
        return _OTHER
    span = moment - _EPOCH + timedelta(days=1 if end_of_day else 0) - _offset(zone)
    micros = span // timedelta(microseconds=1) + int(fraction[:6].ljust(6, "0"))
    if abs(micros) >= EXACT_NUMBER:
        return _OTHER
    return (kinds.LOCAL_DATETIME if zone is None else kinds.DATETIME), float(micros)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta(0)
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -offset if zone[0] == "-" else offset
