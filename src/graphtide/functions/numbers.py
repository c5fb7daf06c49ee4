"""Numbers of the four numeric types, read from and written as lexical forms.

The types form a tower, integer < decimal < float < double: an operation on two numbers happens in
the higher of their types. Integers and decimals are exact and unbounded; a float is a Python float
that is rounded to single precision after every step.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from graphtide.functions import xsd

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Adds and multiplies without rounding; never divide with it."""

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)", re.ASCII)
_FLOATING = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_FRACTION_DIGITS = 18  # of a decimal quotient, and of a decimal cast from a float or double
_FIXED_POINT_BITS = 127
_INTEGER_TEXT_LIMIT = 4000  # Python refuses to convert longer integers from text and to text


class NumericType(IntEnum):
    """The numeric tower; the greater type wins a promotion."""

    INTEGER = 0
    DECIMAL = 1
    FLOAT = 2
    DOUBLE = 3


@dataclass(frozen=True, slots=True)
class Number:
    """A value of one numeric type: `int`, `Decimal`, or `float` (for float and double)."""

    type: NumericType
    value: int | Decimal | float

    @property
    def datatype(self) -> str:
        """The IRI of the type; derived integer types have become xsd:integer."""
        return _DATATYPES[self.type]

    @property
    def is_nan(self) -> bool:
        """Whether this is the float or double NaN, which equals nothing."""
        return self.value != self.value

    def __str__(self) -> str:
        """The lexical form as answers show it: no exponent, no superfluous zeros."""
        if self.type is NumericType.INTEGER:
            return whole_text(int(self.value))
        if isinstance(self.value, Decimal):
            return _decimal_text(self.value)
        return _floating_text(float(self.value), single=self.type is NumericType.FLOAT)


_DATATYPES = {
    NumericType.INTEGER: xsd.INTEGER,
    NumericType.DECIMAL: xsd.DECIMAL,
    NumericType.FLOAT: xsd.FLOAT,
    NumericType.DOUBLE: xsd.DOUBLE,
}


def integer(value: int) -> Number:
    """An xsd:integer."""
    return Number(NumericType.INTEGER, value)


def decimal(value: Decimal) -> Number:
    """An xsd:decimal."""
    return Number(NumericType.DECIMAL, value)


def single(value: float) -> Number:
    """An xsd:float: `value` rounded to single precision.

    >>> single(0.1).value
    0.10000000149011612
    """
    return Number(NumericType.FLOAT, _round_to_single(value))


def double(value: float) -> Number:
    """An xsd:double."""
    return Number(NumericType.DOUBLE, value)


def parse_integer(text: str) -> Number | None:
    """Read an xsd:integer; None when the text is not in its lexical space."""
    return None if _INTEGER.fullmatch(text) is None else integer(whole(text))


def whole(text: str) -> int:
    """The integer of a text of digits, however many.

    >>> whole("9" * 5000) == 10**5000 - 1
    True
    """
    return int(Decimal(text)) if len(text) > _INTEGER_TEXT_LIMIT else int(text)


def whole_text(number: int) -> str:
    """The digits of an integer, however many.

    >>> whole_text(-(10**5000))[:4], len(whole_text(10**5000))
    ('-100', 5001)
    """
    return format(Decimal(number), "f")


def parse_decimal(text: str) -> Number | None:
    """Read an xsd:decimal; None when the text is not in its lexical space."""
    return decimal(Decimal(text)) if _DECIMAL.fullmatch(text) is not None else None


def parse_float(text: str) -> Number | None:
    """Read an xsd:float, rounding once; None when the text is not in its lexical space."""
    if _FLOATING.fullmatch(text) is None:
        return None
    near = float(text)
    if math.isfinite(near) and near != _round_to_single(near):
        # The double nearest to the text may lie half-way between two floats although the text does
        # not: lean to the side of the text before the second rounding.
        exact = Decimal(text)
        if exact != near:
            near = math.nextafter(near, math.inf if exact > near else -math.inf)
    return single(near)


def parse_double(text: str) -> Number | None:
    """Read an xsd:double; None when the text is not in its lexical space."""
    return double(float(text)) if _FLOATING.fullmatch(text) is not None else None


def promote(number: Number, target: NumericType) -> Number:
    """The same number in a type at least as high.

    >>> str(promote(integer(3), NumericType.DOUBLE)), promote(integer(3), NumericType.DECIMAL).value
    ('3', Decimal('3'))
    """
    if number.type is target:
        return number
    if target is NumericType.DECIMAL:
        return decimal(Decimal(int(number.value)))
    inexact = _to_float(number.value)
    return single(inexact) if target is NumericType.FLOAT else double(inexact)


