"""Cardinality estimation: statistics of a graph; rows and distinct values of plan nodes.

The textbook assumptions: uniform and independent values, and containment of value sets, so
|L ⋈ R| = |L| |R| / Π max(V(L, v), V(R, v)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Call, Expression, Var
from graphtide.algebra.trees import bottom_up
from graphtide.plan import physical as phys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.rdf.terms import Term


RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


@dataclass(frozen=True, slots=True)
class PredicateStats:
    """Numbers of quads, distinct subjects and distinct objects of a predicate."""

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
"""Assumed for each predicate of an empty graph."""

UNKNOWN_CLASS = 500


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a graph at one time.

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
        """Whether there is data; an empty graph says nothing about its future."""
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
        """The number of instances of a class."""
        return self.classes.get(term, 0) if self.known else UNKNOWN_CLASS


NOTHING_KNOWN = Statistics()

MIN_ANTIJOIN_SELECTIVITY = 0.05
"""Minimum selectivity of an antijoin."""

MOST_ROWS = 1e150
"""Where estimates of joins end: the product of two is still a number."""

REACH = 5
"""Expected pairs per edge of a closure."""

SELECTIVITIES = {"=": 0.1, "!=": 0.9}
DEFAULT_SELECTIVITY = 1 / 3


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected rows, and expected distinct values of each column."""

    rows: float
    values: Mapping[Var, float]

    def of(self, var: Var) -> float:
        """Expected distinct values of a column, at least one."""
        return max(1.0, self.values.get(var, self.rows))

    def scaled(self, share: float) -> Estimate:
        """The estimate for a fraction of the rows."""
        rows = self.rows * share
        return Estimate(rows, {v: min(n, rows) for v, n in self.values.items()})


def pattern_estimate(pattern: TriplePattern, statistics: Statistics) -> Estimate:
    """The quads that a triple pattern matches.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.plan.estimate import PredicateStats
    >>> from pyoxigraph import NamedNode
    >>> knows = NamedNode("http://example.org/knows")
    >>> statistics = Statistics(100, {knows: PredicateStats(100, 50, 20)})
    >>> pattern_estimate(
    ...     TriplePattern(NamedNode("http://example.org/a"), knows, Var("b")), statistics
    ... ).rows
    2.0
    """
    s, p, o = pattern.subject, pattern.predicate, pattern.object
    stats = statistics.any_predicate() if isinstance(p, Var) else statistics.predicate(p)
    rows = float(stats.count)
    if not isinstance(s, Var):
        rows /= max(stats.subjects, 1)
    if not isinstance(o, Var):
        of_class = p == RDF_TYPE and isinstance(s, Var)
        rows = statistics.class_size(o) if of_class else rows / max(stats.objects, 1)
    if s == o and isinstance(s, Var):
        rows /= max(stats.subjects, stats.objects, 1)
    values = {}
    for position, number in ((s, stats.subjects), (o, stats.objects)):
        if isinstance(position, Var):
            values[position] = min(float(number), rows)
    if isinstance(p, Var):
        values[p] = min(float(max(len(statistics.predicates), 1)), rows)
    if isinstance(pattern.graph, Var):
        values[pattern.graph] = rows
    return Estimate(rows, values)


def joined(left: Estimate, right: Estimate) -> Estimate:
    """The natural join of two inputs."""
    rows = joined_rows(left, right)
    # Not limited by the rows: the estimate of a join must not depend on its order.
    either = {**left.values, **right.values}
    values = {v: min(n, left.values.get(v, n)) for v, n in either.items()}
    return Estimate(rows, values)


def joined_rows(left: Estimate, right: Estimate) -> float:
    """The rows of a natural join."""
    shared = left.values.keys() & right.values.keys()
    rows = left.rows * right.rows / prod(max(left.of(v), right.of(v)) for v in shared)
    return min(rows, MOST_ROWS)


