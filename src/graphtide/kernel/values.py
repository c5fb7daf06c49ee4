"""Conditions on the typed side columns of terms, and counts of values.

`compare` compares ids, `calculate` compares sums, differences and products. Float64 arithmetic is
exact for integers as long as no result reaches 2**53, and that of SPARQL for doubles; every other
case is left OPEN, to be evaluated on the terms. `count_values` counts values per predicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.arrays import Floats1, Ints1, Ints2, Kinds1, Longs1
    from graphtide.kernel.batch import Int, Ints, Longs

Kinds = np.ndarray[tuple[int, ...], np.dtype[np.int8]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

FALSE, TRUE, ERROR, OPEN = 0, 1, 2, 3
"""Outcomes. OPEN: the side columns do not suffice, evaluate the terms."""

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
    op: Int, left: Ints1, right: Ints1, kinds: Kinds1, numbers: Floats1, out: Kinds1
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


COLUMN, CONSTANT, ADD, SUBTRACT, MULTIPLY, NEGATE = 0, 1, 2, 3, 4, 5
"""Steps of a calculation on a stack. The first two have an argument: a column, or an id."""

NOTHING, UNKNOWN = 0, 10
"""Kinds of operands that are not numbers: unbound, and not known from the side columns."""

WHOLE = 2.0**53


@inlined
def is_whole(number: float) -> bool:
    """Whether a number is an integer with which float64 arithmetic is exact."""
    return -WHOLE < number < WHOLE and number == np.floor(number)


@inlined
def kind_of_result(a: float, kind_a: Int, b: float, kind_b: Int, result: float) -> Int:
    """The kind of a result: that of its operands, or UNKNOWN if the result may be inexact."""
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
    """Apply a step to the top of the stack; the new height."""
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
    steps: Ints2,
    batch: Ints2,
    kinds: Kinds1,
    numbers: Floats1,
    stack: Floats1,
    stack_kinds: Kinds1,
    out: Kinds1,
) -> None:
    """Run a calculation for each row, which leaves two results, and compare them."""
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


SUBJECT, PREDICATE, OBJECT = 0, 1, 2


LEAST_HUB, FREQUENT, MAX_HUBS = 4, 4, 32
"""A hub has so many quads of a predicate, and so many times the average of its column; where a
column has few values, all of them may be hubs."""

MAX_SAMPLED = 256
"""Values of a column that are sampled, about."""


@inlined
def sample_level(distinct: Int) -> Int:
    """How often the values of a column are halved, so that not too many are sampled."""
    level = 0
    while (distinct >> level) > MAX_SAMPLED:
        level += 1
    return level


@inlined
def is_sampled(value: Int, level: Int) -> bool:
    """Whether a value is sampled: the same ones in every column, fewer with each level."""
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return bool((mixed >> np.uint64(40)) & np.uint64((1 << level) - 1) == np.uint64(0))


@compiled
def sort_by_predicate(
    quads: Ints2, counts: Longs1, ends: Longs1, subjects: Ints1, objects: Ints1
) -> None:
    """Write subjects and objects in the order of predicates (a counting sort), if these count.

    `ends` has the end of each predicate's group, and afterwards its beginning.
    """
    for row in range(len(quads)):
        predicate = quads[row, PREDICATE]
        if counts[predicate] == 0:
            continue
        ends[predicate] -= 1
        subjects[ends[predicate]] = quads[row, SUBJECT]
        objects[ends[predicate]] = quads[row, OBJECT]


@compiled
def count_degrees(
    values: Ints1,
    begins: Longs1,
    counts: Longs1,
    degrees: Ints1,
    distinct: Longs1,
    hubs: Ints2,
    samples: Ints2,
) -> tuple[Int, Int]:
    """Count the different values of each predicate; write hubs and samples, return how many.

    Hubs are `[predicate, value, degree]`, samples `[predicate, value]`. The values of a predicate
    are those from its beginning on. `degrees` is scratch space, all 0.
    """
    n = 0
    sampled = 0
    for predicate in range(len(counts)):
        begin, end = begins[predicate], begins[predicate] + counts[predicate]
        for i in range(begin, end):
            distinct[predicate] += degrees[values[i]] == 0
            degrees[values[i]] += 1
        least = LEAST_HUB
        if distinct[predicate] > MAX_HUBS:
            least = max(least, FREQUENT * counts[predicate] // distinct[predicate])
        level = sample_level(distinct[predicate])
        for i in range(begin, end):
            if degrees[values[i]] >= least:
                hubs[n, 0], hubs[n, 1], hubs[n, 2] = predicate, values[i], degrees[values[i]]
                n += 1
            if degrees[values[i]] and is_sampled(values[i], level):
                samples[sampled, 0], samples[sampled, 1] = predicate, values[i]
                sampled += 1
            degrees[values[i]] = 0
    return n, sampled


ValueCounts = tuple["Longs", "Longs", "Longs", "Ints", "Ints", "Ints", "Ints"]


def quad_counts(quads: Ints, wanted: Sequence[int] | None) -> Longs:
    """The number of quads of each predicate that is wanted, by default of all."""
    counts = np.bincount(quads[:, PREDICATE]).astype(np.int64)
    if wanted is None:
        return counts
    known = [each for each in wanted if each < len(counts)]
    some = np.zeros_like(counts)
    some[known] = counts[known]
    return some


def count_values(quads: Ints, wanted: Sequence[int] | None = None) -> ValueCounts:
    """Per predicate: the numbers of quads, distinct subjects and objects; hubs and samples of both.

    If only some predicates are wanted, the others count as if they had no quads.

    >>> quads = np.array([[1, 9, 2, 0], [1, 9, 3, 0], [4, 8, 4, 0]], np.int32)
    >>> [counts.tolist()[8:] for counts in count_values(quads)[:5]]
    [[1, 2], [1, 1], [1, 2], [], []]
    >>> [rows.tolist() for rows in count_values(quads)[5:]]
    [[[8, 4], [9, 1]], [[8, 4], [9, 3], [9, 2]]]
    >>> [counts.tolist()[8:] for counts in count_values(quads, [9, 77])[:3]]
    [[0, 2], [0, 1], [0, 2]]
    """
    counts = quad_counts(quads, wanted)
    begins = np.cumsum(counts)
    columns = np.empty((2, int(counts.sum())), np.int32)
    sort_by_predicate(quads, counts, begins, columns[0], columns[1])
    distinct, hubs, samples = [], [], []
    for values in columns:
        degrees = np.zeros(int(values.max(initial=0)) + 1, np.int32)
        distinct.append(np.zeros_like(counts))
        frequent = np.empty((len(values) // LEAST_HUB, 3), np.int32)
        some = np.empty((len(values), 2), np.int32)
        ends = count_degrees(values, begins, counts, degrees, distinct[-1], frequent, some)
        hubs.append(frequent[: ends[0]].copy())
        samples.append(some[: ends[1]].copy())
    return counts, distinct[0], distinct[1], hubs[0], hubs[1], samples[0], samples[1]
