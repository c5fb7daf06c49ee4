"""Plots of memory and cost by class and strategy, one column for each; PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.bgp.measure import CONTENDERS
from graphtide.bench.train.plot import SUFFIXES, check_plot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from graphtide.bench.bgp.measure import Result

FIGURES: Final[dict[str, Callable[[Result], float]]] = {
    "entries of the query": lambda result: result.entries,
    "bytes of query and quads": lambda result: result.bytes + result.quad_bytes,
    "µs per insert": lambda result: result.load_us,
    "µs per update": lambda result: result.update_us,
}


def write_plot(results: Sequence[Result], path: Path) -> list[Path]:
    """Write the plots, a row of figures for each size; the files written."""
    check_plot(path)
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys(result.triples for result in results))
    figure = Figure(figsize=(4 * len(FIGURES), 0.6 + 3 * len(sizes)), layout="constrained")
    axes = figure.subplots(len(sizes), len(FIGURES), squeeze=False)
    for row, size in zip(axes, sizes, strict=True):
        of_size = [result for result in results if result.triples == size]
        for place, name in zip(row, FIGURES, strict=True):
            _draw(place, of_size, f"{name}, {size:,} triples", FIGURES[name])
    axes[0][0].legend(fontsize=7)
    figure.suptitle("Standing patterns by class and strategy")
    files = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for file in files:
        figure.savefig(file, dpi=144)
    return files


def _draw(
    axes: Axes, results: Sequence[Result], title: str, value: Callable[[Result], float]
) -> None:
    classes = list(dict.fromkeys(result.of_class for result in results))
    width = 0.8 / len(CONTENDERS)
    for at, contender in enumerate(CONTENDERS):
        own = {
            result.of_class: value(result) for result in results if result.contender == contender
        }
        places = [i + (at - (len(CONTENDERS) - 1) / 2) * width for i in range(len(classes))]
        axes.bar(places, [own.get(name, 0.0) for name in classes], width, label=contender)
    if "µs" not in title:  # entries and bytes span decades, and may be none at all
        axes.set_yscale("symlog", linthresh=1)
    axes.set_xticks(range(len(classes)), [name.replace(" ", "\n") for name in classes], fontsize=7)
    axes.set_title(title, fontsize=9)
    axes.grid(visible=True, axis="y", linewidth=0.3)
