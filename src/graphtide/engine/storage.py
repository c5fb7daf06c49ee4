"""How a graph takes in single changes: the write buffer, strict mode, and which quads it stores."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from graphtide.errors import GraphtideError, StrictError
from graphtide.kernel import QuadStore, QuadStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.engine.ingest import Ids
    from graphtide.kernel.batch import Ints
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.dictionary import TermDictionary

MAX_BUFFERED = 4096
"""Transactions of single changes that are applied together at most.

A kernel call costs more than a change. A batch keeps its transactions apart, and every look at an
answer flushes first, so nobody can tell that changes waited."""

_ROW = Struct("6i")
_write = _ROW.pack_into


class WriteBuffer:
    """Changes of whole transactions, with their times and numbers; `waiting` counts transactions.

    >>> buffer = WriteBuffer()
    >>> buffer.begin(time=17, tx=0)
    >>> buffer.add(1, (2, 3, 4, 0))
    >>> buffer.take()[0].tolist()
    [[0, 1, 2, 3, 4, 0]]
    """

    __slots__ = ("_bytes", "_end", "_rows", "_times", "_txs", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self._end = 0
        self._times: list[int] = []
        self._txs: list[int] = []
        self._make_room(MAX_BUFFERED)

    def _make_room(self, rows: int) -> None:
        larger = np.zeros((rows, 6), np.int32)
        if self._end:
            larger[: len(self._rows)] = self._rows
        self._rows: Ints = larger
        self._bytes = larger.data.cast("B")

    def begin(self, time: int, tx: int) -> None:
        """Start a transaction."""
        self._times.append(time)
        self._txs.append(tx)
        self.waiting += 1

    def add(self, diff: int, ids: Ids) -> None:
        """Add a change to the transaction begun last."""
        if self._end == len(self._bytes):
            self._make_room(2 * len(self._rows))
        _write(self._bytes, self._end, self.waiting - 1, diff, *ids)
        self._end += 24

    def single(self, time: int, tx: int, diff: int, ids: Ids) -> int:
        """Add a transaction of one change; how many transactions wait now."""
        self._times.append(time)
        self._txs.append(tx)
        if self._end == len(self._bytes):
            self._make_room(2 * len(self._rows))
        _write(self._bytes, self._end, self.waiting, diff, *ids)
        self._end += 24
        self.waiting += 1
        return self.waiting

    def take(self) -> tuple[Ints, list[int], list[int]]:
        """Empty the buffer: a batch of changes, with the times and numbers of its transactions.

        The batch is good until the next change is added.
        """
        changes = self._rows[: self._end // 24]
        times, txs = self._times, self._txs
        self._end = self.waiting = 0
        self._times, self._txs = [], []
        return changes, times, txs


def first_redundant(
    changes: Sequence[tuple[int, tuple[int, ...]]], store: QuadStore, terms: TermDictionary
) -> tuple[int, StrictError] | None:
    """Strict mode: the index of the first change that would have no effect, and its error."""
    quads = list({ids for _, ids in changes})
    present = dict(
        zip(quads, store.contains(np.array(quads, np.int32).reshape(-1, 4)), strict=True)
    )
    for place, (diff, ids) in enumerate(changes):
        if bool(present[ids]) == (diff > 0):
            what = "insert of a quad that is present" if diff > 0 else "delete of an absent quad"
            text = " ".join(terms.text(i) for i in ids if i)
            return place, StrictError(
                f"{what}: {text}",
                hint="nothing of this transaction was applied; LiveGraph(strict=False) ignores it",
            )
        present[ids] = diff > 0
    return None


Storage = Literal["all", "matched", "none"]
"""Which quads a graph stores: all, so that a query can be registered at any time; those that a
registered query can match, by their predicate; or none: changes are matched as they pass."""

DefaultGraphMode = Literal["own", "union"]
"""What queries see as their default graph: its own quads, or the union of all graphs."""


def make_store(storage: Storage, *, strict: bool) -> QuadStore:
    """The store of a live graph, or an error if it cannot do what is asked of it.

    >>> len(make_store("matched", strict=False))
    0
    """
    if storage not in get_args(Storage):
        hint = 'use "all", "matched" or "none"'
        raise GraphtideError(f"store={storage!r} is unknown", hint=hint)
    if strict and storage != "all":
        kept = "a store of matched quads drops some" if storage == "matched" else "none is stored"
        raise GraphtideError(
            f"strict mode has to know every quad, but {kept}",
            hint='use strict=True with store="all"',
        )
    return QuadStream() if storage == "none" else QuadStore(store_all=storage == "all")


def strategy_for(store: QuadStore, strategy: Strategy | None) -> Strategy | None:
    """The strategy of a new query: over no quads, one that looks none up.

    >>> strategy_for(make_store("none", strict=False), None)
    'decomposed'
    """
    return strategy if store.stores or strategy else "decomposed"
