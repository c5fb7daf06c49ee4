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
HEX: Final = XSD + "hexBinary"
BASE64: Final = XSD + "base64Binary"
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

INTEGER_BOUNDS: Final[dict[str, tuple[int | None, int | None]]] = {
    XSD + "nonPositiveInteger": (None, 0),
    XSD + "negativeInteger": (None, -1),
    XSD + "nonNegativeInteger": (0, None),
    XSD + "positiveInteger": (1, None),
    **{
        XSD + name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for name, bits in (("byte", 8), ("short", 16), ("int", 32), ("long", 64))
    },
    **{
        f"{XSD}unsigned{name}": (0, 2**bits - 1)
        for name, bits in (("Byte", 8), ("Short", 16), ("Int", 32), ("Long", 64))
    },
}
"""The least and the greatest value of each type derived from xsd:integer."""

DERIVED_INTEGERS: Final = frozenset(INTEGER_BOUNDS)
"""Their values are integers. A cast checks the bounds; values of the data are taken as they are."""
