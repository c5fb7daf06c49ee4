"""The worker's cache of engines never changes the output: hit, behind, ahead, lost, compacted."""

from __future__ import annotations

import pickle
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark.stages.shapes import query, stream
from spark.stages.splits import END, deltas, in_process, micro_batches

from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.stages import processor
from graphtide.spark.stages.consolidate import consolidate, counted
from graphtide.spark.stages.match import QueriesPartition
from graphtide.spark.stages.pack import pack_rows
from graphtide.spark.stages.processor import PartitionProcessor
from graphtide.spark.state import cache
from graphtide.spark.state.cache import EngineCache, EngineKey, PartitionState
from graphtide.spark.state.log import Head, MemoryLog
from graphtide.spark.topology import run_partition
from oracles.partitions import PartitionRun, net_of, record_batches

TEXT = "SELECT ?a ?b { ?a <ex:p> ?b }"


def insert(number):
    return [
        [(number, 0, 1, f"<ex:{number}>", "<ex:p>", "<ex:b>", None), (number, 0, 0, *[None] * 4)]
    ]


def out(number):
    return [("q", number, 0, 1, (f"<ex:{number}>", "<ex:b>"))]


def counts(run, worker=0):
    found = run.workers[worker]
    return found.started, found.hits, found.caught_up, found.rebuilt


def on(run, worker):
    run.place = lambda _: worker


@pytest.fixture
def two_workers():
    return PartitionRun.of({"q": TEXT}, 1, workers=2)


def test_hit(two_workers):
    run = two_workers
    for number in range(4):
        assert run.batch(insert(number)) == out(number)
    assert counts(run) == (1, 3, 0, 0)


def test_an_engine_that_has_forgotten_most_terms_is_built_again(monkeypatch):
    """Fresh names come and go; two engines in three know as many as two of them had."""
    monkeypatch.setattr(cache, "MANY_TERMS", 50)
    monkeypatch.setattr(cache, "SMALL_LOG", 20)
    run, known = PartitionRun.of({"q": TEXT}, 1), []
    for number in range(40):
        rows = [(number, 0, 1, f"<ex:{number}-{n}>", "<ex:p>", "<ex:b>", None) for n in range(10)]
        gone = [(number, 1, -1, *row[3:]) for row in rows]
        expected = [
            ("q", number, n, s, (row[3], "<ex:b>")) for n, s in ((0, 1), (1, -1)) for row in rows
        ]
        found = run.batch([[*rows, *gone, (number, 1, 0, *[None] * 4)]])
        assert sorted(found) == sorted(expected)
        known += [each.engine.terms for each in run.workers[0].engines.values()]
    assert max(known) < 100
    assert 3 < run.workers[0].rebuilt < 20


def test_no_cache(two_workers, caplog):
    caplog.set_level("INFO", "graphtide")
    run = two_workers
    for number in range(3):
        assert run.batch(insert(number)) == out(number)
        run.lose(0)
    assert run.batch(insert(3)) == out(3)
    assert counts(run) == (0, 0, 0, 1)
    assert set(caplog.messages) == {"match, partition 0: rebuilt from its log"}


def test_behind_catches_up(two_workers):
    run = two_workers
    run.batch(insert(0))
    on(run, 1)
    run.batch(insert(1))
    run.batch(insert(2))
    on(run, 0)
    assert run.batch(insert(3)) == out(3)
    assert counts(run) == (1, 0, 1, 0)
    assert counts(run, 1) == (0, 1, 0, 1)


def test_ahead_is_built_again(two_workers):
    run = two_workers
    run.batch(insert(0))
    run.attempt(insert(1))
    assert run.batch(insert(1)) == out(1)
    assert counts(run) == (1, 1, 0, 1)


def test_same_version_of_a_failed_attempt_is_built_again(two_workers):
    run = two_workers
    run.batch(insert(0))
    run.attempt(insert(7))
    on(run, 1)
    assert run.batch(insert(1)) == out(1)
    on(run, 0)
    # The worker has version 2 as the log does, but of the attempt that failed.
    assert run.batch(insert(7)) == out(7)
    assert counts(run) == (1, 1, 0, 1)


def test_behind_a_failed_attempt_is_built_again(two_workers):
    run = two_workers
    run.batch(insert(0))
    run.attempt(insert(7))
    on(run, 1)
    run.batch(insert(1))
    run.batch(insert(2))
    on(run, 0)
    assert run.batch(insert(7)) == out(7)
    assert counts(run) == (1, 1, 0, 1)


def test_failed_first_attempt(two_workers):
    run = two_workers
    run.attempt(insert(5))
    assert run.batch(insert(0)) == out(0)
    assert counts(run) == (2, 0, 0, 0)


def test_other_run(two_workers):
    run = two_workers
    run.batch(insert(0))
    other = PartitionRun.of({"q": TEXT}, 1, workers=2)
    other.workers = run.workers
    # The same key and version; only the token differs.
    other.batch(insert(5))
    assert other.batch(insert(6)) == out(6)
    assert run.batch(insert(7)) == out(7)
    assert run.batch(insert(8)) == out(8)


