"""The aggregates: https://www.w3.org/TR/sparql11-query/#setFunctions.

Each is a function of the *bag* of a group's values, so that it can be maintained; where the
recommendation leaves a choice, this is ours:

- COUNT and SAMPLE leave out errors among the values; all others are then errors;
- SUM is the exact sum, rounded once to the highest numeric type among the values; AVG divides it;
- SAMPLE is the least value, and GROUP_CONCAT goes from the least to the greatest, in the
  `total_order` of `graphtide.functions.comparison`; it takes strings only, and gives a string
  without language.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal

from graphtide.errors import ExpressionError
from graphtide.functions.arithmetic import op_divide
from graphtide.functions.comparison import total_order
from graphtide.functions.numbers import EXACT, Number, NumericType, decimal, double, integer, single
from graphtide.functions.values import check_length, integer_term, number_of, text_of, to_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.rdf.terms import Term

AGGREGATES: Final = frozenset(("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"))


def aggregate(function: str, values: Sequence[Term | None], separator: str = " ") -> Term:
    """The value of an aggregate; None among the values is an error. The caller applies DISTINCT.

    Raises `ExpressionError` where the aggregate has no value.

    >>> print(aggregate("SUM", [integer_term(1), Literal("0.5", datatype=Literal(0.5).datatype)]))
    "1.5"^^<http://www.w3.org/2001/XMLSchema#double>
    >>> print(aggregate("COUNT", [integer_term(1), None]))
    "1"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    present = [value for value in values if value is not None]
    if function == "COUNT":
        return integer_term(len(present))
    if function == "SAMPLE":
        return min(_some(present), key=total_order)
    if len(present) < len(values):
        raise ExpressionError(f"a value of {function} has an error")
    match function:
        case "SUM":
            return to_term(sum_numbers(map(number_of, present)))
        case "AVG":
            total = to_term(sum_numbers(map(number_of, present)))
            return op_divide(total, integer_term(len(present))) if present else total
        case "MIN":
            return min(_some(present), key=total_order)
        case "MAX":
            return max(_some(present), key=total_order)
        case "GROUP_CONCAT":
            texts = [text_of(value).text for value in sorted(present, key=total_order)]
            check_length(sum(map(len, texts)) + len(separator) * len(texts))
            return Literal(separator.join(texts))
        case _:
            raise AssertionError(function)


def sum_numbers(numbers: Iterable[Number]) -> Number:
    """The exact sum in the highest type of the numbers; 0 for none.

    >>> str(sum_numbers([double(1e100), integer(1), double(-1e100)]))
    '1'
    """
    found = list(numbers)
    kind = max((number.type for number in found), default=NumericType.INTEGER)
    if kind is NumericType.INTEGER:
        return integer(sum(int(number.value) for number in found))
    if kind is NumericType.DECIMAL:
        total = Decimal(0)
        for number in found:
            total = EXACT.add(total, Decimal(number.value))
        return decimal(total)
    rounded = _sum_floats([number.value for number in found])
    return single(rounded) if kind is NumericType.FLOAT else double(rounded)


def _sum_floats(values: list[int | Decimal | float]) -> float:
    endless = [v for v in values if isinstance(v, float) and not math.isfinite(v)]
    if endless:
        return sum(endless)
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _some(values: list[Term]) -> list[Term]:
    if not values:
        raise ExpressionError("there are no values")
    return values
