"""`Match` that writes down how it went: was the engine at hand, and how long did it take?"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphtide.spark import match

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from graphtide.spark.metrics_cache import CacheCounts
    from graphtide.spark.task import Task


class NotedMatch(match.Match):
    """A line per cell and micro-batch. With `forget`, engines have to be rebuilt each time."""

    def __init__(
        self, task: Task, counts: CacheCounts | None = None, *, notes: str, forget: bool = False
    ) -> None:
        super().__init__(task, counts)
        self._notes = notes
        self._forget = forget

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, also for Rows
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: N803 - Spark's signature
    ) -> Iterator[pd.DataFrame]:
        """One cell's part of a micro-batch."""
        if self._forget:
            match.CACHE.engines.clear()
        hits, rebuilt, started = match.CACHE.hits, match.CACHE.rebuilt, time.perf_counter()
        frames = list(super().handleInputRows(key, rows, timerValues))
        note = {
            "cell": key[0],
            "hit": match.CACHE.hits > hits,
            "rebuilt": match.CACHE.rebuilt > rebuilt,
            "ms": 1000 * (time.perf_counter() - started),
        }
        with Path(self._notes, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        yield from frames


def read_notes(folder: Path) -> list[dict[str, Any]]:
    """All that was written down."""
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]
