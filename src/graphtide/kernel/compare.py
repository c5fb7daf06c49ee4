"""Comparisons of terms by their typed side columns, without looking at the terms themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints

Kinds = np.ndarray[tuple[int, ...], np.dtype[np.int8]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

FALSE, TRUE, ERROR, OPEN = 0, 1, 2, 3
"""Outcomes. OPEN: the side columns cannot tell, the terms themselves must be asked."""

EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST = 0, 1, 2, 3, 4, 5

IRI, BLANK, STRING, EXACT, DOUBLE, DATETIME, LOCAL_DATETIME = 1, 2, 3, 6, 7, 8, 9
"""Kinds of terms, as the term dictionary numbers them."""


@inlined
def order(op: Int, a: float, b: float) -> Int:
    """A comparison of two numbers."""
    if op == EQUAL:
        return np.int8(a == b)
    if op == UNEQUAL:
        return np.int8(a != b)
    if op == LESS:
        return np.int8(a < b)
    if op == AT_MOST:
        return np.int8(a <= b)
    if op == GREATER:
        return np.int8(a > b)
    return np.int8(a >= b)


@inlined
def same_scale(a: Int, b: Int) -> bool:
    """Whether two kinds of values are compared as plain numbers."""
    if a == EXACT or a == DOUBLE:
        return b == EXACT or b == DOUBLE
    return a == b and (a == DATETIME or a == LOCAL_DATETIME)


@inlined
def compare_one(op: Int, a: Int, b: Int, kinds: Kinds, numbers: Numbers) -> Int:
    """The outcome for two ids. NaN (unequal to itself) and all rarer kinds are left open."""
    if a == 0 or b == 0:
        return np.int8(ERROR)
    ka, kb = kinds[a], kinds[b]
    if same_scale(ka, kb) and numbers[a] == numbers[a] and numbers[b] == numbers[b]:
        return order(op, numbers[a], numbers[b])
    if op <= UNEQUAL:
        if a == b and ka <= STRING:
            return np.int8(op == EQUAL)
        if a != b and (ka <= BLANK or kb <= BLANK or (ka == STRING and kb == STRING)):
            return np.int8(op == UNEQUAL)
    return np.int8(OPEN)


@compiled
def compare_columns(
    op: Int, left: Ints, right: Ints, kinds: Kinds, numbers: Numbers, out: Kinds
) -> None:
    """Outcomes of `left op right`; a column of one id serves for all rows."""
    for i in range(len(out)):
        a = left[i if len(left) > 1 else 0]
        b = right[i if len(right) > 1 else 0]
        out[i] = compare_one(op, a, b, kinds, numbers)


def compare(op: int, left: Ints, right: Ints, kinds: Kinds, numbers: Numbers) -> Kinds:
    """Outcomes of `left op right` for two columns of ids; a column of one id serves for all.

    >>> kinds, numbers = np.array([0, EXACT, EXACT], np.int8), np.array([0.0, 5.0, 7.0])
    >>> ids = np.array([1, 2, 0], np.int32)
    >>> compare(LESS, ids, np.array([2], np.int32), kinds, numbers).tolist()
    [1, 0, 2]
    """
    out = np.empty(max(len(left), len(right)) if len(left) and len(right) else 0, np.int8)
    compare_columns(op, left, right, kinds, numbers, out)
    return out
