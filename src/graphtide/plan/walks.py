"""What a search looks at for a change: walks from a changed quad, pattern by pattern.

A changed quad is more likely one of a hub: it has more quads. So a walk is expected to find
Σ d(v) d'(v) / Σ d(v) partners rather than the average. But a search chooses the pattern with the
fewest candidates at each value: what is expected is the least of several, which a hub at one end
does not make large. And where it goes on depends on what it has chosen: from a hub another way than
from other values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from graphtide.plan.estimate import (
    MOST_ROWS,
    Estimate,
    Meeting,
    Statistics,
    meeting,
    pattern_estimate,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan import physical as phys

CHOOSE = 2.0
"""What it costs a search to look up one of the patterns that it may follow next."""

DETAILED = 12
"""Patterns of a search up to which hubs are considered."""

OFTEN = 0.1
"""The share of rows from which on another way is followed, too."""


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
        if not left or not until.isdisjoint(bound):
            return 1.0, 0.0
        if len(left) == 1:
            return self._follow_last(next(iter(left)), bound)
        options = {
            i: self._candidates(i, bound)
            for i in left
            if not bound.keys().isdisjoint(self._columns[i])
        }
        ways = self._ways(left, options)
        rows, touched = 0.0, CHOOSE * (1 + len(options)) + sum(ways.values())
        *others, last = sorted(ways, key=lambda i: ways[i])
        for i in (*others, last):
            ends = bound if i == last else dict(bound)
            found, more = self._go_on(i, ends, left, options, until)
            rows += ways[i] * found
            touched += ways[i] * more
        return rows, touched

    def _follow_last(self, pattern: int, bound: Bound) -> tuple[float, float]:
        """Rows found and candidates looked at, if one pattern is left."""
        near = not bound.keys().isdisjoint(self._columns[pattern])
        found = self._candidates(pattern, bound).mean if near else self._expected[pattern].rows
        self._bind(bound, pattern)
        return found, CHOOSE * (1 + near) + found

    def _ways(self, left: Iterable[int], options: Mapping[int, Numbers]) -> dict[int, float]:
        """The patterns that may be followed first, with the rows that are expected of each."""
        if not options:
            first = min(left, key=lambda i: self._expected[i].rows)
            return {first: self._expected[first].rows}
        found = fewest(options)
        if len(found) == 1:
            return found
        every = sum(found.values())
        often = {i: rows for i, rows in found.items() if rows >= OFTEN * every}
        share = every / max(sum(often.values()), 1e-9)
        return {i: rows * share for i, rows in often.items()}

    def _go_on(
        self,
        following: int,
        bound: Bound,
        rest: Iterable[int],
        known: Mapping[int, Numbers],
        until: frozenset[int],
    ) -> tuple[float, float]:
        """Rows found and candidates looked at for one row of the pattern that is followed first."""
        left, options = dict.fromkeys(rest), dict(known)
        rows, touched = 1.0, 0.0
        while True:
            del left[following]
            options.pop(following, None)
            changed = self._bind(bound, following)
            if not left or not until.isdisjoint(bound):
                return rows, touched
            if len(left) == 1:
                found, more = self._follow_last(next(iter(left)), bound)
                return rows * found, touched + rows * more
            for i in left:
                if not changed.isdisjoint(self._columns[i]):
                    options[i] = self._candidates(i, bound)
            if options:
                following = min(options, key=lambda i: options[i].mean)
                found = sum(fewest(options).values())
            else:
                following = min(left, key=lambda i: self._expected[i].rows)
                found = self._expected[following].rows
            touched += rows * (CHOOSE * (1 + len(options)) + found)
            rows *= found

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


_mean = attrgetter("mean")


def fewest(options: Mapping[int, Numbers]) -> dict[int, float]:
    """The expected minimum of independent numbers, as the sum of what each contributes to it.

    >>> rare = candidate_numbers([(0.0, 0.5), (100.0, 0.5)])
    >>> fewest({1: rare, 2: candidate_numbers([(10.0, 1.0)])})
    {2: 5.0, 1: 0.0}
    """
    first = min(options, key=lambda i: options[i].high)
    most = options[first].high
    # Those that are never less than another one do not matter.
    every = [first, *(i for i, each in options.items() if each.low < most and i != first)]
    if len(every) == 1:
        return {first: options[first].mean}
    more = {i: sum([share for _, share in options[i].shares]) for i in every}
    found = dict.fromkeys(every, 0.0)
    each_share = [(number, i, share) for i in every for number, share in options[i].shares]
    for number, i, share in sorted(each_share):
        if number > most:
            break
        found[i] += number * share * prod([n for other, n in more.items() if other != i])
        more[i] -= share  # left are the shares of more
    return found
