"""Which quads a live graph keeps.

all      every quad; a query can be registered at any time
matched  quads that a registered query can match, by their predicate
none     no quad: changes are matched as they pass, and queries keep what they need
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from graphtide.errors import GraphtideError
from graphtide.kernel import QuadStore, QuadStream

if TYPE_CHECKING:
    from graphtide.plan.patterns import Strategy

Storage = Literal["all", "matched", "none"]


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
