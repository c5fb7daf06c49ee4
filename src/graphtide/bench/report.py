"""Results of benchmarks as JSON objects, tables and plots. Rich and matplotlib load when needed."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from _typeshed import DataclassInstance
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from rich.table import Table

    from graphtide.bench.harness import Benchmark
    from graphtide.bench.train.protocol import PaperExperiment

Row = TypeVar("Row")
Point = tuple[float, float]

SUFFIXES: Final = (".png", ".svg")
MARKERS: Final = "os^vDPX*<>"
DPI: Final = 144
DECADE: Final = 10.0

WIDTH: Final = 140
"""Width of tables that are not printed to a terminal."""


@dataclass(frozen=True, slots=True)
class BenchReport:
    """What a benchmark reports: a value for JSON, tables, a plot, and notes for standard error."""

    objects: Any
    tables: Sequence[Table]
    plot: Plot | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TableColumn(Generic[Row]):
    """A column of a table: its header, and the text of a cell."""

    header: str
    text: Callable[[Row], str]
    left: bool = False


def to_objects(results: Iterable[DataclassInstance]) -> list[dict[str, Any]]:
    """One JSON object for each result."""
    return [asdict(result) for result in results]


def make_table(title: str, columns: Sequence[TableColumn[Row]], rows: Iterable[Row]) -> Table:
    """A table with a line for each row."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for column in columns:
        table.add_column(column.header, justify="left" if column.left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(column.text(row) for column in columns))
    return table


def text_columns(headers: Sequence[str], left: int = 1) -> list[TableColumn[Sequence[str]]]:
    """Columns for rows that are texts already; the first `left` ones are aligned left."""

    def column(at: int, header: str) -> TableColumn[Sequence[str]]:
        return TableColumn(header, lambda row: row[at] if at < len(row) else "", left=at < left)

    return [column(at, header) for at, header in enumerate(headers)]


