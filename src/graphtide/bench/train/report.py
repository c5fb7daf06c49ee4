"""The figures of the benchmark as objects for programs, and as a table for people."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.train.run import Result

COLUMNS = (
    "size", "triples", "query", "strategy", "plan", "matches", "read", "check", "transform",
    "recheck", "MB", "tuples",
)  # fmt: skip
TEXTS = ("query", "strategy", "plan")


def to_objects(results: Sequence[Result], *, nodes: bool = False) -> list[dict[str, Any]]:
    """One object for each result, with or without its nodes."""
    objects = [asdict(result) for result in results]
    return objects if nodes else [{k: v for k, v in o.items() if k != "nodes"} for o in objects]


def to_table(results: Sequence[Result], scenario: str) -> Table:
    """A table of one line for each result; of the rounds it shows the median."""
    title = f"Train Benchmark, {scenario}: times in ms, transform and recheck as medians"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in TEXTS else "right", no_wrap=True)
    for result in results:
        table.add_row(
            f"{result.size:,}",
            f"{result.triples:,}",
            result.query,
            result.strategy,
            result.plan,
            matches_text(result.matches),
            milliseconds([result.read_ms]),
            milliseconds([result.check_ms]),
            milliseconds(result.transform_ms),
            milliseconds(result.recheck_ms),
            f"{result.rss_mb:,.0f}",
            f"{result.tuples_stored:,}",
        )
    return table


def matches_text(matches: Sequence[int]) -> str:
    """The matches at the check, and after the last round.

    >>> matches_text([14, 24, 34]), matches_text([0])
    ('14 → 34', '0')
    """
    return f"{matches[0]:,} → {matches[-1]:,}" if len(matches) > 1 else f"{matches[0]:,}"


def milliseconds(times: Sequence[float]) -> str:
    """The median, with as many digits as say something.

    >>> milliseconds([0.1234]), milliseconds([1234.5]), milliseconds([])
    ('0.12', '1,234', '-')
    """
    if not times:
        return "-"
    middle = median(times)
    return f"{middle:,.0f}" if middle >= 100 else f"{middle:.2f}"
