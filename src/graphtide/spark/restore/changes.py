"""The log of the match for another division: the live quads, routed again.

Old partitions have copies of the same quads. Each sends all of its own to the partitions of the new
division, where equal ones become one. So it is with the events that windows retain. What is held
back goes on as well: changes of open transactions, of which one copy is the one at home, and
changes in the answers of queries over windows that no close has reported yet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.partition.columns import TermColumn
from graphtide.spark.partition.grids import owners, route
from graphtide.spark.partition.hashing import TermHashes
from graphtide.spark.stages import pack
from graphtide.spark.state import messages as msg
from graphtide.spark.state.log import Head, MemoryLog
from graphtide.spark.state.saved import logged_rows, new_log
from graphtide.streams.windows import ElementWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Ints
    from graphtide.spark.job import JobSpec

    Routed = dict[int, list[pa.Table]]
    """Tables by the partition to which they go."""

QUAD = tuple("spog")
EVENT = ("stream", "time", *QUAD, "seq")
"""The columns in which rows differ: `seq` numbers equal events of one time."""


# --- from an old partition ---


def split_changes(
    job: JobSpec, log: MemoryLog, old: int, queries: Mapping[int, int]
) -> list[MemoryLog]:
    """What each partition of a job gets from the match of an old partition.

    `queries` has the ids of the old queries that go on, and their ids in this job.
    """
    head = log.current or Head()
    rows = _streamed(logged_rows(log, msg.STREAM_CHANGES))
    of_graph, events = msg.divided(rows, rows["stream"].is_null().to_numpy())
    logged = _route_quads(job, of_graph)
    for stream in {window.stream for window in job.windows.values()}:
        # Of a window that counts events, the first partition has seen them all.
        if old == 0 or stream not in counted_streams(job):
            mine = events.take(pack.rows_of_stream(events["stream"], stream))
            _add(logged, _route_events(job, mine, stream))
    held, unreported = _route_held(job, head), _route_unreported(job, head, old, queries)
    return [
        new_log(
            replace(
                head,
                held=_chunk(held.get(at, ())),
                unreported=_chunk(unreported.get(at, ())),
            ),
            pa.concat_tables([msg.empty(job.log_schema), *logged.get(at, ())]),
        )
        for at in range(job.partitions)
    ]


def counted_streams(job: JobSpec) -> set[str]:
    """The streams of which windows count the events."""
    return {w.stream for w in job.windows.values() if isinstance(w.shape, ElementWindow)}


def _streamed(rows: pa.Table) -> pa.Table:
    """Changes with a column `stream`."""
    if "stream" in rows.column_names:
        return rows
    return rows.append_column(msg.STREAM_CHANGES.field("stream"), pa.nulls(len(rows), pa.string()))


def _route_quads(job: JobSpec, changes: pa.Table) -> Routed:
    """The quads that changes lead to, as inserts."""
    terms = TermDictionary()
    quads = _encoded(changes, terms)
    _, last = np.unique(quads[::-1], axis=0, return_index=True)
    at = np.sort(len(quads) - 1 - last)
    live = quads[at[changes["diff"].to_numpy()[at] > 0]]
    # Events come after the quads. Without windows, the time is that of the last change.
    stamp = 0 if job.windows or not len(changes) else max(changes["time"].to_numpy().max(), 0)
    rows, partitions = route(_columns(live, terms), job.routes[None])
    found: Routed = {}
    for partition in np.unique(partitions).tolist():
        mine = live[rows[partitions == partition]]
        zeros = np.zeros(len(mine), np.int64)
        found[partition] = [_table(job, mine, terms, [zeros + int(stamp), zeros, zeros], None)]
    return found


def _route_events(job: JobSpec, events: pa.Table, stream: str) -> Routed:
    """Events of a stream; heartbeats go to all partitions."""
    beats, real = msg.divided(events, events["s"].is_null().to_numpy())
    terms = TermDictionary()
    quads, times = _encoded(real, terms), real["time"].to_numpy()
    seq = occurrences(np.column_stack([quads, times]))
    triples = quads.copy()
    triples[:, 3] = 0  # a window holds the triples of its events as one graph
    rows, partitions = route(_columns(triples, terms), job.routes[stream])
    pulse = pack.heartbeat_rows(stream, np.unique(beats["time"].to_numpy()))
    found: Routed = {at: [pulse.select(job.log_schema.names)] for at in range(job.partitions)}
    for partition in np.unique(partitions).tolist():
        at = rows[partitions == partition]
        stamps = [times[at], np.zeros(len(at), np.int64), seq[at]]
        found[partition].append(_table(job, quads[at], terms, stamps, stream))
    return found


def _table(
    job: JobSpec,
    quads: Ints,
    terms: TermDictionary,
    stamps: list[NDArray[np.int64]],
    stream: str | None,
) -> pa.Table:
    """Inserts of quads, or events, as rows of a log; `stamps` are time, tx and seq."""
    n = len(quads)
    flags = [np.ones(n, np.int8), np.zeros(n, np.int64), np.ones(n, np.bool_)]
    texts = [msg.term_column(terms, quads[:, column]) for column in range(4)]
    of_stream: list[Any] = [pa.array([stream] * n, pa.string())] if job.windows else []
    return msg.table_of(job.log_schema, [*stamps, *flags, *texts, *of_stream])


def _route_held(job: JobSpec, head: Head) -> Routed:
    """The changes of open transactions: the copy at home of each is routed again."""
    if not head.held:
        return {}
    held = _streamed(msg.from_chunk(head.held))
    beats, real = msg.divided(held, _heartbeats(held))
    own = real.filter(real["home"])
    for name in QUAD:
        at = own.schema.get_field_index(name)
        own = own.set_column(at, name, own[name].cast(pa.string()))
    yes: Any = pa.array(np.ones(len(own), np.bool_))
    changes, _ = pack.route_table(own.append_column("relevant", yes), job)
    found: Routed = {at: [table] for at, table in changes.items()}
    if job.windows:
        if job.reacts_to_graph_events and "for_rules" not in beats.column_names:
            no: Any = pa.array(np.zeros(len(beats), np.bool_))
            beats = beats.append_column(msg.RULE_CHANGES.field("for_rules"), no)
        _add(found, {at: [beats.select(job.changes_schema.names)] for at in range(job.partitions)})
    return found


def _heartbeats(changes: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(changes["s"].is_null().to_numpy() & changes["stream"].is_valid().to_numpy())


def _route_unreported(job: JobSpec, head: Head, old: int, queries: Mapping[int, int]) -> Routed:
    """Unreported changes in answers, to the partitions that have the rows.

    A row that is consolidated later may come out of any partition.
    """
    found: Routed = {}
    rows = msg.from_chunk(head.unreported) if head.unreported else msg.empty(msg.MESSAGES)
    for before, now in queries.items():
        mine = msg.of_kind(rows, msg.MessageKind.DELTA, before)
        query = job.partition_queries[now]
        if not len(mine) or query.windowed is None:
            continue
        mine = msg.replaced(mine, "id", np.full(len(mine), now))
        where = np.full(len(mine), old % job.partitions)
        if not query.needs_consolidation:
            terms = TermDictionary()
            ids = msg.value_ids(mine, query.shown, terms)
            at = [query.query.variables.index(v) for v in query.grid.columns]
            where = owners(ids[:, at], TermHashes(terms), query.grid)
        for partition in np.unique(where).tolist():
            part = mine.take(np.flatnonzero(where == partition))
            found.setdefault(partition, []).append(part)
    return found


def _encoded(changes: pa.Table, terms: TermDictionary) -> Ints:
    quads = np.empty((len(changes), 4), np.int32)
    for column, name in enumerate(QUAD):
        quads[:, column] = terms.encode_column(changes[name])
    return quads


def _columns(quads: Ints, terms: TermDictionary) -> list[TermColumn]:
    """Quads of ids as the columns that are routed."""
    texts = terms.decode_column(np.arange(1, terms.top + 1))
    return [TermColumn(texts, column - 1) for column in quads.T]


def occurrences(rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """How many rows before each are equal to it.

    >>> occurrences(np.array([[1, 2], [3, 4], [1, 2]])).tolist()
    [0, 0, 1]
    """
    if not len(rows):
        return np.empty(0, np.int64)
    _, groups = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    ordered = groups.reshape(-1)[order]
    found = np.empty(len(rows), np.int64)
    found[order] = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    return found


def _add(tables: Routed, more: Routed) -> None:
    for partition, parts in more.items():
        tables.setdefault(partition, []).extend(parts)


def _chunk(tables: Sequence[pa.Table]) -> bytes:
    filled = [table for table in tables if len(table)]
    return msg.to_chunk(pa.concat_tables(filled)) if filled else b""


# --- to a new partition ---


def merge_changes(job: JobSpec, parts: Sequence[MemoryLog]) -> tuple[Head, pa.Table]:
    """The head and the rows of a partition's log, from what the old partitions have sent."""
    rows = pa.concat_tables([logged_rows(part, job.log_schema) for part in parts])
    if job.windows:
        graph, events = msg.divided(rows, rows["stream"].is_null().to_numpy())
        events = distinct_rows(events, EVENT)
        order = np.argsort(events["time"].to_numpy(), kind="stable")
        rows = pa.concat_tables([distinct_rows(graph, QUAD), events.take(order)])
    else:
        # They are one transaction, at the time of the last one.
        rows = distinct_rows(rows, QUAD)
        times = np.full(len(rows), rows["time"].to_numpy().max() if len(rows) else 0)
        rows = rows.set_column(0, msg.CHANGES.field("time"), pa.array(times, pa.int64()))
    return merge_heads(parts, job.changes_schema), rows


