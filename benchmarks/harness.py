"""The harness of all benchmarks: each task is measured in its own process, one after the other.

A benchmark module declares a `BENCHMARK`: which tasks there are, how a task is measured, and how
results are reported. `worker` is the main function of a process that measures one task. Nothing
here imports Graphtide: the process of a peer must not load the engine, which would count as the
peer's memory.
"""

from __future__ import annotations

import gc
import importlib
import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from benchmarks.report import Report

TaskT = TypeVar("TaskT", bound="DataclassInstance")
ResultT = TypeVar("ResultT", bound="DataclassInstance")
Progress = Callable[[str], None]

ROOT: Final = Path(__file__).parents[1]
WORKER: Final = "from benchmarks.harness import worker; worker()"


class BenchmarkError(Exception):
    """An option that cannot be, or a measurement that failed or found a wrong answer."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)


class LimitExceededError(BenchmarkError):
    """A measurement was terminated because it went over its `limit`."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class RunLimits(NamedTuple):
    """What a measurement may take: seconds, and bytes of memory."""

    seconds: float
    bytes: int


def silent(_: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Benchmark(Generic[TaskT, ResultT]):
    """What a benchmark declares to the harness; tasks and results are dataclasses of JSON values.

    The parameters of `tasks` are the options of the benchmark; `small` has values with which it
    takes seconds. `warm_up` makes the small tasks that are measured before each task, so that all
    code is compiled and loaded. `prepare` makes tasks whose results are dropped: they leave
    compiled code on disk, because compiling takes memory. `check` raises if engines disagree.
    """

    module: str
    task: type[TaskT]
    result: type[ResultT]
    tasks: Callable[..., Sequence[TaskT]]
    measure: Callable[[TaskT], ResultT]
    report: Callable[[Sequence[ResultT]], Report]
    warm_up: Callable[[TaskT], Sequence[TaskT]]
    small: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Sequence[TaskT]], Sequence[TaskT]] = lambda _: ()
    check: Callable[[Sequence[ResultT]], None] = lambda _: None
    own_process: bool = True
    garbage_collection: bool = False

    def run(self, tasks: Sequence[TaskT], progress: Progress = silent) -> list[ResultT]:
        """Measure tasks; `progress` is called before each. Raises if a measurement fails."""
        measure = self.measure_apart if self.own_process else self.measure_here
        for task in self.prepare(tasks):
            progress(f"compiling: {task}")
            measure(task)
        results = []
        for number, task in enumerate(tasks, start=1):
            progress(f"{number} of {len(tasks)}: {task}")
            results.append(measure(task))
        self.check(results)
        return results

    def measure_here(self, task: TaskT) -> ResultT:
        """Measure a task in this process, after its warm-up."""
        for small in self.warm_up(task):
            self.measure(small)
        with compilations() as compiled:
            found = self._measure_once(task)
        # A loop that was compiled meanwhile is no part of the result.
        return self._measure_once(task) if compiled else found

    def _measure_once(self, task: TaskT) -> ResultT:
        gc.collect()
        if self.garbage_collection:
            return self.measure(task)
        gc.disable()
        try:
            return self.measure(task)
        finally:
            gc.enable()

    def measure_apart(self, task: TaskT, limits: RunLimits | None = None) -> ResultT:
        """Measure a task in a new process, which is killed when it goes over its limits."""
        command = [sys.executable, "-c", WORKER, self.module, json.dumps(asdict(task))]
        command += [] if limits is None else [str(limits.bytes)]
        seconds = None if limits is None else limits.seconds
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, timeout=seconds, cwd=ROOT
            )
        except subprocess.TimeoutExpired:
            limit = f"over {seconds:g} s"
            raise LimitExceededError(f"the measurement ({task}) took {limit}", limit) from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip() and line[0] != " "]
            last = (lines or [f"exit code {done.returncode}"])[-1]
            if limits is not None and "MemoryError" in last:
                limit = f"over {limits.bytes / 1e9:g} GB"
                raise LimitExceededError(f"the measurement ({task}) needed {limit}", limit)
            raise BenchmarkError(f"the measurement ({task}) failed: {last}")
        return self.result(**json.loads(done.stdout.splitlines()[-1]))


def worker() -> None:
    """Measure the task of a benchmark module that the command line names; print it as JSON."""
    module, task, *limit = sys.argv[1:]
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit[0]), int(limit[0])))
    benchmark = importlib.import_module(module).BENCHMARK
    print(json.dumps(asdict(benchmark.measure_here(benchmark.task(**json.loads(task))))))


@contextmanager
def compilations() -> Iterator[list[object]]:
    """Yields a list of the compilations of loops during the block; a peer's process has none."""
    if "numba" not in sys.modules:
        yield []
        return
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        yield recorder.buffer


def check_names(names: Sequence[str], known: Sequence[str], option: str) -> list[str]:
    """The names; `all` stands for all that are known. Raises if one is not known.

    >>> check_names(["all"], ["a", "b"], "--queries"), check_names(["b"], ["a", "b"], "--queries")
    (['a', 'b'], ['b'])
    """
    chosen = list(known) if list(names) == ["all"] else list(names)
    for name in chosen:
        if name not in known:
            raise BenchmarkError(f"{option}: unknown {name!r}; choose from {', '.join(known)}")
    return chosen


def check_same(found: Mapping[str, object], what: str) -> None:
    """Raise unless all engines found the same.

    >>> check_same({"ids": 3, "duckdb": 4}, "matches")
    Traceback (most recent call last):
        ...
    benchmarks.harness.BenchmarkError: the engines disagree on the matches: ids 3, duckdb 4
    """
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {value}" for name, value in found.items())
        raise BenchmarkError(f"the engines disagree on the {what}: {listed}")


# ---- measuring time and memory -------------------------------------------------------------------


class Stopwatch:
    """Seconds between entering and leaving a `timed()` block."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Time a block, with Python's garbage collection off."""
    watch = Stopwatch()
    gc.collect()
    gc.disable()
    start = perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = perf_counter() - start
        gc.enable()


def time_each(actions: Iterator[Callable[[], object]]) -> list[float]:
    """Seconds that each action takes, one after the other."""
    spent = []
    with timed():
        for action in actions:
            start = perf_counter()
            action()
            spent.append(perf_counter() - start)
    return spent


def peak_rss_mb() -> float:
    """Peak memory of this process, in MB of 10^6 bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, ru_maxrss would include the parent process: it is inherited at fork.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return round(int(found[1]) * 1024 / 1e6, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)
