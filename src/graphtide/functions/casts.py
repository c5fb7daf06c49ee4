"""Casts: the XPath constructor functions of SPARQL, named by the IRI of the datatype.

https://www.w3.org/TR/sparql11-query/#FunctionMapping. The result is written in canonical form.
Besides the seven types of the recommendation, the other date types and durations can be made.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pyoxigraph import BlankNode, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions import numbers as num
from graphtide.functions import xsd
from graphtide.functions.temporal import DateTimeValue, Duration, convert_duration, project
from graphtide.functions.values import Text, Value, parse_value, to_term, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term

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
        case None if isinstance(term, BlankNode):
            raise ExpressionError("a blank node cannot be cast to a string")
        case None:
            return to_term(Text(term.value))
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


def cast_function(datatype: str) -> Callable[[Term], Term]:
    """The cast to one of the datatypes of `CAST_TARGETS`.

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


CAST_TARGETS: Final = tuple(_CONVERSIONS)
"""The datatypes that `cast_function` knows; xsd:string is `cast_to_string`."""
