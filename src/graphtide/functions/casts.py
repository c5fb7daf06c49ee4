"""Casts: the XPath constructor functions of SPARQL, named by the IRI of the datatype.

https://www.w3.org/TR/sparql11-query/#FunctionMapping. The result is written in canonical form.
Besides the seven types of the recommendation, the other date types, durations, binary data, anyURI
and the types derived from integer, string and dateTime can be made.
https://www.w3.org/TR/xpath-functions-31/#casting-to-derived-types: to the base type first, then the
bounds or the pattern of the derived one are checked.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions import numbers as num
from graphtide.functions import xsd
from graphtide.functions.temporal import DateTimeValue, Duration, convert_duration, project
from graphtide.functions.values import Text, Value, parse_value, to_term, value_of

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

Cast = Callable[["Term"], "Term"]

_SPACE: Final = re.compile(r"[\t\n\r ]+")
_ZONE: Final = re.compile(r"(?:Z|[+-]\d\d:\d\d)$")
_START: Final = r"[^\W\d]"  # of a name; what may follow is a letter, a digit, or one of . - _
_TEXTS: Final = {
    "token": r"(?s:.*)",
    "anyURI": r"(?s:.*)",
    "language": r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*",
    "NMTOKEN": r"[\w.:\u00b7-]+",
    "Name": rf"(?:{_START}|:)[\w.:\u00b7-]*",
    **dict.fromkeys(("NCName", "ID", "IDREF", "ENTITY"), rf"{_START}[\w.\u00b7-]*"),
}
"""The patterns of types derived from string, after white space is collapsed; and of anyURI."""

_SHORTER: Final = {
    xsd.DATE_TIME: (xsd.DATE,),
    xsd.DATE: (xsd.DATE_TIME,),
    xsd.TIME: (xsd.DATE_TIME,),
    xsd.G_YEAR: (xsd.G_YEAR_MONTH, xsd.DATE, xsd.DATE_TIME),
    xsd.G_YEAR_MONTH: (xsd.DATE, xsd.DATE_TIME),
    xsd.G_MONTH: (xsd.G_YEAR_MONTH, xsd.G_MONTH_DAY, xsd.DATE, xsd.DATE_TIME),
    xsd.G_MONTH_DAY: (xsd.DATE, xsd.DATE_TIME),
    xsd.G_DAY: (xsd.G_MONTH_DAY, xsd.DATE, xsd.DATE_TIME),
}
"""The date types that each date type can be made from, besides itself and a string."""


def cast_to_string(term: Term) -> Term:
    """xsd:string: an IRI's text, a value's canonical form, or an ill-typed form as it is."""
    match value_of(term):
        case Text(text, _):
            return to_term(Text(text))
        case None if isinstance(term, NamedNode | Literal):
            return to_term(Text(term.value))
        case None:
            raise ExpressionError(f"{term} cannot be cast to a string")
        case num.Number() as number:
            return to_term(Text(num.string_of(number)))
        case value:
            return to_term(Text(to_term(value).value))


def _number_cast(convert: Callable[[num.Number], Value]) -> Callable[[Value], Value | None]:
    def convert_value(value: Value) -> Value | None:
        if isinstance(value, bool):
            value = num.integer(int(value))
        return convert(value) if isinstance(value, num.Number) else None

    return convert_value


def _to_boolean(number: num.Number) -> Value:
    return number.value != 0 and not number.is_nan


def _to_integer(number: num.Number) -> Value:
    return num.integer(int(_finite(number).value))


def _to_decimal(number: num.Number) -> Value:
    value = _finite(number).value
    return num.decimal(
        num.decimal_from_float(value) if isinstance(value, float) else Decimal(value)
    )


def _to_float(number: num.Number) -> Value:
    if number.type is num.NumericType.DOUBLE:
        return num.single(float(number.value))
    return num.promote(number, num.NumericType.FLOAT)


def _to_double(number: num.Number) -> Value:
    return num.double(float(num.promote(number, num.NumericType.DOUBLE).value))


def _finite(number: num.Number) -> num.Number:
    if isinstance(number.value, float) and not math.isfinite(number.value):
        raise ExpressionError(f"{number} is not a finite number")
    return number


def _moment_cast(datatype: str) -> Callable[[Value], Value | None]:
    sources = (datatype, *_SHORTER[datatype])

    def convert(value: Value) -> Value | None:
        if isinstance(value, DateTimeValue) and value.datatype in sources:
            return project(value, datatype)
        return None

    return convert


def _duration_cast(datatype: str) -> Callable[[Value], Value | None]:
    return lambda value: convert_duration(value, datatype) if isinstance(value, Duration) else None


_CONVERSIONS: Final[dict[str, Callable[[Value], Value | None]]] = {
    xsd.BOOLEAN: _number_cast(_to_boolean),
    xsd.INTEGER: _number_cast(_to_integer),
    xsd.DECIMAL: _number_cast(_to_decimal),
    xsd.FLOAT: _number_cast(_to_float),
    xsd.DOUBLE: _number_cast(_to_double),
    **{datatype: _moment_cast(datatype) for datatype in _SHORTER},
    **{
        datatype: _duration_cast(datatype)
        for datatype in (xsd.DURATION, xsd.YEAR_MONTH_DURATION, xsd.DAY_TIME_DURATION)
    },
}


def cast_function(datatype: str) -> Cast:
    """The cast to a type with values of its own, that is, none that is derived.

    >>> from pyoxigraph import Literal
    >>> print(cast_function(xsd.INTEGER)(Literal("+07")))
    "7"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    convert = _CONVERSIONS[datatype]

    def cast(term: Term) -> Term:
        value = value_of(term)
        result: Value | None = None
        if isinstance(value, Text):
            result = parse_value(value.text, datatype) if value.language is None else None
        elif value is not None:
            result = convert(value)
        if result is None:
            raise ExpressionError(f"{term} cannot be cast to {NamedNode(datatype)}")
        return to_term(result)

    return cast


