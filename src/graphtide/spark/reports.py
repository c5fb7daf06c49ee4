"""Reports: what a cell puts out of queries over windows, and what waits for the next close.

A change of the answer is told of at the next close of one of the query's windows. Until then it is
pending: a part of the cell's durable state, since the log may be replaced by a snapshot meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.kernel import Answer
from graphtide.kernel.batch import DIFF, VALUES
from graphtide.spark.cell_windows import PENDING
from graphtide.spark.consolidate import summed
from graphtide.spark.delta_table import delta_table, value_ids
from graphtide.spark.schemas import DELTAS
from graphtide.spark.text_ids import TextIds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.spark.cell_engine import CellEngine
    from graphtide.spark.task import Task


def report(
    before: pa.Table, deltas: pa.Table, engine: CellEngine, task: Task
) -> tuple[pa.Table, pa.Table]:
    """What goes out after a micro-batch, and what waits; `before` is what was there before it."""
    closes = engine.closes()
    plain = {number for number, query in enumerate(task.cell_queries) if not query.windowed}
    out = [of_queries(each, plain) for each in (before, deltas)]
    waiting = [DELTAS.empty_table()]
    for number, query in enumerate(task.cell_queries):
        if query.windowed is None:
            continue
        own = closes[number]
        old, new = (of_queries(each, {number}) for each in (before, deltas))
        rows = pa.concat_tables([stamped(old, int(own[0, 0])) if len(own) else old, new])
        net = summed(rows, number, Answer(query.shown), query.shown, TextIds(), distinct=False)
        waits = net["time"].to_numpy() == PENDING
        told, rest = (net.filter(pa.array(mask)) for mask in (~waits, waits))
        waiting.append(rest)
        if query.windowed.output != "RSTREAM":
            out.append(told)
        elif len(own):
            answer = engine.answer(number)
            out += whole_answers(number, query.shown, (answer, told, rest), own)
    return pa.concat_tables(out), pa.concat_tables(waiting)


def whole_answers(
    number: int, width: int, answers: tuple[pa.Table, pa.Table, pa.Table], closes: Longs
) -> Iterator[pa.Table]:
    """The whole answer at each close, from that of now, what is told of, and what is not yet."""
    answer, told, rest = answers
    texts, net = TextIds(), Answer(width)
    start = pa.concat_tables([answer, minus(told), minus(rest)])
    net.step(_batch(start, width, texts))
    times, numbers = told["time"].to_numpy(), told["tx"].to_numpy()
    for time, place in closes.tolist():
        here = (times == time) & (numbers == place)
        net.step(_batch(told.filter(pa.array(here)), width, texts))
        rows = net.rows()
        zeros = np.zeros(len(rows), np.int64)
        yield delta_table(number, zeros + time, zeros + place, rows[:, -1], rows[:, :-1], texts)


def _batch(table: pa.Table, width: int, texts: TextIds) -> Ints:
    batch = np.zeros((len(table), VALUES + width), np.int32)
    batch[:, DIFF] = table["diff"].to_numpy()
    batch[:, VALUES:] = value_ids(table, width, texts)
    return batch


def minus(deltas: pa.Table) -> pa.Table:
    """Deltas that take back what these did."""
    return _with(deltas, "diff", -deltas["diff"].to_numpy())


def stamped(deltas: pa.Table, time: int) -> pa.Table:
    """Deltas with another time."""
    return _with(deltas, "time", np.full(len(deltas), time, np.int64))


def _with(deltas: pa.Table, name: str, numbers: Longs) -> pa.Table:
    column: Any = pa.array(numbers, pa.int64())
    return deltas.set_column(DELTAS.get_field_index(name), DELTAS.field(name), column)


def of_queries(deltas: pa.Table, numbers: set[int]) -> pa.Table:
    """The rows of some queries."""
    return deltas.filter(pa.array(np.isin(deltas["query"].to_numpy(), list(numbers))))


def put_out(deltas: pa.Table, task: Task) -> pa.Table:
    """Of queries over windows, the rows that they ask for: those that came, that went, or all."""
    if not task.windows:
        return deltas
    number, diff = deltas["query"].to_numpy(), deltas["diff"].to_numpy()
    kept, diff = np.ones(len(deltas), np.bool_), diff.copy()
    for at, query in enumerate(task.cell_queries):
        match query.windowed.output if query.windowed else None:
            case "ISTREAM":
                kept &= (number != at) | (diff > 0)
            case "DSTREAM":
                kept &= (number != at) | (diff < 0)
            case "RSTREAM" if query.distinct:
                diff[number == at] = 1
            case _:
                pass
    return _with(deltas, "diff", diff).filter(pa.array(kept))
