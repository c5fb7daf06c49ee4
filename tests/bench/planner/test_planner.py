"""`graphtide bench planner`: graphs are as skewed as they say, and ratios fair."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.sampling import quick_sample

from graphtide.bench.planner.benchmark import (
    MIXES,
    PlannerResult,
    PlannerTask,
    make_tasks,
    measure,
    report,
    summary,
)
from graphtide.bench.planner.workload import DRIFTING, QUERIES, SHAPES, SocialGraph, query_text
from graphtide.cli.main import main
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.patterns import STRATEGIES
from graphtide.rdf.dictionary import TermDictionary


def largest_share(edges, column):
    return np.bincount(edges[:, column]).max() / len(edges)


def test_graphs_are_even_or_skewed():
    share = {}
    for shape in SHAPES:
        graph = SocialGraph(TermDictionary(), 20_000, shape, seed=1)
        rows = graph.all_edges()
        assert len(rows) == len(np.unique(rows, axis=0)) == sum(map(len, graph.edges.values()))
        assert abs(len(rows) - 20_000) < 2000
        share[shape] = largest_share(graph.edges["follows"], 2)
    assert share["uniform"] < 0.01
    assert min(share["zipf"], share["hubs"]) > 0.04


@pytest.mark.parametrize("shape", SHAPES)
def test_drift_replaces_edges_and_not_their_number(shape):
    graph = SocialGraph(TermDictionary(), 5000, shape, seed=2)
    fresh = graph.drifted()
    assert list(fresh) == list(DRIFTING)
    for name, edges in fresh.items():
        before = graph.edges[name]
        assert len(edges) == len(np.unique(edges, axis=0)) == len(before)
        assert len(np.unique(np.concatenate([edges, before]), axis=0)) > 1.5 * len(before)
        assert (largest_share(edges, 2) > largest_share(before, 2)) == (shape == "uniform")


def test_all_queries_are_different_and_can_be_parsed():
    parsed = {parse_query(query_text(name)).root for name in QUERIES}
    assert len(parsed) == len(QUERIES) >= 40


TASKS = [task for task in make_tasks([1000], ["all"], seed=3) if task.drift or task.shape == "hubs"]


@pytest.mark.parametrize("task", quick_sample(TASKS, 4), ids=str)
def test_every_strategy_is_measured_and_agrees(task):
    """`measure` raises where a strategy has another number of rows."""
    found = measure(task)
    assert set(found.figures) == {"default", *STRATEGIES}
    for own in found.figures.values():
        assert set(own) == {*MIXES, "bytes"}
        assert all(value > 0 for value in own.values())
    if found.chosen in found.figures and not task.drift:
        assert found.figures["default"] is found.figures[found.chosen]
    assert found.q_error >= 1
    assert all(found.ratio(figure) >= 1 for figure in MIXES)


def result(query, default, best):
    figures = {"default": dict.fromkeys([*MIXES, "bytes"], default)}
    figures["rete"] = dict.fromkeys([*MIXES, "bytes"], best)
    return PlannerResult(query, "zipf", drift=True, chosen="search", rows=1, q_error=2.0, figures=figures)  # fmt: skip # noqa: E501


def test_ratios():
    results = [result("mutual", 6.0, 2.0), result("triangle", 4.0, 4.0), result("EXISTS", 3.0, 2.0)]
    found = summary(results)[0]
    assert (found["graph"], found["median"], found["worst"]) == ("zipf, after drift", 1.5, 3.0)
    assert found["worst_query"] == "mutual"
    ratios, tasks = report(results).tables
    assert (ratios.row_count, tasks.row_count) == (len(MIXES) + 1, len(results))
    assert [column.header for column in tasks.columns][:4] == ["query", "graph", "default", "rete even"]  # fmt: skip # noqa: E501


@pytest.mark.slow
def test_command(capsys):
    assert (
        main(["bench", "planner", "--sizes", "1000", "--queries", "star 2,mutual", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert len(found["tasks"]) == 12
    assert {each["figure"] for each in found["ratios"]} == {*MIXES, "bytes"}


def test_mistakes(capsys):
    assert main(["bench", "planner", "--sizes", "10"]) == 2
    assert "invalid --sizes" in capsys.readouterr().err
    with pytest.raises(GraphtideError, match="unknown query 'stars'"):
        make_tasks([1000], ["stars"], 0)
    assert str(PlannerTask("EXISTS", "hubs", drift=True, quads=1000)) == (
        "EXISTS, hubs, after drift, 1,000 quads"
    )