def test_operators_of_one_query_have_engines_of_their_own(monkeypatch):
    """Two that are the same in all else: after the first time, each finds its own."""
    job = PartitionRun.of({"q": TEXT}, 1).job
    monkeypatch.setattr(processor, "CACHE", EngineCache())
    operators = [pickle.loads(pickle.dumps(PartitionProcessor(job, "match"))) for _ in range(2)]
    logs = [MemoryLog(), MemoryLog()]
    for time in range(4):
        for operator, log in zip(operators, logs, strict=True):
            again = pickle.loads(pickle.dumps(operator))  # as Spark does for each task
            key = again.engine_key(partition_keys(1)[0])
            state = PartitionState(log, processor.CACHE, key)
            rows = pack_rows(record_batches(*insert(time)), job, 0)
            run_partition(processor.stage_named(job, "match"), state, rows, 1)
    found = processor.CACHE
    assert (found.started, found.hits, found.caught_up, found.rebuilt) == (2, 6, 0, 0)


def test_a_failure_inside_the_engine_leaves_no_engine(two_workers, monkeypatch):
    run = two_workers
    run.batch(insert(0))

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(QueriesPartition, "apply", fails)
    with pytest.raises(MemoryError):
        run.batch(insert(1))
    assert run.workers[0].engines == {}


def test_idle_engines_are_forgotten(two_workers, monkeypatch):
    run = two_workers
    run.batch(insert(0))
    monkeypatch.setattr(cache, "IDLE_SECONDS", -1.0)
    assert run.batch(insert(1)) == out(1)
    assert counts(run) == (1, 0, 0, 1)


def test_compaction_keeps_what_is_left(monkeypatch):
    monkeypatch.setattr(cache, "SMALL_LOG", 10)
    run = PartitionRun.of({"q": TEXT}, 1)
    quad = ("<ex:stays>", "<ex:p>", "<ex:b>", None)
    run.batch([[(0, 0, 1, *quad), (0, 0, 0, *[None] * 4)]])
    for number in range(1, 40):
        diff = 1 if number % 2 else -1
        shown = run.batch([[(number, 0, diff, "<ex:x>", *quad[1:]), (number, 0, 0, *[None] * 4)]])
        assert shown == [("q", number, 0, diff, ("<ex:x>", "<ex:b>"))]
    log = run.logs["match"][0]
    head = log.head()
    assert head.version == 40
    assert head.oldest > 1
    assert [entry.version for entry in head.tail] == list(range(head.oldest, 41))
    assert len(head.tail) <= 10 + 2 * 2
    run.lose(0)
    deleted = run.batch([[(50, 0, -1, *quad), (50, 0, 0, *[None] * 4)]])
    assert deleted == [("q", 50, 0, -1, ("<ex:stays>", "<ex:b>"))]


def test_a_worker_behind_a_compaction_is_built_again(monkeypatch):
    monkeypatch.setattr(cache, "SMALL_LOG", 3)
    run = PartitionRun.of({"q": TEXT}, 1, workers=2)
    quad = ("<ex:x>", "<ex:p>", "<ex:b>", None)
    run.batch(insert(0))
    on(run, 1)
    for number in range(1, 20):
        run.batch([[(number, 0, 1 if number % 2 else -1, *quad), (number, 0, 0, *[None] * 4)]])
    assert run.logs["match"][0].head().oldest > 1
    on(run, 0)
    assert run.batch(insert(30)) == out(30)
    assert counts(run) == (1, 0, 0, 1)


def test_counts_are_compacted_and_kept(monkeypatch):
    monkeypatch.setattr(cache, "SMALL_LOG", 10)
    job = PartitionRun.of({"q": query("distinct, hidden")}, 8).job
    assert counted(job) == (0,)
    log, workers = MemoryLog(), EngineCache()
    key = EngineKey("r", "consolidate", 0)

    def step(time, diff, *, forget=False):
        state = PartitionState(log, EngineCache() if forget else workers, key)
        rows = deltas((0, time, 0, diff, ["<ex:a>"]))
        return [line["diff"] for line in consolidate(rows, job, state).to_pylist()]

    assert step(0, 2) == [1]
    for time in range(1, 41, 2):
        assert step(time, 3) == []
        assert step(time + 1, -3) == []
    assert log.head().oldest > 1
    assert step(50, -1, forget=True) == []
    assert step(51, -1, forget=True) == [-1]


def test_recover_and_advance_agree():
    made = PartitionRun.of({"q": TEXT}, 1).job
    state = PartitionState(MemoryLog(), EngineCache(), EngineKey("r", "match", 0))
    engine, head, first, _ = state.recover(lambda: QueriesPartition(made, 0))
    assert head == Head()
    assert len(first) == 0
    output, after = state.advance(engine, head, engine.snapshot())
    assert (len(output), after.version, [entry.version for entry in after.tail]) == (0, 1, [1])


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(
        ("chain", "optional, nested", "distinct, hidden", "hidden", "minus", "constant until",
         "distinct", "graph, not exists", "distinct, expression")
    ),
    st.sampled_from((1, 2, 4)),
    st.integers(0, 10**6),
)  # fmt: skip
def test_whatever_goes_wrong_the_output_is_the_same(shape, partitions, number):
    """Workers die, partitions move, attempts fail after they changed what workers remember."""
    rng = Random(number)
    queries = {"q": query(shape)}
    rows = stream(number % 50)
    run = PartitionRun.of(queries, partitions, workers=3, place=lambda _: rng.randrange(3))
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
        for tasks in micro_batches([*rows, END], rng):
            for worker in range(3):
                if rng.random() < 0.15:
                    run.lose(worker)
            if rng.random() < 0.3:
                run.attempt(tasks)
            if rng.random() < 0.1:
                # Another attempt, with other data after the same place: as after a changed source.
                run.attempt([[]])
            shown += run.batch(tasks)
    assert net_of(shown) == in_process(queries, rows)
    assert run.rejected == []
