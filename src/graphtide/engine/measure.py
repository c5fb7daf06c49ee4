"""Measures a graph: the statistics that plans are made by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel import count_values
from graphtide.plan.statistics import RDF_TYPE, PredicateStats, Statistics

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term import Term

PREDICATE, OBJECT = 1, 2


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
    counts, subjects, objects = count_values(quads)
    return Statistics(
        len(quads),
        {
            terms.decode(p): PredicateStats(int(counts[p]), int(subjects[p]), int(objects[p]))
            for p in np.flatnonzero(counts).tolist()
        },
        _class_sizes(quads, terms),
    )


def _class_sizes(quads: Ints, terms: TermDictionary) -> dict[Term, int]:
    typed = quads[quads[:, PREDICATE] == terms.lookup(RDF_TYPE), OBJECT]
    sizes = np.bincount(typed)
    return {terms.decode(c): int(sizes[c]) for c in np.flatnonzero(sizes).tolist()}
