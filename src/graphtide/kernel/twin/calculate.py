"""Comparisons of calculated numbers, one row at a time, with Python's own whole numbers."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.calculate import ADD, COLUMN, CONSTANT, MULTIPLY, NEGATE, SUBTRACT, WHOLE
from graphtide.kernel.compare import DOUBLE, ERROR, EXACT, OPEN
from graphtide.kernel.twin.compare import TESTS

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.kernel.compare import Kinds, Numbers

Value = int | float | str
"""A whole number, a double, or what a calculation says instead of one."""

UNBOUND, UNSURE = "unbound", "unsure"

OPERATIONS = {ADD: operator.add, SUBTRACT: operator.sub, MULTIPLY: operator.mul}


def calculate(op: int, steps: Ints, batch: Ints, kinds: Kinds, numbers: Numbers) -> Kinds:
    """The twin of `graphtide.kernel.calculate.calculate`.

    >>> kinds, numbers = np.array([0, EXACT, EXACT], np.int8), np.array([0.0, 5.0, 7.0])
    >>> doubled_first = [[COLUMN, 0], [COLUMN, 0], [ADD, 0], [COLUMN, 1]]
    >>> batch = np.array([[1, 2], [2, 1], [1, 0]], np.int32)
    >>> calculate(4, np.array(doubled_first, np.int32), batch, kinds, numbers).tolist()
    [1, 1, 2]
    """
    program = [tuple(step) for step in steps.tolist()]
    rows = (_results(program, row, kinds, numbers) for row in batch.tolist())
    return np.array([outcome(op, *results) for results in rows], np.int8)


def _results(
    program: list[tuple[int, ...]], row: list[int], kinds: Kinds, numbers: Numbers
) -> list[Value]:
    stack: list[Value] = []
    for step, argument in program:
        if step in (COLUMN, CONSTANT):
            number = row[argument] if step == COLUMN else argument
            stack.append(value(number, kinds, numbers))
        elif step == NEGATE:
            stack.append(negated(stack.pop()))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(combined(step, left, right))
    return stack


def value(number: int, kinds: Kinds, numbers: Numbers) -> Value:
    """The value of an id."""
    if number == 0:
        return UNBOUND
    if kinds[number] not in (EXACT, DOUBLE):
        return UNSURE
    known = float(numbers[number])
    whole = kinds[number] == EXACT and abs(known) < WHOLE and known.is_integer()
    return int(known) if whole else Fraction(known) if kinds[number] == EXACT else known


class Fraction(float):
    """An exact number that is compared, but not calculated with."""


def negated(number: Value) -> Value:
    """The number with the other sign."""
    return number if isinstance(number, str) else type(number)(-number)


def combined(step: int, left: Value, right: Value) -> Value:
    """The result of a step."""
    if UNBOUND in (left, right):
        return UNBOUND
    if isinstance(left, str | Fraction) or isinstance(right, str | Fraction):
        return UNSURE
    result: int | float = OPERATIONS[step](left, right)
    return UNSURE if isinstance(result, int) and abs(result) >= WHOLE else result


def outcome(op: int, left: Value, right: Value) -> int:
    """What is certain about two results."""
    if UNBOUND in (left, right):
        return ERROR
    if isinstance(left, str) or isinstance(right, str) or math.isnan(left) or math.isnan(right):
        return OPEN
    return int(TESTS[op](left, right))
