"""The order of changes inside a transaction: known by `seq` or by their origin, or refused."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark.stages.splits import END, in_process
from spark.stages.window_streams import event, watermark, windowed

from graphtide.errors import GraphtideError
from graphtide.spark.partition.windows import Clock
from oracles.generators import change_streams
from oracles.partitions import PartitionRun, change_rows, net_of

QUERY = {"q": "SELECT ?a ?b { ?a <ex:p> ?b }"}
QUAD = "<ex:a>", "<ex:p>", "<ex:b>", None


def change(diff, *, shard=None, time=5, quad=QUAD):
    return (time, 1, diff, *quad, None, shard)


def runs(partitions=2, *, numbered=False, clock=None):
    return PartitionRun.of(QUERY, partitions, numbered=numbered, clock=clock)


UNKNOWN = "time 5, tx 1 inserts and deletes <ex:a> <ex:p> <ex:b> in rows of different partitions"


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_one_quad_inserted_and_deleted_in_two_tasks_is_refused(partitions):
    with pytest.raises(GraphtideError, match=UNKNOWN) as error:
        runs(partitions).batch([[change(1)], [change(-1)]])
    assert "column seq" in error.value.hint


def test_with_seq_it_is_in_order():
    run = runs(numbered=True)
    assert run.batch([[change(1)], [change(-1)], [END]]) == []


def test_in_one_task_and_from_one_micro_batch_to_the_next_it_is_in_order():
    run = runs()
    run.batch([[change(-1), change(1)], [(5, 1, 1, "<ex:x>", "<ex:p>", "<ex:y>", None)]])
    run.batch([[change(-1)]])
    assert [row.values for row in run.batch([[END]])] == [("<ex:x>", "<ex:y>")]


def test_what_does_not_depend_on_order_is_not_refused():
    other = ("<ex:c>", "<ex:p>", "<ex:d>", None)
    run = runs()
    tasks = [[change(1)], [change(1)], [change(-1, quad=other)], [change(-1, time=6)]]
    out = [*run.batch(tasks), *run.batch([[END]])]
    assert [(row.time, row.diff) for row in out] == [(5, 1), (6, -1)]


def test_a_shard_is_in_order_over_micro_batches_and_two_of_them_are_not():
    run = runs(clock=Clock(shards=2))
    run.batch([[change(1, shard="a")]])
    run.batch([[change(-1, shard="a")]])
    with pytest.raises(GraphtideError, match=UNKNOWN):
        run.batch([[change(1, shard="b")]])


def test_windows_that_count_events_need_an_order_of_all():
    query = {"q": windowed("RSTREAM", "WINDOW :w { ?a :p ?b }", extent="ELEMENTS 2")}
    tasks = [[event(5, 1, "a", "p", "b")], [event(5, 1, "c", "p", "d"), watermark(10)]]
    with pytest.raises(GraphtideError, match=r"time 5, tx 1 has events of http://e/s in rows of"):
        PartitionRun.of(query, 2, numbered=False).batch(tasks)
    assert len(PartitionRun.of(query, 2).batch(tasks)) == 3
    by_time = {"q": windowed("RSTREAM", "WINDOW :w { ?a :p ?b }")}
    assert len(PartitionRun.of(by_time, 2, numbered=False).batch(tasks)) == 2


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(change_streams(), st.integers(0, 10**6))
def test_tasks_in_another_order_are_refused_or_change_nothing(stream, seed):
    """All in one micro-batch, cut into tasks that come in any order."""
    rng, rows = Random(seed), change_rows(stream)
    cuts = sorted(rng.choices(range(len(rows) + 1), k=3))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    rng.shuffle(parts)
    query = {"q": "SELECT ?a ?b { ?a ?p ?b }"}
    run = PartitionRun.of(query, 2, numbered=False)
    both = {}
    for part, task in enumerate(parts):
        for time, tx, diff, *quad in task:
            if quad[3] is None:  # the query does not ask for other graphs
                both.setdefault((time, tx, *quad), []).append((part, diff))
    refused = any(
        len({part for part, _ in found}) > 1 and len({diff for _, diff in found}) > 1
        for found in both.values()
    )
    if refused:
        with pytest.raises(GraphtideError, match="their order is not known"):
            run.batch([*parts, [END]])
    else:
        assert net_of(run.batch([*parts, [END]])) == in_process(query, rows)
