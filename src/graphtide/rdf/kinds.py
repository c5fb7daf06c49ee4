"""The kind of a term: one small integer per id, so that kernels can compare typed values.

A kind says what a term's entry in `TermDictionary.numbers` means. Two terms of kind `EXACT` compare
as their numbers do; a term of kind `OTHER` has no number, and is compared as a term.
"""

from __future__ import annotations

from typing import Final

UNBOUND: Final = 0
"""No term: id 0 (an unbound variable, or the default graph)."""

IRI: Final = 1
BLANK: Final = 2

STRING: Final = 3
"""An `xsd:string`."""

LANG: Final = 4
"""An `rdf:langString`, a string with a language tag."""

BOOLEAN: Final = 5
"""An `xsd:boolean`; its number is 0.0 or 1.0."""

EXACT: Final = 6
"""An `xsd:decimal`, `xsd:integer` or type derived from it, of at most 15 significant digits: its
float64 number then orders and equals just as the decimal value does."""

DOUBLE: Final = 7
"""An `xsd:double`; its number is its value (which may be an infinity or NaN)."""

DATETIME: Final = 8
"""An `xsd:dateTime` with a timezone; its number is microseconds since 1970, below 2**53."""

LOCAL_DATETIME: Final = 9
"""An `xsd:dateTime` without a timezone; its number is taken as if it were UTC."""

OTHER: Final = 10
"""Any other literal: ill-typed, `xsd:float`, too large a number or date, unknown datatype."""

TRIPLE: Final = 11
"""A triple term."""


XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


TAGGED_DATATYPES: Final = (RDF + "langString", RDF + "dirLangString")
"""Datatypes of literals with a language tag, which `^^` may not name."""

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
