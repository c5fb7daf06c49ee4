"""Comparisons of sums, differences and products of numbers, by the typed side columns alone.

A float64 calculates with whole numbers exactly, as long as no result reaches 2**53, and with
doubles as SPARQL does. What is neither is left open: the terms themselves must be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel.compare import DOUBLE, ERROR, EXACT, OPEN, order

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int, Ints
    from graphtide.kernel.compare import Kinds, Numbers

COLUMN, CONSTANT, ADD, SUBTRACT, MULTIPLY, NEGATE = 0, 1, 2, 3, 4, 5
"""Steps of a calculation, on a stack. The first two have an argument: a column, or an id."""

NOTHING, UNKNOWN = 0, 10
"""Kinds of what is no number: an unbound value, and one that the side columns do not know."""

WHOLE = 2.0**53


@inlined
def is_whole(number: float) -> bool:
    """Whether an exact number is one that float64 calculates with exactly."""
    return -WHOLE < number < WHOLE and number == np.floor(number)


@inlined
def kind_of_result(a: float, kind_a: Int, b: float, kind_b: Int, result: float) -> Int:
    """The kind of a result: that of its operands, if they are numbers and it is certain."""
    if kind_a == NOTHING or kind_b == NOTHING:
        return NOTHING
    exact_a, exact_b = kind_a == EXACT, kind_b == EXACT
    if not ((exact_a and is_whole(a)) or kind_a == DOUBLE):
        return UNKNOWN
    if not ((exact_b and is_whole(b)) or kind_b == DOUBLE):
        return UNKNOWN
    if exact_a and exact_b:
        return EXACT if is_whole(result) else UNKNOWN
    return DOUBLE


@inlined
def load(stack: Numbers, stack_kinds: Kinds, at: Int, id_: Int, kind: Int, number: float) -> None:
    """Put a term on the stack."""
    stack[at] = number
    if id_ == 0:
        stack_kinds[at] = NOTHING
    elif kind == EXACT or kind == DOUBLE:
        stack_kinds[at] = kind
    else:
        stack_kinds[at] = UNKNOWN


@inlined
def apply_step(op: Int, stack: Numbers, stack_kinds: Kinds, top: Int) -> Int:
    """Carry out a step on the top of the stack; the new height."""
    if op == NEGATE:
        stack[top - 1] = -stack[top - 1]
        return top
    a, b = stack[top - 2], stack[top - 1]
    if op == ADD:
        result = a + b
    elif op == SUBTRACT:
        result = a - b
    else:
        result = a * b
    kind = kind_of_result(a, stack_kinds[top - 2], b, stack_kinds[top - 1], result)
    stack[top - 2] = result
    stack_kinds[top - 2] = kind
    return top - 1


@inlined
def judge(op: Int, a: float, kind_a: Int, b: float, kind_b: Int) -> Int:
    """The outcome of a comparison of two results; NaN is left open."""
    if kind_a == NOTHING or kind_b == NOTHING:
        return np.int8(ERROR)
    if kind_a == UNKNOWN or kind_b == UNKNOWN or np.isnan(a) or np.isnan(b):
        return np.int8(OPEN)
    return order(op, a, b)


@compiled
def calculate_rows(
    op: Int,
    steps: Ints,
    batch: Ints,
    kinds: Kinds,
    numbers: Numbers,
    stack: Numbers,
    stack_kinds: Kinds,
    out: Kinds,
) -> None:
    """Carry out a calculation for each row, which leaves two results, and compare them."""
    top: Int
    for i in range(len(batch)):
        top = 0
        for k in range(len(steps)):
            step = steps[k, 0]
            if step == COLUMN or step == CONSTANT:
                id_ = batch[i, steps[k, 1]] if step == COLUMN else steps[k, 1]
                load(stack, stack_kinds, top, id_, kinds[id_], numbers[id_])
                top += 1
            else:
                top = apply_step(step, stack, stack_kinds, top)
        out[i] = judge(op, stack[0], stack_kinds[0], stack[1], stack_kinds[1])


def calculate(op: int, steps: Ints, batch: Ints, kinds: Kinds, numbers: Numbers) -> Kinds:
    """Outcomes of `left op right` for each row of a batch; `steps` calculates left, then right.

    >>> kinds, numbers = np.array([0, EXACT, EXACT], np.int8), np.array([0.0, 5.0, 7.0])
    >>> doubled_first = [[COLUMN, 0], [COLUMN, 0], [ADD, 0], [COLUMN, 1]]
    >>> batch = np.array([[1, 2], [2, 1], [1, 0]], np.int32)
    >>> calculate(4, np.array(doubled_first, np.int32), batch, kinds, numbers).tolist()
    [1, 1, 2]
    """
    out = np.empty(len(batch), np.int8)
    stack, stack_kinds = np.empty(len(steps) + 1), np.empty(len(steps) + 1, np.int8)
    calculate_rows(op, steps, batch, kinds, numbers, stack, stack_kinds, out)
    return out
