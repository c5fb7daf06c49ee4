"""Comparisons of terms by their typed side columns, one pair of ids at a time."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.compare import (
    BLANK,
    DATETIME,
    DOUBLE,
    EQUAL,
    ERROR,
    EXACT,
    IRI,
    LOCAL_DATETIME,
    OPEN,
    STRING,
    UNEQUAL,
)

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.kernel.compare import Kinds, Numbers

TESTS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
SCALES = {EXACT: "number", DOUBLE: "number", DATETIME: "instant", LOCAL_DATETIME: "local"}
"""Values of one scale are ordered by their numbers."""


def compare(op: int, left: Ints, right: Ints, kinds: Kinds, numbers: Numbers) -> Kinds:
    """The twin of `graphtide.kernel.compare.compare`.

    >>> from graphtide.kernel.compare import LESS
    >>> kinds, numbers = np.array([0, EXACT, EXACT], np.int8), np.array([0.0, 5.0, 7.0])
    >>> ids = np.array([1, 2, 0], np.int32)
    >>> compare(LESS, ids, np.array([2], np.int32), kinds, numbers).tolist()
    [1, 0, 2]
    """
    if len(left) == 0 or len(right) == 0:
        return np.empty(0, np.int8)
    pairs = zip(*np.broadcast_arrays(left, right), strict=True)
    return np.array([outcome(op, int(a), int(b), kinds, numbers) for a, b in pairs], np.int8)


def outcome(op: int, a: int, b: int, kinds: Kinds, numbers: Numbers) -> int:
    """What is certain about two terms from their side columns alone."""
    if 0 in (a, b):
        return ERROR
    scales = {SCALES.get(int(kinds[a])), SCALES.get(int(kinds[b]))}
    unknown = None in scales or math.isnan(numbers[a]) or math.isnan(numbers[b])
    if len(scales) == 1 and not unknown:
        return int(TESTS[op](numbers[a], numbers[b]))
    if op in (EQUAL, UNEQUAL):
        known = {int(kinds[a]), int(kinds[b])}
        if a == b and known <= {IRI, BLANK, STRING}:
            return int(op == EQUAL)
        if a != b and (known & {IRI, BLANK} or known == {STRING}):
            return int(op == UNEQUAL)
    return OPEN
