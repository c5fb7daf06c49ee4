"""Run measurements, each in its own process and one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.bench.own_process import run_worker
from graphtide.bench.sequence.events import check_sizes
from graphtide.bench.sequence.measure import MODES, Result, Task, check_agreement, missing

if TYPE_CHECKING:
    from collections.abc import Callable


def run_benchmark(
    events: int,
    keys: int,
    seed: int = 0,
    *,
    progress: Callable[[str], None] = lambda _: None,
    measure: Callable[[Task], Result] | None = None,
) -> tuple[list[Result], dict[str, str]]:
    """The figures of all that can be measured, and why the others cannot."""
    check_sizes(events, keys)
    left_out: dict[str, str] = {mode: why for mode in MODES if (why := missing(mode)) is not None}
    results = []
    for mode in MODES:
        if mode not in left_out:
            progress(f"{mode}, {events:,} events")
            results.append((measure or measure_apart)(Task(mode, events, keys, seed)))
    check_agreement(results)
    return results, left_out


def measure_apart(task: Task) -> Result:
    """Measure a task in a fresh process."""
    worker = "graphtide.bench.sequence.worker"
    return Result(**run_worker(worker, task, task.mode))
