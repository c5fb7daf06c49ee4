"""The tasks of each part, and how their results are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.report import write_plot
from benchmarks.windows.benchmark import (
    BENCHMARK,
    PARTS,
    WindowsResult,
    WindowsTask,
    check_part,
    make_tasks,
    report,
)
from graphtide.errors import GraphtideError

KEYS = {"query", "window_s", "window_triples", "mode", "triples_per_s", "rss_mb", "matches"}


@pytest.fixture
def results():
    figures = {"triples": 10, "seconds": 2.0, "matches": 3, "encode_s": 1.0, "rss_mb": 7.0}
    figures |= {"pruned": 0.25, "event": 1}
    return [
        WindowsResult("table1", "Q5", 100_000, 100_000, mode="incremental", **figures),
        WindowsResult("figure9", "Q1", 1_000, 1, mode="pyoxigraph", **figures),
    ]


def test_table_1_has_21_cells_in_pieces_one_by_one_and_re_evaluated():
    tasks = make_tasks("table1")
    assert {(c.query, c.window_s) for c in tasks} == {
        (f"Q{n}", s) for n in range(1, 8) for s in (10, 50, 100)
    }
    assert len(tasks) == 4 * 21
    assert {c.mode for c in tasks} == {
        "incremental", "incremental, one by one", "re-evaluation", "pyoxigraph",
    }  # fmt: skip
    assert all(c.slide == c.window and c.event == 1 for c in tasks)


def test_the_figures_have_the_windows_of_the_paper():
    assert {c.window for c in make_tasks("figure6")} == {10**n for n in range(2, 6)}
    assert {c.query for c in make_tasks("figure6")} == {"Q5", "Q7"}
    for part, query in (("figure7", "Q1"), ("figure8", "Q2")):
        assert {(c.query, c.slide) for c in make_tasks(part)} == {(query, 1)}
        assert {c.event for c in make_tasks(part)} == {1, 20}


@pytest.mark.parametrize("part", PARTS)
def test_a_quick_run_has_fewer_tasks(part):
    assert 0 < len(make_tasks(part, quick=True)) < len(make_tasks(part))


def test_an_unknown_part_is_refused():
    with pytest.raises(GraphtideError, match="unknown --only 'table2'"):
        check_part("table2")


def test_objects(results):
    first, second = report(results).objects
    assert (
        first.items() >= {"table": 1, "window_s": 10.0, "triples_per_s": 5, "pruned": 0.25}.items()
    )
    assert second["figure"] == 9
    assert first.keys() & second.keys() >= KEYS


def test_the_table_shows_what_the_paper_has(results):
    columns = {
        column.header: list(column.cells) for column in report(results[:1]).tables[0].columns
    }
    assert columns["paper"] == ["980,000"]
    assert columns["triples/s"] == ["5"]


@pytest.mark.parametrize(("mode", "query", "expected"), [
    ("incremental", "Q1", "52,000"), ("incremental, one by one", "Q1", "52,000"),
    ("re-evaluation", "Q7", "28,000"), ("pyoxigraph", "Q7", ""),
])  # fmt: skip
def test_both_rows_of_the_papers_table_stand_beside_ours(results, mode, query, expected):
    result = replace(results[0], mode=mode, query=query, window=500_000)
    (table,) = report([result]).tables
    assert [list(c.cells) for c in table.columns if c.header == "paper"] == [[expected]]


@pytest.mark.slow
def test_plots(results, tmp_path):
    pytest.importorskip("matplotlib")
    assert [path.name for path in write_plot(report(results).plot, tmp_path / "windows")] == [
        "windows.png",
        "windows.svg",
    ]
    assert all(path.stat().st_size for path in tmp_path.iterdir())


@pytest.mark.slow
def test_a_task_in_a_process_of_its_own():
    task = WindowsTask("table1", "lubm", "Q2", 1000, 1000, "incremental", min_triples=0)
    result = BENCHMARK.measure_apart(task)
    assert result.triples == 2500
    assert result.rss_mb > 10
