"""Pack: the changes of a Spark task, routed and put into one chunk per cell, before any shuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.rdf.changes import wrong_rows
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.terms import POSITIONS
from graphtide.spark.chunk import to_chunk
from graphtide.spark.frontier import END, START, Frontier, frontier_of
from graphtide.spark.hashing import cell_keys
from graphtide.spark.pack_events import deleted_events, moments, route_all
from graphtide.spark.pack_reactions import reaction_rows
from graphtide.spark.rejects import rejected
from graphtide.spark.route import route
from graphtide.spark.schemas import EVENTS, PACKED, table_of
from graphtide.streams.stream import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from graphtide.spark.task import Task


def pack_task(
    batches: Iterable[pa.RecordBatch], task: Task, number: int
) -> Iterator[pa.RecordBatch]:
    """All batches of one Spark task as one packed row per cell (Spark's `mapInArrow`)."""
    parts: list[list[pa.Table]] = [[] for _ in range(task.cells)]
    rejects: list[pa.Table] = []
    seen = START
    for batch in batches:
        latest = LARGEST if task.windows else END.time
        table, unstamped = split_unstamped(numbered(pa.Table.from_batches([batch])), latest)
        seen = max(seen, frontier_of(*(table[name].to_numpy() for name in ("time", "tx", "diff"))))
        changes, bad = route_table(table, task)
        rejects += [unstamped, bad]
        for cell, part in changes.items():
            parts[cell].append(part)
    yield packed_rows(parts, pa.concat_tables(rejects) if rejects else None, seen, number)


def packed_rows(
    parts: list[list[pa.Table]], rejects: pa.Table | None, seen: Frontier, number: int
) -> pa.RecordBatch:
    """One row per cell; every cell hears of the frontier, the first one takes the rejects."""
    n = len(parts)
    chunks = [to_chunk(pa.concat_tables(tables)) if tables else None for tables in parts]
    aside: list[bytes | None] = [None] * n
    if rejects is not None and len(rejects):
        aside[0] = to_chunk(rejects)
    stamps = [[part] * n for part in (number, *seen)]
    columns: list[Any] = [cell_keys(n), *stamps, chunks, aside]
    return table_of(PACKED, columns).to_batches()[0]


def numbered(table: pa.Table) -> pa.Table:
    """The table with a column `seq`: the user's, or 0, which leaves rows in the order they came."""
    if "seq" in table.column_names:
        return table
    return table.append_column("seq", pa.array(np.zeros(len(table), np.int64)))


def split_unstamped(table: pa.Table, latest: int = END.time) -> tuple[pa.Table, pa.Table]:
    """The rows that have their place in the stream; and the others, set aside."""
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
    return good, rejected(table, dict(sorted(reasons.items())))


def others(count: int, rows: Iterable[int]) -> NDArray[np.int64]:
    """All rows but these.

    >>> others(4, [2, 0]).tolist()
    [1, 3]
    """
    kept = np.ones(count, np.bool_)
    kept[np.fromiter(rows, np.int64)] = False
    return np.flatnonzero(kept)


def route_table(table: pa.Table, task: Task) -> tuple[dict[int, pa.Table], pa.Table]:
    """By cell, the changes that go there, with canonical terms; and what is set aside."""
    terms = TermDictionary()
    wanted: Any = pc.and_(pc.not_equal(table["diff"], 0), table["wanted"])  # type: ignore[call-overload]
    real = table.filter(wanted)
    quads, bad = _encode(real, terms)
    if task.has_streams:
        bad = dict(sorted((deleted_events(real) | bad).items()))
    good = others(len(real), bad)
    if task.has_streams:
        rows, cells = route_all(quads[good], real["stream"].take(good), terms, task)
    else:
        rows, cells = route(quads[good], terms, task.routes[None])
    changes = _by_cell(real, quads, (good[rows], cells), terms, task)
    if task.windows:
        told = moments(table, np.flatnonzero(wanted.to_numpy())[list(bad)], task)
        for cell in range(task.cells) if len(told) else ():
            changes[cell] = pa.concat_tables([told, changes.get(cell, EVENTS.empty_table())])
    if task.reacts_to_graph_events:
        for cell, part in reaction_rows(real, quads, good, terms, task.cells).items():
            changes[cell] = pa.concat_tables([changes.get(cell, EVENTS.empty_table()), part])
    return changes, rejected(real, bad)


def _by_cell(
    real: pa.Table,
    quads: NDArray[np.int32],
    routed: tuple[NDArray[np.int64], NDArray[np.int64]],
    terms: TermDictionary,
    task: Task,
) -> dict[int, pa.Table]:
    """The changes of each cell, from pairs of row and cell; the first copy of a row is at home."""
    rows, cells = routed
    home = np.ones(len(rows), np.bool_)
    home[1:] = rows[1:] != rows[:-1]
    if task.reacts_to_graph_events:  # then there is a copy of each event at home for rules
        home &= real["stream"].is_null().to_numpy()[rows]
    stamps = [real[name].to_numpy() for name in ("time", "tx", "seq", "diff")]
    changes = {}
    for cell in np.flatnonzero(np.bincount(cells)).tolist():
        chosen = np.flatnonzero(cells == cell)
        at = rows[chosen]
        texts = [terms.decode_column(quads[at, column]) for column in range(4)]
        streams = [real["stream"].take(at)] if task.has_streams else []
        columns = [*(stamp[at] for stamp in stamps), home[chosen], *texts, *streams]
        changes[cell] = table_of(task.changes_schema, columns)
    return changes


def _encode(table: pa.Table, terms: TermDictionary) -> tuple[NDArray[np.int32], dict[int, str]]:
    """The quads as ids; and, by row, what is wrong with those that are none."""
    quads = np.empty((len(table), 4), np.int32)
    bad: dict[int, str] = {}
    for column, name in enumerate("spog"):
        texts: Any = table[name].combine_chunks()
        quads[:, column], wrong = terms.encode_rows(texts, skip_empty=name == "g")
        for row, reason in wrong:
            bad.setdefault(row, f"column {name}: {reason}")
        for row in np.flatnonzero(wrong_rows(texts, name)).tolist():
            bad.setdefault(row, f"column {name}: {POSITIONS[name].rule}")
    for row in np.flatnonzero(np.abs(table["diff"].to_numpy()) != 1).tolist():
        bad.setdefault(row, "diff is neither +1 nor -1, nor 0 to mark the end of a transaction")
    return quads, dict(sorted(bad.items()))