def semijoined(left: Estimate, right: Estimate, keys: Iterable[Var], *, negated: bool) -> Estimate:
    """The left rows with a match on the right, or if negated without."""
    share = prod(min(1.0, right.of(v) / left.of(v)) for v in keys) if right.rows else 0.0
    return left.scaled(max(MIN_ANTIJOIN_SELECTIVITY, 1 - share) if negated else share)


class Estimator:
    """Estimates plan nodes over one graph; results are cached."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self._known: dict[phys.Physical, Estimate] = {}

    def __call__(self, node: phys.Physical) -> Estimate:
        """The rows of a plan node."""
        if node not in self._known:
            for each in bottom_up(node, known=self._known.__contains__):
                self._known[each] = self._estimate(each)
        return self._known[node]

    def _estimate(self, node: phys.Physical) -> Estimate:
        match node:
            case phys.Search():
                return self._search(node)
            case phys.Decomposed(patterns):
                return patterns_estimate(patterns, self.statistics)
            case phys.Constant(rows):
                return Estimate(len(rows), dict.fromkeys(node.schema, float(len(rows))))
            case phys.HashJoin(left, right):
                return joined(self(left), self(right))
            case phys.SemiJoin(left, right, keys, negated):
                return semijoined(self(left), self(right), keys, negated=negated)
            case phys.Select(child, condition):
                return self(child).scaled(_selectivity(condition))
            case phys.Compute(child, columns):
                found = self(child)
                computed = dict.fromkeys((var for var, _ in columns), found.rows)
                return Estimate(found.rows, {**found.values, **computed})
            case phys.Merge(left, right):
                one, other = self(left), self(right)
                values = {v: one.of(v) + other.of(v) for v in node.schema}
                return Estimate(one.rows + other.rows, values)
            case phys.Unique(child):
                found = self(child)
                most = prod(found.of(v) for v in node.schema)
                return Estimate(min(found.rows, most), found.values)
            case phys.Keep(child, sources):
                found = self(child)
                named = zip(node.schema, sources, strict=True)
                return Estimate(found.rows, {v: found.of(s) if s else 1.0 for v, s in named})
            case phys.GroupBy(child, keys):
                found = self(child)
                groups = min(found.rows, prod(found.of(v) for v in keys))
                return Estimate(groups, {v: min(found.of(v), groups) for v in node.schema})
            case phys.TopK(child, limit=limit):
                found = self(child)
                most = found.rows if limit is None else min(found.rows, float(limit))
                return found.scaled(most / max(found.rows, 1.0))
            case phys.Closure(of):
                found = self(of[0]).scaled(REACH)
                start = node.schema[0]
                wanted = [self(each).of(start) / found.of(start) for each in of[1:]]
                return found.scaled(min(1.0, *wanted)) if wanted else found
            case _:
                assert_never(node)

    def _search(self, node: phys.Search) -> Estimate:
        found = patterns_estimate(node.patterns, self.statistics)
        for check in node.checks:
            inner = patterns_estimate(check.patterns, self.statistics)
            keys = found.values.keys() & inner.values.keys()
            found = semijoined(found, inner, keys, negated=check.negated)
        return found


def patterns_estimate(patterns: Iterable[TriplePattern], statistics: Statistics) -> Estimate:
    """The rows of a basic graph pattern."""
    return reduce(joined, (pattern_estimate(p, statistics) for p in patterns), Estimate(1.0, {}))


def _selectivity(condition: Expression) -> float:
    """The selectivity of a condition."""
    match condition:
        case Call("&&", args):
            return prod(map(_selectivity, args))
        case Call("||", args):
            return min(1.0, sum(map(_selectivity, args)))
        case Call("!", (inner,)):
            return 1 - _selectivity(inner)
        case Call(name):
            return SELECTIVITIES.get(name, DEFAULT_SELECTIVITY)
        case _:
            return DEFAULT_SELECTIVITY
