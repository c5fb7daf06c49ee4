"""The figures as objects for programs, and as a table for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.sequence.measure import Result

COLUMNS: Final = ("engine", "events", "keys", "events/s", "matches", "most tokens", "busy", "MB")


def to_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One object for each result."""
    return [asdict(result) for result in results]


def to_table(results: Sequence[Result]) -> Table:
    """A line for each engine."""
    title = "a -> b -> c -> d, one key, within 10 s"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for at, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if at == 0 else "right", no_wrap=True)
    for result in results:
        table.add_row(
            result.mode,
            f"{result.events:,}",
            f"{result.keys:,}",
            f"{result.events_per_s:,.0f}",
            f"{result.matches:,}",
            f"{result.most_tokens:,}" if result.mode == "graphtide" else "",
            f"{result.busy:.0%}",
            f"{result.rss_mb:,.0f}",
        )
    return table
