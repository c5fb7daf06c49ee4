"""Who holds ids of terms: `Holders`, `HeldIds`, `flat_ids`; and `IdCache`, which does not.

A dictionary frees the terms whose ids nobody holds. A cache must not hold ids, or nothing would
ever be freed: it is emptied instead.
"""

from __future__ import annotations

from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar
from weakref import ref

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary

Value = TypeVar("Value")

MOST_CACHED = 200_000
"""Entries of a cache by ids; a full one is emptied."""


LEAST_PRUNED: Final = 1024
"""Fewest holders at which those that are gone are dropped."""


class IdHolder(Protocol):
    """Whatever stores ids of terms from one operation to the next."""

    def held_ids(self) -> Iterator[NDArray[np.integer]]:
        """Arrays of all ids in use. Other numbers among them are harmless: they retain a term."""


class Holders:
    """The live objects that hold ids of one dictionary, in order of registration.

    References are weak: an object that is gone holds nothing.
    Results are sliced, and so registered, without the lock of the graph, by any thread: `add` waits
    while terms are being freed.

    >>> holders = Holders()
    >>> held = HeldIds([np.array([3, 5])])
    >>> holders.add(held)
    >>> [ids.tolist() for ids in holders.held_ids()]
    [[3, 5]]
    >>> del held
    >>> len(holders)
    0
    """

    __slots__ = ("_lock", "_prune_at", "_refs")

    def __init__(self, lock: RLock | None = None) -> None:
        self._lock = RLock() if lock is None else lock
        self._refs: list[ref[IdHolder]] = []
        self._prune_at = LEAST_PRUNED

    def add(self, holder: IdHolder) -> None:
        """Register an object for as long as it lives."""
        with self._lock:
            self.hold(holder)

    def hold(self, holder: IdHolder) -> None:
        """As `add`, of who has the lock."""
        refs = self._refs
        refs.append(ref(holder))
        if len(refs) >= self._prune_at:
            self._refs = [each for each in refs if each() is not None]
            self._prune_at = max(LEAST_PRUNED, 2 * len(self._refs))

    def __iter__(self) -> Iterator[IdHolder]:
        for each in tuple(self._refs):
            holder = each()
            if holder is not None:
                yield holder

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def held_ids(self) -> Iterator[NDArray[np.integer]]:
        """The ids of all of them."""
        for holder in self:
            yield from holder.held_ids()


class HeldIds:
    """Arrays of ids that are held as long as this object lives: for generators."""

    __slots__ = ("__weakref__", "arrays")

    def __init__(self, arrays: Iterable[NDArray[np.integer]] = ()) -> None:
        self.arrays = list(arrays)

    def held_ids(self) -> Iterator[NDArray[np.integer]]:
        """The arrays."""
        yield from self.arrays


def flat_ids(rows: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    """The ids of rows that are Python tuples, as an array.

    >>> flat_ids([(1, 2), (3,)]).tolist()
    [1, 2, 3]
    """
    return np.fromiter(chain.from_iterable(rows), np.int64)


class IdCache(Generic[Value]):
    """Results by ids of terms. It is emptied when terms were freed: an id may mean another term."""

    __slots__ = ("_generation", "_most", "_terms", "_values")

    def __init__(self, terms: TermDictionary, most: int = MOST_CACHED) -> None:
        self._terms = terms
        self._most = most
        self._generation = terms.generation
        self._values: dict[tuple[int, ...], Value] = {}

    def current(self) -> dict[tuple[int, ...], Value]:
        """The results that are still right. Look here again after each operation on the graph."""
        if self._generation != self._terms.generation or len(self._values) >= self._most:
            self._generation = self._terms.generation
            self._values = {}
        return self._values
