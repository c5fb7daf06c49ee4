"""The figures as objects for programs, and as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.windows.run import Result

PAPER: Final = {
    100_000: (81, 848, 54, 425, 980, 925, 73),
    500_000: (52, 567, 26, 180, 876, 853, 50),
    1_000_000: (30, 241, 18, 146, 540, 415, 27),
}
"""Window -> the paper's Table 1 for its incremental engine, in 1000 triples/s, Q1 to Q7."""

TITLES: Final = {
    "table1": "Table 1: LUBM, tumbling windows, one triple per event",
    "figure6": "Figure 6: LUBM, tumbling windows of few triples",
    "figure7": "Figure 7: SEAS Q1, windows that slide by one triple",
    "figure8": "Figure 8: SEAS Q2, windows that slide by one triple",
    "figure9": "Figure 9: SEAS Q1, memory of the process",
}
COLUMNS: Final = (
    "query", "window", "event", "mode", "triples/s", "paper", "measured", "matches", "pruned", "MB",
)  # fmt: skip


def to_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One object for each result."""
    return [_object(result) for result in results]


def _object(result: Result) -> dict[str, Any]:
    cell = result.cell
    kind = "table" if cell.part.startswith("table") else "figure"
    return {
        kind: int(cell.part.removeprefix(kind)),
        "query": cell.query,
        "window_s": cell.window_s,
        "window_triples": cell.window,
        "slide_triples": cell.slide,
        "event_triples": cell.event,
        "mode": cell.mode,
        "triples_per_s": round(result.triples_per_s),
        "rss_mb": result.rss_mb,
        "matches": result.matches,
        "measured_triples": result.triples,
        "encode_s": round(result.encode_s, 3),
        "pruned": None if result.pruned is None else round(result.pruned, 4),
    }


def to_table(results: Sequence[Result]) -> Table:
    """A table of one line for each result of a part."""
    title = TITLES[results[0].cell.part]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in COLUMNS:
        left = name in ("query", "mode")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for result in results:
        cell = result.cell
        table.add_row(
            cell.query,
            f"{cell.window:,}",
            str(cell.event),
            cell.mode,
            f"{result.triples_per_s:,.0f}",
            _paper(result),
            f"{result.triples:,}",
            f"{result.matches:,}",
            "" if result.pruned is None else f"{result.pruned:.1%}",
            f"{result.rss_mb:,.0f}",
        )
    return table


def _paper(result: Result) -> str:
    """What the paper reports for the same cell."""
    cell = result.cell
    known = cell.part == "table1" and cell.mode == "incremental" and cell.window in PAPER
    return f"{PAPER[cell.window][int(cell.query[1:]) - 1] * 1000:,}" if known else ""
