"""Sources of several shards: each in order, none knowing of the others, in any micro-batches."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark.stages.splits import END, assert_net, in_process, of_shard, three_partitions

from graphtide.errors import GraphtideError
from graphtide.spark.partition.windows import Clock
from oracles.generators import change_streams
from oracles.partitions import PartitionRun, change_rows, net_of

QUERIES = {
    "q": "SELECT ?a ?c { ?a ?p ?b . ?b ?q ?c }",
    "d": "SELECT DISTINCT ?a { ?a ?p ?b OPTIONAL { ?b ?p ?c } }",
}
QUERY = {"q": "SELECT ?a ?b { ?a <ex:p> ?b }"}


def spread(rows, shards, rng):
    """The rows of each shard, all of a transaction in one or some of them, each with an end."""
    found = [[] for _ in range(shards)]
    for row in rows:
        number = rng.randrange(shards) if rng.random() < 0.3 else row[1] % shards
        found[number].append(of_shard(row, f"{number}"))
    return [[*part, of_shard(END, f"{number}")] for number, part in enumerate(found)]


def delayed(parts, rng):
    """Micro-batches with a task per shard, which go on at speeds that change."""
    at, batches = [0] * len(parts), []
    while any(start < len(part) for start, part in zip(at, parts, strict=True)):
        tasks = []
        for number, part in enumerate(parts):
            size = rng.choice((0, 0, 0, 1, 2, 20))
            tasks.append(part[at[number] : at[number] + size])
            at[number] += size
        rng.shuffle(tasks)
        batches.append(tasks)
    return batches


def ordered(rows):
    """Rows whose order inside a transaction does not matter: no quad comes twice in one."""
    seen = set()
    return [row for row in rows if (key := (*row[:2], *row[3:])) not in seen and not seen.add(key)]


def check_shards(rows, shards, partitions, seed, lateness=0):
    rng = Random(seed)
    run = PartitionRun.of(
        QUERIES,
        partitions,
        workers=2,
        place=lambda _: rng.randrange(2),
        clock=Clock(lateness, shards=shards),
        numbered=False,
    )
    out = []
    for tasks in delayed(spread(rows, shards, rng), rng):
        if rng.random() < 0.1:
            run.attempt(tasks)
        out += run.batch(tasks)
    assert net_of(out) == in_process(QUERIES, rows), (rows, shards, partitions, seed)
    assert_net(out)
    assert run.rejected == []


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    change_streams(), st.integers(1, 4), st.sampled_from((1, 2, 4)), st.sampled_from((0, 0, 3)),
    st.integers(0, 10**6),
)  # fmt: skip
@pytest.mark.slow
def test_any_shards_in_any_cut_are_one_stream(stream, shards, partitions, lateness, seed):
    check_shards(ordered(change_rows(stream)), shards, partitions, seed, lateness)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    change_streams(), st.integers(1, 4), st.sampled_from((1, 2, 4)), st.sampled_from((0, 0, 3)),
    st.integers(0, 10**6),
)  # fmt: skip
def test_any_shards_in_any_cut_are_one_stream_at_length(stream, shards, partitions, late, seed):
    check_shards(ordered(change_rows(stream)), shards, partitions, seed, late)


def test_slower_partitions_of_a_source_lose_nothing():
    rows, batches = three_partitions()
    run = PartitionRun.of(QUERY, 2, clock=Clock(shards=3))
    out = [row for tasks in batches for row in run.batch(tasks)]
    assert net_of(out) == in_process(QUERY, rows)
    assert run.rejected == []


def test_without_shards_they_are_an_error_and_only_on_request_lost():
    rows, batches = three_partitions()
    plain = [[[row[:7] for row in task] for task in tasks] for tasks in batches]
    strict = PartitionRun.of(QUERY, 2)
    strict.batch(plain[0])
    with pytest.raises(GraphtideError, match="came after the stream was complete up to time 57"):
        strict.batch(plain[1])
    lenient = PartitionRun.of(QUERY, 2, clock=Clock(late="reject"))
    out = [row for tasks in plain for row in lenient.batch(tasks)]
    assert len(out) + len(lenient.rejected) == len(rows)
    assert len(lenient.rejected) > len(rows) / 3


def row(time, shard, name="a"):
    return of_shard((time, 0, 1, f"<ex:{name}{time}>", "<ex:p>", "<ex:b>", None), shard)


def end(time, shard):
    return of_shard((time, 0, 0, None, None, None, None), shard)


def times(out):
    return [each.time for each in out]


def test_the_least_frontier_decides_and_ends_count():
    run = PartitionRun.of(QUERY, 2)
    assert times(run.batch([[row(1, "a"), row(9, "a")], [row(3, "b")]])) == [1]
    assert times(run.batch([[end(9, "a")], [row(5, "b"), end(5, "b")]])) == [3, 5]
    assert times(run.batch([[end(9, "b")]])) == [9]


def test_nothing_is_complete_before_all_shards_were_seen():
    run = PartitionRun.of(QUERY, 2, clock=Clock(shards=2))
    assert run.batch([[row(1, "a"), row(9, "a")]]) == []
    assert times(run.batch([[row(5, "b")]])) == [1]
    with pytest.raises(GraphtideError, match=r"the stream has 3 shards \(a, b, c\) and not 2"):
        run.batch([[row(9, "c")]])


def test_a_new_shard_that_is_behind_is_an_error():
    run = PartitionRun.of(QUERY, 1)
    run.batch([[row(1, "a"), row(9, "a")]])
    with pytest.raises(GraphtideError, match="time 4, tx 0 came after the stream was complete"):
        run.batch([[row(4, "b")]])


def test_idle_shards_hold_back_for_a_while():
    """By hand: b stays at 3; from 14 on it is more than 10 ticks behind."""
    run = PartitionRun.of(QUERY, 2, clock=Clock(idle=10))
    run.batch([[row(1, "a")], [row(3, "b")]])
    assert times(run.batch([[row(13, "a")]])) == [1]
    assert times(run.batch([[row(14, "a")]])) == [3, 13]
    assert times(run.batch([[row(8, "b"), row(15, "b")], [row(16, "a")]])) == [14]
    assert [(time, reason) for time, _, _, reason in run.rejected] == [
        (8, "too late: the stream was complete up to time 14, tx 0")
    ]


def test_a_shard_that_never_comes_is_idle_some_time_after_the_first():
    run = PartitionRun.of(QUERY, 1, clock=Clock(shards=2, idle=10))
    assert run.batch([[row(100, "a"), row(105, "a")]]) == []
    assert run.batch([[row(115, "a")]]) == []
    assert times(run.batch([[row(116, "a")]])) == [100, 105, 115]


def test_shards_may_be_told_to_be_strict_about_idle_ones():
    run = PartitionRun.of(QUERY, 1, clock=Clock(idle=1, late="error"))
    run.batch([[row(1, "b")], [row(9, "a")]])
    with pytest.raises(GraphtideError, match="time 2, tx 0 came after"):
        run.batch([[row(2, "b")]])


@pytest.mark.parametrize(
    ("clock", "message"),
    [
        ({"shards": 0}, "at least one shard"),
        ({"idle": -1}, "idle -1 is negative"),
        ({"late": "drop"}, 'late is "drop"'),
    ],
)
def test_clocks_are_checked(clock, message):
    with pytest.raises(GraphtideError, match=message):
        Clock(**clock)