def _derived(
    datatype: str, base: Callable[[Term], Term], fits: Callable[[str], str | None]
) -> Cast:
    """A cast by way of the base type; `fits` is the lexical form in the derived one, or None."""
    node = NamedNode(datatype)

    def cast(term: Term) -> Term:
        found = base(term)
        form = fits(found.value) if isinstance(found, Literal) else None
        if form is None:
            raise ExpressionError(f"{term} cannot be cast to {node}")
        return Literal(form, datatype=node)

    return cast


def _within(least: int | None, most: int | None) -> Callable[[str], str | None]:
    def fits(text: str) -> str | None:
        number = num.whole(text)
        low = least is not None and number < least
        return None if low or (most is not None and number > most) else text

    return fits


def _collapsed(pattern: str) -> Callable[[str], str | None]:
    """The text with single spaces, if it is of a pattern."""
    form = re.compile(pattern)

    def fits(text: str) -> str | None:
        words = " ".join(_SPACE.split(text.strip("\t\n\r ")))
        return words if form.fullmatch(words) else None

    return fits


def _to_bytes(term: Term) -> bytes:
    """The bytes of binary data; of a string, those that are written in either encoding."""
    if isinstance(term, Literal):
        try:
            if term.datatype.value == xsd.BASE64:
                return base64.b64decode(_SPACE.sub("", term.value), validate=True)
            if term.datatype.value == xsd.HEX:
                return bytes.fromhex(term.value)
        except ValueError:
            pass
    raise ExpressionError(f"{term} is not binary data")


def _binary(datatype: str, encode: Callable[[bytes], str]) -> Cast:
    node = NamedNode(datatype)

    def cast(term: Term) -> Term:
        value = value_of(term)
        if isinstance(value, Text) and value.language is None:
            term = Literal(value.text, datatype=node)
        return Literal(encode(_to_bytes(term)), datatype=node)

    return cast


CASTS: Final[dict[str, Cast]] = {
    xsd.STRING: cast_to_string,
    **{datatype: cast_function(datatype) for datatype in _CONVERSIONS},
    **{
        datatype: _derived(datatype, cast_function(xsd.INTEGER), _within(*bounds))
        for datatype, bounds in xsd.INTEGER_BOUNDS.items()
    },
    xsd.DATE_TIME_STAMP: _derived(
        xsd.DATE_TIME_STAMP,
        cast_function(xsd.DATE_TIME),
        lambda text: text if _ZONE.search(text) else None,
    ),
    xsd.XSD + "normalizedString": _derived(
        xsd.XSD + "normalizedString", cast_to_string, lambda text: re.sub(r"[\t\n\r]", " ", text)
    ),
    **{
        xsd.XSD + name: _derived(xsd.XSD + name, cast_to_string, _collapsed(pattern))
        for name, pattern in _TEXTS.items()
    },
    xsd.HEX: _binary(xsd.HEX, lambda data: data.hex().upper()),
    xsd.BASE64: _binary(xsd.BASE64, lambda data: base64.b64encode(data).decode()),
}
"""The cast to each datatype that has one, by the datatype's IRI."""
