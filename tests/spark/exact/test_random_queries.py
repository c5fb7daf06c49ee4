"""Cells give the deltas of the in-process engine: random queries, streams, cuts and grids.

The first test takes the grid that the pipeline would choose; the second any grid that is possible,
so that it is the division itself that is proven, and second stages are common.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from spark.exact.splits import check_cells

from graphtide.spark import shares, task
from graphtide.testing.cells import change_rows
from graphtide.testing.generators import cases

CELLS = st.sampled_from((1, 2, 3, 4, 8))
SEEDS = st.integers(0, 10**6)

quietly = settings(
    max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@seed(1)
@quietly
@given(cases(streams=2), CELLS, SEEDS)
def test_chosen_grid(case, cells, number):
    for stream in case.streams:
        check_cells({"q": case.query}, change_rows(stream), cells, number)


@pytest.mark.parametrize("first_seed", range(4))
def test_any_grid(first_seed, monkeypatch):
    seen = {"divided": 0, "meets": 0, "counts": 0}
    numbers = Random(first_seed)
    monkeypatch.setattr(task, "best_grid", lambda query, cells, _: any_grid(query, cells, numbers))
    monkeypatch.setattr(task, "cell_query", counting(task.cell_query, seen))

    @seed(first_seed)
    @quietly
    @given(cases(streams=2), CELLS, SEEDS)
    def check(case, cells, number):
        for text, stream in zip((case.query, distinct(case.query)), case.streams, strict=True):
            numbers.seed(number)
            check_cells({"q": text}, change_rows(stream), cells, number)

    check()
    assert min(seen.values()) >= 3, seen


@seed(2)
@quietly
@given(st.lists(cases(streams=1), min_size=2, max_size=3), CELLS, SEEDS)
def test_several_queries_at_once(drawn, cells, number):
    queries = {f"q{i}": case.query for i, case in enumerate(drawn)}
    check_cells(queries, change_rows(drawn[0].streams[0]), cells, number)


@seed(3)
@quietly
@given(cases(streams=1, twins=True), CELLS, SEEDS)
def test_spellings_are_kept_apart(case, cells, number):
    check_cells({"q": case.query}, change_rows(case.streams[0]), cells, number)


def distinct(text):
    return text if "DISTINCT" in text else text.replace("SELECT ", "SELECT DISTINCT ", 1)


def any_grid(query, cells, numbers):
    """A random grid, divided if the query can be divided at all."""
    body = shares.body_of(query)
    variables = tuple(sorted(shares.partition_variables(body), key=lambda v: v.name))
    possible = list(shares._divisions(variables, cells))
    return shares._grid(body, numbers.choice(possible[1:] or possible))


def counting(cell_query, seen):
    def counted(*arguments):
        query = cell_query(*arguments)
        seen["divided"] += query.grid.cells > 1
        seen["meets"] += query.meets
        seen["counts"] += query.meets and query.distinct
        return query

    return counted
