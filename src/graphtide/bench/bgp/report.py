"""The figures of the benchmark as objects for programs, and as a table for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.bgp.measure import Result

COLUMNS = (
    "triples", "class", "strategy", "rows", "entries", "own kB", "quads kB", "load µs", "update µs",
)  # fmt: skip
TEXTS = ("class", "strategy")


def to_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One object for each result."""
    return [asdict(result) for result in results]


def to_table(results: Sequence[Result]) -> Table:
    """A table of one line for each result."""
    title = "Standing patterns: what a query keeps, what the quads take, µs per change"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in TEXTS else "right", no_wrap=True)
    for result in results:
        table.add_row(
            f"{result.triples:,}",
            result.of_class,
            result.contender,
            f"{result.rows:,}",
            f"{result.entries:,}",
            f"{result.bytes / 1000:,.1f}",
            f"{result.quad_bytes / 1000:,.1f}",
            f"{result.load_us:.2f}",
            f"{result.update_us:.2f}",
        )
    return table
