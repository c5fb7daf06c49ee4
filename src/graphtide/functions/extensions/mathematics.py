"""The functions of XPath's math namespace: double in, double out.

https://www.w3.org/TR/xpath-functions-31/#trigonometry. Any number is taken, as a double. There are
no errors: where there is no result it is NaN, and beyond the largest double INF, as in IEEE 754.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.functions import numbers as num
from graphtide.functions.values import number_of, to_term

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term

MATH: Final = "http://www.w3.org/2005/xpath-functions/math#"

_OF_ONE: Final[dict[str, Callable[..., float]]] = {
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "log": np.log,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
}
_OF_TWO: Final[dict[str, Callable[..., float]]] = {"pow": np.power, "atan2": np.arctan2}


def pi() -> Term:
    """The ratio of a circle's circumference to its diameter."""
    return to_term(num.double(math.pi))


def _of_doubles(function: Callable[..., float]) -> Callable[..., Term]:
    def apply(*terms: Term) -> Term:
        doubles = [num.promote(number_of(t), num.NumericType.DOUBLE).value for t in terms]
        with np.errstate(all="ignore"):
            return to_term(num.double(float(function(*map(float, doubles)))))

    return apply


CALLS: Final[dict[str, tuple[Callable[..., Term], int]]] = {
    f"<{MATH}pi>": (pi, 0),
    **{f"<{MATH}{name}>": (_of_doubles(f), 1) for name, f in _OF_ONE.items()},
    **{f"<{MATH}{name}>": (_of_doubles(f), 2) for name, f in _OF_TWO.items()},
}
"""Each function by the name it has in a call, with its number of arguments."""
