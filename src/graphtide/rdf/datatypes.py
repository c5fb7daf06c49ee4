"""The XML Schema datatypes whose values have a typed side column, and the ranges of integers."""

from __future__ import annotations

from typing import Final

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

XSD_STRING: Final = XSD + "string"

TAGGED_DATATYPES: Final = (RDF + "langString", RDF + "dirLangString")
"""Datatypes that a literal may have only through its language tag."""

INTEGER_RANGES: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
"""Local name of each integer datatype -> its smallest and greatest value (None: no limit)."""

EXACT_DIGITS: Final = 15
"""Decimals of so many significant digits map to float64 without loss of order or equality."""

EXACT_NUMBER: Final = 2**53
"""Whole numbers below this are exact in float64."""
