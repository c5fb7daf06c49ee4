"""Processor time of this process and of all that it has started: it tells more than wall time.

On a machine that others use, a micro-batch takes longer; the work it does stays the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

LOOK_SECONDS: Final = 0.01

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


class ProcessorTimes:
    """The processor time at the end of each micro-batch of a query, as its checkpoint tells it.

    A listener of Spark would be told of each end as well, but Java and Python then work as long on
    every report as on a small micro-batch itself.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._commits = checkpoint / "commits"
        self._ends: list[float] = []
        self._stopped = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._before = tree_seconds()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self._take()
        self._take()

    def _take(self) -> None:
        while (self._commits / str(len(self._ends))).exists():
            self._ends.append(tree_seconds())

    def by_batch(self) -> dict[int, float]:
        """Seconds of each micro-batch."""
        begins = [self._before, *self._ends]
        return {batch: end - begins[batch] for batch, end in enumerate(self._ends)}
