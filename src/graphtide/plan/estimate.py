"""Cardinality estimation: statistics of a graph; rows and distinct values of plan nodes.

The textbook assumptions: uniform and independent values, and containment of value sets, so
|L ⋈ R| = |L| |R| / Π max(V(L, v), V(R, v)). Hubs, the most frequent values of a column, are not
uniform: their rows are known one by one, and uniform is only the rest (end-biased histograms).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from math import expm1, prod
from typing import TYPE_CHECKING, NamedTuple, assert_never

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Call, Expression, Var
from graphtide.algebra.trees import bottom_up
from graphtide.plan import physical as phys

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.samples import StoredSample, ValueSample
    from graphtide.rdf.terms import Term

RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


@dataclass(frozen=True, slots=True)
class PredicateStats:
    """Numbers of quads, distinct subjects and objects of a predicate; the quads of its hubs.

    Hubs are named by `Statistics.name` of their terms.
    """

    count: int
    subjects: int
    objects: int
    subject_hubs: Mapping[Hashable, int] = field(default_factory=dict)
    object_hubs: Mapping[Hashable, int] = field(default_factory=dict)
    subject_sample: StoredSample | None = field(default=None, repr=False, compare=False)
    object_sample: StoredSample | None = field(default=None, repr=False, compare=False)

    def differs(self, other: PredicateStats) -> bool:
        """Whether estimates by one may be off by a factor if the other holds.

        >>> even, skewed = PredicateStats(900, 90, 90), PredicateStats(900, 90, 90, {}, {None: 99})
        >>> even.differs(PredicateStats(990, 90, 90)), even.differs(skewed)
        (False, True)
        """
        return any(
            not mine / DRIFTED <= its <= mine * DRIFTED
            for mine, its in zip(self._profile(), other._profile(), strict=True)
        )

    def _profile(self) -> Iterator[float]:
        """The quads, and for both ends the average and the largest known number of them."""
        yield self.count + 1
        for distinct, hubs in (
            (self.subjects, self.subject_hubs),
            (self.objects, self.object_hubs),
        ):
            average = self.count / max(distinct, 1)
            yield average + 1
            yield max(hubs.values(), default=average) + 1


IndexColumns = tuple[int, ...]
"""The columns of a quad, from 0 to 3, that an index finds quads by."""

EVERY_PREDICATE = -1
"""Stands for all predicates, as in `kernel.search.program`."""

DRIFTED = 2
"""The factor by which the statistics of a predicate must have changed to plan again."""

SHIFTED = 0.25
"""How much the share of a predicate in the changes must have moved to plan again."""

UNKNOWN = PredicateStats(count=1000, subjects=500, objects=500)
"""Assumed for each predicate of an empty graph."""

UNKNOWN_CLASS = 500


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a graph at one time.

    >>> stats = Statistics(2, {RDF_TYPE: PredicateStats(2, 2, 1)}, {NamedNode("a:Route"): 2})
    >>> stats.predicate(RDF_TYPE).objects
    1
    >>> stats.predicate(NamedNode("a:other")).count
    0
    """

    quads: int = 0
    predicates: Mapping[Term, PredicateStats] = field(default_factory=dict)
    classes: Mapping[Hashable, int] = field(default_factory=dict)
    rates: Mapping[Term, float] = field(default_factory=dict)
    """Changes that were observed, by predicate; empty if they are too few to say."""

    instances: Mapping[Hashable, StoredSample] = field(default_factory=dict, repr=False)
    """Samples of the instances of classes."""

    indexes: Mapping[IndexColumns, Collection[Hashable]] = field(default_factory=dict, repr=False)
    """Indexes that are kept for other queries, by columns: the names of the predicates in them."""

    name: Callable[[Term], Hashable] = field(default=lambda term: term, repr=False, compare=False)
    """What a class or a hub is called: by its id, so that not all of them are decoded."""

    estimates: dict[TriplePattern, Estimate] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Estimates of patterns that were asked for: plans that are compared ask for the same ones."""

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
        return self.classes.get(self.name(term), 0) if self.known else UNKNOWN_CLASS

    def observed(self, pattern: TriplePattern, quads: float) -> float:
        """How many changes of a pattern that has so many quads were observed, about."""
        if isinstance(pattern.predicate, Var):
            return sum(self.rates.values())
        count = self.predicate(pattern.predicate).count
        return self.rates.get(pattern.predicate, 0.0) * min(1.0, quads / max(count, 1))

    def shares(self, predicates: Iterable[Term | Var]) -> dict[Term, float]:
        """The shares of some predicates in the changes that were observed, or else in the quads.

        >>> a, b, c = (NamedNode(f"ex:{name}") for name in "abc")
        >>> Statistics(9, rates={a: 30.0, b: 10.0, c: 5.0}).shares([a, b]) == {a: 0.75, b: 0.25}
        True
        """
        own = {
            p: self.rates.get(p, 0.0) if self.rates else float(self.predicate(p).count)
            for p in predicates
            if not isinstance(p, Var)
        }
        total = max(sum(own.values()), 1.0)
        return {p: n / total for p, n in own.items()}

    def differ(self, other: Statistics, predicates: Iterable[Term | Var]) -> bool:
        """Whether estimates of patterns with these predicates may be off by a factor."""
        predicates = list(predicates)
        its = other.shares(predicates)
        if self.rates and any(
            abs(share - its[p]) > SHIFTED for p, share in self.shares(predicates).items()
        ):
            return True
        return self.known != other.known or any(
            self.any_predicate().differs(other.any_predicate())
            if isinstance(each, Var)
            else self.predicate(each).differs(other.predicate(each))
            for each in predicates
        )


NOTHING_KNOWN = Statistics()

MIN_ANTIJOIN_SELECTIVITY = 0.05
"""Minimum selectivity of an antijoin."""

MOST_ROWS = 1e150
"""Where estimates of joins end: the product of two is still a number."""

MAX_ESTIMATES = 500
"""Patterns whose estimates are kept with statistics."""

MAX_SKEWED = 24
"""Columns up to which a join keeps the hubs of its inputs: large queries are planned in no time."""

MOST_READ = 50
"""Nodes of a plan that are looked at, to tell whether it reads another one."""

REACH = 5
"""Expected pairs per edge of a closure."""

SELECTIVITIES = {"=": 0.1, "!=": 0.9}
DEFAULT_SELECTIVITY = 1 / 3


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected rows, and expected distinct values of each column.

    Values are drawn from the `samples`, where these are known, and are all of them at most.
    """

    rows: float
    values: Mapping[Var, float]
    hubs: Mapping[Var, Mapping[Hashable, float]] = field(default_factory=dict)
    samples: Mapping[Var, ValueSample] = field(default_factory=dict)

    def of(self, var: Var) -> float:
        """Expected distinct values of a column, at least one."""
        return max(1.0, self.values.get(var, self.rows))

    def scaled(self, share: float) -> Estimate:
        """The estimate for a fraction of the rows."""
        rows = self.rows * share
        values = {v: min(n, rows) for v, n in self.values.items()}
        return Estimate(rows, values, scaled_hubs(self.hubs, share), self.samples)

    def without_hubs(self) -> Estimate:
        """The same as if all values were equally frequent."""
        return Estimate(self.rows, self.values, samples=self.samples)

    def beside_hubs(self, var: Var) -> float:
        """Rows with values of a column that are no hubs."""
        return max(0.0, self.rows - sum(self.hubs.get(var, {}).values()))


