"""The cost of a plan: what an average change costs, and how many rows it stores.

From a changed quad, a search joins pattern by pattern; its rows are passed up through the nodes
above. The unit is one candidate that a search looks at. Which quads will change is not known: half
of the changes are taken to be spread over the patterns as the quads are, half evenly. Once enough
changes were observed, they count as much as both together.

A changed quad is more likely one of a hub: it has more quads. So a walk is expected to find
Σ d(v) d'(v) / Σ d(v) partners rather than the average. But a search chooses the pattern with the
fewest candidates at each value: what is expected is the least of several, which a hub at one end
does not make large.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod, sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import pattern_variables
from graphtide.kernel.search.program import ExistsCheck, SearchProgram, needed_indexes
from graphtide.plan import physical as phys
from graphtide.plan.counting import ROOT, is_counted, sent
from graphtide.plan.estimate import (
    EVERY_PREDICATE,
    MOST_ROWS,
    Estimate,
    Estimator,
    Meeting,
    Statistics,
    joined,
    meeting,
    pattern_estimate,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.kernel.search.program import Pattern
    from graphtide.plan.estimate import IndexColumns
    from graphtide.rdf.terms import Term

ANYWAY = 25.0
"""What a change costs whatever the plan: to be read, stored and reported."""

CHOOSE = 2.0
"""What it costs a search to look up one of the patterns that it may follow next."""

SENT, STORED = 2.5, 15.0
"""What a row costs that a node of a network receives, and one that it puts into a memory."""

NODE = 10.0
"""What it costs to run a node of a network for a change, however few its rows are, if some ten
changes are taken in at a time."""

COUNTING, COUNTED = 20.0, 6.0
"""What a change costs that is counted, and each key of a join tree that it touches."""

MEMORY = 0.2
"""A plan that stores as many bytes as the quads without indexes is charged so much more."""

QUAD_BYTES, ROW_BYTES, CELL_BYTES = 32, 16, 4
"""A quad; a row in a memory, beside each of its columns (`kernel.rowtable`, without spare room)."""

LINK_BYTES, KEY_BYTES = 8, 12
"""What an index takes for each quad of the graph or row of a memory, and for each of its keys."""

DETAILED = 12
"""Patterns of a search up to which hubs are considered."""


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What an average change costs, the rows that the plan stores, and their bytes with indexes."""

    change: float
    stored: float
    stored_bytes: float
    quads: int

    @property
    def score(self) -> float:
        """What plans are compared by: time, weighted by memory."""
        return self.change * (1 + MEMORY * self.stored_bytes / (QUAD_BYTES * max(self.quads, 1)))


def plan_cost(root: phys.Physical, expect: Estimator) -> PlanCost:
    """The cost of a plan."""
    statistics = expect.statistics
    every = phys.nodes(root)
    above, depths = _rows_above(every, expect), _depths(every)
    quads: list[float] = []
    rates: list[float] = []
    costs: list[float] = []
    for leaf in above:
        if isinstance(leaf, phys.Search):
            rows_out = expect(leaf).rows
            for walk in walks(leaf, statistics):
                found = rows_out / max(walk.quads, 1.0)
                quads.append(walk.quads)
                rates.append(statistics.observed(walk.pattern, walk.quads))
                costs.append(
                    walk.touched + found * above[leaf] + min(1.0, found) * NODE * depths[leaf]
                )
    change = ANYWAY
    if costs:
        usual = _weighted(costs, quads)
        expected = (usual + sum(costs) / len(costs)) / 2
        change += (expected + _weighted(costs, rates)) / 2 if sum(rates) else expected
    rows = list(_stored(every, expect))
    held = sum(n * each for n, each in rows)
    held += index_bytes((n for n in every if isinstance(n, phys.Search)), statistics)
    return PlanCost(change, sum(n for n, _ in rows), held, statistics.quads)


