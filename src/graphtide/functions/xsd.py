"""The IRIs of the XSD datatypes that functions know."""

from __future__ import annotations

from typing import Final

XSD: Final = "http://www.w3.org/2001/XMLSchema#"

STRING: Final = XSD + "string"
BOOLEAN: Final = XSD + "boolean"
INTEGER: Final = XSD + "integer"
DECIMAL: Final = XSD + "decimal"
FLOAT: Final = XSD + "float"
DOUBLE: Final = XSD + "double"
DATE_TIME: Final = XSD + "dateTime"
DATE_TIME_STAMP: Final = XSD + "dateTimeStamp"
DATE: Final = XSD + "date"
TIME: Final = XSD + "time"
G_YEAR: Final = XSD + "gYear"
G_YEAR_MONTH: Final = XSD + "gYearMonth"
G_MONTH: Final = XSD + "gMonth"
G_MONTH_DAY: Final = XSD + "gMonthDay"
G_DAY: Final = XSD + "gDay"
DURATION: Final = XSD + "duration"
YEAR_MONTH_DURATION: Final = XSD + "yearMonthDuration"
DAY_TIME_DURATION: Final = XSD + "dayTimeDuration"

DERIVED_INTEGERS: Final = frozenset(
    XSD + prefix + name
    for prefix, names in (
        ("", ("byte", "short", "int", "long")),
        ("unsigned", ("Byte", "Short", "Int", "Long")),
        ("positive", ("Integer",)),
        ("negative", ("Integer",)),
        ("non", ("PositiveInteger", "NegativeInteger")),
    )
    for name in names
)
"""Types derived from xsd:integer. Their values are integers; their bounds are not checked."""