Hubs = dict["Var", dict["Hashable", float]]


def scaled_hubs(hubs: Mapping[Var, Mapping[Hashable, float]], share: float) -> Hubs:
    """The hubs of a fraction of the rows."""
    return {v: {t: n * share for t, n in each.items()} for v, each in hubs.items()}


def pattern_estimate(pattern: TriplePattern, statistics: Statistics) -> Estimate:
    """The quads that a triple pattern matches.

    >>> from graphtide.algebra.nodes import TriplePattern
    >>> knows = NamedNode("http://example.org/knows")
    >>> statistics = Statistics(100, {knows: PredicateStats(100, 50, 20)})
    >>> pattern_estimate(
    ...     TriplePattern(NamedNode("http://example.org/a"), knows, Var("b")), statistics
    ... ).rows
    2.0
    """
    known = statistics.estimates
    if pattern not in known:
        if len(known) == MAX_ESTIMATES:
            known.clear()
        known[pattern] = _pattern_estimate(pattern, statistics)
    return known[pattern]


def _pattern_estimate(pattern: TriplePattern, statistics: Statistics) -> Estimate:
    s, p, o = pattern.subject, pattern.predicate, pattern.object
    stats = statistics.any_predicate() if isinstance(p, Var) else statistics.predicate(p)
    rows = float(stats.count)
    if not isinstance(s, Var):
        rows *= _share(statistics.name(s), stats, stats.subjects, stats.subject_hubs)
    if not isinstance(o, Var):
        of_class = p == RDF_TYPE and isinstance(s, Var)
        share = _share(statistics.name(o), stats, stats.objects, stats.object_hubs)
        rows = statistics.class_size(o) if of_class else rows * share
    if s == o and isinstance(s, Var):
        rows /= max(stats.subjects, stats.objects, 1)
    values = {}
    hubs: Hubs = {}
    samples = {}
    own = None
    if p == RDF_TYPE and not isinstance(o, Var):
        own = statistics.instances.get(statistics.name(o))
    for position, number, known, sample in (
        (s, stats.subjects, stats.subject_hubs, own or stats.subject_sample),
        (o, stats.objects, stats.object_hubs, stats.object_sample),
    ):
        if isinstance(position, Var):
            values[position] = min(float(number), rows)
            if sample is not None:
                samples[position] = sample.loaded
            if known and s != o:
                hubs[position] = {term: n * rows / stats.count for term, n in known.items()}
    if isinstance(p, Var):
        values[p] = min(float(max(len(statistics.predicates), 1)), rows)
    if isinstance(pattern.graph, Var):
        values[pattern.graph] = rows
    return Estimate(rows, values, hubs, samples)


