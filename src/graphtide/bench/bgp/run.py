"""Run measurements, each in its own process and one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.bench.bgp.measure import CONTENDERS, Result, Task
from graphtide.bench.bgp.queries import QUERIES
from graphtide.bench.own_process import run_worker
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def make_tasks(sizes: Sequence[int], seed: int) -> list[Task]:
    """Each class under each contender, for each size.

    >>> len(make_tasks([1000], 0))
    16
    """
    return [
        Task(of_class, contender, size, seed)
        for size in sizes
        for of_class in QUERIES
        for contender in CONTENDERS
    ]


def run_tasks(
    tasks: Sequence[Task],
    *,
    progress: Callable[[str], None] = lambda _: None,
    measure: Callable[[Task], Result] | None = None,
) -> list[Result]:
    """Measure tasks; `progress` hears which one is next."""
    results = []
    for number, task in enumerate(tasks, start=1):
        what = f"{task.of_class}, {task.contender}, {task.triples:,} triples"
        progress(f"{number} of {len(tasks)}: {what}")
        results.append((measure or measure_apart)(task))
    check_agreement(results)
    return results


def measure_apart(task: Task) -> Result:
    """Measure a task in a fresh process."""
    worker = "graphtide.bench.bgp.worker"
    return Result(
        **run_worker(
            worker,
            task,
            f"{task.of_class}, {task.contender}",
            "a smaller size shows whether memory is the problem",
        )
    )


def check_agreement(results: Sequence[Result]) -> None:
    """Raise unless all contenders had the same answers: figures of a wrong one mean nothing."""
    answers: dict[tuple[str, int], tuple[int, int]] = {}
    for result in results:
        key, own = (result.of_class, result.triples), (result.rows, result.delta_rows)
        if answers.setdefault(key, own) != own:
            raise GraphtideError(
                f"{result.contender} has {own[0]} rows of the {result.of_class} query and "
                f"{own[1]} changes, others have {answers[key]}"
            )
