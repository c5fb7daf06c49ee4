"""Measures a graph: the statistics that plans are made by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.plan.statistics import RDF_TYPE, PredicateStats, Statistics

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term import Term

SUBJECT, PREDICATE, OBJECT = 0, 1, 2


def measure(quads: Ints, terms: TermDictionary) -> Statistics:
    """Statistics of quads given as rows of ids.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
    >>> graph.insert("<ex:c>", "<ex:knows>", "<ex:b>")
    >>> next(iter(measure(graph.quad_ids(), graph.terms).predicates.values()))
    PredicateStats(count=2, subjects=2, objects=1)
    """
    if not len(quads):
        return Statistics()
    counts = np.bincount(quads[:, PREDICATE])
    predicates = np.flatnonzero(counts)
    places = np.zeros(len(counts), np.int64)
    places[predicates] = np.arange(len(predicates))
    own = places[quads[:, PREDICATE]]
    subjects = _distinct(own, quads[:, SUBJECT], len(predicates))
    objects = _distinct(own, quads[:, OBJECT], len(predicates))
    found = zip(predicates.tolist(), subjects, objects, strict=True)
    return Statistics(
        len(quads),
        {terms.decode(p): PredicateStats(int(counts[p]), s, o) for p, s, o in found},
        _class_sizes(quads, terms),
    )


def _distinct(groups: Longs, values: Ints, size: int) -> list[int]:
    """How many different values each group has."""
    pairs = np.unique(groups << 32 | values)
    numbers: list[int] = np.bincount(pairs >> 32, minlength=size).tolist()
    return numbers


def _class_sizes(quads: Ints, terms: TermDictionary) -> dict[Term, int]:
    typed = quads[quads[:, PREDICATE] == terms.lookup(RDF_TYPE), OBJECT]
    classes, sizes = np.unique(typed, return_counts=True)
    return {terms.decode(c): n for c, n in zip(classes.tolist(), sizes.tolist(), strict=True)}
