"""Partitions give the deltas of the in-process engine: random queries, streams, cuts and grids.

The first test takes the grid that the pipeline would choose; the second any grid that is possible,
so that it is the division itself that is proven, and second stages are common.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from spark.stages.splits import check_partitions

from graphtide.spark import job
from graphtide.spark.partition import grids
from oracles.generators import cases
from oracles.partitions import change_rows

PARTITIONS = st.sampled_from((1, 2, 3, 4, 8))
SEEDS = st.integers(0, 10**6)

pytestmark = pytest.mark.slow  # a sample of what is divided is quick in `test_shapes`

quietly = settings(
    max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@seed(1)
@quietly
@given(cases(streams=2), PARTITIONS, SEEDS)
def test_chosen_grid(case, partitions, number):
    for stream in case.streams:
        check_partitions({"q": case.query}, change_rows(stream), partitions, number)


@pytest.mark.parametrize("first_seed", range(4))
def test_any_grid(first_seed, monkeypatch):
    seen = {"divided": 0, "needs_consolidation": 0, "counts": 0}
    numbers = Random(first_seed)
    monkeypatch.setattr(
        job, "best_grid", lambda query, partitions, _: any_grid(query, partitions, numbers)
    )
    monkeypatch.setattr(job, "partition_query", counting(job.partition_query, seen))

    @seed(first_seed)
    @quietly
    @given(cases(streams=2), PARTITIONS, SEEDS)
    def check(case, partitions, number):
        for text, stream in zip((case.query, distinct(case.query)), case.streams, strict=True):
            numbers.seed(number)
            check_partitions({"q": text}, change_rows(stream), partitions, number)

    check()
    assert min(seen.values()) >= 3, seen


@seed(2)
@quietly
@given(st.lists(cases(streams=1), min_size=2, max_size=3), PARTITIONS, SEEDS)
def test_several_queries_at_once(drawn, partitions, number):
    queries = {f"q{i}": case.query for i, case in enumerate(drawn)}
    check_partitions(queries, change_rows(drawn[0].streams[0]), partitions, number)


@seed(3)
@quietly
@given(cases(streams=1, twins=True), PARTITIONS, SEEDS)
def test_spellings_are_kept_apart(case, partitions, number):
    check_partitions({"q": case.query}, change_rows(case.streams[0]), partitions, number)


def distinct(text):
    return text if "DISTINCT" in text else text.replace("SELECT ", "SELECT DISTINCT ", 1)


def any_grid(query, partitions, numbers):
    """A random grid, divided if the query can be divided at all."""
    body = grids.body_of(query)
    variables = tuple(sorted(grids.partition_variables(body), key=lambda v: v.name))
    possible = list(grids._divisions(variables, partitions))
    return grids.grid_by(body, numbers.choice(possible[1:] or possible))


def counting(partition_query, seen):
    def counted(*arguments):
        query = partition_query(*arguments)
        seen["divided"] += query.grid.partitions > 1
        seen["needs_consolidation"] += query.needs_consolidation
        seen["counts"] += query.needs_consolidation and query.distinct
        return query

    return counted
