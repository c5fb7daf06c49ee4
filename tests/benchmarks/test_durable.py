"""The benchmark of stores measures what it says, and its answers agree."""

from __future__ import annotations

import pytest

from benchmarks.durable import (
    BENCHMARK,
    DurableResult,
    DurableTask,
    check_rows,
    make_tasks,
    measure,
    report,
)


@pytest.mark.parametrize("part", ["write", "open"])
@pytest.mark.slow
def test_a_store_gives_the_answers_of_memory(part):
    tasks = [task for task in make_tasks(600, 600, seed=3) if task.part == part]
    results = [measure(task) for task in tasks]
    check_rows(results)
    assert all(result.rows for result in results)
    assert all(result.bytes for result in results if result.mode != "memory")
    assert len(report(results).objects) == len(tasks)


@pytest.mark.slow
def test_ages_are_of_every_insert():
    result = measure(DurableTask("age", "2000", "batch", 600, seed=3))
    assert 0 < result.median_ms <= result.p99_ms <= result.max_ms
    assert result.rows
    assert len(report([result]).tables) == 1


def test_other_answers_are_an_error():
    results = [
        DurableResult("write", "ids", mode, 1, 1.0, 1, 1.0, len(mode)) for mode in ("a", "bb")
    ]
    with pytest.raises(AssertionError):
        check_rows(results)


def test_the_warm_up_is_small():
    [small] = BENCHMARK.warm_up(DurableTask("open", "ids", "batch", 10**7))
    assert small.edges < 10**4
