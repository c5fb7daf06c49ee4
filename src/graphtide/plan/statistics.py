"""Statistics of a graph: what the planner knows about the data it plans for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.rdf.term import Term

RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


@dataclass(frozen=True, slots=True)
class PredicateStats:
    """How many quads a predicate has, and how many different subjects and objects."""

    count: int
    subjects: int
    objects: int

    @property
    def functional(self) -> bool:
        """Whether each subject has one value."""
        return self.count == self.subjects

    @property
    def inverse_functional(self) -> bool:
        """Whether each value has one subject."""
        return self.count == self.objects


UNKNOWN = PredicateStats(count=1000, subjects=500, objects=500)
"""What is assumed of each predicate of a graph that holds nothing yet."""

UNKNOWN_CLASS = 500


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a graph at some time.

    >>> stats = Statistics(2, {RDF_TYPE: PredicateStats(2, 2, 1)}, {NamedNode("a:Route"): 2})
    >>> stats.predicate(RDF_TYPE).functional
    True
    >>> stats.predicate(NamedNode("a:other")).count
    0
    """

    quads: int = 0
    predicates: Mapping[Term, PredicateStats] = field(default_factory=dict)
    classes: Mapping[Term, int] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether there is data to go by; an empty graph says nothing about its future."""
        return self.quads > 0

    def predicate(self, term: Term) -> PredicateStats:
        """The counts of one predicate."""
        if not self.known:
            return UNKNOWN
        return self.predicates.get(term, PredicateStats(0, 0, 0))

    def any_predicate(self) -> PredicateStats:
        """The counts of all quads together; subjects and objects are lower bounds."""
        if not self.known:
            return PredicateStats(10 * UNKNOWN.count, 10 * UNKNOWN.subjects, 10 * UNKNOWN.objects)
        every = self.predicates.values()
        return PredicateStats(
            self.quads,
            max((p.subjects for p in every), default=0),
            max((p.objects for p in every), default=0),
        )

    def class_size(self, term: Term) -> int:
        """How many quads say that something is of a class."""
        return self.classes.get(term, 0) if self.known else UNKNOWN_CLASS


NOTHING_KNOWN = Statistics()