def least_score(root: phys.Physical, inputs: int, expect: Estimator) -> float:
    """The score at least of a network with so many inputs in the place of a plan of searches.

    A changed row is stored, and goes through as many joins as a balanced tree has levels; the
    network stores the rows of its inputs.
    """
    change = ANYWAY + 1 + STORED + NODE * log2(max(inputs, 2))
    statistics = expect.statistics
    patterns = (p for leaf in phys.searches(root) for p in leaf.patterns)
    rows = sum(pattern_estimate(p, statistics).rows for p in patterns if pattern_variables(p)[1:])
    return PlanCost(change, rows, rows * ROW_BYTES, statistics.quads).score


def most_inputs(root: phys.Physical) -> int:
    """How many inputs a network has that takes the place of a plan's largest search."""
    return max(map(_inputs, phys.searches(root)), default=0)


def _inputs(leaf: phys.Search) -> int:
    """The inputs of a network for a search: patterns of one variable are part of others."""
    groups = (leaf.patterns, *(check.patterns for check in leaf.checks))
    many = sum(len(pattern_variables(p)) > 1 for group in groups for p in group)
    return max(many, len(groups))


def has_choice(root: phys.Physical) -> bool:
    """Whether a search has more than one input, or a node above stores rows."""
    return any(
        _inputs(node) > 1 if isinstance(node, phys.Search) else isinstance(node, STORING)
        for node in phys.nodes(root)
    )


def _weighted(costs: Sequence[float], weights: Sequence[float]) -> float:
    """The mean of costs with weights; at least one change is assumed."""
    total = sum(n * cost for n, cost in zip(weights, costs, strict=True))
    return total / max(sum(weights), 1.0)


STORING = (
    phys.HashJoin
    | phys.SemiJoin
    | phys.RangeJoin
    | phys.Unique
    | phys.GroupBy
    | phys.TopK
    | phys.Closure
    | phys.Decomposed
    | phys.Counting
)
"""Nodes that store something for the rows they receive."""


def _stored(every: Iterable[phys.Physical], expect: Estimator) -> Iterator[tuple[float, int]]:
    """The rows of each memory of a plan, and the bytes of one; of totals and sets, one each.

    Memories of joins are indexed: room for keys is made as if each row had another one.
    """
    for node in every:
        totals = isinstance(node, phys.GroupBy) and all(map(is_counted, node.aggregates))
        if totals or isinstance(node, phys.Unique):
            yield expect(node).rows, _row_bytes(node)
        elif isinstance(node, STORING):
            indexed = {phys.HashJoin: 2, phys.SemiJoin: 1}.get(type(node), 0)
            for number, child in enumerate(phys.children(node)):
                index = LINK_BYTES + KEY_BYTES if number < indexed else 0
                yield expect(child).rows, _row_bytes(child) + index


def _row_bytes(node: phys.Physical) -> int:
    return ROW_BYTES + CELL_BYTES * len(node.schema)


def index_bytes(leaves: Iterable[phys.Search], statistics: Statistics) -> float:
    """The bytes of the indexes that searches need and that are not kept for other queries.

    Every quad has the links of all indexes; keys are only those of the predicates in an index.
    """
    wanted: dict[IndexColumns, set[Term | Var]] = {}
    for leaf in leaves:
        for pattern, columns in _lookups(leaf):
            wanted.setdefault(columns, set()).add(pattern.predicate)
    found = 0.0
    for columns, predicates in wanted.items():
        kept = statistics.indexes.get(columns, ())
        found += 0 if kept else LINK_BYTES * statistics.quads
        for each in predicates if EVERY_PREDICATE not in kept else ():
            if isinstance(each, Var) or statistics.name(each) not in kept:
                found += KEY_BYTES * _index_keys(columns, each, statistics)
    return found


def _lookups(leaf: phys.Search) -> Iterator[tuple[TriplePattern, IndexColumns]]:
    """The patterns of a search, each with the columns of an index that it may be looked up by."""
    if len(leaf.patterns) == 1 and not leaf.checks:
        return
    numbers: dict[object, int] = {}

    def pattern(triple: TriplePattern) -> Pattern:
        s, p, o, g = (
            -1 - numbers.setdefault(each, len(numbers)) if isinstance(each, Var) else 0
            for each in (triple.subject, triple.predicate, triple.object, triple.graph)
        )
        return s, p, o, g

    groups = [leaf.patterns, *(check.patterns for check in leaf.checks)]
    outer, *checks = (tuple(map(pattern, group)) for group in groups)
    found = needed_indexes(
        SearchProgram(outer, len(numbers), tuple(ExistsCheck(False, each) for each in checks))
    )
    for triple in (triple for group in groups for triple in group):
        for columns in found[pattern(triple)]:
            yield triple, columns