def promote_pair(left: Number, right: Number) -> tuple[Number, Number]:
    """Both numbers in the higher of their two types."""
    target = max(left.type, right.type)
    return promote(left, target), promote(right, target)


def quotient(left: Decimal, right: Decimal) -> Decimal:
    """`left / right`, cut after 18 fraction digits; `right` is not zero.

    >>> quotient(Decimal(2), Decimal(3))
    Decimal('0.666666666666666666')
    """
    numerator, below = left.as_integer_ratio()
    denominator, above = right.as_integer_ratio()
    scaled = abs(numerator * above) * 10**_FRACTION_DIGITS // abs(denominator * below)
    return Decimal(scaled if (left < 0) == (right < 0) else -scaled).scaleb(
        -_FRACTION_DIGITS, context=EXACT
    )


def split_units(value: Decimal, unit: int) -> tuple[int, Decimal]:
    """Whole units in `value`, rounded down, and what remains: exact, unlike `divmod`.

    >>> split_units(Decimal("-0.5"), 60)
    (-1, Decimal('59.5'))
    """
    scale = max(0, -int(value.as_tuple().exponent))
    whole, rest = divmod(int(value.scaleb(scale, context=EXACT)), unit * 10**scale)
    return whole, Decimal(rest).scaleb(-scale, context=EXACT)


def decimal_from_float(value: float) -> Decimal:
    """A finite float or double as a decimal: exact when whole, else 18 digits after the point.

    >>> decimal_from_float(0.1), decimal_from_float(1e18)
    (Decimal('0.100000000000000000'), Decimal('1000000000000000000'))
    """
    if value.is_integer():
        return Decimal(int(value))
    shifted = int(value * 10.0**_FRACTION_DIGITS)
    return Decimal(shifted).scaleb(-_FRACTION_DIGITS, context=EXACT)


def rounded(number: Number, mode: Callable[[Decimal], int]) -> Number:
    """The whole number that `mode` picks, in the same numeric type; INF, NaN and -0 stay."""
    value = number.value
    if number.type is NumericType.INTEGER:
        return number
    if isinstance(value, Decimal):
        return decimal(Decimal(mode(value)))
    if not math.isfinite(value):
        return number
    return Number(number.type, math.copysign(float(mode(Decimal(value))), value))


def _round_to_single(value: float) -> float:
    try:
        (result,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(result)


def _to_float(value: Decimal | float) -> float:
    if isinstance(value, Decimal):
        return _decimal_to_float(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _decimal_to_float(value: Decimal) -> float:
    digits = max(0, -int(value.normalize(EXACT).as_tuple().exponent))
    scaled = int(value.scaleb(digits, context=EXACT))
    if digits > _FRACTION_DIGITS or scaled.bit_length() > _FIXED_POINT_BITS:
        return float(value)
    # pyoxigraph, whose answers ours are compared with, rounds twice: digits first, then quotient.
    return float(scaled) / float(10**digits)


def _decimal_text(value: Decimal) -> str:
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    return "0" if text == "-0" else text


def string_of(number: Number) -> str:
    """The text of a number that is cast to a string.

    https://www.w3.org/TR/xpath-functions-31/#casting-to-string: a large or small float or double
    has an exponent.

    >>> [string_of(double(value)) for value in (1e-7, 1e-6, 123456.5, 1e6, -1.25e30, -0.0)]
    ['1.0E-7', '0.000001', '123456.5', '1.0E6', '-1.25E30', '-0']
    """
    text = str(number)
    value = number.value
    if not isinstance(value, float) or value == 0 or not math.isfinite(value):
        return text
    if 1e-6 <= abs(value) < 1e6:
        return text
    sign, digits, exponent = Decimal(text).normalize(EXACT).as_tuple()
    first, *rest = map(str, digits)
    fraction, shift = "".join(rest) or "0", len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{first}.{fraction}E{shift}"


def _floating_text(value: float, *, single: bool) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    number = np.float32(value) if single else np.float64(value)
    shortest = Decimal(np.format_float_positional(number, unique=True, trim="-")).normalize(EXACT)
    # Two shortest forms may be equally near; answers show the one farther from zero.
    step = Decimal(1).scaleb(int(shortest.as_tuple().exponent), context=EXACT).copy_sign(shortest)
    if EXACT.multiply(EXACT.subtract(Decimal(value), shortest), Decimal(2)) == step:
        shortest = EXACT.add(shortest, step)
    return format(shortest, "f")
