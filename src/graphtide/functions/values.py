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
from graphtide.limits import active
from graphtide.rdf.terms import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class Text:
    """A string, with its language tag if it has one: `en`, or `en--ltr` with a base direction."""

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
_EXACT = frozenset((xsd.INTEGER, xsd.DECIMAL, *xsd.DERIVED_INTEGERS))
_DURATIONS = (xsd.DURATION, xsd.YEAR_MONTH_DURATION, xsd.DAY_TIME_DURATION)


def _date_time_parser(datatype: str) -> Callable[[str], Value | None]:
    return lambda text: parse_moment(text, datatype)


def _duration_parser(datatype: str) -> Callable[[str], Value | None]:
    return lambda text: parse_duration(text, datatype)


_PARSERS: Final[dict[str, Callable[[str], Value | None]]] = {
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

_NODES: Final = {datatype: NamedNode(datatype) for datatype in _PARSERS}
_SHORT = 20  # characters of a form that is never worth a look at its limit
_MARKS = 2  # characters of an integer or decimal besides its digits: a sign and a point
_OTHER_DIGITS = 1000  # of a float, whose exponent may be written out, and of dates and durations


def parse_value(text: str, datatype: str) -> Value | None:
    """The value of a lexical form; None if the datatype is unknown or the form ill-typed.

    A form with too many digits has no value either.

    >>> parse_value("01", xsd.INTEGER)
    Number(type=<NumericType.INTEGER: 0>, value=1)
    """
    parser = _PARSERS.get(datatype)
    if parser is None:
        return None
    if len(text) > _SHORT and parser is not Text and _has_too_many_digits(text, datatype):
        active().no_value("digits", "a number has too many digits")
        return None
    return parser(text)


def _has_too_many_digits(text: str, datatype: str) -> bool:
    most = active().digits
    if most is None:
        return False
    exact = datatype in _EXACT
    return len(text) > (most if exact else max(most, _OTHER_DIGITS)) + _MARKS


@lru_cache(_CACHE_SIZE)
def _literal_value(literal: Literal, _digits: int | None) -> Value | None:
    """The value of a literal under a limit on its digits, which other graphs may set otherwise."""
    if literal.language is not None:
        direction = "" if literal.direction is None else f"--{literal.direction}"
        return Text(literal.value, literal.language + direction)
    return parse_value(literal.value, literal.datatype.value)


def value_of(term: Term) -> Value | None:
    """The value of any term; IRIs, blank nodes and ill-typed literals have none."""
    return _literal_value(term, active().digits) if isinstance(term, Literal) else None


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
        case Text(text, language):
            check_length(len(text))
            return Literal(text) if language is None else _tagged(text, language)
        case _:
            text = str(value)
            if len(text) > _SHORT and _has_too_many_digits(text, value.datatype):
                raise active().no_value("digits", "a result has too many digits")
            return Literal(text, datatype=_NODES[value.datatype])


def _tagged(text: str, language: str) -> Literal:
    tag, _, direction = language.partition("--")
    return Literal(text, language=tag, direction=DIRECTIONS[direction] if direction else None)


def check_length(characters: int) -> None:
    """Raise an error for a text that would be too long."""
    limits = active()
    if limits.literal_length is not None and characters > limits.literal_length:
        raise limits.no_value("literal_length", "a result is too long a text")


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
