"""The values of literals, independent of their lexical forms.

A value is a number, a boolean, a text (with or without language), a date or time, or a duration.
IRIs, blank nodes, literals of unknown datatypes and ill-typed literals have no value: None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions import numbers as num
from graphtide.functions import xsd
from graphtide.functions.temporal import DateTimeValue, Duration, parse_duration, parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class Text:
    """A string, with its language tag if it has one."""

    text: str
    language: str | None = None


Value = num.Number | bool | Text | DateTimeValue | Duration

TRUE: Final = Literal("true", datatype=NamedNode(xsd.BOOLEAN))
FALSE: Final = Literal("false", datatype=NamedNode(xsd.BOOLEAN))

_CACHE_SIZE = 1 << 16
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_DATE_TIMES = (
    xsd.DATE_TIME,
    xsd.DATE,
    xsd.TIME,
    xsd.G_YEAR,
    xsd.G_YEAR_MONTH,
    xsd.G_MONTH,
    xsd.G_MONTH_DAY,
    xsd.G_DAY,
)
_DURATIONS = (xsd.DURATION, xsd.YEAR_MONTH_DURATION, xsd.DAY_TIME_DURATION)


def _date_time_parser(datatype: str) -> Callable[[str], Value | None]:
    return lambda text: parse_moment(text, datatype)


def _duration_parser(datatype: str) -> Callable[[str], Value | None]:
    return lambda text: parse_duration(text, datatype)


PARSERS: Final[dict[str, Callable[[str], Value | None]]] = {
    xsd.STRING: Text,
    xsd.BOOLEAN: _BOOLEANS.get,
    xsd.INTEGER: num.parse_integer,
    xsd.DECIMAL: num.parse_decimal,
    xsd.FLOAT: num.parse_float,
    xsd.DOUBLE: num.parse_double,
    **dict.fromkeys(xsd.DERIVED_INTEGERS, num.parse_integer),
    **{datatype: _date_time_parser(datatype) for datatype in _DATE_TIMES},
    xsd.DATE_TIME_STAMP: _date_time_parser(xsd.DATE_TIME),
    **{datatype: _duration_parser(datatype) for datatype in _DURATIONS},
}
"""How to read the lexical form of each datatype that has values; None for an ill-typed one."""

_NODES: Final = {datatype: NamedNode(datatype) for datatype in PARSERS}


@lru_cache(_CACHE_SIZE)
def literal_value(literal: Literal) -> Value | None:
    """The value of a literal, or None when its datatype is unknown or its form ill-typed.

    >>> literal_value(Literal("01", datatype=NamedNode(xsd.INTEGER)))
    Number(type=<NumericType.INTEGER: 0>, value=1)
    """
    if literal.language is not None:
        return Text(literal.value, literal.language)
    parser = PARSERS.get(literal.datatype.value)
    return None if parser is None else parser(literal.value)


def value_of(term: Term) -> Value | None:
    """The value of any term; IRIs and blank nodes have none."""
    return literal_value(term) if isinstance(term, Literal) else None


def text_of(term: Term) -> Text:
    """The text of a string literal; an error for every other term."""
    value = value_of(term)
    if isinstance(value, Text):
        return value
    raise ExpressionError(f"{term} is not a string")


def plain_of(term: Term) -> str:
    """The text of a string without language tag; an error for every other term."""
    value = text_of(term)
    if value.language is None:
        return value.text
    raise ExpressionError(f"{term} has a language tag")


def number_of(term: Term) -> num.Number:
    """The number that a literal means; an error for every other term."""
    value = value_of(term)
    if isinstance(value, num.Number):
        return value
    raise ExpressionError(f"{term} is not a number")


def to_term(value: Value) -> Literal:
    """The literal that stands for a value in an answer, in canonical form.

    >>> print(to_term(num.parse_decimal("01.50")), to_term(Text("tide", "en")))
    "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> "tide"@en
    """
    match value:
        case bool():
            return TRUE if value else FALSE
        case Text(text, None):
            return Literal(text)
        case Text(text, language):
            return Literal(text, language=language)
        case _:
            return Literal(str(value), datatype=_NODES[value.datatype])


def integer_term(value: int) -> Literal:
    """An xsd:integer literal."""
    return to_term(num.integer(value))


def boolean_term(value: bool) -> Literal:  # noqa: FBT001 - the truth value is the whole argument
    """An xsd:boolean literal."""
    return TRUE if value else FALSE


def effective_boolean(term: Term) -> bool:
    """The effective boolean value of a term; an error when it has none.

    https://www.w3.org/TR/sparql11-query/#ebv. Language-tagged strings and ill-typed literals have
    none, as in pyoxigraph.

    >>> effective_boolean(integer_term(0)), effective_boolean(Literal("no"))
    (False, True)
    """
    match value_of(term):
        case bool() as truth:
            return truth
        case Text(text, None):
            return text != ""
        case num.Number() as number:
            return number.value != 0 and not number.is_nan
        case _:
            raise ExpressionError(f"{term} has no effective boolean value")
