"""Plots of throughput and memory over the size of the window; PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.bench.train.plot import MARKERS, SUFFIXES, check_plot, figure_class
from graphtide.bench.windows.report import TITLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from graphtide.bench.windows.run import Result


def write_plot(results: Sequence[Result], path: Path) -> list[Path]:
    """Draw one picture for each query of each part; the files written."""
    check_plot(path)
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.cell.part, result.cell.query), []).append(result)
    rows = -(-len(groups) // 3)
    width = min(len(groups), 3)
    figure = figure_class()(figsize=(4.2 * width, 0.4 + 3.2 * rows), layout="constrained")
    places = figure.subplots(rows, width, squeeze=False).ravel()
    for place, (name, group) in zip(places, groups.items(), strict=False):
        _draw(place, group, *name)
    for place in places[len(groups) :]:
        place.set_axis_off()
    files = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for file in files:
        figure.savefig(file, dpi=144)
    return files


def _draw(axes: Axes, results: Sequence[Result], part: str, query: str) -> None:
    lines: dict[str, list[tuple[int, float]]] = {}
    memory = part == "figure9"
    for result in results:
        cell = result.cell
        label = f"{cell.mode}, events of {cell.event}" if cell.event > 1 else cell.mode
        value = result.rss_mb if memory else result.triples_per_s
        lines.setdefault(label, []).append((cell.window, value))
    for (label, points), marker in zip(lines.items(), MARKERS * len(lines), strict=False):
        x, y = zip(*sorted(points), strict=True)
        axes.plot(x, y, marker=marker, markersize=4, linewidth=1.2, label=label)
    axes.set(xscale="log", yscale="linear" if memory else "log", xlabel="triples of the window")
    axes.set_ylabel("MB" if memory else "triples/s")
    axes.set_title(f"{TITLES[part].partition(':')[0]}, {query}", fontsize=9)
    axes.grid(visible=True, which="both", linewidth=0.3)
    axes.legend(fontsize=7)
