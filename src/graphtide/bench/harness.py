"""The harness of all benchmarks: each task is measured in its own process, one after the other.

A benchmark module declares a `BENCHMARK`: its task and result types, how a task is measured, and
how results are reported. Run as a file, this module is the worker process: `python harness.py
MODULE TASK` measures one task and prints the result as JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from graphtide.bench.report import BenchReport

TaskT = TypeVar("TaskT", bound="DataclassInstance")
ResultT = TypeVar("ResultT", bound="DataclassInstance")
Progress = Callable[[str], None]


class RunLimits(NamedTuple):
    """What a measurement may take: seconds, and bytes of memory."""

    seconds: float
    bytes: int


class LimitExceededError(GraphtideError):
    """A measurement was terminated because it went over its `limit`."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


def silent(_: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Benchmark(Generic[TaskT, ResultT]):
    """What a benchmark declares to the harness; tasks and results are dataclasses of JSON values.

    `warm_up` makes the small tasks that are measured before each task, so that all code is compiled
    and loaded. `prepare` makes tasks whose results are dropped: they leave compiled code on disk,
    because compiling takes memory. `check` raises if engines disagree. `is_peer` selects tasks of
    peers: their processes do not load Graphtide's engine, which would count as the peer's memory.
    """

    module: str
    task: type[TaskT]
    result: type[ResultT]
    measure: Callable[[TaskT], ResultT]
    report: Callable[[Sequence[ResultT]], BenchReport]
    warm_up: Callable[[TaskT], Sequence[TaskT]]
    prepare: Callable[[Sequence[TaskT]], Sequence[TaskT]] = lambda _: ()
    check: Callable[[Sequence[ResultT]], None] = lambda _: None
    is_peer: Callable[[TaskT], bool] = lambda _: False
    own_process: bool = True
    garbage_collection: bool = False
    hint: str | None = None

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
        found, compiled = self._measure_once(task)
        return self._measure_once(task)[0] if compiled else found

    def _measure_once(self, task: TaskT) -> tuple[ResultT, bool]:
        """Measure a task, and whether a loop was compiled meanwhile: that is no part of it."""
        before = compile_seconds()
        gc.collect()
        if self.garbage_collection:
            return self.measure(task), compile_seconds() > before
        gc.disable()
        try:
            return self.measure(task), compile_seconds() > before
        finally:
            gc.enable()

    def measure_apart(self, task: TaskT, limits: RunLimits | None = None) -> ResultT:
        """Measure a task in a new process, which is killed when it goes over its limits."""
        worker = ["--peer"] if self.is_peer(task) else []
        worker += [] if limits is None else [f"--bytes={limits.bytes}"]
        command = [sys.executable, "-P", __file__, self.module, json.dumps(asdict(task)), *worker]
        seconds = None if limits is None else limits.seconds
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, timeout=seconds
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
            raise GraphtideError(f"the measurement ({task}) failed: {last}", hint=self.hint)
        return self.result(**json.loads(done.stdout.splitlines()[-1]))


def compile_seconds() -> float:
    """How long this process has compiled loops; a process of a peer has none."""
    jit = sys.modules.get("graphtide.jit")
    return 0.0 if jit is None else float(jit.compile_seconds())


def main(module: str, task: str, *, peer: bool) -> None:
    """Measure a task of a benchmark module, and print the result as JSON."""
    if peer:
        # Submodules can be imported without running the package, which would load the engine.
        package = ModuleType("graphtide")
        package.__path__ = [str(Path(__file__).parents[1])]
        sys.modules["graphtide"] = package
    benchmark = importlib.import_module(module).BENCHMARK
    print(json.dumps(asdict(benchmark.measure_here(benchmark.task(**json.loads(task))))))


# ---- measuring time and memory -------------------------------------------------------------------


class Stopwatch:
    """Seconds between entering and leaving a `timed()` block."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Time a block, with Python's garbage collection off.

    >>> with timed() as watch:
    ...     pass
    >>> watch.seconds >= 0
    True
    """
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
    """Peak memory of this process, in MB of 10^6 bytes.

    >>> peak_rss_mb() > 1
    True
    """
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, ru_maxrss would include the parent process: it is inherited at fork.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return round(int(found[1]) * 1024 / 1e6, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)


if __name__ == "__main__":
    for _option in sys.argv[3:]:
        if _option.startswith("--bytes="):
            _bytes = int(_option.partition("=")[2])
            resource.setrlimit(resource.RLIMIT_DATA, (_bytes, _bytes))
    main(sys.argv[1], sys.argv[2], peer="--peer" in sys.argv[3:])
