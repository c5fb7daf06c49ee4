"""Results of benchmarks as tables in Markdown, as JSON and as plots; matplotlib loads if needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Cell: TypeAlias = str | float | bool | None
Point: TypeAlias = tuple[float, float]

MARKERS: Final = "os^vDPX*<>"
DECADE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells by column; all rows have the columns of the first."""

    title: str
    rows: Sequence[Mapping[str, Cell]]

    def lines(self) -> Iterator[str]:
        """The table in Markdown; columns of numbers are aligned right.

        >>> for line in Table("T", [{"way": "ids", "rows": 1234, "ms": 0.5}]).lines():
        ...     print(line)
        T
        <BLANKLINE>
        | way |  rows |   ms |
        |-----|------:|-----:|
        | ids | 1,234 | 0.50 |
        """
        yield from (self.title, "")
        if not self.rows:
            return
        names = list(self.rows[0])
        cells = [[cell_text(row[name]) for name in names] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        right = [not any(isinstance(row[name], str) for row in self.rows) for name in names]
        yield _line(names, widths, right)
        ends = zip(widths, right, strict=True)
        yield "|".join(["", *("-" * (w + 1) + (":" if r else "-") for w, r in ends), ""])
        yield from (_line(row, widths, right) for row in cells)


def _line(cells: Iterable[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    columns = zip(cells, widths, right, strict=True)
    return f"| {' | '.join(c.rjust(w) if r else c.ljust(w) for c, w, r in columns)} |"


def cell_text(value: Cell) -> str:
    """The text of a cell; numbers below 100 that are not whole have two decimals.

    >>> cell_text(7), cell_text(0.1234), cell_text(1234.5), cell_text(None), cell_text(True)
    ('7', '0.12', '1,234', '', 'yes')
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case float() if value < 100:
            return f"{value:,.2f}"
    return f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram: lines of points by label, on logarithmic axes.

    `ranges` has the least and the largest y at an x, by label: bars behind the points.
    """

    title: str
    lines: Mapping[str, Sequence[Point]]
    xlabel: str
    ylabel: str
    reference: float | None = None
    ranges: Mapping[str, Sequence[tuple[float, float, float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plot:
    """Rows of panels with a title."""

    title: str
    rows: Sequence[Sequence[Panel]]


@dataclass(frozen=True, slots=True)
class Report:
    """What a benchmark reports: tables, a plot, and notes."""

    tables: Sequence[Table]
    plot: Plot | None = None
    notes: Sequence[str] = ()


def group_points(points: Iterable[tuple[str, float, float]]) -> dict[str, list[Point]]:
    """Points `(label, x, y)` by label, each line in order of x.

    >>> group_points([("a", 2, 5), ("b", 1, 1), ("a", 1, 9)])
    {'a': [(1, 9), (2, 5)], 'b': [(1, 1)]}
    """
    lines: dict[str, list[Point]] = {}
    for label, x, y in points:
        lines.setdefault(label, []).append((x, y))
    return {label: sorted(line) for label, line in lines.items()}


def write_plot(plot: Plot, path: Path) -> None:
    """Draw a plot, in the format of the path's suffix."""
    from matplotlib.figure import Figure

    most = max(len(row) for row in plot.rows)
    figure = Figure(figsize=(4 * most, 0.6 + 3 * len(plot.rows)), layout="constrained")
    axes = figure.subplots(len(plot.rows), most, squeeze=False)
    for line, row in zip(axes, plot.rows, strict=True):
        for axis, panel in zip(line, row, strict=False):
            _draw(axis, panel)
        for axis in line[len(row) :]:
            axis.set_axis_off()
    figure.suptitle(plot.title)
    figure.savefig(path, dpi=144)


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=9)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, xscale="log", yscale="log")
    for (label, line), marker in zip(panel.lines.items(), MARKERS * len(panel.lines), strict=False):
        x, y = zip(*line, strict=True)
        (drawn,) = axes.plot(x, y, marker=marker, markersize=4, linewidth=1.2, label=label)
        for at, low, high in panel.ranges.get(label, ()):
            axes.vlines(at, low, high, color=drawn.get_color(), linewidth=1.0, alpha=0.6)
    if panel.reference is not None:
        axes.axhline(panel.reference, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlim=_decade(*axes.get_xlim()), ylim=_decade(*axes.get_ylim()))
    for axis in (axes.xaxis, axes.yaxis):
        _label(axis)
    axes.grid(visible=True, which="both", linewidth=0.3)
    axes.legend(fontsize=7, framealpha=0.3)


def _decade(low: float, high: float) -> tuple[float, float]:
    """A range of at least a decade, or noise would look like a trend."""
    if high >= DECADE * low:
        return low, high
    middle = (low * high) ** 0.5
    return middle / DECADE**0.5, middle * DECADE**0.5


def _label(axis: Axis) -> None:
    """Labels at powers of ten: 10 k, 1 M."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    axis.set_major_formatter(EngFormatter())
    axis.set_minor_formatter(NullFormatter())
