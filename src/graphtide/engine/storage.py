"""Which quads a graph stores, and strict mode: which changes it rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from graphtide.errors import GraphtideError, StrictError
from graphtide.kernel import QuadStore, QuadStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.dictionary import TermDictionary


def first_redundant(
    changes: Sequence[tuple[int, tuple[int, ...]]], store: QuadStore, terms: TermDictionary
) -> tuple[int, StrictError] | None:
    """Strict mode: the index of the first change that would have no effect, and its error."""
    quads = list({ids for _, ids in changes})
    present = dict(
        zip(quads, store.contains(np.array(quads, np.int32).reshape(-1, 4)), strict=True)
    )
    for index, (diff, ids) in enumerate(changes):
        if bool(present[ids]) == (diff > 0):
            what = "insert of a quad that is present" if diff > 0 else "delete of an absent quad"
            text = " ".join(terms.text(i) for i in ids if i)
            return index, StrictError(
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
        stored = "a store of matched quads drops some" if storage == "matched" else "none is stored"
        raise GraphtideError(
            f"strict mode has to know every quad, but {stored}",
            hint='use strict=True with store="all"',
        )
    return QuadStream() if storage == "none" else QuadStore(store_all=storage == "all")


def strategy_for(store: QuadStore, strategy: Strategy | None) -> Strategy | None:
    """The strategy of a new query: over no quads, one that looks none up.

    >>> strategy_for(make_store("none", strict=False), None)
    'decomposed'
    """
    return strategy if store.stores or strategy else "decomposed"
