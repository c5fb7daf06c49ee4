"""Pack: the changes of a Spark task, checked, routed, and put into one chunk per partition.

Three kinds of rows go to a partition, before any shuffle:

- changes of the graph and events of streams, routed by the grids of the queries;
- heartbeats of streams with windows. A window reports from its stream's first event on, also in a
  partition that gets none of its events, so every partition gets the times of events;
- copies of events for rules and patterns. All events of a transaction go to one partition, which
  holds them until it is complete and matches them with the declared types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.spark.partition.columns import TermColumn, read_quads
from graphtide.spark.partition.grids import route
from graphtide.spark.partition.hashing import mixed_hashes, partition_keys
from graphtide.spark.stages.order import origins
from graphtide.spark.state import messages as msg
from graphtide.spark.state.frontier import (
    END,
    NO_SHARDS,
    START,
    Frontier,
    Shards,
    frontier_of,
    is_feedback,
)
from graphtide.streams.stream import LARGEST
from graphtide.streams.windows import TimeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from graphtide.spark.job import JobSpec

    Count = Callable[[Sequence[TermColumn]], None]

FIRST_TX = -(2**63)
"""The tx of heartbeats: before all transactions of their time."""

STAMPS = ("time", "tx", "seq", "diff", "origin")

SHOWN = ("time", "tx", "diff")
"""The columns that a frontier depends on."""


def pack_task(
    batches: Iterable[pa.RecordBatch], job: JobSpec, number: int, count: Count | None = None
) -> Iterator[pa.RecordBatch]:
    """All batches of a Spark task as one row per partition (Spark's `mapInArrow`)."""
    yield from msg.stage_rows(pack_rows(batches, job, number, count)).to_batches()


def pack_rows(
    batches: Iterable[pa.RecordBatch], job: JobSpec, number: int, count: Count | None = None
) -> list[msg.StageRow]:
    """One row per partition; each has the frontier, the first one the rejected input.

    `count` gets the quads that are sent on.
    """
    parts: list[list[pa.Table]] = [[] for _ in range(job.partitions)]
    rejected: list[pa.Table] = []
    seen, shards = START, NO_SHARDS
    for batch in batches:
        latest = LARGEST if job.windows else END.time
        table, unstamped = split_unstamped(_with_seq(pa.Table.from_batches([batch])), latest)
        from_where: Any = pa.array(origins(table, number))
        table = table.append_column("origin", from_where)
        time, tx, diff = (table[name].to_numpy() for name in SHOWN)
        seen = max(seen, frontier_of(time, tx, diff))
        shards = shards.joined([shards_of(table, job.clock.lateness)])
        changes, bad = route_table(table, job, count)
        rejected += [part for part in (unstamped, bad) if len(part)]
        for partition, part in changes.items():
            parts[partition].append(part)
    chunks = [msg.to_chunk(pa.concat_tables(tables)) if tables else None for tables in parts]
    aside = [msg.to_chunk(pa.concat_tables(rejected)) if rejected else None, *[None] * len(parts)]
    keys, text = partition_keys(job.partitions), shards.to_text() if shards.seen else None
    return [
        msg.StageRow(key, number, *seen, chunks[at], aside[at], text) for at, key in enumerate(keys)
    ]


def shards_of(table: pa.Table, lateness: int) -> Shards:
    """The frontiers of the shards that rows are of; what actions have changed is of none."""
    time, tx, diff = (table[name].to_numpy() for name in SHOWN)
    own = ~is_feedback(tx)
    if not own.any():
        return NO_SHARDS
    if "shard" not in table.column_names:
        return Shards({"": frontier_of(time[own], tx[own], diff[own], lateness)})
    shards: Any = table["shard"].combine_chunks()
    coded = shards.fill_null("").dictionary_encode()
    numbers = coded.indices.to_numpy()
    found = {}
    for number, name in enumerate(coded.dictionary.to_pylist()):
        chosen = own & (numbers == number)
        if chosen.any():
            found[name] = frontier_of(time[chosen], tx[chosen], diff[chosen], lateness)
    return Shards(found)


def _with_seq(table: pa.Table) -> pa.Table:
    """The table with a column `seq`: the user's, or 0, which leaves rows in the order they came."""
    if "seq" in table.column_names:
        return table
    return table.append_column("seq", pa.array(np.zeros(len(table), np.int64)))


# --- rejected rows ---


def split_unstamped(table: pa.Table, latest: int = END.time) -> tuple[pa.Table, pa.Table]:
    """The rows that have a valid time, tx, diff and seq; and the others, rejected."""
    names = ("time", "tx", "diff", "seq")
    missing = {name: table[name].is_null().to_numpy() for name in names}
    reasons = {
        row: f"{name} is missing or no whole number"
        for name in reversed(names)
        for row in np.flatnonzero(missing[name]).tolist()
    }
    early: Any = pc.less(table["time"], pa.scalar(0, pa.int64()))
    for row in np.flatnonzero(early.fill_null(False).to_numpy()).tolist():
        reasons.setdefault(row, "time is before 0")
    beyond: Any = pc.greater(table["time"], pa.scalar(latest, pa.int64()))
    for row in np.flatnonzero(beyond.fill_null(False).to_numpy()).tolist():
        reasons.setdefault(row, f"time is after {latest}, which leaves windows no room")
    good = table.take(others(len(table), reasons)) if reasons else table
    return good, rejected_rows(table, dict(sorted(reasons.items())))


def others(count: int, rows: Iterable[int]) -> NDArray[np.int64]:
    """All rows but these.

    >>> others(4, [2, 0]).tolist()
    [1, 3]
    """
    retained = np.ones(count, np.bool_)
    retained[np.fromiter(rows, np.int64)] = False
    return np.flatnonzero(retained)


def rejected_rows(changes: pa.Table, reasons: Mapping[int, str]) -> pa.Table:
    """Rows of a table as rejected input, by row number, with their reasons.

    What the source has rejected comes with its own reason, text and place.

    >>> row = {"time": [7], "tx": [0], "diff": [1], "s": ["<ex:a>"], "p": ["b"], "o": [None]}
    >>> rejected_rows(pa.table({**row, "g": [None]}), {0: "no IRI"})["text"].to_pylist()
    ['<ex:a> b']
    """
    if not reasons:
        return msg.empty(msg.REJECTED)
    lines = changes.take(pa.array(list(reasons), pa.int64())).to_pylist()
    return pa.Table.from_pylist(
        [_rejected(line, reason) for line, reason in zip(lines, reasons.values(), strict=True)],
        schema=msg.REJECTED,
    )


def _rejected(line: dict[str, Any], reason: str) -> dict[str, Any]:
    if line.get("reason") is not None:
        # The source writes 0 where there is no line or column to name.
        return line | {"line": line["line"] or None, "column": line["column"] or None}
    text = " ".join(line[name] for name in (*"spog", "stream") if line.get(name))
    known = {name: line[name] for name in ("time", "tx", "diff", "file") if name in line}
    return known | {"text": text, "reason": reason}


def late_rows(changes: pa.Table, frontier: Frontier) -> pa.Table:
    """Changes that came after their transaction was complete; of several copies the one at home."""
    reason = f"too late: the stream was complete up to time {frontier.time}, tx {frontier.tx}"
    at_home = changes["home"].to_pylist()
    return rejected_rows(changes, {row: reason for row, home in enumerate(at_home) if home})


# --- routing ---


def route_table(
    table: pa.Table, job: JobSpec, count: Count | None = None
) -> tuple[dict[int, pa.Table], pa.Table]:
    """By partition, the changes that go there, with canonical terms; and the rejected rows."""
    relevant: Any = pc.and_(pc.not_equal(table["diff"], 0), table["relevant"])  # type: ignore[call-overload]
    real, _ = msg.divided(table, relevant.to_numpy())
    quads, bad = _read_quads(real)
    if job.has_streams:
        bad = dict(sorted((_deleted_events(real) | bad).items()))
    rejected = rejected_rows(real, bad)
    if bad:
        good = others(len(real), bad)
        real, quads = real.take(good), tuple(column.at(good) for column in quads)
    if count is not None:
        count(quads)
    if job.has_streams:
        routed = _route_streams(quads, real["stream"], job)
    else:
        routed = route(quads, job.routes[None])
    changes = _by_partition(real, quads, routed, job)
    if job.windows:
        beats = heartbeats(table, np.flatnonzero(relevant.to_numpy())[list(bad)], job)
        _add(changes, dict.fromkeys(range(job.partitions), beats) if len(beats) else {}, first=True)
    if job.reacts_to_graph_events:
        _add(changes, _rule_copies(real, quads, job.partitions))
    return changes, rejected


def _add(
    changes: dict[int, pa.Table], more: Mapping[int, pa.Table], *, first: bool = False
) -> None:
    """Add rows to those of each partition, before or after them."""
    for partition, rows in more.items():
        both = [rows, changes[partition]] if partition in changes else [rows]
        changes[partition] = pa.concat_tables(both if first else reversed(both))


def _by_partition(
    real: pa.Table,
    quads: Sequence[TermColumn],
    routed: tuple[NDArray[np.int64], NDArray[np.int64]],
    job: JobSpec,
) -> dict[int, pa.Table]:
    """The changes of each partition, from pairs of row and partition; the first copy is at home."""
    rows, partitions = routed
    home = np.ones(len(rows), np.bool_)
    home[1:] = rows[1:] != rows[:-1]
    if job.reacts_to_graph_events:  # then the copy of an event for rules is at home
        home &= real["stream"].is_null().to_numpy()[rows]
    stamps = [real[name].to_numpy() for name in STAMPS]
    changes = {}
    for partition in np.flatnonzero(np.bincount(partitions)).tolist():
        chosen = np.flatnonzero(partitions == partition)
        at = rows[chosen]
        texts = [column.coded(at) for column in quads]
        columns = [*(stamp[at] for stamp in stamps), home[chosen], *texts]
        if job.has_streams:
            columns.append(real["stream"].take(at))
        if job.reacts_to_graph_events:
            columns.append(np.zeros(len(at), np.bool_))
        changes[partition] = msg.table_of(job.changes_schema, columns)
    return changes


def _read_quads(table: pa.Table) -> tuple[tuple[TermColumn, ...], dict[int, str]]:
    """The columns of terms; and, by row, what is wrong with those that are no changes."""
    quads, bad = read_quads([_whole(table[name]) for name in "spog"])
    signs = np.flatnonzero(np.abs(table["diff"].to_numpy()) != 1).tolist()
    reason = "diff is neither +1 nor -1, nor 0 to mark the end of a transaction"
    return quads, dict(sorted((dict.fromkeys(signs, reason) | bad).items()))


def _whole(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """A column as one array, which is copied only if it is in several parts."""
    whole: Any = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return cast("pa.Array[Any]", whole)


# --- streams ---


def _route_streams(
    quads: Sequence[TermColumn], streams: pa.ChunkedArray[Any], job: JobSpec
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (row, partition), each once and sorted by row, of changes and of events of streams."""
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for stream, grids in job.routes.items():
        chosen = rows_of_stream(streams, stream)
        part = [column.at(chosen) for column in quads]
        if stream is not None:  # a window holds the triples of its events as one graph
            part[3] = TermColumn.nulls(len(chosen))
        rows, partitions = route(part, grids)
        found.append((chosen[rows], partitions))
    rows, partitions = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(rows, kind="stable")
    return rows[order], partitions[order]


def rows_of_stream(streams: pa.ChunkedArray[Any], stream: str | None) -> NDArray[np.int64]:
    """The rows of a stream; None: of the graph."""
    mask: Any = streams.is_null() if stream is None else pc.equal(streams, pa.scalar(stream))
    return np.flatnonzero(mask.fill_null(False).to_numpy())


def _deleted_events(table: pa.Table) -> dict[int, str]:
    """By row, what is wrong with events that are deletes."""
    mask: Any = pc.and_(table["stream"].is_valid(), pc.less(table["diff"], 0))  # type: ignore[call-overload]
    reason = "an event cannot be deleted: a window evicts it by itself"
    return dict.fromkeys(np.flatnonzero(mask.to_numpy()).tolist(), reason)


def heartbeats(table: pa.Table, without: Iterable[int], job: JobSpec) -> pa.Table:
    """When there were events: per stream and close to which they lead, the time of the last one."""
    good = np.ones(len(table), np.bool_)
    good[np.fromiter(without, np.int64)] = False
    good &= table["diff"].to_numpy() > 0
    time = table["time"].to_numpy()
    parts = [msg.empty(msg.STREAM_CHANGES)]
    for stream in job.routes:
        shapes = [w.shape for w in job.windows.values() if w.stream == stream]
        steps = [shape for shape in shapes if isinstance(shape, TimeWindow)]
        if stream is None or not steps:
            continue
        chosen = rows_of_stream(table["stream"], stream)
        parts.append(heartbeat_rows(stream, last_times(time[chosen[good[chosen]]], steps)))
    beats = pa.concat_tables(parts)
    if job.reacts_to_graph_events:
        flags: Any = pa.array(np.zeros(len(beats), np.bool_))
        beats = beats.append_column(msg.RULE_CHANGES.field("for_rules"), flags)
    return beats


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


def heartbeat_rows(stream: str, times: NDArray[np.int64]) -> pa.Table:
    """Heartbeats of a stream: it had events at some times.

    >>> heartbeat_rows("ex:s", np.array([7])).select(["time", "s", "stream"]).to_pylist()
    [{'time': 7, 's': None, 'stream': 'ex:s'}]
    """
    n = len(times)
    first, zeros = np.full(n, FIRST_TX, np.int64), np.zeros(n, np.int64)
    flags = [np.ones(n, np.int8), zeros, np.zeros(n, np.bool_)]
    nothing = [pa.nulls(n, msg.TERM)] * 4
    return msg.table_of(msg.STREAM_CHANGES, [times, first, zeros, *flags, *nothing, [stream] * n])


def _rule_copies(
    real: pa.Table, quads: Sequence[TermColumn], partitions: int
) -> dict[int, pa.Table]:
    """By partition, the copies of events for rules and patterns."""
    events = np.flatnonzero(real["stream"].is_valid().to_numpy())
    stamps = [real[name].to_numpy()[events] for name in STAMPS]
    where = mixed_hashes(stamps[:2], len(events)) % partitions
    found = {}
    for partition in np.unique(where).tolist():
        at = np.flatnonzero(where == partition)
        texts = [column.coded(events[at]) for column in quads]
        yes = np.ones(len(at), np.bool_)
        streams = real["stream"].take(events[at])
        found[partition] = msg.table_of(
            msg.RULE_CHANGES, [*(stamp[at] for stamp in stamps), yes, *texts, streams, yes]
        )
    return found
