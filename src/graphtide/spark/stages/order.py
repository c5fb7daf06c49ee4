"""Order: changes of one transaction whose order cannot be known are refused.

Inside a transaction, order matters where one quad is inserted and deleted, and where a window
counts events. It is known by `seq`, or from where rows came: rows of one task and file are in
order, and so is one shard from micro-batch to micro-batch. But Spark numbers tasks, and orders the
files of a task, by size; and shards come as fast as they can. The order of rows from several of
them would be an accident.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.errors import GraphtideError
from graphtide.spark.partition.hashing import mixed_hashes, text_hashes
from graphtide.streams.windows import ElementWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Longs
    from graphtide.spark.job import JobSpec

_PLACE = (1 << 32) - 1
"""The bits of an origin for task and file; the others are those of the shard."""

Aggregates = list[tuple[str, str]]


def origins(table: pa.Table, task: int) -> Longs:
    """Where the rows of a task are from: a number of their shard, and one of task and file."""
    n = len(table)
    places = [np.full(n, task, np.int64)]
    if "file_id" in table.column_names:
        places.append(table["file_id"].to_numpy())
    place = (mixed_hashes(places, n) % _PLACE) + 1
    if "shard" not in table.column_names:
        return place
    shards: Any = table["shard"].combine_chunks()
    coded = shards.fill_null("").dictionary_encode()
    numbers = text_hashes(coded.dictionary) >> 32
    return np.asarray(place | (numbers[coded.indices.to_numpy()] << 32))


def held(changes: pa.Table) -> pa.Table:
    """Changes that wait for later micro-batches, which come after them if they are of one shard."""
    at = changes.schema.get_field_index("origin")
    shard = changes["origin"].to_numpy() & ~_PLACE
    return changes.set_column(at, changes.schema.field(at), pa.array(shard))


def check_order(changes: pa.Table, job: JobSpec) -> None:
    """Raise if changes, by transaction and `seq`, have an order that cannot be known."""
    origin = changes["origin"].to_numpy()
    if not len(origin) or (origin == origin[0]).all():
        return
    runs = _runs(changes)
    starts = np.flatnonzero(np.append(True, runs[1:] != runs[:-1]))
    mixed = np.minimum.reduceat(origin, starts) != np.maximum.reduceat(origin, starts)
    if not mixed.any():
        return
    diff = changes["diff"].to_numpy()
    both = (np.minimum.reduceat(diff, starts) < 0) & (np.maximum.reduceat(diff, starts) > 0)
    _check(changes, runs, (mixed & both)[runs], "spog", [("diff", "min"), ("diff", "max")])
    counted = _counted_streams(job)
    if counted:
        of_them: Any = pc.is_in(changes["stream"], pa.array(counted))
        _check(changes, runs, mixed[runs] & of_them.to_numpy(), ["stream"], [])


def _runs(changes: pa.Table) -> Longs:
    """A number per row: the same where time, tx and seq are."""
    begins = np.zeros(len(changes), np.bool_)
    for name in ("time", "tx", "seq"):
        column = changes[name].to_numpy()
        begins[1:] |= column[1:] != column[:-1]
    return np.cumsum(begins)


def _counted_streams(job: JobSpec) -> list[str]:
    """The streams of which windows count the events."""
    shapes = job.windows.values()
    return sorted({w.stream for w in shapes if isinstance(w.shape, ElementWindow)})


def _check(
    changes: pa.Table,
    runs: Longs,
    mask: NDArray[np.bool_],
    names: Sequence[str],
    aggregates: Aggregates,
) -> None:
    """Look at the rows of a mask, those of one run and with equal columns together."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return
    origin = changes["origin"].to_numpy()[rows]
    place = origin & _PLACE
    columns: dict[str, Any] = {name: changes[name].take(rows) for name in (*names, "diff")}
    columns |= {"run": runs[rows], "row": rows, "shard": origin >> 32}
    columns["place"] = pa.array(place, mask=place == 0)
    bounds = [(name, bound) for name in ("shard", "place") for bound in ("min", "max")]
    groups: Any = pa.table(columns).group_by([*names, "run"])
    found = groups.aggregate([*bounds, *aggregates, ("row", "min")])
    unknown = _differ(found, "shard") | _differ(found, "place")
    if aggregates:
        unknown &= _differ(found, "diff")
    if unknown.any():
        row = int(found["row_min"].to_numpy()[unknown].min())
        raise _unknown_order(changes.slice(row, 1).to_pylist()[0], aggregates)


def _differ(found: pa.Table, name: str) -> NDArray[np.bool_]:
    """Where the least value is not the greatest; of nothing, there is neither."""
    least, greatest = (found[f"{name}_{bound}"] for bound in ("min", "max"))
    differ: Any = pc.not_equal(least, greatest)
    return np.asarray(differ.fill_null(False))


def _unknown_order(row: dict[str, Any], aggregates: Aggregates) -> GraphtideError:
    quad = " ".join(row[name] for name in "spog" if row[name])
    does = f"inserts and deletes {quad}" if aggregates else f"has events of {row['stream']}"
    return GraphtideError(
        f"the transaction of time {row['time']}, tx {row['tx']} {does} in rows of different "
        "partitions, files or shards of the source: their order is not known",
        hint="give the changes a column seq, which numbers those of a transaction",
    )
