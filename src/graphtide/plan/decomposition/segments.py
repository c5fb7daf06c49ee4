"""Graph decomposition: a data or query graph as a tuple of parts that together are the whole."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Triple = TypeVar("Triple")


def is_decomposition(segments: Sequence[Collection[Triple]], whole: Collection[Triple]) -> bool:
    """Whether segments are parts of a graph and together all of it (Definition 1).

    >>> is_decomposition([{1, 2}, {2, 3}], {1, 2, 3}), is_decomposition([{1}], {1, 2})
    (True, False)
    """
    return bool(segments) and frozenset().union(*segments) == frozenset(whole)


def is_triple_partition(segments: Sequence[Collection[Triple]], whole: Collection[Triple]) -> bool:
    """Whether a decomposition is non-redundant: no triple is in two segments (Definition 1).

    >>> is_triple_partition([{1, 2}, {3}], {1, 2, 3}), is_triple_partition([{1, 2}, {2}], {1, 2})
    (True, False)
    """
    apart = all(frozenset(a).isdisjoint(b) for a, b in combinations(segments, 2))
    return apart and is_decomposition(segments, whole)