def _index_keys(columns: IndexColumns, predicate: Term | Var, statistics: Statistics) -> float:
    """How many keys the quads of a predicate have in an index."""
    some = None if isinstance(predicate, Var) else predicate
    own = statistics.any_predicate() if some is None else statistics.predicate(some)
    by_subject, by_object = (column in columns for column in (0, 2))
    if by_subject and by_object:
        return own.count
    return own.subjects if by_subject else own.objects if by_object else 1.0


def _rows_above(every: Sequence[phys.Physical], expect: Estimator) -> dict[phys.Physical, float]:
    """For each node, what one row of its output costs the nodes above it."""
    above = dict.fromkeys(every, 0.0)
    above[every[-1]] = SENT  # the answer
    for node in reversed(above):  # from the root down: a node after its consumers
        if isinstance(node, phys.Counting):
            for child, (keys, groups) in zip(node.inputs, counted_keys(node, expect), strict=True):
                above[child] += COUNTING + COUNTED * (keys + groups) + groups * above[node]
            continue
        stores = isinstance(node, STORING) and not isinstance(node, phys.GroupBy)
        for child in phys.children(node):
            through = expect(node).rows / max(expect(child).rows, 1.0)
            above[child] += (STORED if stores else SENT) + through * above[node]
    return above


class CountedKeys(NamedTuple):
    """How many keys a changed row of an input touches on its way up, and how many groups."""

    touched: float
    groups: float


def counted_keys(node: phys.Counting, expect: Estimator) -> list[CountedKeys]:
    """What a changed row of each input of a join tree reaches."""
    found: list[CountedKeys] = []
    shared, groups = sent(node), expect(node)
    kept = [set(each) for each in shared]  # the columns of an input that its keys are made of
    for each, parent in zip(shared, node.parents, strict=True):
        if parent != ROOT:
            kept[parent].update(each)
    for number, part in enumerate(node.inputs):
        touched, keys, at = 1.0, 1.0, number
        reached = expect(part)
        while (parent := node.parents[at]) != ROOT:
            rows = expect(node.inputs[parent])
            # A changed row is more likely one of a hub: so many partners has one on average.
            before, reached = reached.rows, joined(reached, rows)
            partners = reached.rows / max(before, 1e-9)
            keys *= partners * _different(rows, kept[parent]) / max(rows.rows, 1.0)
            touched += max(keys, 1.0)
            keys = min(keys, _different(rows, shared[parent]))
            at = parent
        own = _different(groups, shared[at])
        found.append(CountedKeys(touched, min(keys, own) * max(groups.rows / own, 1.0)))
    return found


def _different(rows: Estimate, variables: Iterable[Var]) -> float:
    """The expected number of combinations of some columns, at least one."""
    return max(1.0, min(prod(rows.of(v) for v in variables), rows.rows))


def _depths(every: Iterable[phys.Physical]) -> dict[phys.Physical, int]:
    """For each node, the nodes on its longest way up."""
    depths = dict.fromkeys(every, 0)
    for node in reversed(depths):
        for child in phys.children(node):
            depths[child] = max(depths[child], depths[node] + 1)
    return depths


class PatternWalk(NamedTuple):
    """A pattern of a search: its quads, and the candidates looked at for a change of one."""

    pattern: TriplePattern
    quads: float
    touched: float


