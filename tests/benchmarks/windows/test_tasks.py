"""The windows of the paper's Table 1 and Figures 6 to 9, and its figures beside ours."""

from __future__ import annotations

import pytest

from benchmarks.windows.benchmark import PARTS, WindowsResult, paper_figure, tasks_of


def test_table_1_has_21_cells_in_pieces_one_by_one_and_re_evaluated():
    tasks = tasks_of("table1")
    assert {(c.query, c.window_s) for c in tasks} == {
        (f"Q{n}", s) for n in range(1, 8) for s in (10, 50, 100)
    }
    assert len(tasks) == 4 * 21
    assert {c.mode for c in tasks} == {
        "incremental", "incremental, one by one", "re-evaluation", "pyoxigraph",
    }  # fmt: skip
    assert all(c.slide == c.window and c.event == 1 for c in tasks)


def test_the_figures_have_the_windows_of_the_paper():
    assert {c.window for c in tasks_of("figure6")} == {10**n for n in range(2, 6)}
    assert {c.query for c in tasks_of("figure6")} == {"Q5", "Q7"}
    for part, query in (("figure7", "Q1"), ("figure8", "Q2")):
        assert {(c.query, c.slide) for c in tasks_of(part)} == {(query, 1)}
        assert {c.event for c in tasks_of(part)} == {1, 20}


@pytest.mark.parametrize("part", PARTS)
def test_a_quick_run_has_fewer_tasks(part):
    assert 0 < len(tasks_of(part, quick=True)) < len(tasks_of(part))


@pytest.mark.parametrize(("mode", "query", "window", "expected"), [
    ("incremental", "Q5", 100_000, 980_000), ("incremental", "Q1", 500_000, 52_000),
    ("incremental, one by one", "Q1", 500_000, 52_000), ("re-evaluation", "Q7", 500_000, 28_000),
    ("pyoxigraph", "Q7", 500_000, None), ("incremental", "Q5", 10_000, None),
])  # fmt: skip
def test_the_table_shows_what_the_paper_has(mode, query, window, expected):
    result = WindowsResult("table1", query, window, window, 1, mode, 10, 2.0, 3, 1.0, 0.25, 7.0)
    assert paper_figure(result) == expected
