"""The harness: tasks in this process and in others, time and memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from benchmarks import harness
from benchmarks.harness import Benchmark, peak_rss_mb, time_each
from benchmarks.report import BenchReport


@dataclass(frozen=True)
class Doubling:
    number: int

    def __str__(self):
        return f"double {self.number}"


@dataclass(frozen=True)
class Doubled:
    number: int
    collects: bool


MEASURED = []


def measure(task):
    MEASURED.append(task.number)
    return Doubled(2 * task.number, gc.isenabled())


BENCHMARK = Benchmark(
    module=__name__,
    task=Doubling,
    result=Doubled,
    measure=measure,
    report=lambda results: BenchReport(len(results), []),
    warm_up=lambda task: [replace(task, number=0)],
    own_process=False,
)


@pytest.fixture(autouse=True)
def nothing_measured():
    MEASURED.clear()


def test_a_small_task_warms_up_each():
    steps = []
    results = BENCHMARK.run([Doubling(3), Doubling(4)], steps.append)
    assert [result.number for result in results] == [6, 8]
    assert MEASURED == [0, 3, 0, 4]
    assert steps == ["1 of 2: double 3", "2 of 2: double 4"]


@pytest.mark.parametrize("on", [True, False])
def test_garbage_collection(on):
    (result,) = replace(BENCHMARK, garbage_collection=on).run([Doubling(1)])
    assert result.collects is on and gc.isenabled()


def test_what_is_compiled_meanwhile_is_measured_again(monkeypatch):
    """The loop that the first measurement had to compile is no part of the result."""
    spent = iter([0.0, 2.5, 2.5, 2.5])
    monkeypatch.setattr(harness, "compile_seconds", lambda: next(spent))
    (result,) = BENCHMARK.run([Doubling(3)])
    assert result.number == 6 and MEASURED == [0, 3, 3]


def test_results_of_preparing_tasks_are_dropped():
    prepared = replace(BENCHMARK, prepare=lambda tasks: [Doubling(9)], warm_up=lambda _: [])
    assert len(prepared.run([Doubling(1)])) == 1
    assert MEASURED == [9, 1]


def test_results_are_checked():
    def check(results):
        raise ValueError(len(results))

    with pytest.raises(ValueError, match="2"):
        replace(BENCHMARK, check=check).run([Doubling(1), Doubling(2)])


def test_the_process_of_a_peer_does_not_load_the_engine():
    script = (
        "import runpy, sys\n"
        "sys.argv = [sys.argv[1], 'benchmarks.rules', "
        '\'{"way": "clipspy", "equipments": 5, "events": 50}\', \'--peer\']\n'
        "try:\n"
        "    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except ImportError:\n"  # clipspy is optional
        "    pass\n"
        "print([name for name in sys.modules if name.startswith('graphtide.')])\n"
    )
    command = [sys.executable, "-c", script, harness.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert "benchmarks.rules" in loaded
    assert not any(f"graphtide.{name}" in loaded for name in ("engine", "kernel", "rdf", "plan"))


def test_peak_memory_grows_with_what_is_held():
    before = peak_rss_mb()
    held = np.ones(30_000_000, np.int64)
    assert peak_rss_mb() >= before
    assert peak_rss_mb() > held.nbytes / 1e6


def test_each_action_is_timed():
    done = []
    assert len(time_each(iter([lambda: done.append(1), lambda: done.append(2)]))) == 2
    assert done == [1, 2] and gc.isenabled()
