"""A plot of events per second over the number of equipments; PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.bench.train.plot import MARKERS, SUFFIXES, check_plot, figure_class

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from graphtide.bench.rules.run import Result


def write_plot(results: Sequence[Result], path: Path) -> list[Path]:
    """Draw a line for each way; the files written."""
    check_plot(path)
    figure = figure_class()(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    lines: dict[str, list[tuple[int, int]]] = {}
    for result in results:
        lines.setdefault(result.way, []).append((result.equipments, result.events_per_s))
    for (way, points), marker in zip(lines.items(), MARKERS, strict=False):
        x, y = zip(*sorted(points), strict=True)
        label = way if way == "clipspy" else f"graphtide, from {way}"
        axes.plot(x, y, marker=marker, markersize=4, linewidth=1.2, label=label)
    axes.set(xscale="log", yscale="log", xlabel="equipments", ylabel="events/s")
    axes.grid(visible=True, which="both", linewidth=0.3)
    axes.legend(fontsize=7)
    files = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for file in files:
        figure.savefig(file, dpi=144)
    return files
