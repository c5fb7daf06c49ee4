"""Events on their way to patterns and rules.

Events come from graph events (triples of a stream that arrive together) and from changes in the
answers of internal queries. They are sent to the partitions of the patterns and rules that use
them, facts to those of their rules. All that belongs to a transaction comes in one micro-batch, and
every partition has the same frontier. So these stages hold nothing back, and what the end of a time
causes happens in every partition in the same micro-batch.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.engine.events import group_events
from graphtide.patterns.event_rows import UNNAMED
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rules.matching.types import TypeMatcher
from graphtide.rules.temporal import is_true
from graphtide.spark.partition import program
from graphtide.spark.partition.grids import EventKey, key_partitions
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Longs
    from graphtide.spark.state.cache import PartitionEngine, PartitionState

EventRow = tuple[int, int, list[str | None]]
"""Time, tx and values of an event that a change of the graph caused."""


def take_messages(
    state: PartitionState,
    batch: msg.StageInput,
    kinds: Sequence[msg.MessageKind],
    make: Callable[[], PartitionEngine],
) -> pa.Table:
    """Give an engine its kinds of messages, in order; its output, and all other messages."""
    recovered = state.recover(make)
    engine, head, first, _ = recovered
    messages = batch.table()
    mine, out = msg.divided(messages, np.isin(messages["kind"].to_numpy(), kinds))
    frontier = max(head.frontier, batch.frontier)
    if len(mine) or frontier.time > head.frontier.time or first is not None:
        made, head = state.advance(engine, replace(head, frontier=frontier), in_order(mine))
        out = pa.concat_tables([out, made])
    state.commit(recovered, head)
    return out


def in_order(messages: pa.Table) -> pa.Table:
    """Messages by transaction; in one its facts, then its events by seq, type and values."""
    if len(messages) < 2:
        return messages
    values: Any = messages["values"].combine_chunks()
    texts = pa.ListArray.from_arrays(
        pa.array(np.asarray(values.offsets) - int(values.offsets[0].as_py()), pa.int32()),
        values.flatten().fill_null(""),
    )
    columns: dict[str, Any] = {
        "time": messages["time"],
        "tx": messages["tx"],
        "kind": (messages["kind"].to_numpy() != msg.MessageKind.FACT).astype(np.int8),
        "seq": messages["seq"],
        "id": messages["id"],
        "type": messages["type"],
        "text": pc.binary_join(texts, "\0"),
        "begin": -messages["diff"].to_numpy(),
    }
    keys: Any = [(name, "ascending") for name in columns]
    return messages.take(pc.sort_indices(pa.table(columns), sort_keys=keys))


def event_numbers(rows: pa.Table, own: NDArray[np.bool_]) -> tuple[Longs, Longs]:
    """The event of each row, and the first row of each event.

    All that one graph event matches is one event; rows that are `own` are an event each.
    """
    time, tx, seq = (rows[name].to_numpy() for name in ("time", "tx", "seq"))
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (time[1:] != time[:-1]) | (tx[1:] != tx[:-1]) | (seq[1:] != seq[:-1])
    begins[1:] |= own[1:] | own[:-1]
    return np.cumsum(begins) - 1, np.flatnonzero(begins)


# --- from changes to events ---


def graph_events(rows: pa.Table, spec: program.ProgramSpec) -> pa.Table:
    """The events that graph events match, from complete rows of streams in their order.

    Rows of one transaction and stream are one graph event. Those of one transaction are ordered by
    the names of their streams.
    """
    if not len(rows):
        return msg.empty(msg.MESSAGES)
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
    seqs = 1 + np.arange(len(firsts)) - np.searchsorted(transaction[firsts], transaction[firsts])
    parts = [msg.empty(msg.MESSAGES)]
    for index, type_ in spec.graph_types:
        hits = TypeMatcher(type_, terms).hits(events)
        at = firsts[hits[:, 0]]
        stamps = time[at], tx[at], seqs[hits[:, 0]]
        parts.append(msg.event_messages(index, stamps, hits[:, 1:], terms))
    return pa.concat_tables(parts)


def first_facts(first: pa.Table, spec: program.ProgramSpec) -> pa.Table:
    """Deltas before any change; those of internal queries are facts and not events."""
    query = first["id"].to_numpy()
    internal = range(spec.first_internal, spec.first_internal + len(spec.internal_queries))
    shown = first.filter(pa.array(~np.isin(query, internal)))
    facts = first.filter(pa.array(np.isin(query, list(spec.facts))))
    return pa.concat_tables(
        [shown, msg.replaced(facts, "time", np.full(len(facts), program.BEFORE_ALL))]
    )


def change_events(deltas: pa.Table, spec: program.ProgramSpec) -> pa.Table:
    """The events that changes in the answers of internal queries cause."""
    parts = [msg.empty(msg.MESSAGES)]
    for source in spec.change_events:
        match source:
            case program.RowEvents(_, query, appears):
                found = _rows(_lines(deltas, query), appears=appears)
            case program.UpdateEvents(_, retained, whole):
                width = len(list(spec.types)[source.type].parameters)
                found = _updates(_lines(deltas, retained), _lines(deltas, whole), width)
            case program.StateEvents(_, removed, added):
                found = _states(_lines(deltas, removed), _lines(deltas, added), source)
        parts.append(msg.event_rows(source.type, list(_checked(found, source.type, spec))))
    return pa.concat_tables(parts)


def _lines(deltas: pa.Table, query: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msg.of_kind(deltas, msg.MessageKind.DELTA, query).to_pylist()
    return found


def _rows(lines: list[dict[str, Any]], *, appears: bool) -> Iterator[EventRow]:
    for line in lines:
        if (line["diff"] > 0) is appears:
            yield line["time"], line["tx"], line["values"]


def _states(
    removed: list[dict[str, Any]], added: list[dict[str, Any]], source: program.StateEvents
) -> Iterator[EventRow]:
    """Things that leave one state and enter another by one transaction."""
    left: dict[tuple[object, ...], list[list[str | None]]] = defaultdict(list)
    for time, tx, row in _rows(removed, appears=False):
        left[time, tx, *row[: source.shared]].append(row)
    seen: set[tuple[object, ...]] = set()
    for time, tx, row in _rows(added, appears=True):
        for old in left.get((time, tx, *row[: source.shared]), ()):
            values = [(row if is_new else old)[column] for is_new, column in source.columns]
            if (time, tx, *values) not in seen:
                seen.add((time, tx, *values))
                yield time, tx, values


def _updates(
    retained: list[dict[str, Any]], whole: list[dict[str, Any]], width: int
) -> Iterator[EventRow]:
    """Rows that stay, while other values of them change."""
    seen = {(line["time"], line["tx"], *line["values"]) for line in retained}
    for line in whole:
        time, tx, row = line["time"], line["tx"], line["values"][:width]
        if (time, tx, *row) not in seen:
            seen.add((time, tx, *row))
            yield time, tx, row


def _checked(
    found: Iterator[EventRow], index: int, spec: program.ProgramSpec
) -> Iterator[EventRow]:
    """Those that pass the CHECK of their type."""
    type_ = list(spec.types)[index]
    if type_.check is None:
        yield from found
        return
    terms = TermDictionary()
    for time, tx, row in found:
        pairs = zip(type_.parameters, row, strict=True)
        values = {v: terms.decode(terms.encode(text)) for v, text in pairs if text is not None}
        if is_true(type_.check, values):
            yield time, tx, row


# --- to the partitions of patterns and rules ---


def send_matched(messages: pa.Table, spec: program.ProgramSpec, partition: int) -> list[msg.Sent]:
    """What leaves the match: deltas of named queries stay, events and facts are addressed."""
    caused = change_events(messages, spec)
    events = pa.concat_tables([msg.of_kind(messages, msg.MessageKind.EVENT), caused])
    deltas = msg.of_kind(messages, msg.MessageKind.DELTA)
    named = deltas.filter(pa.array(deltas["id"].to_numpy() < spec.first_internal))
    return gathered(
        [
            msg.Sent(partition, named),
            *_facts(deltas, spec),
            *_to_patterns(events, spec),
            *_to_rules(events, spec),
        ]
    )


def send_detected(messages: pa.Table, spec: program.ProgramSpec, partition: int) -> list[msg.Sent]:
    """What leaves the patterns: complex events, also for rules; all other messages stay."""
    complex_ = msg.of_kind(messages, msg.MessageKind.EVENT)
    return gathered([msg.Sent(partition, messages), *_to_rules(complex_, spec)])


def gathered(parts: Iterable[msg.Sent]) -> list[msg.Sent]:
    """The messages of each partition together; partitions to which nothing goes are left out."""
    by_partition: dict[int, list[pa.Table]] = {}
    for partition, table in parts:
        if len(table):
            by_partition.setdefault(partition, []).append(table)
    return [msg.Sent(at, pa.concat_tables(tables)) for at, tables in sorted(by_partition.items())]


def _facts(deltas: pa.Table, spec: program.ProgramSpec) -> Iterator[msg.Sent]:
    for query, rule in spec.facts.items():
        key, facts = spec.rule_keys[rule], spec.rules[rule].facts
        width = len(facts.variables) if facts else 0
        rows = msg.addressed(
            msg.of_kind(deltas, msg.MessageKind.DELTA, query), msg.MessageKind.FACT, rule
        )
        yield from by_key(rows, width, (key.facts,), key, spec.partitions)


def _to_patterns(events: pa.Table, spec: program.ProgramSpec) -> Iterator[msg.Sent]:
    for pattern, key in enumerate(spec.pattern_keys):
        for index, type_ in enumerate(spec.named.values()):
            if index in key.columns:
                rows = msg.of_kind(events, msg.MessageKind.EVENT, spec.types[type_])
                rows = msg.addressed(rows, msg.MessageKind.PATTERN_EVENT, pattern, index)
                width, columns = len(type_.parameters), key.columns[index]
                yield from by_key(rows, width, columns, key, spec.partitions)
        if pattern in spec.noise_patterns:
            rows = msg.of_kind(events, msg.MessageKind.EVENT, spec.types[program.ANY_EVENT])
            rows = msg.addressed(rows, msg.MessageKind.PATTERN_EVENT, pattern, UNNAMED)
            yield from by_key(rows, 0, ((),), key, spec.partitions)


def _to_rules(events: pa.Table, spec: program.ProgramSpec) -> Iterator[msg.Sent]:
    if not len(events):
        return
    for rule, key in enumerate(spec.rule_keys):
        for type_, index in spec.types.items():
            rows = msg.of_kind(events, msg.MessageKind.EVENT, index)
            rows = msg.addressed(rows, msg.MessageKind.RULE_EVENT, rule, index)
            if type_ == program.RETRACTED:  # the event may be anywhere
                yield from (msg.Sent(partition, rows) for partition in range(spec.partitions))
            elif index in key.columns:
                width, columns = len(type_.parameters), key.columns[index]
                yield from by_key(rows, width, columns, key, spec.partitions)


def by_key(
    rows: pa.Table,
    width: int,
    columns: Sequence[tuple[int, ...]],
    key: EventKey,
    partitions: int,
) -> Iterator[msg.Sent]:
    """Messages by the partitions of their keys."""
    if not len(rows):
        return
    values: Any = rows["values"].combine_chunks()
    wheres: list[Longs] = [
        key_partitions(values, width, each, key.home, partitions) for each in columns
    ]
    for partition in np.unique(np.concatenate(wheres)).tolist():
        here = np.logical_or.reduce([where == partition for where in wheres])
        yield msg.Sent(partition, rows.filter(pa.array(here)))