def _share(
    name: Hashable, stats: PredicateStats, distinct: int, hubs: Mapping[Hashable, int]
) -> float:
    """The share of a predicate's quads that a constant has."""
    if name in hubs:
        return hubs[name] / stats.count
    rest = 1 - sum(hubs.values()) / stats.count if hubs else 1.0
    return rest / max(distinct - len(hubs), 1)


def joined(left: Estimate, right: Estimate) -> Estimate:
    """The natural join of two inputs."""
    met = {v: meeting(left, right, v) for v in left.values if v in right.values}
    rows = _rows_that_meet(left, right, met.values())
    # Not limited by the rows: the estimate of a join must not depend on its order.
    either = {**left.values, **right.values}
    values = {v: min(n, left.values.get(v, n)) for v, n in either.items()}
    samples = {**left.samples, **right.samples}
    for v, each in met.items():
        if each.sample is not None:
            samples[v] = each.sample
            values[v] = min(left.values[v] * right.values[v] / each.drawn, values[v])
        elif v in samples:  # known of one of the two
            del samples[v]
    if not 0 < len(left.hubs) + len(right.hubs) <= MAX_SKEWED:
        return Estimate(rows, values, {}, samples)
    hubs = scaled_hubs(left.hubs, rows / max(left.rows, 1e-9))
    hubs |= scaled_hubs(right.hubs, rows / max(right.rows, 1e-9))
    for v, each in met.items():
        if v in hubs:
            share = rows / max(each.rows, 1e-9)
            hubs[v] = {term: one * other * share for term, (one, other) in each.hubs.items()}
    return Estimate(rows, values, hubs, samples)


class Meeting(NamedTuple):
    """The pairs of rows with the same value of one column, and of each hub the rows of both.

    The values are drawn from so many; those that both inputs have are sampled, if both are.
    """

    rows: float
    hubs: Mapping[Hashable, tuple[float, float]]
    drawn: float
    sample: ValueSample | None


def meeting(left: Estimate, right: Estimate, var: Var) -> Meeting:
    """How often two inputs agree on a column."""
    own, other = left.hubs.get(var, {}), right.hubs.get(var, {})
    drawn, sample = _drawn(left, right, var)
    values = max(left.of(var), right.of(var)) if sample is None else drawn
    if not own and not other:
        return Meeting(left.rows * right.rows / values, {}, drawn, sample)
    # A hub of one input is a value like any other in the other one, unless it is a hub there, too.
    one_each = left.beside_hubs(var) / max(values - len(own), 1.0)
    other_each = right.beside_hubs(var) / max(values - len(other), 1.0)
    ones = {**_spread(left, var, other), **own}
    others = {**_spread(right, var, own), **other}
    hubs = {
        term: (ones.get(term, one_each), others.get(term, other_each))
        for term in dict.fromkeys((*own, *other))
    }
    met, rest = sum([a * b for a, b in hubs.values()]), values - len(hubs)
    if rest > 0:
        one_rest = max(0.0, left.rows - sum([a for a, _ in hubs.values()]))
        other_rest = max(0.0, right.rows - sum([b for _, b in hubs.values()]))
        met += one_rest * other_rest / max(rest, 1.0)
    return Meeting(met, hubs, drawn, sample)


def _spread(rows: Estimate, var: Var, terms: Iterable[Hashable]) -> dict[Hashable, float]:
    sample, hubs = rows.samples.get(var), rows.hubs.get(var, ())
    return {} if sample is None else sample.spread(rows.beside_hubs(var), len(hubs), terms)


