"""The cost of a change over the size of the state, both axes logarithmic; PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.bench.train.plot import MARKERS, SUFFIXES, check_plot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from graphtide.bench.sparql.run import Result


def write_plot(results: Sequence[Result], path: Path) -> list[Path]:
    """Write the plots, one for each way in which costs may grow; the files written."""
    check_plot(path)
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(result.growth for result in results))
    figure = Figure(figsize=(4.6 * len(kinds), 3.8), layout="constrained")
    axes = figure.subplots(1, len(kinds), squeeze=False, sharey=True)
    for place, kind in zip(axes[0], kinds, strict=True):
        _draw(place, [result for result in results if result.growth == kind])
        place.set_title(f"may grow: {kind}", fontsize=9)
    figure.suptitle("SPARQL operators: cost of one change")
    files = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for file in files:
        figure.savefig(file, dpi=144)
    return files


def _draw(axes: Axes, results: Sequence[Result]) -> None:
    lines: dict[str, list[Result]] = {}
    for result in results:
        lines.setdefault(result.operator, []).append(result)
    for (name, line), marker in zip(lines.items(), MARKERS * len(lines), strict=False):
        sizes, micros = [r.size for r in line], [r.micros for r in line]
        axes.plot(sizes, micros, marker=marker, markersize=4, linewidth=1.2, label=name)
    axes.set(xscale="log", yscale="log", xlabel="size of state", ylabel="µs per change")
    axes.grid(visible=True, which="both", linewidth=0.3)
    axes.legend(fontsize=7)