def number(value: float | None) -> str:
    """An integer, or a number with two decimals below 100.

    >>> number(7), number(0.1234), number(1234.5), number(None)
    ('7', '0.12', '1,234', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 100 else f"{value:,.2f}"


def median_text(values: Sequence[float]) -> str:
    """The median as a number.

    >>> median_text([0.1, 0.3]), median_text([])
    ('0.20', '-')
    """
    return number(median(values) if values else None)


# ---- plots ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram: lines of points by label, on logarithmic axes.

    With `categories`, the x of a point is an index into them and lines are drawn as grouped bars.
    `ranges` has the least and the largest y at an x, by label: bars behind the points.
    """

    title: str
    lines: Mapping[str, Sequence[Point]]
    xlabel: str = ""
    ylabel: str = ""
    log_y: bool = True
    categories: Sequence[str] = ()
    reference: float | None = None
    ranges: Mapping[str, Sequence[tuple[float, float, float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plot:
    """Rows of panels with a title; `width` and `height` are those of a panel, in inches."""

    title: str
    rows: Sequence[Sequence[Panel]]
    width: float = 4.2
    height: float = 3.2
    legend_once: bool = field(default=False, kw_only=True)


def group_points(points: Iterable[tuple[str, float, float]]) -> dict[str, list[Point]]:
    """Points `(label, x, y)` by label, each line in order of x.

    >>> group_points([("a", 2, 5), ("b", 1, 1), ("a", 1, 9)])
    {'a': [(1, 9), (2, 5)], 'b': [(1, 1)]}
    """
    lines: dict[str, list[Point]] = {}
    for label, x, y in points:
        lines.setdefault(label, []).append((x, y))
    return {label: sorted(line) for label, line in lines.items()}


def check_plot(path: Path) -> None:
    """Raise unless a plot can be drawn and written there: before a long run rather than after."""
    _figure_class()
    if path.suffix not in ("", *SUFFIXES):
        raise GraphtideError(
            f"{path}: a plot cannot be written with the suffix {path.suffix!r}",
            hint="omit it: both .png and .svg are written",
        )
    if not path.absolute().parent.is_dir():
        raise GraphtideError(f"{path}: no such directory")


def write_plot(plot: Plot, path: Path) -> list[Path]:
    """Draw a plot as PNG and as SVG; the files written."""
    check_plot(path)
    most = max(len(row) for row in plot.rows)
    size = plot.width * most, 0.6 + plot.height * len(plot.rows)
    figure = _figure_class()(figsize=size, layout="constrained")
    axes = figure.subplots(len(plot.rows), most, squeeze=False)
    for line, row in zip(axes, plot.rows, strict=True):
        for axis, panel in zip(line, row, strict=False):
            _draw(axis, panel)
            if not plot.legend_once or axis is axes[0][0]:
                axis.legend(fontsize=5 if len(panel.lines) > len(MARKERS) else 7, framealpha=0.3)
        for axis in line[len(row) :]:
            axis.set_axis_off()
    figure.suptitle(plot.title)
    files = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for file in files:
        figure.savefig(file, dpi=DPI)
    return files


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=9)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
    if panel.categories:
        _draw_bars(axes, panel)
        return
    for (label, line), marker in zip(panel.lines.items(), MARKERS * len(panel.lines), strict=False):
        x, y = zip(*line, strict=True)
        (drawn,) = axes.plot(x, y, marker=marker, markersize=4, linewidth=1.2, label=label)
        for at, low, high in panel.ranges.get(label, ()):
            axes.vlines(at, low, high, color=drawn.get_color(), linewidth=1.0, alpha=0.6)
    if panel.reference is not None:
        axes.axhline(panel.reference, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_xlim(*_decade(*axes.get_xlim()))
    _label_log_axis(axes.xaxis, *axes.get_xlim())
    if panel.log_y:
        axes.set_yscale("log")
        axes.set_ylim(*_decade(*axes.get_ylim()))
        _label_log_axis(axes.yaxis, *axes.get_ylim())
    axes.grid(visible=True, which="both", linewidth=0.3)


def _draw_bars(axes: Axes, panel: Panel) -> None:
    width = 0.8 / len(panel.lines)
    for at, (label, line) in enumerate(panel.lines.items()):
        offset = (at - (len(panel.lines) - 1) / 2) * width
        axes.bar([x + offset for x, _ in line], [y for _, y in line], width, label=label)
    if panel.log_y:  # a value may be 0
        axes.set_yscale("symlog", linthresh=1)
    names = [name.replace(" ", "\n") for name in panel.categories]
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.grid(visible=True, axis="y", linewidth=0.3)


def _decade(low: float, high: float) -> tuple[float, float]:
    """A range of at least a decade, or noise would look like a trend.

    >>> _decade(1.0, 1000.0)
    (1.0, 1000.0)
    """
    if high >= DECADE * low:
        return low, high
    middle = (low * high) ** 0.5
    return middle / DECADE**0.5, middle * DECADE**0.5


def _label_log_axis(axis: Axis, low: float, high: float) -> None:
    """Few tick labels that cannot overlap: powers of ten, with 2 and 5 in between on short axes."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    short = high < low * DECADE**2
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if short else (1,), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axis.set_minor_formatter(NullFormatter())


def short_number(value: float) -> str:
    """A number as a tick label.

    >>> short_number(0.05), short_number(20), short_number(5000), short_number(2e6)
    ('0.05', '20', '5k', '2M')
    """
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}"


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GraphtideError(
            "plots need matplotlib, which is not installed",
            hint="pip install 'graphtide[viz]', or omit --plot",
        ) from None
    return Figure


# ---- running and printing ------------------------------------------------------------------------


def run_benchmark(
    benchmark: Benchmark[Any, Any] | PaperExperiment,
    tasks: Sequence[Any],
    *,
    as_json: bool,
    plot: Path | None = None,
) -> None:
    """Run a benchmark, print its report, and draw its plot."""
    from rich.console import Console

    if plot is not None:
        check_plot(plot)
    with show_progress() as progress:
        results = benchmark.run(tasks, progress)
    report = benchmark.report(results)
    for note in report.notes:
        print(note, file=sys.stderr)
    if as_json:
        print(json.dumps(report.objects))
    else:
        console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
        for table in report.tables:
            console.print(table)
    if plot is not None and report.plot is not None:
        for path in write_plot(report.plot, plot):
            print(f"wrote {path}", file=sys.stderr)


@contextmanager
def show_progress() -> Iterator[Callable[[str], None]]:
    """Yields a function that shows the current step, in a status line on a terminal."""
    from rich.console import Console

    screen = Console(stderr=True, highlight=False)
    with screen.status("starting") as status:

        def progress(step: str) -> None:
            status.update(step)
            if not screen.is_terminal:
                print(step, file=sys.stderr)

        yield progress
