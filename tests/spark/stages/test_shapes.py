"""Shapes of queries written by hand, each on several numbers of partitions and on various grids."""

from __future__ import annotations

from random import Random

import pytest
from spark.stages.shapes import SHAPES, query, stream
from spark.stages.splits import check_partitions, in_process
from support.sampling import quick_sample

from graphtide.algebra.queries import with_dataset
from graphtide.lang.sparql.parse import parse_query
from graphtide.spark import job
from graphtide.spark.partition import grids


def parsed(shape):
    return with_dataset(parse_query(query(shape)))


@pytest.mark.parametrize("shape", quick_sample(SHAPES, 14))
@pytest.mark.slow
def test_chosen_grid(shape):
    for partitions in (1, 3, 8):
        check_partitions({shape: query(shape)}, stream(partitions), partitions, seed=partitions)


@pytest.mark.slow
@pytest.mark.parametrize("shape", quick_sample(SHAPES, 30))
def test_other_grids(shape, monkeypatch):
    body = grids.body_of(parsed(shape))
    variables = tuple(sorted(grids.partition_variables(body), key=lambda v: v.name))
    divisions = list(grids._divisions(variables, 4))
    for number, division in enumerate(Random(1).sample(divisions, min(len(divisions), 5))):
        grid = grids.grid_by(body, division)
        monkeypatch.setattr(job, "best_grid", lambda *_, grid=grid: grid)
        check_partitions({shape: query(shape)}, stream(number % 5), 4, seed=number)


def test_the_streams_reach_every_shape():
    silent = {
        shape
        for shape in SHAPES
        if not any(in_process({"q": query(shape)}, stream(seed)) for seed in range(12))
    }
    assert silent == set()


@pytest.mark.slow
def test_all_shapes_at_once():
    check_partitions({shape: query(shape) for shape in SHAPES}, stream(9), 3, seed=5)


@pytest.mark.parametrize("partitions", [1, 2, 8])
def test_constant_rows_come_out_once_and_first(partitions):
    out = check_partitions({"q": query("no quads")}, stream(1), partitions, seed=1)
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    one, two, three, four = (f'"{n}"{integer}' for n in (1, 2, 3, 4))
    assert sorted(out) == sorted(
        [("q", 0, 0, 1, (one, two, two)), ("q", 0, 0, 1, (three, None, four))]
    )


@pytest.mark.parametrize(
    ("shape", "variables"),
    [
        ("star", {"a"}),
        ("optional", {"a", "b"}),
        ("optional, right only", {"a", "b"}),
        ("minus", {"a", "b"}),
        ("union", {"a", "b"}),
        ("union, other variables", set()),
        ("values, undef", {"a", "b", "c"}),
        ("graph", {"a", "b", "c", "g"}),
        ("bind", {"a", "b"}),
        ("no variables", set()),
        ("group", {"a"}),
        ("group, two keys", {"a"}),
        ("count", set()),
        ("top", set()),
        ("top in each graph", {"g"}),
        ("path", set()),
        ("path joined", {"b", "c"}),
        ("from two", {"a", "b", "c"}),
    ],
)
def test_partition_variables(shape, variables):
    body = grids.body_of(parsed(shape))
    found = {v.name for v in grids.partition_variables(body)}
    assert found >= variables
    assert variables or not found


@pytest.mark.parametrize(
    ("shape", "partitions", "divided"),
    [
        ("star", 8, {"a": 8}),
        ("triangle", 8, {"a": 2, "b": 2, "c": 2}),
        ("union, other variables", 8, {}),
        ("chain", 1, {}),
    ],
)
def test_shares(shape, partitions, divided):
    grid = job.partition_query("q", query(shape), partitions, None).grid
    assert {v.name: n for v, n in zip(grid.variables, grid.shares, strict=True)} == divided


def test_sizes_move_the_shares():
    text = "PREFIX : <http://e/> SELECT * { ?a :p ?b . ?b :q ?c . ?c :r ?d }"
    even = job.partition_query("q", text, 4, None).grid
    big = job.partition_query("q", text, 4, {"<http://e/r>": 10**6}).grid
    assert {v.name for v in even.variables} != {v.name for v in big.variables}
    assert "c" in {v.name for v in big.variables} or "d" in {v.name for v in big.variables}
