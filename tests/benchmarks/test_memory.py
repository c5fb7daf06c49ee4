"""`graphtide bench memory`: bytes per quad and per term."""

from __future__ import annotations

import pytest

from benchmarks.memory import LOADS, MemoryTask, make_tasks, measure, report


@pytest.mark.parametrize("task", make_tasks(4000, 0), ids=lambda task: task.load)
def test_bytes_are_those_of_the_tables(task):
    result = measure(task)
    # Four ids, a count and a hash entry of two numbers: what every quad needs.
    assert 4 * 7 <= result.quad_bytes < 250
    # A term has its text, where it begins and ends, a number, a kind and a slot.
    assert 20 + 16 + 8 + 1 + 8 < result.term_bytes < 250
    assert result.quads > 3000 and result.terms > 1000 and result.peak_mb > 1


def test_indexes_take_memory():
    found = {load: measure(MemoryTask(load, 4000)).quad_bytes for load in LOADS}
    assert found["no query"] < found["one transaction"]
    assert len(report([measure(MemoryTask(LOADS[0], 4000))]).objects) == 1
