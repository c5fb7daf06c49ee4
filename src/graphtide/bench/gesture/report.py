"""The figures as objects for programs, and as a table for people, beside those of the paper."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.gesture.measure import Result

PAPER: Final = {
    1: (69_041, 414_248, 69.041),
    2: (63_458, 380_749, 31.729),
    4: (66_094, 396_562, 16.523),
    8: (41_907, 251_442, 5.238),
    16: (35_003, 210_017, 2.188),
    24: (24_220, 145_322, 1.009),
    25: (20_611, 123_664, 0.824),
}
"""Table 3: bodies -> complex events a second, atomic events a second, speed (times 25 FPS)."""

COLUMNS: Final = (
    "mode",
    "bodies",
    "complex/s",
    "paper",
    "atomic/s",
    "paper",
    "updates/s",
    "x 25 FPS",
    "paper",
    "worst ms",
    "busy",
    "MB",
)


def to_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One object for each result."""
    return [asdict(result) for result in results]


def to_table(results: Sequence[Result]) -> Table:
    """A line for each measurement, with the paper's figures where it has some."""
    table = Table(title="Gestures", title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for at, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if at == 0 else "right", no_wrap=True)
    for result in results:
        complex_s, atomic_s, speed = PAPER.get(result.bodies, (None, None, None))
        whole = result.mode != "events"
        table.add_row(
            result.mode if result.name == "gesture" else f"{result.mode}: most",
            f"{result.bodies:,}",
            f"{result.matches_per_s:,.0f}",
            "" if complex_s is None else f"{complex_s:,}",
            f"{result.events_per_s:,.0f}",
            "" if atomic_s is None else f"{atomic_s:,}",
            f"{result.updates_per_s:,.0f}" if whole else "",
            f"{result.speed:,.2f}",
            "" if speed is None else f"{speed:.3f}",
            f"{result.slowest_ms:.1f}" if whole else "",
            f"{result.busy:.0%}",
            f"{result.rss_mb:,.0f}",
        )
    return table
