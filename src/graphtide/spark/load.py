"""Load: what each partition does, and which terms are so frequent that one of them does most.

Workers count, and Spark's accumulators bring it to the driver. A micro-batch that is run again
counts again: these are figures to look at, not results.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.accumulators import AccumulatorParam

from graphtide.spark.partition.hubs import MAX_HUBS, frequent, hub_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.spark.job import JobSpec
    from graphtide.spark.partition.columns import TermColumn
    from graphtide.spark.partition.grids import Grid, Hub

log = getLogger(__name__)


class PartitionLoad(NamedTuple):
    """The last micro-batch of a partition: its end, bytes received, seconds, bytes of state."""

    ended: float
    received: int
    seconds: float
    state: int


Loads = dict[tuple[str, str, int], PartitionLoad]
"""By operator, stage and partition."""


class LatestLoads(AccumulatorParam[Loads]):
    """How loads add up: of each partition, the last one counts.

    >>> key = ("a", "match", 0)
    >>> later, earlier = PartitionLoad(7.0, 10, 0.1, 100), PartitionLoad(6.0, 10, 0.1, 900)
    >>> LatestLoads().addInPlace({key: later}, {key: earlier}) == {key: later}
    True
    """

    def zero(self, value: Loads) -> Loads:  # noqa: ARG002 - Spark's signature
        """Nothing."""
        return {}

    def addInPlace(self, value1: Loads, value2: Loads) -> Loads:  # noqa: N802 - Spark's name
        """The first with the second."""
        for key, load in value2.items():
            value1[key] = max(value1.get(key, load), load)
        return value1


# --- frequent terms ---

SAMPLED_ROWS: Final = 2000
"""Rows of an Arrow batch whose terms are counted."""

COUNTED_TERMS: Final = 256
"""Terms that are counted at most; one that is in more than this part of the quads is among them."""


class TermCounts(NamedTuple):
    """How many quads there were, and about how many had a term, by it, predicate and position.

    Counts are too low by at most `total / COUNTED_TERMS` (the summary of Misra and Gries, of which
    any two can be merged), beside what a sample is wrong by.
    """

    total: int = 0
    counts: Mapping[tuple[str, str], int] = {}

    def merged(self, other: TermCounts) -> TermCounts:
        """The counts of both.

        >>> TermCounts(5, {("a", "p s"): 3}).merged(TermCounts(4, {("a", "p s"): 2})).counts
        {('a', 'p s'): 5}
        """
        counts = Counter(self.counts)
        counts.update(other.counts)
        over = sorted(counts.values(), reverse=True)[COUNTED_TERMS : COUNTED_TERMS + 1]
        kept = {key: n - sum(over) for key, n in counts.items() if n > sum(over)}
        return TermCounts(self.total + other.total, kept)


class MergedCounts(AccumulatorParam[TermCounts]):
    """How counts of terms add up."""

    def zero(self, value: TermCounts) -> TermCounts:  # noqa: ARG002 - Spark's signature
        """Nothing."""
        return TermCounts()

    def addInPlace(self, value1: TermCounts, value2: TermCounts) -> TermCounts:  # noqa: N802
        """The first with the second."""
        return value1.merged(value2)


def count_terms(quads: Sequence[TermColumn]) -> TermCounts:
    """The terms that several quads have, from every so many of them.

    >>> import pyarrow as pa
    >>> from graphtide.spark.partition.columns import read_quads
    >>> texts = [["<ex:a>", "<ex:b>"], ["<ex:p>", "<ex:p>"], ["<ex:c>", "<ex:c>"], [None, None]]
    >>> quads, _ = read_quads([pa.array(column, pa.string()) for column in texts])
    >>> count_terms(quads)
    TermCounts(total=2, counts={('<ex:c>', '<ex:p> o'): 2})
    """
    subjects, predicates, objects, _ = quads
    total = len(subjects)
    step = max(-(-total // SAMPLED_ROWS), 1)
    chosen = predicates.sample(step)
    counts: Counter[tuple[str, str]] = Counter()
    for place, column in (("s", subjects), ("o", objects)):
        pairs = zip(column.sample(step), chosen, strict=True)
        counts.update((term, f"{predicate} {place}") for term, predicate in pairs)
    return TermCounts(total, {key: n * step for key, n in counts.most_common() if n > 1})


def hubs_of(counted: TermCounts, partitions: int) -> dict[str, Mapping[str, int]]:
    """The terms in more than an even share of the quads, with their counts (as `hubs` takes them).

    >>> hubs_of(TermCounts(10, {("<ex:a>", "<ex:p> o"): 4, ("<ex:b>", "<ex:p> s"): 1}), 4)
    {'<ex:a>': {'<ex:p> o': 4}}
    """
    by_term: dict[str, dict[str, int]] = {}
    for (term, place), count in counted.counts.items():
        by_term.setdefault(term, {})[place] = count
    return frequent(by_term, counted.total, partitions)


def unnamed_hubs(job: JobSpec, counted: TermCounts) -> dict[str, Mapping[str, int]]:
    """The hubs of a stream that a job was not given, and that would be worth it."""
    named = dict(job.hubs)
    found = {t: n for t, n in hubs_of(counted, job.partitions).items() if t not in named}
    if not found:
        return {}
    known = {term: dict(counts) for term, counts in job.hubs}
    both = dict(list((known | found).items())[:MAX_HUBS])
    with_them = replace(job, hubs=hub_counts(both))
    even = counted.total / job.partitions
    spread = {
        hub.term
        for grids in with_them.routes.values()
        for grid in grids
        for hub in grid.hubs
        if hub.term in found and _gathered(found[hub.term], grid, hub) > even
    }
    return {term: counts for term, counts in found.items() if term in spread}


def _gathered(counts: Mapping[str, int], grid: Grid, hub: Hub) -> int:
    """How many quads have a hub where a grid divides by it: so many are in one partition."""
    places = {
        f"{leaf.pattern.predicate} {place}"
        for leaf in grid.leaves
        for place, end in (("s", leaf.pattern.subject), ("o", leaf.pattern.object))
        if end == hub.variable
    }
    return sum(count for place, count in counts.items() if place in places)


class HubReport:
    """The hubs of a stream that its job was not given; each is logged once."""

    def __init__(self, job: JobSpec) -> None:
        self._job = job
        self._asked: set[str] = set()
        self._found: dict[str, Mapping[str, int]] = {}

    def shares(self, counted: TermCounts) -> dict[str, float]:
        """By hub, the share of the quads that have it."""
        frequent_now = set(hubs_of(counted, self._job.partitions))
        if not frequent_now <= self._asked:
            self._asked |= frequent_now
            self._log(unnamed_hubs(self._job, counted))
        total: dict[str, int] = dict.fromkeys(self._found, 0)
        for (term, _), count in counted.counts.items():
            if term in total:
                total[term] += count
        return {term: count / counted.total for term, count in total.items()}

    def _log(self, hubs: Mapping[str, Mapping[str, int]]) -> None:
        if not set(hubs) <= set(self._found):
            self._found |= hubs
            log.warning(
                "%s: so many quads have %s that one of %d partitions does most of the work; "
                "a new job with hubs=%r divides them",
                ", ".join(name for name, _ in self._job.queries),
                " and ".join(hubs),
                self._job.partitions,
                {term: dict(counts) for term, counts in self._found.items()},
            )
