"""The consolidation stage: equal rows of several partitions are added up, counted for DISTINCT."""

from __future__ import annotations

import pytest
from spark.stages.splits import END, check_partitions, deltas, in_process

from graphtide.spark.job import JobSpec
from graphtide.spark.stages.consolidate import (
    consolidate,
    consolidate_rows,
    counted,
    row_hashes,
    send_rows,
)
from graphtide.spark.state.cache import EngineCache, EngineKey, PartitionState
from graphtide.spark.state.log import MemoryLog
from oracles.partitions import PartitionRun, net_of

HIDDEN = "SELECT (STR(?c) AS ?n) { ?a <ex:p> ?b . ?b <ex:q> ?c }"
DISTINCT = HIDDEN.replace("SELECT", "SELECT DISTINCT")
SHOWN = "SELECT ?a ?b { ?a <ex:p> ?b }"
JOB = JobSpec((("hidden", HIDDEN), ("distinct", DISTINCT), ("shown", SHOWN)), 4)


def lines(table):
    names = ("id", "time", "tx", "diff", "values")
    return sorted(tuple(line[name] for name in names) for line in table.to_pylist())


def test_which_queries_need_it():
    assert [query.needs_consolidation for query in JOB.partition_queries] == [True, True, False]
    assert counted(JOB) == (1,)


def test_equal_rows_of_a_transaction_add_up():
    found = consolidate_rows(
        deltas(
            (0, 5, 1, 1, ["x"]), (0, 5, 1, -1, ["x"]),  # one partition gains what another loses
            (0, 5, 1, 1, ["y"]), (0, 5, 1, 2, ["y"]),  # both gain
            (0, 5, 2, -1, ["y"]), (0, 4, 9, 1, [None]),  # other transactions
            (2, 5, 1, 1, ["x", "y"]), (2, 5, 1, 1, ["x", "y"]),  # a query that does not meet
        ),
        JOB,
    )  # fmt: skip
    assert lines(found) == [
        (0, 4, 9, 1, [None]), (0, 5, 1, 3, ["y"]), (0, 5, 2, -1, ["y"]),
        (2, 5, 1, 1, ["x", "y"]), (2, 5, 1, 1, ["x", "y"]),
    ]  # fmt: skip


def test_distinct_rows_are_counted_over_transactions_and_batches():
    cache = EngineCache()
    state = PartitionState(MemoryLog(), cache, EngineKey("run", "consolidate", 0))

    def step(*rows):
        return lines(consolidate(deltas(*rows), JOB, state))

    assert step((1, 1, 0, 1, ["x"]), (1, 1, 0, 1, ["x"])) == [(1, 1, 0, 1, ["x"])]
    assert step((1, 2, 0, -1, ["x"])) == []
    assert step((1, 3, 0, -1, ["x"]), (1, 4, 0, 1, ["x"])) == [
        (1, 3, 0, -1, ["x"]),
        (1, 4, 0, 1, ["x"]),
    ]
    # Gone and back in one transaction, from two partitions: nothing happened.
    assert step((1, 5, 0, -1, ["x"]), (1, 5, 0, 1, ["x"])) == []
    cache.engines.clear()
    assert step((1, 6, 0, -1, ["x"])) == [(1, 6, 0, -1, ["x"])]


def test_equal_rows_are_sent_to_one_partition_whichever_they_come_from():
    rows = [(0, 1, 0, 1, [f"v{i}"]) for i in range(40)]
    places = []
    for partition in range(4):
        parts = send_rows(deltas(*rows), JOB, partition)
        places.append({row[0]: at for at, part in parts for row in part["values"].to_pylist()})
    assert places[0] == places[1] == places[2] == places[3]
    assert set(places[0].values()) == {0, 1, 2, 3}


def test_rows_that_need_not_meet_stay():
    ((target, part),) = send_rows(deltas((2, 1, 0, 1, ["x", "y"])), JOB, 3)
    assert (target, len(part)) == (3, 1)


def test_hashes_tell_columns_apart():
    found = row_hashes(deltas((0, 0, 0, 1, ["a", "b"]), (0, 0, 0, 1, ["b", "a"])), 2)
    assert found[0] != found[1]
    assert row_hashes(deltas((0, 0, 0, 1, [])), 0).tolist() == [0]


@pytest.mark.parametrize("partitions", [2, 3, 4, 8])
def test_a_row_that_moves_between_partitions_is_no_change(partitions):
    # c is reached from ever other b, which live in various partitions: the answer never changes.
    rows = []
    for tx in range(12):
        for diff, number in ((1, tx), (-1, tx - 1)):
            if number >= 0:
                rows += [
                    (tx, 0, diff, "<ex:a>", "<ex:p>", f"<ex:b{number}>", None),
                    (tx, 0, diff, f"<ex:b{number}>", "<ex:q>", "<ex:c>", None),
                ]
    queries = {"hidden": HIDDEN, "distinct": DISTINCT}
    out = check_partitions(queries, rows, partitions, seed=3)
    assert sorted(out) == [("distinct", 0, 0, 1, ('"ex:c"',)), ("hidden", 0, 0, 1, ('"ex:c"',))]


def test_it_is_left_out_when_no_query_needs_it():
    run = PartitionRun.of({"q": SHOWN}, 4)
    rows = [(0, 0, 1, f"<ex:{i}>", "<ex:p>", "<ex:b>", None) for i in range(9)]
    assert net_of(run.batch([[*rows, END]])) == in_process({"q": SHOWN}, rows)
    assert list(run.logs) == ["match"]
