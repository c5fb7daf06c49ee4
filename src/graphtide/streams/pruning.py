"""PruningFilter: which triples of a stream can be part of a match, by the patterns' constants.

All others are dropped before anything is stored (paper 5 calls this summarisation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Path, TriplePattern
from graphtide.algebra.paths import link_iris, matches_zero_length
from graphtide.algebra.traverse import parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary


Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

Asked = frozenset[tuple[int, int, int]]
"""Patterns of subject, predicate and object: an id, or 0 for anything."""

EVERYTHING: Asked = frozenset({(0, 0, 0)})

ALL, SOME = 1, 2
"""Of a predicate: all of its triples, or those of some subjects and objects."""


def asked_of(part: object, graph: NamedNode, terms: TermDictionary) -> Asked:
    """The patterns of a query that are asked of a graph; if in doubt, everything."""
    found: set[tuple[int, int, int]] = set()
    rest: list[object] = [part]
    while rest:
        match rest.pop():
            case TriplePattern(s, p, o, where) if where == graph:
                ids = [0 if isinstance(t, Var) else terms.intern(t) for t in (s, p, o)]
                found.add((ids[0], ids[1], ids[2]))
            case Path(_, path, _, where) if where == graph:
                links = link_iris(path)
                if links is None or matches_zero_length(path):
                    found |= EVERYTHING
                else:
                    found.update((0, terms.intern(link), 0) for link in links)
            case NamedNode() as name:
                found |= EVERYTHING if name == graph else frozenset()
            case other:
                rest += parts(other)
    return frozenset(found)


def covers(known: Asked, asked: Asked) -> bool:
    """Whether whatever matches one of the asked patterns is among what is known.

    >>> covers(frozenset({(0, 7, 0)}), frozenset({(0, 7, 4)}))
    True
    >>> covers(frozenset({(0, 7, 4)}), frozenset({(0, 7, 0)}))
    False
    """
    return all(any(_is_within(each, wider) for wider in known) for each in asked)


def _is_within(pattern: tuple[int, int, int], wider: tuple[int, int, int]) -> bool:
    return all(w in (0, p) for p, w in zip(pattern, wider, strict=True))


class PruningFilter:
    """A test of triples against patterns: one look at a table for most of them.

    >>> pruning = PruningFilter(frozenset({(0, 7, 0), (0, 8, 3)}))
    >>> rows = np.array([[1, 7, 2, 0], [1, 8, 2, 0], [1, 8, 3, 0], [1, 9, 3, 0]], np.int32)
    >>> pruning.mask(rows).tolist()
    [True, False, True, False]
    """

    def __init__(self, asked: Asked) -> None:
        self.everything = (0, 0, 0) in asked
        named = {pattern for pattern in asked if pattern[1]}
        self._anywhere = sorted(asked - named)
        self._table = np.zeros(2 + max((p for _, p, _ in named), default=0), np.uint8)
        self._some: list[tuple[int, int, int]] = []
        for s, p, o in sorted(named):
            if s == o == 0:
                self._table[p] = ALL
            elif self._table[p] != ALL:  # the pattern without constants comes first
                self._table[p] = SOME
                self._some.append((s, p, o))

    def mask(self, quads: Ints) -> Mask | None:
        """Which rows can match; None if all can."""
        if self.everything:
            return None
        # The last entry stands for all predicates that no pattern names.
        found = self._table[np.minimum(quads[:, 1], len(self._table) - 1)]
        held: Mask = found == ALL
        if self._some:
            places = np.flatnonzero(found == SOME)
            held[places] = _matching(quads[places], self._some)
        if self._anywhere:
            held |= _matching(quads, self._anywhere)
        return held


def _matching(quads: Ints, patterns: Iterable[tuple[int, int, int]]) -> Mask:
    """Which rows match one of some patterns."""
    held = np.zeros(len(quads), np.bool_)
    for pattern in patterns:
        fits = np.ones(len(quads), np.bool_)
        for column, constant in enumerate(pattern):
            if constant:
                fits &= quads[:, column] == constant
        held |= fits
    return held
