"""ChangeBatch: what it accepts, what it refuses, and its columnar form."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from graphtide.errors import DataError
from graphtide.rdf.changes import CHANGE_SCHEMA, ChangeBatch, concat_batches

ROWS = [
    (1, 0, 1, "<ex:a>", "<ex:p>", '"é"', None),
    (1, 0, -1, "_:b", "<ex:p>", "_:c", "<ex:g>"),
    (2, 1, 1, "<ex:a>", "<ex:p>", "<ex:b>", ""),
]


def table(**columns):
    made = ChangeBatch.of(ROWS).to_arrow()
    for name, values in columns.items():
        made = made.set_column(made.schema.get_field_index(name), name, values)
    return made


def test_columnar_form_round_trip():
    batch = ChangeBatch.of(ROWS)
    arrow = batch.to_arrow()
    assert arrow.schema == CHANGE_SCHEMA
    assert ChangeBatch.from_arrow(arrow) == batch
    assert ChangeBatch.from_arrow(arrow.to_batches()[0]) == batch
    assert batch != ChangeBatch.of(ROWS[:2])


def test_other_types_are_welcome():
    batch = ChangeBatch.of(ROWS)
    wide = table(
        diff=pa.chunked_array([pa.array([1, -1, 1], pa.int64())]),
        time=pa.chunked_array([pa.array([1, 1, 2], pa.int32())]),
        s=batch.s.cast(pa.large_string()),
        p=batch.p.dictionary_encode(),
    )
    assert ChangeBatch.from_arrow(wide) == batch
    chunked = pa.concat_tables([wide.slice(0, 1), wide.slice(1)])
    assert ChangeBatch.from_arrow(chunked) == batch


def test_g_may_be_left_out():
    batch = ChangeBatch.from_arrow(table().drop_columns(["g"]))
    assert batch.g.to_pylist() == [None, None, None]


def test_empty_table():
    assert len(ChangeBatch.from_arrow(CHANGE_SCHEMA.empty_table())) == 0
    assert concat_batches([]) == ChangeBatch.of([])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"diff": pa.array([1, 0, 1])}, "row 1: diff is 0, not [+]1 or -1"),
        ({"diff": pa.array([1, 257, 1])}, "row 1: diff is 257"),
        ({"diff": pa.array([1.0, 1.0, 1.0])}, "column diff must hold integers, not double"),
        ({"time": pa.array([1, None, 2])}, "column time has no value in 1 rows"),
        ({"tx": pa.array([0, 2**64 - 1, 2], pa.uint64())}, "column tx must hold 64-bit integers"),
        ({"s": pa.array([1, 2, 3])}, "column s must hold strings, not int64"),
        ({"s": pa.array(["<ex:a>", None, "<ex:a>"])}, "row 1: s is null: a subject is"),
        ({"s": pa.array(["<ex:a>", "<ex:a>", '"x"'])}, "row 2: s is '\"x\"': a subject is"),
        ({"p": pa.array(["_:p", "<ex:p>", "<ex:p>"])}, "row 0: p is '_:p': a predicate is an IRI"),
        ({"o": pa.array(["<ex:a>", "", "<ex:a>"])}, "row 1: o is '': an object is"),
        ({"g": pa.array([None, "", '"g"'])}, "row 2: g is '\"g\"': a graph name is"),
        (
            {"time": pa.array([1, 2, 1]), "tx": pa.array([0, 0, 0])},
            "row 2: transaction .* has ended",
        ),
    ],
)
def test_what_does_not_fit_is_named(columns, message):
    with pytest.raises(DataError, match=message):
        ChangeBatch.from_arrow(table(**columns))


def test_missing_columns_are_named():
    with pytest.raises(DataError, match="needs the columns diff, o"):
        ChangeBatch.from_arrow(table().drop_columns(["diff", "o"]))


def test_shapes_and_types_are_checked():
    zero, one = np.zeros(1, np.int64), np.ones(1, np.int8)
    s, p, o, g = (pa.array([text], pa.string()) for text in ("<ex:a>", "<ex:p>", "_:b", None))
    with pytest.raises(DataError, match="column g has 0 rows and column time has 1"):
        ChangeBatch(zero, zero, one, s, p, o, g[:0])
    with pytest.raises(DataError, match="column diff must be a vector of int8, not of int64"):
        ChangeBatch(zero, zero, zero + 1, s, p, o, g)
    with pytest.raises(DataError, match="column s must be an Arrow array of strings"):
        ChangeBatch(zero, zero, one, ["<ex:a>"], p, o, g)


def test_transactions_split_and_join():
    batch = ChangeBatch.of(ROWS)
    assert batch.transaction_starts().tolist() == [0, 2]
    parts = list(batch.transactions())
    assert [len(part) for part in parts] == [2, 1]
    assert concat_batches(parts) == batch
    assert list(ChangeBatch.of([]).transactions()) == []


def test_times_may_fall_when_transactions_differ():
    rows = [(5, 0, *ROWS[0][2:]), (3, 1, *ROWS[0][2:]), (4, 0, *ROWS[0][2:])]
    assert ChangeBatch.of(rows).time.tolist() == [5, 3, 4]
