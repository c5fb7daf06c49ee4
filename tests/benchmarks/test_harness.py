"""The harness: what is measured again, what is refused, and the limits of a process."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from benchmarks import harness
from benchmarks.harness import Benchmark, BenchmarkError, LimitExceededError, RunLimits
from benchmarks.report import Report
from benchmarks.train.benchmark import BENCHMARK as TRAIN
from benchmarks.train.benchmark import TrainTask


@dataclass(frozen=True)
class Doubling:
    number: int


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
    tasks=list,
    measure=measure,
    report=lambda _: Report([]),
    warm_up=lambda task: [replace(task, number=0)],
    own_process=False,
)


@pytest.fixture(autouse=True)
def nothing_measured():
    MEASURED.clear()


def test_a_small_task_warms_up_each():
    results = BENCHMARK.run([Doubling(3), Doubling(4)])
    assert [result.number for result in results] == [6, 8]
    assert MEASURED == [0, 3, 0, 4]


@pytest.mark.parametrize("on", [True, False])
def test_garbage_collection(on):
    (result,) = replace(BENCHMARK, garbage_collection=on).run([Doubling(1)])
    assert result.collects is on and gc.isenabled()


def test_what_is_compiled_meanwhile_is_measured_again(monkeypatch):
    """The loop that the first measurement had to compile is no part of the result."""

    @contextmanager
    def compiled():
        yield ["a loop"]

    monkeypatch.setattr(harness, "compilations", compiled)
    (result,) = BENCHMARK.run([Doubling(3)])
    assert result.number == 6 and MEASURED == [0, 3, 3]


@pytest.mark.slow
def test_a_failing_measurement_is_reported():
    task = TrainTask("repair", 1, ("PosLength",))
    object.__setattr__(task, "plan", "nope")
    with pytest.raises(BenchmarkError, match=r"the measurement \(repair 1: .*\) failed: .*nope"):
        TRAIN.measure_apart(task)


def test_a_process_over_its_time_is_killed():
    with pytest.raises(LimitExceededError, match=r"over 0\.05 s"):
        TRAIN.measure_apart(TrainTask("repair", 1, ("RouteSensor",)), RunLimits(0.05, 10**11))


@pytest.mark.slow
def test_a_process_over_its_memory_ends():
    task = TrainTask("repair", 8, ("SemaphoreNeighbor",), "rete", "F")
    with pytest.raises(LimitExceededError, match=r"over 0\.9 GB"):
        TRAIN.measure_apart(task, RunLimits(120, 900_000_000))
