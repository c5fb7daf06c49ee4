"""`graphtide bench sparql`: what is measured is what it says, and the command shows it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.sampling import quick_sample

from graphtide import LiveGraph
from graphtide.bench.report import write_plot
from graphtide.bench.sparql import (
    OPERATORS,
    OperatorResult,
    OperatorTask,
    change_round,
    find_operators,
    measure,
    report,
)
from graphtide.cli.main import main
from graphtide.errors import GraphtideError

ROWS = {
    "join, search": 500,
    "join, rete": 500,
    "antijoin, search": 0,
    "antijoin, rete": 0,
    "optional": 500,
    "distinct": 750,
    "join, counted": 1,
    "union": 1000,
    "filter": 900,
    "COUNT": 1,
    "SUM": 1,
    "AVG": 1,
    "MIN": 1,
    "MAX": 1,
    "COUNT in groups": 750,
    "top 10": 10,
    "path, all pairs": 990,  # 22 chains of 45 pairs
    "path, bound": 99,
    "COUNT and SUM in groups": 10,
}


@pytest.mark.parametrize("operator", quick_sample(OPERATORS, 4), ids=lambda operator: operator.name)
@pytest.mark.slow
def test_answers(operator):
    result = measure(OperatorTask(operator.name, 1000))
    if operator.name in ROWS:
        assert result.rows == ROWS[operator.name]
    # With pyoxigraph, it has been compared how many rows there are.
    assert operator.name in ROWS or operator.ask_again
    assert (result.asked_again is not None) == operator.ask_again
    assert result.micros > 0


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_round_changes_the_answer_and_puts_everything_back(operator):
    graph = LiveGraph()
    data = operator.make(graph, 1000, np.random.default_rng(1))
    s, p, o, g = data.quads.T
    graph.apply_ids(s, p, o, g)
    watch = graph.watch(operator.query, strategy=operator.strategy)
    before = watch.table(terms=True).to_pylist()
    watch.delta()
    before_round = len(list(watch.rows()))
    change_round(graph, watch, data, 0)
    assert len(graph) == len(data.quads)
    assert sorted(map(str, watch.table(terms=True).to_pylist())) == sorted(map(str, before))
    # Of a hundred values of a group, few are the least or the greatest.
    least = 30 if operator.name == "MIN and MAX in groups" else 100
    assert len(list(watch.rows())) - before_round > least


def test_unknown_operators():
    with pytest.raises(GraphtideError, match="unknown operator 'sort'"):
        find_operators(["MIN", "sort"])


def results():
    return [
        OperatorResult("MIN", "logarithmic", size, 1, 0.1, micros, 1.5 * micros, 2.0)
        for size, micros in ((1000, 2.0), (2000, 3.0))
    ]


def test_the_table_has_a_column_for_each_size_and_the_growth():
    (table,) = report(results()).tables
    assert [column.header for column in table.columns] == [
        "operator", "1,000", "2,000", "last : first", "in cache", "may grow",
    ]  # fmt: skip
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells == ["MIN", "2.00", "3.00", "1.5", "1.5", "logarithmic"]


@pytest.mark.slow
def test_plot(tmp_path):
    files = write_plot(report(results()).plot, tmp_path / "cost")
    assert [file.name for file in files] == ["cost.png", "cost.svg"]
    assert all(file.stat().st_size for file in files)


@pytest.mark.slow
def test_command(capsys):
    options = "--sizes", "1000,2000", "--operators", "COUNT; distinct", "--json"
    assert main(["bench", "sparql", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(f["operator"], f["size"]) for f in found] == [
        (name, size) for name in ("COUNT", "distinct") for size in (1000, 2000)
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--sizes", "10"), "invalid --sizes"),
        (("--sizes", "many"), "invalid --sizes"),
        (("--operators", "sort"), "unknown operator 'sort'"),
        (("--plot", "cost.gif"), "cannot be written with the suffix"),
    ],
)
def test_mistakes(capsys, options, problem):
    assert main(["bench", "sparql", *options]) == 2
    assert problem in capsys.readouterr().err
