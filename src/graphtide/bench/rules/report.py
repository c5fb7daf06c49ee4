"""The figures of the rules benchmark as JSON objects, and as a table with ratios."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from graphtide.bench.rules.worker import PEER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.bench.rules.run import Result


def to_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One object for each measurement, with its rate over that of clipspy."""
    return [{**asdict(result), "times_clipspy": ratio(result, results)} for result in results]


def ratio(result: Result, results: Sequence[Result]) -> float | None:
    """How many times as many events a second as clipspy, at the same number of equipments.

    >>> from graphtide.bench.rules.run import Result
    >>> ours, peer = Result("ids", 10, 9, 400, 1, 1.0), Result("clipspy", 10, 9, 20, 1, 1.0)
    >>> ratio(ours, [ours, peer]), ratio(ours, [ours])
    (20.0, None)
    """
    peers = [r for r in results if r.way == PEER and r.equipments == result.equipments]
    return round(result.events_per_s / peers[0].events_per_s, 1) if peers else None


def to_table(results: Sequence[Result]) -> Table:
    """A table for people."""
    table = Table(title="AlarmConfirmation", title_justify="left", box=SIMPLE_HEAD)
    for name in ("equipments", "from", "events", "firings", "events/s", "× clipspy", "MB"):
        table.add_column(name, justify="left" if name == "from" else "right", no_wrap=True)
    for result in results:
        times = ratio(result, results)
        table.add_row(
            f"{result.equipments:,}", result.way, f"{result.events:,}", f"{result.firings:,}",
            f"{result.events_per_s:,}", "-" if times is None else f"{times:.1f}",
            f"{result.rss_mb:,.0f}",
        )  # fmt: skip
    return table
