"""Which cells there are, and how their figures are shown."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from graphtide.bench.windows.cell import PARTS, Cell
from graphtide.bench.windows.plan import cells_of, check_part
from graphtide.bench.windows.plot import write_plot
from graphtide.bench.windows.report import to_objects, to_table
from graphtide.bench.windows.run import run_cells
from graphtide.errors import GraphtideError

KEYS = {"query", "window_s", "window_triples", "mode", "triples_per_s", "rss_mb", "matches"}
CELLS = [
    Cell("table1", "lubm", "Q5", 100_000, 100_000, "incremental"),
    Cell("figure9", "seas", "Q1", 1_000, 1, "pyoxigraph"),
]


@pytest.fixture
def results():
    figures = {"triples": 10, "seconds": 2.0, "matches": 3, "encode_s": 1.0, "rss_mb": 7.0}
    return run_cells(CELLS, measure=lambda _: figures | {"pruned": 0.25})


def test_table_1_has_21_cells_in_three_ways():
    cells = cells_of("table1")
    assert {(c.query, c.window_s) for c in cells} == {
        (f"Q{n}", s) for n in range(1, 8) for s in (10, 50, 100)
    }
    assert len(cells) == 3 * 21
    assert all(c.slide == c.window and c.event == 1 for c in cells)


def test_the_figures_have_the_windows_of_the_paper():
    assert {c.window for c in cells_of("figure6")} == {10**n for n in range(2, 6)}
    assert {c.query for c in cells_of("figure6")} == {"Q5", "Q7"}
    for part, query in (("figure7", "Q1"), ("figure8", "Q2")):
        assert {(c.query, c.slide) for c in cells_of(part)} == {(query, 1)}
        assert {c.event for c in cells_of(part)} == {1, 20}


@pytest.mark.parametrize("part", PARTS)
def test_a_quick_run_has_fewer_cells(part):
    assert 0 < len(cells_of(part, quick=True)) < len(cells_of(part))


def test_an_unknown_part_is_refused():
    with pytest.raises(GraphtideError, match="'table2' is unknown"):
        check_part("table2")


def test_objects(results):
    first, second = to_objects(results)
    assert (
        first.items() >= {"table": 1, "window_s": 10.0, "triples_per_s": 5, "pruned": 0.25}.items()
    )
    assert second["figure"] == 9
    assert first.keys() & second.keys() >= KEYS


def test_the_table_shows_what_the_paper_has(results):
    columns = {column.header: list(column.cells) for column in to_table(results[:1]).columns}
    assert columns["paper"] == ["980,000"]
    assert columns["triples/s"] == ["5"]


def test_plots(results, tmp_path):
    pytest.importorskip("matplotlib")
    assert [path.name for path in write_plot(results, tmp_path / "windows")] == [
        "windows.png",
        "windows.svg",
    ]
    assert all(path.stat().st_size for path in tmp_path.iterdir())


@pytest.mark.slow
def test_a_cell_in_a_process_of_its_own():
    asked = '{"part": "table1", "data": "lubm", "query": "Q2", "window": 1000, "slide": 1000, '
    command = [sys.executable, "-m", "graphtide.bench.windows.worker"]
    asked += '"mode": "incremental", "least": 0}'
    done = subprocess.run([*command, asked], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert figures["triples"] == 2500
    assert figures["rss_mb"] > 10
