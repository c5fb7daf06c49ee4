"""The canonical texts of integers and of their means, written into an array of bytes.

They are those of `functions.numbers`: a mean is a decimal, cut after 18 digits of its fraction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.jit import compiled, subroutine
from graphtide.rdf import kinds
from graphtide.rdf.kernels.stems import ends_with
from graphtide.rdf.kinds import XSD
from graphtide.views import bytes1, floats1, longs1, longs2, tiny1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.arrays import Bytes1, Ints1, Ints2
    from graphtide.views import Block

    Bytes = NDArray[np.uint8]

LONGEST: Final = 128
"""Bytes that a text has at most."""

NO_NUMBER, WHOLE_NUMBER, OTHER_NUMBER = 1, 2, 3
"""What a term is: no number, an `xsd:integer` that its float64 equals, or something else."""

_INTEGER: Final = np.frombuffer(f'"^^<{XSD}integer>'.encode(), np.uint8)
_DECIMAL: Final = np.frombuffer(f'"^^<{XSD}decimal>'.encode(), np.uint8)
_FRACTION_DIGITS: Final = 18


@subroutine
def _write_digits(number: int, text: Bytes1, at: int) -> int:
    """Write a number that is not negative; where it ends."""
    end = at + 1
    rest = number // 10
    while rest > 0:
        end += 1
        rest //= 10
    for place in range(end - 1, at - 1, -1):
        text[place] = 0x30 + number % 10
        number //= 10
    return end


@subroutine
def _write_fraction(rest: int, count: int, text: Bytes1, at: int) -> int:
    """Write `rest / count`, which is below 1, with its point; nothing if no digit is left of it."""
    text[at] = 0x2E
    end = at
    for place in range(at + 1, at + 1 + _FRACTION_DIGITS):
        rest *= 10
        text[place] = 0x30 + rest // count
        rest %= count
        if text[place] != 0x30:
            end = place + 1
    return end


@compiled
def write_number(total: int, count: int, text: Bytes1) -> tuple[int, bool]:
    """Write `total / count`, or `total` if the count is 0; how long it is, and has it a fraction.

    Both are less than 2**62; a count is less than a tenth of that.
    """
    text[0] = 0x22
    size = 1
    number = total
    if total < 0:
        text[1] = 0x2D
        size, number = 2, -total
    whole = number if count == 0 else number // count
    digits = _write_digits(whole, text, size)
    end = digits if count == 0 else _write_fraction(number - whole * count, count, text, digits)
    if total < 0 and whole == 0 and end == digits:  # there is no minus zero
        text[1] = 0x30
        end = digits = 2
    fraction = end > digits
    suffix = _INTEGER if count == 0 else _DECIMAL
    for place in range(suffix.size):
        text[end + place] = suffix[place]
    return end + suffix.size, fraction


@compiled
def classify_numbers(rows: Ints2, at: int, block: Block, classes: Ints1) -> None:
    """Note for each id in a column: is it a small `xsd:integer`, no number, or something else.

    The block is that of `KernelTermTable`.
    """
    blob, spans, stems = bytes1(block, 1), longs2(block, 2), longs1(block, 3)
    kinds_, numbers = tiny1(block, 6), floats1(block, 7)
    for row in range(rows.shape[0]):
        id_ = rows[row, at]
        kind = kinds_[id_]
        found = NO_NUMBER
        if kind in (kinds.DOUBLE, kinds.OTHER):
            found = OTHER_NUMBER
        elif kind == kinds.EXACT:
            # Beyond that, also a number of 15 digits and some zeros is not the float64.
            found = WHOLE_NUMBER if abs(numbers[id_]) < 2.0**53 else OTHER_NUMBER
            if not ends_with(spans, id_, stems, blob, _INTEGER):
                found = OTHER_NUMBER
        classes[id_] |= found