def merge_heads(parts: Sequence[MemoryLog], held_schema: pa.Schema) -> Head:
    """One head: with the frontier that all have, and what each has held and not reported."""
    heads = [part.current or Head() for part in parts]
    last = max(heads, key=lambda head: head.frontier)
    held = msg.from_chunks((head.held or None for head in heads), held_schema)
    if "stream" in held_schema.names:
        beats, real = msg.divided(held, _heartbeats(held))
        held = pa.concat_tables([distinct_rows(beats, ("stream", "time")), real])
    unreported = [msg.from_chunk(head.unreported) for head in heads if head.unreported]
    return Head(
        frontier=last.frontier,
        shards=last.shards,
        held=_chunk([held]),
        unreported=_chunk(unreported),
    )


def distinct_rows(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The first of rows that agree on some columns, in their order.

    >>> distinct_rows(pa.table({"a": [7, 7, None], "b": [1, 2, 3]}), ["a"])["b"].to_pylist()
    [1, 3]
    """
    columns: dict[str, Any] = {
        name: table[name].cast(pa.string()) if table[name].type == msg.TERM else table[name]
        for name in names
    }
    columns["_row"] = np.arange(len(table))
    keys: Any = pa.table(columns).group_by(list(names))
    firsts = keys.aggregate([("_row", "min")])["_row_min"].to_numpy()
    return table if len(firsts) == len(table) else table.take(np.sort(firsts))