def walks(leaf: phys.Search, statistics: Statistics) -> Iterator[PatternWalk]:
    """What a search does for a change of each of its patterns."""
    groups = (leaf.patterns, *(check.patterns for check in leaf.checks))
    patterns = [pattern for group in groups for pattern in group]
    expected = [pattern_estimate(pattern, statistics) for pattern in patterns]
    if len(patterns) == 1:
        yield PatternWalk(patterns[0], expected[0].rows, 1.0)
        return
    if len(patterns) > DETAILED:
        expected = [each.without_hubs() for each in expected]
    walker = _Walker(expected)
    numbers = iter(range(len(patterns)))
    outer, *checks = ([next(numbers) for _ in group] for group in groups)
    for start in outer:
        bound = walker.begin(start)
        rows, touched = walker.follow(bound, [i for i in outer if i != start])
        touched += rows * sum(walker.tested(bound, check) for check in checks)
        yield PatternWalk(patterns[start], expected[start].rows, 1 + touched)
    certain = frozenset(walker.columns(outer))
    for check in checks:
        for start in check:
            bound = walker.begin(start)
            others = [i for i in check if i != start]
            reached, touched = walker.follow(bound, others, certain)
            rows, more = walker.follow(bound, outer)
            # An outer row that has a match with the quad is tested without it.
            met, tests = walker.follow(dict(bound), others)
            own = {column: each for column, each in bound.items() if column in certain}
            tests = tests / sqrt(1 + met) + min(1.0, met) * walker.tested(own, check)
            touched += reached * (more + rows * tests)
            yield PatternWalk(patterns[start], expected[start].rows, 1 + touched)


Share = tuple[float, float]
"""A number of candidates, and in which share of the cases there are so many."""


class Numbers(NamedTuple):
    """Possible numbers of candidates, their mean, the smallest and the largest."""

    shares: Sequence[Share]
    mean: float
    low: float
    high: float

    def scaled(self, share: float, most: float) -> Numbers:
        """Each number times a share, up to a maximum."""
        return candidate_numbers(
            [(min(number * share, most), each) for number, each in self.shares]
        )


Bound = dict[int, Estimate]
"""For each column that is bound, rows with the frequencies that its values have by now."""


class _Walker:
    """Follows patterns from bound variables, those with the fewest candidates first.

    Variables are numbered columns here: a walk looks them up very often.
    """

    def __init__(self, expected: Sequence[Estimate]) -> None:
        self._expected = expected
        number: dict[Var, int] = {}
        self._columns = [
            tuple([number.setdefault(v, len(number)) for v in each.values]) for each in expected
        ]
        self._vars = list(number)
        # Walks from different patterns meet the same estimates again: by identity, which lasts as
        # long as both are held here.
        self._known: dict[tuple[int, int, int], Partners] = {}

    def columns(self, patterns: Iterable[int]) -> Iterator[int]:
        """The columns of some patterns."""
        return (column for i in patterns for column in self._columns[i])

    def begin(self, pattern: int) -> Bound:
        """What a quad of a pattern binds."""
        return dict.fromkeys(self._columns[pattern], self._expected[pattern])

    def follow(
        self, bound: Bound, rest: Iterable[int], until: frozenset[int] = frozenset()
    ) -> tuple[float, float]:
        """Rows found and candidates looked at, until all patterns or one of these are bound.

        `bound` gets the columns of the patterns that are followed.
        """
        left = dict.fromkeys(rest)
        options: dict[int, Numbers] = {}
        rows, touched = 1.0, 0.0
        changed = set(bound)
        while left and until.isdisjoint(bound):
            for i in left:
                if not changed.isdisjoint(self._columns[i]):
                    options[i] = self._candidates(i, bound)
            if options:
                following = min(options, key=lambda i: options[i].mean)
                found = least([*options.values()])
            else:
                following = min(left, key=lambda i: self._expected[i].rows)
                found = self._expected[following].rows
            touched += rows * (CHOOSE * (1 + len(options)) + found)
            rows *= found
            del left[following]
            options.pop(following, None)
            changed = self._bind(bound, following)
        return rows, touched

    def tested(self, bound: Bound, check: Sequence[int]) -> float:
        """Candidates until the first match of a check, if there is one.

        Matches are not spread evenly over rows: so many on average leave most rows without one.
        """
        rows, touched = self.follow(dict(bound), check)
        return max(1.0, touched / sqrt(1 + rows))

    def _candidates(self, pattern: int, bound: Bound) -> Numbers:
        """How many matches a pattern has, given the columns that are bound."""
        columns = self._columns[pattern]
        options = [self._partners(bound[c], pattern, c) for c in columns if c in bound]
        whole = len(options) == len(columns)
        if len(options) == 1:
            return options[0].tested() if whole else options[0].numbers
        numbers = [each.numbers for each in options]
        first = min(numbers, key=_mean)
        size = max(self._expected[pattern].rows, 1.0)
        rest = prod([min(1.0, each.mean / size) for each in numbers if each is not first])
        return first.scaled(rest, 1.0 if whole else MOST_ROWS)

    def _partners(self, binder: Estimate, pattern: int, column: int) -> Partners:
        key = id(binder), pattern, column
        found = self._known.get(key)
        if found is None:
            found = partners(binder, self._expected[pattern], self._vars[column])
            self._known[key] = found
        return found

    def _bind(self, bound: Bound, pattern: int) -> set[int]:
        """Bind the columns of a pattern; a value with many matches becomes as frequent.

        Returns those of which more is known now.
        """
        changed: set[int] = set()
        if all(column in bound for column in self._columns[pattern]):
            return changed  # a test of rows that are known already
        for column in self._columns[pattern]:
            before = bound.get(column)
            found = None if before is None else self._partners(before, pattern, column)
            if found is None:
                bound[column] = self._expected[pattern]
            elif found.met.hubs:
                bound[column] = found.joined()
            else:
                continue
            changed.add(column)
        return changed


