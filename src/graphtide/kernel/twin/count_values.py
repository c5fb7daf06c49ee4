"""count_values by definition: the sizes of sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs


def count_values(quads: Ints) -> tuple[Longs, Longs, Longs]:
    """Per predicate: quads, different subjects, different objects.

    >>> quads = np.array([[1, 9, 2, 0], [1, 9, 3, 0], [4, 8, 4, 0]], np.int32)
    >>> [counts.tolist()[8:] for counts in count_values(quads)]
    [[1, 2], [1, 1], [1, 2]]
    """
    counts = np.bincount(quads[:, 1]).astype(np.int64)
    subjects, objects = np.zeros_like(counts), np.zeros_like(counts)
    for column, found in ((0, subjects), (2, objects)):
        for predicate, _ in set(zip(quads[:, 1].tolist(), quads[:, column].tolist(), strict=True)):
            found[predicate] += 1
    return counts, subjects, objects
