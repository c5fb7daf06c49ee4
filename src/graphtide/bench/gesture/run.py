"""Run measurements, each in its own process and one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.gesture.measure import MODES, Result, Task
from graphtide.bench.own_process import run_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAPER_BODIES: Final = (1, 2, 4, 8, 16, 24, 25)
SEARCH_FROM: Final = 200


def make_tasks(bodies: Sequence[int], *, search: bool) -> list[Task]:
    """Each number of bodies in each mode; then, of whole chains, the most bodies.

    >>> len(make_tasks([1, 2], search=True))
    11
    """
    tasks = [Task(count, mode) for mode in MODES for count in bodies]
    chains = [mode for mode in MODES if mode != "events"] if search else []
    return [*tasks, *(Task(SEARCH_FROM, mode, search=True) for mode in chains)]


def run_tasks(
    tasks: Sequence[Task],
    *,
    progress: Callable[[str], None] = lambda _: None,
    measure: Callable[[Task], Result] | None = None,
) -> list[Result]:
    """Measure tasks; `progress` hears which one is next."""
    results = []
    for number, task in enumerate(tasks, start=1):
        what = "most bodies" if task.search else f"{task.bodies} bodies"
        progress(f"{number} of {len(tasks)}: {task.mode}, {what}")
        results.append((measure or measure_apart)(task))
    return results


def measure_apart(task: Task) -> Result:
    """Measure a task in a fresh process."""
    worker = "graphtide.bench.gesture.worker"
    return Result(**run_worker(worker, task, f"{task.bodies} bodies, {task.mode}"))
