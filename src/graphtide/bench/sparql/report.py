"""The figures as objects for programs, and as a table for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.sparql.run import Result


def to_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One object for each result."""
    return [asdict(result) for result in results]


def to_table(results: Sequence[Result]) -> Table:
    """A line for each operator, a column for each size, and how the cost grew."""
    sizes = sorted({result.size for result in results})
    table = Table(title="µs per change by size of state", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("operator", no_wrap=True)
    for size in sizes:
        table.add_column(f"{size:,}", justify="right", no_wrap=True)
    table.add_column("last : first", justify="right", no_wrap=True)
    table.add_column("may grow", no_wrap=True)
    by_operator: dict[str, dict[int, Result]] = {}
    for result in results:
        by_operator.setdefault(result.operator, {})[result.size] = result
    for name, line in by_operator.items():
        costs = [line[size].micros for size in sizes]
        growth = line[sizes[0]].growth
        table.add_row(name, *map(micros_text, costs), f"{costs[-1] / costs[0]:.1f}", growth)
    return table


def micros_text(micros: float) -> str:
    """A time with as many digits as say something.

    >>> micros_text(0.123), micros_text(12.34), micros_text(1234.5)
    ('0.12', '12.3', '1,234')
    """
    if micros < 1:
        return f"{micros:.2f}"
    return f"{micros:.1f}" if micros < 100 else f"{micros:,.0f}"
