"""count_values: how many different subjects and objects each predicate has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs

SUBJECT, PREDICATE, OBJECT = 0, 1, 2


@compiled
def count_column(quads: Ints, order: Ints, column: int, last_seen: Ints, counts: Longs) -> None:
    """Count the values of a column, given the quads in the order of their predicates.

    A value is new if the predicate at which it was seen last is another one.
    """
    for i in range(len(order)):
        predicate = quads[order[i], PREDICATE]
        value = quads[order[i], column]
        if last_seen[value] != predicate:
            last_seen[value] = predicate
            counts[predicate] += 1


@compiled
def order_by_predicate(quads: Ints, ends: Longs, order: Ints) -> None:
    """The quads of each predicate together; `ends` has the place after the last of each."""
    for row in range(len(quads)):
        predicate = quads[row, PREDICATE]
        ends[predicate] -= 1
        order[ends[predicate]] = row


def count_values(quads: Ints) -> tuple[Longs, Longs, Longs]:
    """Per predicate: quads, different subjects, different objects.

    >>> quads = np.array([[1, 9, 2, 0], [1, 9, 3, 0], [4, 8, 4, 0]], np.int32)
    >>> [counts.tolist()[8:] for counts in count_values(quads)]
    [[1, 2], [1, 1], [1, 2]]
    """
    counts = np.bincount(quads[:, PREDICATE]).astype(np.int64)
    order = np.empty(len(quads), np.int32)
    order_by_predicate(quads, np.cumsum(counts), order)
    subjects, objects = np.zeros_like(counts), np.zeros_like(counts)
    for column, found in ((SUBJECT, subjects), (OBJECT, objects)):
        last_seen = np.zeros(int(quads[:, column].max(initial=0)) + 1, np.int32)
        count_column(quads, order, column, last_seen, found)
    return counts, subjects, objects