@dataclass(slots=True)
class Partners:
    """The rows of a pattern that agree with bound ones on a variable, for one of these."""

    binder: Estimate
    pattern: Estimate
    var: Var
    met: Meeting
    numbers: Numbers
    _joined: Estimate | None = None
    _tested: Numbers | None = None

    def tested(self) -> Numbers:
        """The numbers if the pattern has no other variable: a value has a match, or none."""
        if self._tested is None:
            self._tested = self.numbers.scaled(1.0, 1.0)
        return self._tested

    def joined(self) -> Estimate:
        """What is known of the variable in both together; the same object whenever asked."""
        if self._joined is None:
            hubs = {term: one * other for term, (one, other) in self.met.hubs.items()}
            values = min(self.binder.of(self.var), self.pattern.of(self.var))
            known = {} if self.met.sample is None else {self.var: self.met.sample}
            self._joined = Estimate(self.met.rows, {self.var: values}, {self.var: hubs}, known)
        return self._joined


def partners(binder: Estimate, pattern: Estimate, var: Var) -> Partners:
    """How many rows of a pattern agree with a bound one on a variable."""
    met = meeting(binder, pattern, var)
    rows = max(binder.rows, 1e-9)
    shares = [(number, min(1.0, own / rows)) for own, number in met.hubs.values()]
    rest = 1 - sum([share for _, share in shares])
    if rest > 0:
        at_hubs = sum([own * number for own, number in met.hubs.values()])
        shares.append((max(0.0, met.rows - at_hubs) / rows / rest, rest))
    return Partners(binder, pattern, var, met, candidate_numbers(shares))


def candidate_numbers(shares: Sequence[Share]) -> Numbers:
    """Numbers by their shares."""
    if len(shares) == 1:
        [(number, share)] = shares
        return Numbers(shares, number * share, number, number)
    every = [number for number, _ in shares]
    mean = sum([number * share for number, share in shares])
    return Numbers(shares, mean, min(every), max(every))


_mean, _high = attrgetter("mean"), attrgetter("high")


def least(options: Sequence[Numbers]) -> float:
    """The expected minimum of independent numbers.

    >>> least([candidate_numbers([(0.0, 0.5), (100.0, 0.5)]), candidate_numbers([(10.0, 1.0)])])
    5.0
    """
    first = min(options, key=_high)
    most = first.high
    # Those that are never less than another one do not matter.
    every = [first, *(each for each in options if each.low < most and each is not first)]
    if len(every) == 1:
        return first.mean
    more = [sum([share for _, share in each.shares]) for each in every]  # the shares above `last`
    each_share = [
        (number, i, share) for i, each in enumerate(every) for number, share in each.shares
    ]
    expected, last = 0.0, 0.0
    for number, i, share in sorted(each_share):
        if number > last:
            expected += (min(number, most) - last) * prod(more)
            if number >= most:
                break
            last = number
        more[i] -= share
    return expected
