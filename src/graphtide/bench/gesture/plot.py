"""How much faster than the camera, over the number of bodies; PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.bench.gesture.report import PAPER
from graphtide.bench.train.plot import MARKERS, SUFFIXES, check_plot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from graphtide.bench.gesture.measure import Result


def write_plot(results: Sequence[Result], path: Path) -> list[Path]:
    """Write the plot; the files written."""
    check_plot(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.0), layout="constrained")
    axes = figure.subplots()
    lines: dict[str, list[tuple[int, float]]] = {}
    for result in results:
        lines.setdefault(result.mode, []).append((result.bodies, result.speed))
    lines["paper 4"] = [(bodies, speed) for bodies, (_, _, speed) in PAPER.items()]
    for (name, points), marker in zip(lines.items(), MARKERS, strict=False):
        bodies, speeds = zip(*sorted(points), strict=True)
        axes.plot(bodies, speeds, marker=marker, markersize=4, linewidth=1.2, label=name)
    axes.axhline(1.0, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="bodies", ylabel="times 25 frames a second")
    axes.grid(visible=True, which="both", linewidth=0.3)
    axes.legend(fontsize=7)
    figure.suptitle("Gestures: speed over the number of bodies")
    files = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for file in files:
        figure.savefig(file, dpi=144)
    return files
