"""Processor time of this process and of all that it has started: it tells more than wall time.

On a machine that others use, a micro-batch takes longer; the work it does stays the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

_PARENT, _TIMES = 1, slice(11, 15)
"""In `/proc/PID/stat`, after the name: the parent, and the times of a process and its dead."""


def tree_seconds() -> float:
    """The processor time of this process, its children, and theirs; 0 where there is no /proc."""
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        stats[int(path.parent.name)] = text.rpartition(")")[2].split()
    ticks = sum(sum(map(int, stat[_TIMES])) for pid, stat in stats.items() if _is_ours(pid, stats))
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_ours(pid: int, stats: dict[int, list[str]]) -> bool:
    while pid in stats and pid != os.getpid():
        pid = int(stats[pid][_PARENT])
    return pid in stats


class ProcessorTimes(StreamingQueryListener):
    """The processor time at the end of each micro-batch of a session's queries."""

    def __init__(self) -> None:
        self._ends: dict[int, float] = {}
        self._before = tree_seconds()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """A query began (called by Spark)."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done (called by Spark)."""
        self._ends[event.progress.batchId] = tree_seconds()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing new has come in (called by Spark)."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """A query ended (called by Spark)."""

    def by_batch(self) -> dict[int, Any]:
        """Seconds of each micro-batch."""
        found, before = {}, self._before
        for batch, end in sorted(self._ends.items()):
            found[batch], before = end - before, end
        return found
