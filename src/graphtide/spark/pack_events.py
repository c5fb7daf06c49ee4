"""Events of streams, as they are packed: where they go, and that they happened at all.

A window reports from its stream's first event on, also in a cell that gets none of its events. So
every cell is told at which times there were events: one time for each close that they lead to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.spark.route import route
from graphtide.spark.schemas import EVENTS, table_of
from graphtide.streams.windows import TimeWindow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.spark.task import Task

FIRST_TX = -(2**63)


def route_all(
    quads: NDArray[np.int32], streams: pa.ChunkedArray[Any], terms: TermDictionary, task: Task
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (row, cell), each once and sorted by row, of changes and of events of streams."""
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for stream, grids in task.routes.items():
        places = places_of(streams, stream)
        part = quads[places]
        if stream is not None:
            part[:, 3] = 0  # a window holds the triples of its events as one graph
        rows, cells = route(part, terms, grids)
        found.append((places[rows], cells))
    rows, cells = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(rows, kind="stable")
    return rows[order], cells[order]


def places_of(streams: pa.ChunkedArray[Any], stream: str | None) -> NDArray[np.int64]:
    """The rows of a stream; None: of the graph."""
    mask: Any = streams.is_null() if stream is None else pc.equal(streams, pa.scalar(stream))
    return np.flatnonzero(mask.fill_null(False).to_numpy())


def deleted_events(table: pa.Table) -> dict[int, str]:
    """By row, what is wrong with events that are deletes."""
    mask: Any = pc.and_(table["stream"].is_valid(), pc.less(table["diff"], 0))  # type: ignore[call-overload]
    reason = "an event cannot be deleted: a window forgets it by itself"
    return dict.fromkeys(np.flatnonzero(mask.to_numpy()).tolist(), reason)


def moments(table: pa.Table, without: Iterable[int], task: Task) -> pa.Table:
    """When there were events: per stream and close to which they lead, the time of the last one."""
    good = np.ones(len(table), np.bool_)
    good[np.fromiter(without, np.int64)] = False
    good &= table["diff"].to_numpy() > 0
    time = table["time"].to_numpy()
    parts = [EVENTS.empty_table()]
    for stream in task.routes:
        shapes = [w.shape for w in task.windows.values() if w.stream == stream]
        steps = [shape for shape in shapes if isinstance(shape, TimeWindow)]
        if stream is None or not steps:
            continue
        places = places_of(table["stream"], stream)
        parts.append(moment_rows(stream, last_times(time[places[good[places]]], steps)))
    return pa.concat_tables(parts)


def last_times(times: NDArray[np.int64], shapes: list[TimeWindow]) -> NDArray[np.int64]:
    """Of times that lead to the same closes, the last one.

    >>> last_times(np.array([7, 1, 3, 11]), [TimeWindow(5, 5)]).tolist()
    [3, 7, 11]
    """
    times = np.unique(times)
    ends = np.zeros(len(times), np.bool_)
    ends[-1:] = True
    for shape in shapes:
        enters = shape.enters(times)
        ends[:-1] |= enters[1:] != enters[:-1]
    return times[ends]


def moment_rows(stream: str, times: NDArray[np.int64]) -> pa.Table:
    """Rows which tell that a stream had events at some times.

    >>> moment_rows("ex:s", np.array([7])).select(["time", "s", "stream"]).to_pylist()
    [{'time': 7, 's': None, 'stream': 'ex:s'}]
    """
    n = len(times)
    first, zeros = np.full(n, FIRST_TX, np.int64), np.zeros(n, np.int64)
    flags = [np.ones(n, np.int8), np.zeros(n, np.bool_)]
    nothing = [[None] * n] * 4
    return table_of(EVENTS, [times, first, zeros, *flags, *nothing, [stream] * n])
