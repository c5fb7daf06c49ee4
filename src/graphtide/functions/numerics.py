"""ABS, ROUND, CEIL and FLOOR: each answers in the numeric type of its argument.

https://www.w3.org/TR/sparql11-query/#func-numerics
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from graphtide.functions.numbers import EXACT, Number, rounded
from graphtide.functions.values import number_of, to_term

if TYPE_CHECKING:
    from graphtide.rdf.term import Term

_HALF = Decimal("0.5")


def absolute(term: Term) -> Term:
    """ABS."""
    number = number_of(term)
    value = number.value
    return to_term(
        Number(number.type, value.copy_abs() if isinstance(value, Decimal) else abs(value))
    )


def round_half_up(term: Term) -> Term:
    """ROUND: to the nearest whole number; a half goes up, so -2.5 becomes -2."""
    return to_term(rounded(number_of(term), lambda value: math.floor(EXACT.add(value, _HALF))))


def ceiling(term: Term) -> Term:
    """CEIL: the smallest whole number that is not less."""
    return to_term(rounded(number_of(term), math.ceil))


def floor(term: Term) -> Term:
    """FLOOR: the greatest whole number that is not more."""
    return to_term(rounded(number_of(term), math.floor))
