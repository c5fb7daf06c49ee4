"""Which quads a graph stores, and strict mode: which changes it rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from graphtide.arguments import check_choice
from graphtide.engine import ingest
from graphtide.errors import GraphtideError, StrictError
from graphtide.kernel import QuadStore, QuadStream
from graphtide.kernel.batch import DIFF, VALUES
from graphtide.rdf.terms import canonical_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.engine.queries import QueryRegistry
    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Ints, Longs
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


def refuse_redundant(runtime: Runtime, changes: Sequence[tuple[int, ingest.Ids]]) -> None:
    """Strict mode: refuse a transaction with a change that would have no effect."""
    runtime.flush()
    if redundant := first_redundant(changes, runtime.store, runtime.terms):
        raise redundant[1]


def first_problem(
    runtime: Runtime, changes: Ints, times: Longs
) -> tuple[int, GraphtideError] | None:
    """Strict mode: the index of the first change that has to be rejected, and its error."""
    backwards = ingest.first_backwards(runtime.clock, times)
    listed = [(row[DIFF], tuple(row[VALUES:])) for row in changes.tolist()]
    redundant = first_redundant(listed, runtime.store, runtime.terms)
    problems = [problem for problem in (backwards, redundant) if problem]
    return min(problems, key=lambda problem: problem[0], default=None)


class MatchFilter:
    """Which quads a registered query can match, by predicate; without `stored` ones, by object too.

    A quad that is neither matched nor stored is not interned: all its ids are 0, which no query
    matches, and which is counted as any other. Its terms are checked all the same.
    """

    def __init__(self, queries: QueryRegistry, terms: TermDictionary, *, stored: bool) -> None:
        self._queries = queries
        self._programs = queries.plans.programs
        self._terms = terms
        self._stored = stored
        self._version = -1
        self._everything = False
        self._objects: dict[int, set[int]] = {}
        self._texts: set[str] = set()

    def _catch_up(self) -> None:
        """By predicate the objects that patterns name; 0 stands for any."""
        programs = self._queries.plans.programs  # they are others after an error
        if programs is self._programs and programs.version == self._version:
            return
        self._programs, self._version = programs, programs.version
        self._objects = {}
        for _, predicate, object_, _ in self._programs.patterns():
            anything = self._stored or object_ < 0
            self._objects.setdefault(max(predicate, 0), set()).add(0 if anything else object_)
        self._everything = 0 in self._objects  # a variable as predicate
        self._texts = set() if self._everything else set(map(self._terms.text, self._objects))

    def quad_ids(
        self,
        terms: TermDictionary,
        s: ingest.TermLike,
        p: ingest.TermLike,
        o: ingest.ObjectLike,
        g: ingest.TermLike | None,
    ) -> ingest.Ids:
        """The ids of a quad, or 0 for all of them if no query can match it."""
        self._catch_up()
        if self._everything or p in self._texts:
            return ingest.quad_ids(terms, s, p, o, g)
        parts = ingest.checked_terms(s, p, o, g)
        texts = [canonical_of(part) for part in parts if part is not None]
        return ingest.quad_ids(terms, s, p, o, g) if texts[1] in self._texts else ingest.NOT_MATCHED

    def predicates(self, ids: Ints) -> ingest.Mask | None:
        """Which quads of some predicates can match; None if all can."""
        self._catch_up()
        return None if self._everything else np.isin(ids, list(self._objects))

    def objects(self, predicates: Ints, ids: Ints) -> ingest.Mask:
        """Which quads of some predicates and objects can match."""
        found = np.ones(len(ids), np.bool_)
        for predicate, objects in self._objects.items():
            if 0 not in objects:
                found &= (predicates != predicate) | np.isin(ids, list(objects))
        return found


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
    if storage == "none":
        return QuadStream()
    return QuadStore(store_all=storage == "all")


def strategy_for(store: QuadStore, strategy: Strategy | None) -> Strategy | None:
    """The strategy of a new query: over no quads, one that looks none up.

    >>> strategy_for(make_store("none", strict=False), None)
    'decomposed'
    """
    return strategy if store.stores or strategy else "decomposed"


def check_options(default_graph: str, tick_ms: int) -> None:
    """Reject options of a live graph that mean nothing."""
    check_choice(default_graph, "default_graph", get_args(DefaultGraphMode))
    if tick_ms < 1:
        raise GraphtideError(f"a tick of {tick_ms} ms is too short", hint="use at least 1")


def check_complete(store: QuadStore) -> None:
    """Reject a new query if quads that it may match have been dropped."""
    if store.counts()["dropped"]:
        raise GraphtideError(
            "quads that no query matched have been dropped, so this query would start wrong",
            hint='register queries before the data comes, or use LiveGraph(store="all")',
        )
