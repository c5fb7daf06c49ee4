"""Event rows: from graph events and from deltas of hidden queries to events of types."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.engine.events import group_events
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rules.matching.types import TypeMatcher
from graphtide.rules.temporal import is_true
from graphtide.spark.delta_table import delta_table
from graphtide.spark.reaction import (
    BEFORE_ALL,
    FRONTIER,
    TYPES,
    RowEvents,
    StateEvents,
    UpdateEvents,
)
from graphtide.spark.schemas import DELTAS, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.spark.frontier import Frontier
    from graphtide.spark.reaction import Reaction

Line = tuple[int, int, int, int, list[str | None]]
"""A row of `DELTAS`."""


def typed_events(rows: pa.Table, reaction: Reaction) -> pa.Table:
    """What graph events match, from complete rows of streams in their order.

    Rows of one transaction and stream are one event. Those of one transaction come by the names of
    their streams.
    """
    if not len(rows):
        return DELTAS.empty_table()
    names: Any = rows["stream"].combine_chunks().dictionary_encode()
    ranks = np.argsort(np.argsort(np.array(names.dictionary.to_pylist(), object)))
    stream = ranks[names.indices.to_numpy(zero_copy_only=False)]
    time, tx = rows["time"].to_numpy(), rows["tx"].to_numpy()
    # Transactions come in the order of the rows, not of their numbers.
    of_tx = np.ones(len(rows), np.bool_)
    of_tx[1:] = (time[1:] != time[:-1]) | (tx[1:] != tx[:-1])
    transaction = np.cumsum(of_tx)
    order = np.lexsort((np.arange(len(rows)), stream, transaction))
    time, tx = time[order], tx[order]
    stream, transaction = stream[order], transaction[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (transaction[1:] != transaction[:-1]) | (stream[1:] != stream[:-1])
    terms = TermDictionary()
    quads = np.zeros((len(rows), 4), np.int32)
    for column, name in enumerate("spo"):
        quads[:, column] = terms.encode_column(rows[name])[order]
    events = group_events(time, quads, np.cumsum(begins) - 1)
    firsts = np.flatnonzero(begins)
    places = 1 + np.arange(len(firsts)) - np.searchsorted(transaction[firsts], transaction[firsts])
    parts = [DELTAS.empty_table()]
    for number, type_ in reaction.graph_types:
        hits = TypeMatcher(type_, terms).hits(events)
        at = firsts[hits[:, 0]]
        stamps = time[at], tx[at], places[hits[:, 0]]
        parts.append(delta_table(TYPES + number, *stamps, hits[:, 1:], terms))
    return pa.concat_tables(parts)


def change_events(deltas: pa.Table, reaction: Reaction) -> pa.Table:
    """The events that come from what changed in hidden queries."""
    lines: list[Line] = []
    for source in reaction.change_events:
        match source:
            case RowEvents(_, number, appears):
                found = _rows(_lines(deltas, number), appears=appears)
            case UpdateEvents(_, kept, whole):
                width = len(list(reaction.types)[source.type].parameters)
                found = _updates(_lines(deltas, kept), _lines(deltas, whole), width)
            case StateEvents(_, gone, come):
                found = _states(_lines(deltas, gone), _lines(deltas, come), source)
        lines += (
            (TYPES + source.type, time, tx, 0, row)
            for time, tx, row in _checked(found, source.type, reaction)
        )
    if not lines:
        return DELTAS.empty_table()
    return table_of(DELTAS, [list(column) for column in zip(*lines, strict=True)])


Told = tuple[int, int, list[str | None]]


def _lines(deltas: pa.Table, number: int) -> list[dict[str, Any]]:
    rows = deltas.take(np.flatnonzero(deltas["query"].to_numpy() == number))
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def _rows(lines: list[dict[str, Any]], *, appears: bool) -> Iterator[Told]:
    for line in lines:
        if (line["diff"] > 0) is appears:
            yield line["time"], line["tx"], line["row"]


def _states(
    gone: list[dict[str, Any]], come: list[dict[str, Any]], source: StateEvents
) -> Iterator[Told]:
    """Things that leave one state and enter another by one transaction."""
    left: dict[tuple[object, ...], list[list[str | None]]] = defaultdict(list)
    for time, tx, row in _rows(gone, appears=False):
        left[time, tx, *row[: source.shared]].append(row)
    seen: set[tuple[object, ...]] = set()
    for time, tx, row in _rows(come, appears=True):
        for old in left.get((time, tx, *row[: source.shared]), ()):
            values = [(row if comes else old)[column] for comes, column in source.columns]
            if (time, tx, *values) not in seen:
                seen.add((time, tx, *values))
                yield time, tx, values


def _updates(kept: list[dict[str, Any]], whole: list[dict[str, Any]], width: int) -> Iterator[Told]:
    """Rows that stay, while other values of them change."""
    seen = {(line["time"], line["tx"], *line["row"]) for line in kept}
    for line in whole:
        time, tx, row = line["time"], line["tx"], line["row"][:width]
        if (time, tx, *row) not in seen:
            seen.add((time, tx, *row))
            yield time, tx, row


def _checked(found: Iterator[Told], number: int, reaction: Reaction) -> Iterator[Told]:
    """Those that pass the CHECK of their type."""
    type_ = list(reaction.types)[number]
    if type_.check is None:
        yield from found
        return
    terms = TermDictionary()
    for time, tx, row in found:
        pairs = zip(type_.parameters, row, strict=True)
        values = {v: terms.decode(terms.encode(text)) for v, text in pairs if text is not None}
        if is_true(type_.check, values):
            yield time, tx, row


def of_start(first: pa.Table, reaction: Reaction) -> pa.Table:
    """What is there before any change: facts hold from the beginning; that is no event."""
    query = first["query"].to_numpy()
    shown = first.filter(pa.array(query < reaction.first))
    facts = first.filter(pa.array(np.isin(query, list(reaction.facts))))
    times: Any = pa.array(np.full(len(facts), BEFORE_ALL, np.int64))
    facts = facts.set_column(DELTAS.get_field_index("time"), DELTAS.field("time"), times)
    return pa.concat_tables([shown, facts])


def frontier_row(frontier: Frontier) -> pa.Table:
    """How far the stream is complete, as a delta row."""
    time, tx, ended = ([number] for number in frontier)
    return table_of(DELTAS, [[FRONTIER], time, tx, ended, [[]]])
