"""The log of a partition: few chunks, in order, none that an engine still needs is merged."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from support.sampling import quick_sample

from graphtide.errors import GraphtideError
from graphtide.spark.state import log as log_module
from graphtide.spark.state.frontier import Frontier, Shards
from graphtide.spark.state.log import (
    FORMAT,
    RUN,
    TAIL_BYTES,
    Head,
    LogEntry,
    MemoryLog,
    Stored,
    appended,
    check_fingerprint,
)
from graphtide.spark.state.messages import from_chunk, to_chunk
from oracles.partitions import PartitionRun


def put(log, head, rows=1):
    version = head.version + 1
    head = replace(head, version=version, token=f"token {version}")
    return appended(log, head, to_chunk(pa.table({"a": [version] * rows})))


def entries(log, head):
    """All chunks, in order."""
    return [*(log.chunk(each.version) for each in head.stored), *head.tail]


@cache
def rows_of(chunk):
    return from_chunk(chunk)["a"].to_numpy()


def contents(log, head):
    """All rows of a log, in order."""
    return np.concatenate([rows_of(entry.chunk) for entry in entries(log, head)])


def test_a_log_of_many_small_chunks_has_few():
    log, head = MemoryLog(), Head()
    for version in range(1, 1001):
        head = put(log, head)
        assert np.array_equal(contents(log, head), np.arange(1, version + 1))
        assert sorted(log.chunks) == [each.version for each in head.stored]
        assert len(head.stored) <= 2 * RUN and len(head.tail) <= 2 * RUN
        assert head.size == sum(len(entry.chunk) for entry in entries(log, head))
    # Three runs of 256, the runs of 16 after them; the newest chunks are in the tail.
    assert [each.version for each in head.stored] == [256, 512, 768, *range(784, 977, 16)]
    assert [entry.version for entry in head.tail] == list(range(977, 1001))


def test_the_newest_chunks_and_all_tokens_stay():
    log, head = MemoryLog(), Head()
    for version in range(1, 400):
        head = put(log, head)
        newest = range(max(version - RUN + 1, 1), version + 1)
        assert set(newest) <= {entry.version for entry in head.tail}
        assert all(e.token == f"token {e.version}" for e in entries(log, head))


@pytest.mark.parametrize("seed", quick_sample(range(20), 20))
def test_large_chunks_are_left_alone_and_the_order_is_kept(seed, monkeypatch):
    monkeypatch.setattr(log_module, "LARGE", 12_000)
    monkeypatch.setattr(log_module, "TAIL_BYTES", 6000)
    random, log, head, expected = Random(seed), MemoryLog(), Head(), np.array([], np.int64)
    most = 0
    for version in range(1, 600):
        rows = random.choice((1, 1, 1, 1, 40, 3000)) if seed % 2 else random.choice((1, 20))
        head = put(log, head, rows)
        expected = np.append(expected, [version] * rows)
        assert np.array_equal(contents(log, head), expected)
        assert sum(len(entry.chunk) for entry in head.tail) <= 6000
        most = max(most, len(log.chunks))
    assert most < 400


def test_a_large_chunk_comes_after_the_tail_and_has_its_own_token():
    log, head = MemoryLog(), Head()
    for rows in (1, 1, TAIL_BYTES, 1):
        head = put(log, head, rows) if rows == 1 else replace(head, version=3, token="token 3")
        if rows > 1:
            head = appended(
                log, head, to_chunk(pa.table({"a": Random(1).choices(range(9**9), k=rows)}))
            )
    assert [(each.version, each.level) for each in head.stored] == [(2, 0), (3, 0)]
    assert log.chunk(3).token == "token 3"
    assert [entry.version for entry in head.tail] == [4]


def test_heads_are_what_they_were():
    shards = Shards({"é": Frontier(1, 2, 0)}, 1)
    head = Head(
        7, 3, "token", Frontier(-(2**63), 2**62, 1), b"held", b"", shards,
        (LogEntry(6, "a", b"six"), LogEntry(7, "token", b"")), (Stored(5, 100, 2),),
    )  # fmt: skip
    assert Head.of(head.fields(), head.data()) == head
    assert head.size == 4 + 3 + 100


def test_a_checkpoint_of_another_format_is_refused():
    now = f"2 {FORMAT} 0ba4"
    check_fingerprint(now, now)
    with pytest.raises(GraphtideError, match=f"its state has format 1 and not {FORMAT}"):
        check_fingerprint("2 1 0ba4", now)
    with pytest.raises(GraphtideError, match="the checkpoint was made with other queries, "):
        check_fingerprint(f"2 {FORMAT} 77e1", now)
    assert PartitionRun.of({"q": "SELECT ?a { ?a ?p ?b }"}, 2).job.fingerprint.startswith(
        f"2 {FORMAT} "
    )


@pytest.mark.slow
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
