"""Small chunks of a log are merged: few of them, in order, and none that an engine still needs."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from support.sampling import quick_sample

from graphtide.spark.state import log as log_module
from graphtide.spark.state.log import RUN, MemoryLog, merge_chunks
from graphtide.spark.state.messages import from_chunk, to_chunk
from graphtide.testing.partitions import PartitionRun


def put(log, version, rows=1):
    values = [version] * rows
    log.put_chunk(version, f"token {version}", to_chunk(pa.table({"a": values})))
    merge_chunks(log, version)


def contents(log):
    """All rows of a log, in order."""
    return [
        row
        for version in log.versions()
        for row in from_chunk(log.chunk(version)[1])["a"].to_pylist()
    ]


def test_a_log_of_many_small_chunks_has_few():
    log = MemoryLog()
    for version in range(1, 1001):
        put(log, version)
        assert contents(log) == list(range(1, version + 1))
        assert len(log.chunks) <= 2 * RUN + 3 * RUN
    # Two runs of 256 and one more, the runs of 16 after them, and the newest chunks.
    assert log.versions() == [256, 512, 768, *range(784, 977, 16), *range(977, 1001)]


def test_the_newest_chunks_and_all_tokens_stay():
    log = MemoryLog()
    for version in range(1, 400):
        put(log, version)
        newest = range(max(version - RUN + 1, 1), version + 1)
        assert set(newest) <= set(log.versions())
        assert all(log.chunk(at)[0] == f"token {at}" for at in log.versions())


@pytest.mark.parametrize("seed", quick_sample(range(20), 20))
def test_large_chunks_are_left_alone_and_the_order_is_kept(seed, monkeypatch):
    monkeypatch.setattr(log_module, "LARGE", 12_000)
    random, log, expected = Random(seed), MemoryLog(), []
    most = 0
    for version in range(1, 600):
        rows = random.choice((1, 1, 1, 1, 40, 3000)) if seed % 2 else random.choice((1, 20))
        if random.random() < 0.01:
            log.clear()
            expected.clear()
        put(log, version, rows)
        expected += [version] * rows
        assert contents(log) == expected
        most = max(most, len(log.chunks))
    assert most < 400


def test_an_engine_is_built_again_from_merged_chunks():
    quad = ("<ex:a>", "<ex:p>", "<ex:b>", None)
    run = PartitionRun.of({"q": "SELECT ?a { ?a <ex:p> ?b }"}, 1, workers=2)
    for time in range(600):
        # The same quad comes and goes: in any other order, its last state would be another.
        diff = 1 if time % 2 == 0 else -1
        tasks = [[(time, 0, diff, *quad), (time, 0, 0, *[None] * 4)]]
        assert run.batch(tasks) == [("q", time, 0, diff, ("<ex:a>",))]
        if time % 50 == 49:
            run.place = lambda _, worker=(time // 50) % 2: worker
        if time % 170 == 0:
            run.lose(0)
    assert run.logs["match"][0].head().oldest == 1, "no snapshot has replaced the log"
    assert len(run.logs["match"][0].chunks) < 60
    assert all(worker.rebuilt for worker in run.workers)