def _drawn(left: Estimate, right: Estimate, var: Var) -> tuple[float, ValueSample | None]:
    """Of how many values two inputs have some, and a sample of those that both have, if known."""
    one, other = left.samples.get(var), right.samples.get(var)
    if one is None or other is None:
        return 0.0, None
    return one.meets(other)


def joined_rows(left: Estimate, right: Estimate) -> float:
    """The rows of a natural join."""
    shared = (v for v in left.values if v in right.values)
    return _rows_that_meet(left, right, (meeting(left, right, v) for v in shared))


def _rows_that_meet(left: Estimate, right: Estimate, met: Iterable[Meeting]) -> float:
    rows = left.rows * right.rows
    return min(rows * prod(each.rows / rows for each in met), MOST_ROWS) if rows else 0.0


def semijoined(
    left: Estimate, right: Estimate, keys: Collection[Var], *, negated: bool, paired: bool = True
) -> Estimate:
    """The left rows with a match on the right, or if negated without.

    Not every combination of several keys is there: the rows on the right are `paired` at random,
    unless they were found for the rows on the left.

    >>> a, b = Var("a"), Var("b")
    >>> follows, blocks = Estimate(200, {a: 50, b: 40}), Estimate(30, {a: 50, b: 40})
    >>> round(semijoined(blocks, follows, [a, b], negated=True).rows, 2)  # 30 exp(-200 / 2000)
    27.15
    """
    share = prod(_share_met(left, right, v) for v in keys) if right.rows else 0.0
    if paired and len(keys) > 1:
        share *= -expm1(-right.rows / prod(right.of(v) for v in keys))
    return left.scaled(max(MIN_ANTIJOIN_SELECTIVITY, 1 - share) if negated else share)


def _share_met(left: Estimate, right: Estimate, var: Var) -> float:
    """The share of the values on the left that are on the right, too."""
    drawn, known = _drawn(left, right, var)
    return min(1.0, right.of(var) / (left.of(var) if known is None else drawn))


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

    def learn(self, node: phys.Physical, expected: Estimate) -> None:
        """The rows of a plan node are these."""
        self._known[node] = expected

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
                paired = not _reads(right, left)
                return semijoined(self(left), self(right), keys, negated=negated, paired=paired)
            case phys.RangeJoin(left):
                return self(left).scaled(DEFAULT_SELECTIVITY)
            case phys.Select(child, condition):
                return self(child).scaled(_selectivity(condition))
            case phys.Compute(child, columns):
                found = self(child)
                computed = dict.fromkeys((var for var, _ in columns), found.rows)
                return Estimate(found.rows, {**found.values, **computed}, found.hubs, found.samples)
            case phys.Merge(left, right):
                one, other = self(left), self(right)
                values = {v: one.of(v) + other.of(v) for v in node.schema}
                return Estimate(one.rows + other.rows, values)
            case phys.Unique(child):
                found = self(child)
                most = prod(found.of(v) for v in node.schema)
                share = min(1.0, most / max(found.rows, 1.0))
                hubs = scaled_hubs(found.hubs, share)
                return Estimate(min(found.rows, most), found.values, hubs, found.samples)
            case phys.Keep(child, sources):
                found = self(child)
                named = [*zip(node.schema, sources, strict=True)]
                values = {v: found.of(s) if s else 1.0 for v, s in named}
                known = {v: found.hubs[s] for v, s in named if s and s in found.hubs}
                samples = {v: found.samples[s] for v, s in named if s and s in found.samples}
                return Estimate(found.rows, values, known, samples)
            case phys.GroupBy(child, keys):
                found = self(child)
                groups = min(found.rows, prod(found.of(v) for v in keys))
                return Estimate(groups, {v: min(found.of(v), groups) for v in node.schema})
            case phys.Counting(inputs, _, keys):
                found = reduce(joined, map(self, inputs))
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
    every = [pattern_estimate(p, statistics) for p in patterns]
    return reduce(joined, every) if every else Estimate(1.0, {})


def _reads(node: phys.Physical, other: phys.Physical) -> bool:
    """Whether a plan is made from another one, or searches for its patterns, too.

    Of large plans, only the upper part is looked at.
    """
    rest = [node]
    patterns = frozenset(other.patterns) if isinstance(other, phys.Search) else None
    for each in rest:
        if each is other:
            return True
        if patterns and isinstance(each, phys.Search) and patterns.issubset(each.patterns):
            return True
        if len(rest) < MOST_READ:
            rest += phys.children(each)
    return False


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
