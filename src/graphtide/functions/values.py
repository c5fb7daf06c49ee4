"""The typed view of a term: what a literal means, apart from how it is written.

A value is a number, a truth value, a text (with or without language), a moment or a duration. IRIs,
blank nodes, literals of unknown datatypes and ill-typed literals have no value: None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, NamedNode

from graphtide.errors import ExpressionError
from graphtide.functions.durations import Duration, parse_duration
from graphtide.functions.moments import DateTimeValue, parse_moment
from graphtide.functions.numbers import (
    Number,
    integer,
    parse_decimal,
    parse_double,
    parse_float,
    parse_integer,
)
from graphtide.functions.vocabulary import (
    BOOLEAN,
    DATE,
    DATE_TIME,
    DATE_TIME_STAMP,
    DAY_TIME_DURATION,
    DECIMAL,
    DERIVED_INTEGERS,
    DOUBLE,
    DURATION,
    FLOAT,
    G_DAY,
    G_MONTH,
    G_MONTH_DAY,
    G_YEAR,
    G_YEAR_MONTH,
    INTEGER,
    STRING,
    TIME,
    YEAR_MONTH_DURATION,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class Text:
    """A string, with its language tag if it has one."""

    text: str
    language: str | None = None


Value = Number | bool | Text | DateTimeValue | Duration

TRUE: Final = Literal("true", datatype=NamedNode(BOOLEAN))
FALSE: Final = Literal("false", datatype=NamedNode(BOOLEAN))

_CACHE_SIZE = 1 << 16
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_MOMENTS = (DATE_TIME, DATE, TIME, G_YEAR, G_YEAR_MONTH, G_MONTH, G_MONTH_DAY, G_DAY)
_DURATIONS = (DURATION, YEAR_MONTH_DURATION, DAY_TIME_DURATION)


def _moment_parser(datatype: str) -> Callable[[str], Value | None]:
    return lambda text: parse_moment(text, datatype)


def _duration_parser(datatype: str) -> Callable[[str], Value | None]:
    return lambda text: parse_duration(text, datatype)


PARSERS: Final[dict[str, Callable[[str], Value | None]]] = {
    STRING: Text,
    BOOLEAN: _BOOLEANS.get,
    INTEGER: parse_integer,
    DECIMAL: parse_decimal,
    FLOAT: parse_float,
    DOUBLE: parse_double,
    **dict.fromkeys(DERIVED_INTEGERS, parse_integer),
    **{datatype: _moment_parser(datatype) for datatype in _MOMENTS},
    DATE_TIME_STAMP: _moment_parser(DATE_TIME),
    **{datatype: _duration_parser(datatype) for datatype in _DURATIONS},
}
"""How to read the lexical form of each datatype that has values; None for an ill-typed one."""

_NODES: Final = {datatype: NamedNode(datatype) for datatype in PARSERS}


@lru_cache(_CACHE_SIZE)
def literal_value(literal: Literal) -> Value | None:
    """The value of a literal, or None when its datatype is unknown or its form ill-typed.

    >>> literal_value(Literal("01", datatype=NamedNode(INTEGER)))
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


def number_of(term: Term) -> Number:
    """The number that a literal means; an error for every other term."""
    value = value_of(term)
    if isinstance(value, Number):
        return value
    raise ExpressionError(f"{term} is not a number")


def to_term(value: Value) -> Literal:
    """The literal that stands for a value in an answer, in canonical form.

    >>> print(to_term(parse_decimal("01.50")), to_term(Text("tide", "en")))
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
    return to_term(integer(value))


def boolean_term(value: bool) -> Literal:  # noqa: FBT001 - the truth value is the whole argument
    """An xsd:boolean literal."""
    return TRUE if value else FALSE


def effective_boolean(term: Term) -> bool:
    """The truth of a term in a FILTER; an error when it has none.

    https://www.w3.org/TR/sparql11-query/#ebv. Language-tagged strings and ill-typed literals have
    no truth, as in pyoxigraph.

    >>> effective_boolean(integer_term(0)), effective_boolean(Literal("no"))
    (False, True)
    """
    match value_of(term):
        case bool() as truth:
            return truth
        case Text(text, None):
            return text != ""
        case Number() as number:
            return number.value != 0 and not number.is_nan
        case _:
            raise ExpressionError(f"{term} is neither true nor false")
