"""Tables and plots of all benchmarks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from graphtide.bench.report import (
    Panel,
    Plot,
    TableColumn,
    _draw,
    check_plot,
    make_table,
    text_columns,
    write_plot,
)
from graphtide.errors import GraphtideError


def test_a_table_has_a_line_for_each_row():
    columns = [
        TableColumn("name", str, left=True),
        TableColumn("length", lambda row: str(len(row))),
    ]
    table = make_table("words", columns, ["a", "bcd"])
    assert [list(column.cells) for column in table.columns] == [["a", "bcd"], ["1", "3"]]
    assert [column.justify for column in table.columns] == ["left", "right"]


def test_rows_of_texts_may_be_short():
    table = make_table("texts", text_columns(("", "x", "y")), [["a", "1"], ["b", "2", "3"]])
    assert [list(column.cells) for column in table.columns] == [["a", "b"], ["1", "2"], ["", "3"]]


def line(*points):
    return Panel("a panel", {"a line": points}, "triples", "ms")


def labels(axis, renderer):
    """Start and end of each tick label that is drawn, in pixels along the axis."""
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    minor = [tick for tick in axis.get_minor_ticks() if tick.label1.get_text()]
    boxes = [tick.label1.get_window_extent(renderer) for tick in [*ticks, *minor]]
    return sorted((box.x0, box.x1) if axis.axis_name == "x" else (box.y0, box.y1) for box in boxes)


@pytest.mark.parametrize(
    "panel",
    [
        line((4073, 1.5), (11223, 1.6), (31945, 1.9), (63575, 2.4)),
        line((4000, 5.0)),
        line((1, 69.0), (2, 31.7), (24, 1.0), (25, 0.8)),
        line((100, 1e3), (1_000, 2e4), (10_000, 3e5), (100_000, 5e6)),
        line((1_000, 3_412_000.0), (10_000, 35_100.0), (100_000, 42_600.0)),
        line((9e6, 12.0), (10e6, 13.0)),
    ],
)
@pytest.mark.slow
def test_tick_labels_do_not_overlap(panel):
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6, 2.9), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    _draw(axes, panel)
    canvas.draw()
    for axis in (axes.xaxis, axes.yaxis):
        spans = labels(axis, canvas.get_renderer())
        assert 2 <= len(spans) <= 8
        assert all(end < start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.slow
def test_plots_are_written_twice(tmp_path):
    pytest.importorskip("matplotlib")
    bars = Panel("bars", {"a": [(0, 1.0), (1, 0.0)]}, categories=("one class", "another"))
    plot = Plot("plots", [[line((1, 1), (10, 2)), bars], [line((1, 1))]], legend_once=True)
    files = write_plot(plot, tmp_path / "plot.png")
    assert files == [tmp_path / "plot.png", tmp_path / "plot.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in files[1].read_text()


@pytest.mark.parametrize(
    ("path", "problem"), [("a.pdf", "suffix '.pdf'"), ("no/such/a", "no such directory")]
)
def test_plots_that_cannot_be_written(path, problem, tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(GraphtideError, match=problem):
        check_plot(tmp_path / path)
