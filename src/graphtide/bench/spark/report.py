"""The figures of the pipeline's benchmark as one JSON object, and as a table with ratios."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from graphtide.bench.spark import PIPELINES

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.bench.spark.run import Figures, Results


def to_object(results: Results) -> dict[str, Any]:
    """One object for programs to read."""
    return {
        **{name: _figures(results.pipelines[name]) for name in PIPELINES},
        "cache_hit_ratio": results.cache_hit_ratio,
        "rebuild_ms": results.rebuild_ms,
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "rows_per_s": figures.rows_per_s,
        "batch_ms_median_small": figures.batch_ms_median_small,
        "batch_ms_by_graph_size": {
            str(size): ms for size, ms in figures.batch_ms_by_graph_size.items()
        },
    }


def to_table(results: Results, changes: int) -> Table:
    """A table for people: the three pipelines, and how ours compares with the identity."""
    title = f"RouteSensor on Spark, {changes:,} changes (ratio: graphtide to identity)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in ("", *PIPELINES, "ratio", "aim"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    _row(table, results, "in bulk, rows/s", lambda f: f.rows_per_s, "≥ 0.6×")
    _row(table, results, "small batch, median ms", lambda f: f.batch_ms_median_small, "≤ 1.3×")
    for size in results.pipelines["graphtide"].batch_ms_by_graph_size:
        label = f"small batch at {size:,} edges, ms"
        _row(table, results, label, partial(_ms_at, size), "")
    _row(table, results, "largest graph / smallest", growth, "≤ 1.2")
    table.add_row("engine at hand", "", f"{results.cache_hit_ratio:.1%}")
    table.add_row("engine rebuilt, ms", "", _number(results.rebuild_ms))
    return table


def _ms_at(size: int, figures: Figures) -> float:
    return figures.batch_ms_by_graph_size[size]


def growth(figures: Figures) -> float:
    """How much dearer a small batch is in the largest graph than in the smallest."""
    by_size = list(figures.batch_ms_by_graph_size.values())
    return round(by_size[-1] / by_size[0], 2)


def _row(
    table: Table, results: Results, label: str, value: Callable[[Figures], float], aim: str
) -> None:
    values = [value(results.pipelines[name]) for name in PIPELINES]
    ratio = f"{values[1] / values[0]:.2f}×" if values[0] else ""
    table.add_row(label, *map(_number, values), ratio, aim)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
