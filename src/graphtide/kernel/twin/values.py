"""Conditions on typed side columns, one row at a time, with Python's own integers."""

from __future__ import annotations

import math
import operator
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel import values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints
    from graphtide.kernel.values import Kinds, Numbers

TESTS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
SCALES = {
    values.EXACT: "number",
    values.DOUBLE: "number",
    values.DATETIME: "instant",
    values.LOCAL_DATETIME: "local",
}
"""Values of one scale are ordered by their numbers."""


def compare(op: int, left: Ints, right: Ints, kinds: Kinds, numbers: Numbers) -> Kinds:
    """The twin of `graphtide.kernel.values.compare`.

    >>> kinds, numbers = (
    ...     np.array([0, values.EXACT, values.EXACT], np.int8),
    ...     np.array([0.0, 5.0, 7.0]),
    ... )
    >>> ids = np.array([1, 2, 0], np.int32)
    >>> compare(values.LESS, ids, np.array([2], np.int32), kinds, numbers).tolist()
    [1, 0, 2]
    """
    if len(left) == 0 or len(right) == 0:
        return np.empty(0, np.int8)
    pairs = zip(*np.broadcast_arrays(left, right), strict=True)
    return np.array([outcome(op, int(a), int(b), kinds, numbers) for a, b in pairs], np.int8)


def outcome(op: int, a: int, b: int, kinds: Kinds, numbers: Numbers) -> int:
    """The outcome of a comparison of two terms, by their side columns alone."""
    if 0 in (a, b):
        return values.ERROR
    scales = {SCALES.get(int(kinds[a])), SCALES.get(int(kinds[b]))}
    unknown = None in scales or math.isnan(numbers[a]) or math.isnan(numbers[b])
    if len(scales) == 1 and not unknown:
        return int(TESTS[op](numbers[a], numbers[b]))
    if op in (values.EQUAL, values.UNEQUAL):
        known = {int(kinds[a]), int(kinds[b])}
        if a == b and known <= {values.IRI, values.BLANK, values.STRING}:
            return int(op == values.EQUAL)
        if a != b and (known & {values.IRI, values.BLANK} or known == {values.STRING}):
            return int(op == values.UNEQUAL)
    return values.OPEN


Value = int | float | str
"""An integer, a double, or UNBOUND or UNSURE."""

UNBOUND, UNSURE = "unbound", "unsure"

OPERATIONS = {
    values.ADD: operator.add,
    values.SUBTRACT: operator.sub,
    values.MULTIPLY: operator.mul,
}


def calculate(op: int, steps: Ints, batch: Ints, kinds: Kinds, numbers: Numbers) -> Kinds:
    """The twin of `graphtide.kernel.values.calculate`.

    >>> kinds, numbers = (
    ...     np.array([0, values.EXACT, values.EXACT], np.int8),
    ...     np.array([0.0, 5.0, 7.0]),
    ... )
    >>> doubled_first = [
    ...     [values.COLUMN, 0],
    ...     [values.COLUMN, 0],
    ...     [values.ADD, 0],
    ...     [values.COLUMN, 1],
    ... ]
    >>> batch = np.array([[1, 2], [2, 1], [1, 0]], np.int32)
    >>> calculate(4, np.array(doubled_first, np.int32), batch, kinds, numbers).tolist()
    [1, 1, 2]
    """
    program = [tuple(step) for step in steps.tolist()]
    rows = (_results(program, row, kinds, numbers) for row in batch.tolist())
    return np.array([calculated_outcome(op, *results) for results in rows], np.int8)


def _results(
    program: list[tuple[int, ...]], row: list[int], kinds: Kinds, numbers: Numbers
) -> list[Value]:
    stack: list[Value] = []
    for step, argument in program:
        if step in (values.COLUMN, values.CONSTANT):
            number = row[argument] if step == values.COLUMN else argument
            stack.append(value(number, kinds, numbers))
        elif step == values.NEGATE:
            stack.append(negated(stack.pop()))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(combined(step, left, right))
    return stack


def value(number: int, kinds: Kinds, numbers: Numbers) -> Value:
    """The value of an id."""
    if number == 0:
        return UNBOUND
    if kinds[number] not in (values.EXACT, values.DOUBLE):
        return UNSURE
    known = float(numbers[number])
    whole = kinds[number] == values.EXACT and abs(known) < values.WHOLE and known.is_integer()
    return int(known) if whole else Fraction(known) if kinds[number] == values.EXACT else known


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
    return UNSURE if isinstance(result, int) and abs(result) >= values.WHOLE else result


def calculated_outcome(op: int, left: Value, right: Value) -> int:
    """The outcome of a comparison of two results."""
    if UNBOUND in (left, right):
        return values.ERROR
    if isinstance(left, str) or isinstance(right, str) or math.isnan(left) or math.isnan(right):
        return values.OPEN
    return int(TESTS[op](left, right))


def count_values(quads: Ints, wanted: Sequence[int] | None = None) -> values.ValueCounts:
    """Per predicate: the numbers of quads, distinct subjects and objects; hubs and samples of both.

    If only some predicates are wanted, the others count as if they had no quads.

    >>> quads = np.array([[1, 9, 2, 0], [1, 9, 3, 0], [4, 8, 4, 0]], np.int32)
    >>> [counts.tolist()[8:] for counts in count_values(quads)[:5]]
    [[1, 2], [1, 1], [1, 2], [], []]
    """
    counts = values.quad_counts(quads, wanted)
    quads = quads[counts[quads[:, 1]] > 0]
    subjects, objects = np.zeros_like(counts), np.zeros_like(counts)
    hubs: list[list[tuple[int, int, int]]] = [[], []]
    samples: list[list[tuple[int, int]]] = [[], []]
    for column, found, frequent, some in (
        (0, subjects, hubs[0], samples[0]),
        (2, objects, hubs[1], samples[1]),
    ):
        degrees = Counter(zip(quads[:, 1].tolist(), quads[:, column].tolist(), strict=True))
        for predicate, _ in degrees:
            found[predicate] += 1
        for (predicate, value), degree in degrees.items():
            usual = values.FREQUENT * int(counts[predicate]) // int(found[predicate])
            few = found[predicate] <= values.MAX_HUBS
            if degree >= values.LEAST_HUB and (few or degree >= usual):
                frequent.append((predicate, value, degree))
            if _is_sampled(value, int(found[predicate])):
                some.append((predicate, value))
    first, second = (np.array(each, np.int32).reshape(-1, 3) for each in hubs)
    ordered = (sorted(each, key=operator.itemgetter(0)) for each in samples)
    third, fourth = (np.array(each, np.int32).reshape(-1, 2) for each in ordered)
    return counts, subjects, objects, first, second, third, fourth


def _is_sampled(value: int, distinct: int) -> bool:
    """Whether a value is sampled: of so many, at most 256 are expected."""
    level = next(n for n in count() if distinct >> n <= values.MAX_SAMPLED)
    mixed = value * 0x9E3779B97F4A7C15 % (1 << 64)
    mixed = (mixed ^ mixed >> 32) * 0xBF58476D1CE4E5B9 % (1 << 64)
    return (mixed >> 40) % (1 << level) == 0
