"""The second stage: rows of several cells meet, add up, and are counted for DISTINCT."""

from __future__ import annotations

import pyarrow as pa
import pytest
from spark.exact.splits import END, check_cells, in_process

from graphtide.spark.cache import Cache
from graphtide.spark.consolidate import add_up, consolidate, counted, row_hashes
from graphtide.spark.log import DictLog
from graphtide.spark.matched import by_cell
from graphtide.spark.schemas import DELTAS
from graphtide.spark.task import Task
from graphtide.testing.cells import CellRun, net_of

HIDDEN = "SELECT (STR(?c) AS ?n) { ?a <ex:p> ?b . ?b <ex:q> ?c }"
DISTINCT = HIDDEN.replace("SELECT", "SELECT DISTINCT")
SHOWN = "SELECT ?a ?b { ?a <ex:p> ?b }"
TASK = Task((("hidden", HIDDEN), ("distinct", DISTINCT), ("shown", SHOWN)), 4)


def deltas(*rows):
    names = ("query", "time", "tx", "diff", "row")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], DELTAS)


def lines(table):
    return sorted(tuple(line.values()) for line in table.to_pylist())


def test_which_queries_need_it():
    assert [query.meets for query in TASK.cell_queries] == [True, True, False]
    assert counted(TASK) == (1,)


def test_equal_rows_of_a_transaction_add_up():
    found = add_up(
        deltas(
            (0, 5, 1, 1, ["x"]), (0, 5, 1, -1, ["x"]),  # one cell gains what another loses
            (0, 5, 1, 1, ["y"]), (0, 5, 1, 2, ["y"]),  # both gain
            (0, 5, 2, -1, ["y"]), (0, 4, 9, 1, [None]),  # other transactions
            (2, 5, 1, 1, ["x", "y"]), (2, 5, 1, 1, ["x", "y"]),  # a query that does not meet
        ),
        TASK,
    )  # fmt: skip
    assert lines(found) == [
        (0, 4, 9, 1, [None]), (0, 5, 1, 3, ["y"]), (0, 5, 2, -1, ["y"]),
        (2, 5, 1, 1, ["x", "y"]), (2, 5, 1, 1, ["x", "y"]),
    ]  # fmt: skip


def test_distinct_rows_are_counted_over_transactions_and_batches():
    log, cache = DictLog(), Cache()

    def step(*rows):
        return lines(consolidate(deltas(*rows), TASK, log, cache, "run", 0))

    assert step((1, 1, 0, 1, ["x"]), (1, 1, 0, 1, ["x"])) == [(1, 1, 0, 1, ["x"])]
    assert step((1, 2, 0, -1, ["x"])) == []
    assert step((1, 3, 0, -1, ["x"]), (1, 4, 0, 1, ["x"])) == [
        (1, 3, 0, -1, ["x"]),
        (1, 4, 0, 1, ["x"]),
    ]
    # Gone and back in one transaction, from two cells: nothing happened.
    assert step((1, 5, 0, -1, ["x"]), (1, 5, 0, 1, ["x"])) == []
    cache.engines.clear()
    assert step((1, 6, 0, -1, ["x"])) == [(1, 6, 0, -1, ["x"])]


def test_equal_rows_are_sent_to_one_cell_whichever_they_come_from():
    rows = [(0, 1, 0, 1, [f"v{i}"]) for i in range(40)]
    places = []
    for cell in range(4):
        parts = by_cell(deltas(*rows), TASK, cell)
        places.append({row[0]: at for at, part in parts for row in part["row"].to_pylist()})
    assert places[0] == places[1] == places[2] == places[3]
    assert set(places[0].values()) == {0, 1, 2, 3}


def test_rows_that_need_not_meet_stay():
    ((target, part),) = by_cell(deltas((2, 1, 0, 1, ["x", "y"])), TASK, 3)
    assert (target, len(part)) == (3, 1)


def test_hashes_tell_columns_apart():
    found = row_hashes(deltas((0, 0, 0, 1, ["a", "b"]), (0, 0, 0, 1, ["b", "a"])), 2)
    assert found[0] != found[1]
    assert row_hashes(deltas((0, 0, 0, 1, [])), 0).tolist() == [0]


@pytest.mark.parametrize("cells", [2, 3, 4, 8])
def test_a_row_that_moves_between_cells_is_no_change(cells):
    # c is reached from ever other b, which live in various cells: the answer never changes.
    rows = []
    for tx in range(12):
        for diff, number in ((1, tx), (-1, tx - 1)):
            if number >= 0:
                rows += [
                    (tx, 0, diff, "<ex:a>", "<ex:p>", f"<ex:b{number}>", None),
                    (tx, 0, diff, f"<ex:b{number}>", "<ex:q>", "<ex:c>", None),
                ]
    queries = {"hidden": HIDDEN, "distinct": DISTINCT}
    out = check_cells(queries, rows, cells, seed=3)
    assert sorted(out) == [("distinct", 0, 0, 1, ('"ex:c"',)), ("hidden", 0, 0, 1, ('"ex:c"',))]


def test_it_is_left_out_when_no_query_needs_it():
    run = CellRun.of({"q": SHOWN}, 4)
    rows = [(0, 0, 1, f"<ex:{i}>", "<ex:p>", "<ex:b>", None) for i in range(9)]
    assert net_of(run.batch([[*rows, END]])) == in_process({"q": SHOWN}, rows)
    assert all(log.head() is None for log in run.logs.meet)
