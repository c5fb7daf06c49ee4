"""Plots of the phases over the size of the model, both axes logarithmic; PNG and SVG."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Final

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graphtide.bench.train.run import Result

SUFFIXES: Final = (".png", ".svg")

PHASES: Final[dict[str, Callable[[Result], float | None]]] = {
    "read": lambda result: result.read_ms,
    "check": lambda result: result.check_ms,
    "transformation": lambda result: _median(result.transform_ms),
    "recheck": lambda result: _median(result.recheck_ms),
}

ALL: Final = "all together"

MARKERS: Final = "os^vDPX*<>"


def check_plot(path: Path) -> None:
    """Raise unless plots can be drawn and written there: better before a long run than after."""
    figure_class()
    if path.suffix not in ("", *SUFFIXES):
        raise GraphtideError(
            f"{path}: a plot cannot be written with the suffix {path.suffix!r}",
            hint="leave it out: both .png and .svg are written",
        )
    if not path.absolute().parent.is_dir():
        raise GraphtideError(f"{path}: there is no such directory")


def write_plot(results: Sequence[Result], path: Path, *, together: bool = False) -> list[Path]:
    """Write the plots of some results, a row of phases for each query; the files written.

    Queries that ran `together` share their times, and one row.
    """
    check_plot(path)
    if together:
        results = list(
            {(r.size, r.strategy, r.plan): replace(r, query=ALL) for r in results}.values()
        )
    shown = [name for name in PHASES if any(points(results, name))]
    queries = list(dict.fromkeys(result.query for result in results))
    figure = figure_class()(
        figsize=(3.6 * len(shown), 0.6 + 2.9 * len(queries)), layout="constrained"
    )
    axes = figure.subplots(len(queries), len(shown), squeeze=False, sharex=True)
    for row, query in zip(axes, queries, strict=True):
        of_query = [result for result in results if result.query == query]
        for place, phase in zip(row, shown, strict=True):
            _draw(place, of_query, phase, query)
    figure.suptitle(f"Train Benchmark, {results[0].scenario}")
    files = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for file in files:
        figure.savefig(file, dpi=144)
    return files


def points(results: Sequence[Result], phase: str) -> list[tuple[int, float]]:
    """The triples of each model, and the milliseconds that a phase took."""
    timed = [(result.triples, PHASES[phase](result)) for result in results]
    return sorted((triples, spent) for triples, spent in timed if spent is not None)


def _draw(axes: Axes, results: Sequence[Result], phase: str, query: str) -> None:
    lines: dict[str, list[Result]] = {}
    for result in results:
        lines.setdefault(f"{result.strategy}, {result.plan}", []).append(result)
    for (label, line), marker in zip(lines.items(), MARKERS * len(lines), strict=False):
        x, y = zip(*points(line, phase), strict=True)
        axes.plot(x, y, marker=marker, markersize=4, linewidth=1.2, label=label)
    axes.set(xscale="log", yscale="log", xlabel="triples", ylabel="ms")
    low, high = axes.get_ylim()
    if high < 10 * low:  # a decade at least, or noise would look like a trend
        middle = (low * high) ** 0.5
        axes.set_ylim(middle / 10**0.5, middle * 10**0.5)
    axes.set_title(f"{query}: {phase}", fontsize=9)
    axes.grid(visible=True, which="both", linewidth=0.3)
    axes.legend(fontsize=7)


def _median(times: Sequence[float]) -> float | None:
    return median(times) if times else None


def figure_class() -> type[Figure]:
    """What figures are made of, or an error that says how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GraphtideError(
            "plots need matplotlib, which is not installed",
            hint="pip install 'graphtide[viz]', or leave out --plot",
        ) from None
    return Figure
