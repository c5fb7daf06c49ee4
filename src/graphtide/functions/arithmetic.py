"""`+`, `-`, `*`, `/` and the two signs, on numbers; `+` and `-` also on dates and durations.

Numbers are promoted to the higher of their types. Integers divide into a decimal. Division by zero
is an error for exact numbers and INF, -INF or NaN for the others. The date rules are those of XPath
(a date plus a duration, the duration between two dates). ABS, ROUND, CEIL and FLOOR
(https://www.w3.org/TR/sparql11-query/#func-numerics) return the numeric type of their argument.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from graphtide.errors import ExpressionError
from graphtide.functions import numbers as num
from graphtide.functions import temporal, xsd
from graphtide.functions.values import Value, number_of, to_term, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.rdf.terms import Term


_HALF = Decimal("0.5")


def calculation(steps: Sequence[Callable[[Term, Term], Term]]) -> Callable[..., Term]:
    """The function that applies operations in a row, from left to right, to one argument more."""

    def calculate(first: Term, *others: Term) -> Term:
        for step, other in zip(steps, others, strict=True):
            first = step(first, other)
        return first

    return calculate


def op_add(left: Term, right: Term) -> Term:
    """`left + right`."""
    one, other = value_of(left), value_of(right)
    if isinstance(one, num.Number) and isinstance(other, num.Number):
        return to_term(add_numbers(one, other))
    if isinstance(other, temporal.Duration):
        return to_term(_add_temporal(one, other))
    raise ExpressionError(f"cannot add {left} and {right}")


def op_subtract(left: Term, right: Term) -> Term:
    """`left - right`."""
    one, other = value_of(left), value_of(right)
    if isinstance(one, num.Number) and isinstance(other, num.Number):
        # Promoted first: an integer zero has no sign to lose, the double it becomes has one.
        minuend, subtrahend = num.promote_pair(one, other)
        return to_term(add_numbers(minuend, negate_number(subtrahend)))
    if isinstance(other, temporal.Duration):
        return to_term(_add_temporal(one, temporal.negate_duration(other)))
    if isinstance(one, temporal.DateTimeValue) and isinstance(other, temporal.DateTimeValue):
        return to_term(_between(one, other))
    raise ExpressionError(f"cannot subtract {right} from {left}")


def op_multiply(left: Term, right: Term) -> Term:
    """`left * right`."""
    one, other = num.promote_pair(number_of(left), number_of(right))
    if isinstance(one.value, float) or isinstance(other.value, float):
        return to_term(_floating(one.type, float(one.value) * float(other.value)))
    if isinstance(one.value, Decimal) or isinstance(other.value, Decimal):
        product = num.EXACT.multiply(Decimal(one.value), Decimal(other.value))
        return to_term(num.decimal(product))
    return to_term(num.integer(one.value * other.value))


def op_divide(left: Term, right: Term) -> Term:
    """`left / right`."""
    one, other = num.promote_pair(number_of(left), number_of(right))
    if isinstance(one.value, float) or isinstance(other.value, float):
        return to_term(_floating(one.type, _divide_floats(float(one.value), float(other.value))))
    if other.value == 0:
        raise ExpressionError(f"{left} divided by zero")
    return to_term(num.decimal(num.quotient(Decimal(one.value), Decimal(other.value))))


def op_negate(operand: Term) -> Term:
    """`-operand`."""
    value = value_of(operand)
    if isinstance(value, temporal.Duration):
        return to_term(temporal.negate_duration(value))
    return to_term(negate_number(number_of(operand)))


def op_plus(operand: Term) -> Term:
    """`+operand`: the same number, in canonical form."""
    value = value_of(operand)
    if isinstance(value, temporal.Duration):
        return to_term(value)
    return to_term(number_of(operand))


def add_numbers(left: num.Number, right: num.Number) -> num.Number:
    """The sum of two numbers in the higher of their types; also what SUM adds with."""
    one, other = num.promote_pair(left, right)
    if isinstance(one.value, float) or isinstance(other.value, float):
        return _floating(one.type, float(one.value) + float(other.value))
    if isinstance(one.value, Decimal) or isinstance(other.value, Decimal):
        return num.decimal(num.EXACT.add(Decimal(one.value), Decimal(other.value)))
    return num.integer(one.value + other.value)


def negate_number(number: num.Number) -> num.Number:
    """The number with the other sign; a zero float or double becomes minus zero and back."""
    if isinstance(number.value, Decimal):
        return num.decimal(number.value.copy_negate())
    return num.Number(number.type, -number.value)


def _floating(kind: num.NumericType, value: float) -> num.Number:
    return num.single(value) if kind is num.NumericType.FLOAT else num.double(value)


def _divide_floats(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _add_temporal(start: Value | None, duration: temporal.Duration) -> Value:
    if isinstance(start, temporal.Duration):
        total = temporal.add_durations(start, duration)
        if total is not None:
            return total
    if isinstance(start, temporal.DateTimeValue):
        if start.datatype in (xsd.DATE_TIME, xsd.DATE):
            return temporal.add_duration(start, duration)
        if start.datatype == xsd.TIME and duration.datatype != xsd.YEAR_MONTH_DURATION:
            return temporal.add_duration(start, duration)
    raise ExpressionError(f"cannot add the duration {duration}")


def _between(left: temporal.DateTimeValue, right: temporal.DateTimeValue) -> temporal.Duration:
    comparable = left.datatype == right.datatype and left.datatype in (
        xsd.DATE_TIME,
        xsd.DATE,
        xsd.TIME,
    )
    if not comparable or (left.offset is None) != (right.offset is None):
        raise ExpressionError(f"there is no duration between {right} and {left}")
    seconds = num.EXACT.subtract(temporal.timeline(left), temporal.timeline(right))
    return temporal.Duration(xsd.DAY_TIME_DURATION, 0, seconds)


def absolute(term: Term) -> Term:
    """ABS."""
    number = number_of(term)
    value = number.value
    return to_term(
        num.Number(number.type, value.copy_abs() if isinstance(value, Decimal) else abs(value))
    )


def round_half_up(term: Term) -> Term:
    """ROUND: to the nearest whole number; a half goes up, so -2.5 becomes -2."""
    return to_term(
        num.rounded(number_of(term), lambda value: math.floor(num.EXACT.add(value, _HALF)))
    )


def ceiling(term: Term) -> Term:
    """CEIL: the smallest whole number that is not less."""
    return to_term(num.rounded(number_of(term), math.ceil))


def floor(term: Term) -> Term:
    """FLOOR: the greatest whole number that is not more."""
    return to_term(num.rounded(number_of(term), math.floor))
