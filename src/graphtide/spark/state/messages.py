"""Messages between the stages of a job, and the rows in which Spark carries them.

Spark moves `StageRow`s, one per sender and receiving partition: the sender's frontier, a chunk of
data, a chunk of rejected input, and before the match the frontiers of shards. A chunk is an Arrow
table as bytes. Before the match its rows are changes (`CHANGES`, `STREAM_CHANGES` or
`RULE_CHANGES`), after it they are messages (`MESSAGES`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide.spark.state.frontier import NO_SHARDS, START, Frontier, Shards

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary


Fields = list[tuple[str, pa.DataType]]

TERM: Final = pa.dictionary(pa.int32(), pa.string())
"""A column of terms: numbers into the different texts of a chunk, which are written once."""

_CHANGES: Final[Fields] = [
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("seq", pa.int64()),
    ("diff", pa.int8()),
    ("origin", pa.int64()),
    ("home", pa.bool_()),
    *((name, TERM) for name in "spog"),
]
CHANGES: Final = pa.schema(_CHANGES)
"""Changes of the graph: `seq` orders those of a transaction, `origin` says where a row is from,
`home` marks one copy of each."""

STREAM_CHANGES: Final = pa.schema([*_CHANGES, ("stream", pa.string())])
"""Changes, and events of streams. An event without terms is a heartbeat of its stream."""

RULE_CHANGES: Final = pa.schema([*STREAM_CHANGES, pa.field("for_rules", pa.bool_())])
"""The same, where each event also has a copy for rules and patterns (`for_rules`)."""

_REJECTED: Final[Fields] = [
    ("reason", pa.string()),
    ("file", pa.string()),
    ("line", pa.int64()),
    ("column", pa.int64()),
    ("text", pa.string()),
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("diff", pa.int64()),
]
REJECTED: Final = pa.schema(_REJECTED)
REJECTED_SQL: Final = (
    "reason string, file string, line bigint, column bigint, text string, "
    "time bigint, tx bigint, diff bigint"
)
"""Rejected input: why, where it was read (if known), and what it was."""


class MessageKind(IntEnum):
    """What a message is, and what its `id` counts."""

    DELTA = 0  # of a query
    EVENT = 1  # of a type
    FACT = 2  # a delta of the facts of a rule
    PATTERN_EVENT = 3  # an event for a pattern
    RULE_EVENT = 4  # an event for a rule
    FIRING = 5  # of a rule
    TOKENS = 6  # the saved state of a pattern
    FILE = 7  # a file of output that a partition has written


_MESSAGES: Final[Fields] = [
    ("kind", pa.int8()),
    ("id", pa.int32()),
    ("type", pa.int32()),
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("seq", pa.int32()),
    ("diff", pa.int64()),
    ("values", pa.list_(pa.string())),
    ("events", pa.list_(pa.string())),
    ("state", pa.binary()),
]
MESSAGES: Final = pa.schema(_MESSAGES)
"""Messages after the match.

`type` is the event type of PATTERN_EVENT and RULE_EVENT. `seq` is the position of an event in its
transaction: 0 for what the transaction's changes caused, then one graph event after the other.
`diff` is the multiplicity of DELTA and FACT, and how long an event has lasted at its time. `values`
are terms in the order of the variables; `events` names the events of a FIRING; `state` holds TOKENS
and describes a FILE.
"""

AFTER_ALL: Final = 2**63 - 1
"""The tx of what the end of a time causes: after all transactions of that time."""


class StageRow(NamedTuple):
    """What one task or partition sends to one partition of the next stage."""

    partition: int
    task: int
    time: int
    tx: int
    ended: int
    chunk: bytes | None = None
    rejected: bytes | None = None
    shards: str | None = None

    @property
    def frontier(self) -> Frontier:
        """The latest transaction that the sender has seen."""
        return Frontier(self.time, self.tx, self.ended)


_ROWS: Final[Fields] = [
    ("partition", pa.int32()),
    ("task", pa.int32()),
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("ended", pa.int32()),
    ("chunk", pa.binary()),
    ("rejected", pa.binary()),
    ("shards", pa.string()),
]
ROWS: Final = pa.schema(_ROWS)
ROWS_SQL: Final = (
    "partition int, task int, time bigint, tx bigint, ended int, chunk binary, rejected binary, "
    "shards string"
)
"""Stage rows in Arrow and for Spark; `partition` is the key by which they are shuffled."""


class Sent(NamedTuple):
    """Data for a partition of the next stage."""

    partition: int
    table: pa.Table


@dataclass(frozen=True, slots=True)
class StageInput:
    """What a partition of a stage gets in one micro-batch; of a `bounded` input, all there is.

    `shards` are the frontiers that the senders have seen, `now` is the processing time of the
    micro-batch in milliseconds, where it matters: the same one whenever it is run.
    """

    chunks: list[bytes]
    frontier: Frontier
    bounded: bool = False
    shards: Shards = NO_SHARDS
    now: int | None = None

    @classmethod
    def of(
        cls, rows: Iterable[StageRow], *, bounded: bool = False, now: int | None = None
    ) -> StageInput:
        """What the senders have sent, in the order of their numbers."""
        rows = sorted(rows, key=lambda row: row.task)
        chunks = [row.chunk for row in rows if row.chunk is not None]
        frontier = max((row.frontier for row in rows), default=START)
        seen = {row.shards for row in rows if row.shards is not None}
        shards = NO_SHARDS.joined(map(Shards.from_text, seen))
        return cls(chunks, frontier, bounded, shards, now)

    def table(self, schema: pa.Schema = MESSAGES) -> pa.Table:
        """The data of all senders, in their order."""
        return from_chunks(self.chunks, schema)


@dataclass(frozen=True, slots=True)
class StageOutput:
    """What a partition of a stage makes of it: data by receiver, rejected input, its frontier."""

    sent: list[Sent]
    frontier: Frontier
    rejected: pa.Table | None = None


# --- chunks ---

SMALL: Final = 20
"""Tables of fewer rows are not compressed: it would hardly make them smaller."""


def to_chunk(table: pa.Table) -> bytes:
    """A table as the bytes of an Arrow stream, compressed if it is not small."""
    sink = pa.BufferOutputStream()
    # A worker has one core; handing buffers to other threads would only cost.
    compression: Literal["lz4"] | None = None if len(table) < SMALL else "lz4"
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_chunk(chunk: bytes) -> pa.Table:
    """The table of a chunk, or of several that were put one after the other.

    >>> from_chunk(to_chunk(pa.table({"a": [1, 2]})) + to_chunk(pa.table({"a": [3]}))).to_pydict()
    {'a': [1, 2, 3]}
    """
    options = pa.ipc.IpcReadOptions(use_threads=False)
    source, tables = pa.BufferReader(chunk), []
    while source.tell() < len(chunk):
        with pa.ipc.open_stream(source, options=options) as reader:
            tables.append(reader.read_all())
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def merged(chunks: Iterable[bytes]) -> bytes:
    """Several chunks as one.

    >>> one, two = (to_chunk(pa.table({"a": [number]})) for number in (1, 2))
    >>> from_chunk(merged([one, two])).to_pydict()
    {'a': [1, 2]}
    """
    return to_chunk(pa.concat_tables([from_chunk(chunk) for chunk in chunks]).combine_chunks())


def from_chunks(chunks: Iterable[bytes | None], schema: pa.Schema) -> pa.Table:
    """The tables of several chunks as one; None is no chunk."""
    tables = [from_chunk(chunk) for chunk in chunks if chunk is not None]
    return pa.concat_tables(tables) if tables else empty(schema)


# --- tables ---


@cache
def empty(schema: pa.Schema) -> pa.Table:
    """The table without rows: making one of ten columns takes longer than most steps of a stage."""
    return schema.empty_table()


def table_of(schema: pa.Schema, columns: Sequence[Any]) -> pa.Table:
    """A table from columns of whatever kind Arrow can convert.

    >>> table_of(pa.schema({"a": pa.int64()}), [[1, 2]]).num_rows
    2
    """
    arrays: list[Any] = [
        column if isinstance(column, pa.ChunkedArray | pa.Array) else pa.array(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def term_column(terms: TermDictionary, ids: NDArray[np.int32]) -> pa.Array[Any]:
    """The terms of ids as a column of `TERM`, in which each text is once; 0 gives null.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> terms = TermDictionary()
    >>> column = term_column(terms, terms.encode_column(['"b"', None, '"a"', '"b"']))
    >>> column.to_pylist(), column.dictionary.to_pylist()
    (['"b"', None, '"a"', '"b"'], ['"b"', '"a"'])
    """
    used = np.zeros(terms.top + 1, np.bool_)
    used[ids] = True
    used[0] = False
    distinct = np.flatnonzero(used).astype(np.int32)
    places = np.zeros(len(used), np.int32)
    places[distinct] = np.arange(len(distinct), dtype=np.int32)
    missing = ids == 0
    numbers: Any = pa.array(places[ids], mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(numbers, terms.decode_column(distinct))


def compacted(table: pa.Table) -> pa.Table:
    """The table, its columns of terms without texts that no row has."""
    for at, field in enumerate(table.schema):
        if field.type == TERM:
            texts: Any = table.column(at).cast(pa.string()).combine_chunks()
            table = table.set_column(at, field, texts.dictionary_encode())
    return table


def stage_rows(rows: Sequence[StageRow]) -> pa.Table:
    """Stage rows as an Arrow table."""
    return table_of(ROWS, [list(column) for column in zip(*rows, strict=True)] or [[]] * len(ROWS))


def divided(table: pa.Table, mask: NDArray[np.bool_]) -> tuple[pa.Table, pa.Table]:
    """The rows where a mask holds, and the others; if those come last, nothing is copied."""
    many = int(np.count_nonzero(mask))
    if many == len(table):
        return table, empty(table.schema)
    if not many:
        return empty(table.schema), table
    if mask[:many].all():
        return table.slice(0, many), table.slice(many)
    return table.filter(pa.array(mask)), table.filter(pa.array(~mask))


class TextIds:
    """Numbers for texts, from 1; 0 is null. The texts are only compared, so any text will do.

    >>> ids = TextIds()
    >>> ids.encode_column(pa.array(["b", None, "a", "b"])).tolist()
    [1, 0, 2, 1]
    >>> ids.decode_column([2, 0]).to_pylist()
    ['a', None]
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str | None] = [None]

    def __len__(self) -> int:
        return len(self._ids)

    def encode_column(self, column: pa.Array[Any]) -> NDArray[np.int32]:
        """The id of each text; new texts get new ones."""
        coded: Any = column.dictionary_encode()
        known = [self._id(text) for text in coded.dictionary.to_pylist()]
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        ids: NDArray[np.int32] = np.array([*known, 0], np.int32)[codes]
        return ids

    def decode_column(self, ids: NDArray[np.integer] | Sequence[int]) -> pa.Array[Any]:
        """The text of each id."""
        distinct, inverse = np.unique(np.asarray(ids), return_inverse=True)
        texts = pa.array([self._texts[i] for i in distinct.tolist()], pa.string())
        return texts.take(inverse.reshape(-1))

    def _id(self, text: str) -> int:
        found = self._ids.setdefault(text, len(self._texts))
        if found == len(self._texts):
            self._texts.append(text)
        return found


# --- builders ---


def delta_messages(
    query: int,
    stamps: tuple[Longs, Longs],
    diff: Longs | Ints,
    ids: Ints,
    terms: TermDictionary | TextIds,
) -> pa.Table:
    """Deltas of a query: time and tx of each, its multiplicity, and the ids of its values."""
    return _messages(
        MessageKind.DELTA,
        query,
        *stamps,
        diff=diff.astype(np.int64),
        values=_value_lists(ids, terms),
    )


def event_messages(
    type_: int,
    stamps: tuple[Longs, Longs, Longs],
    ids: Ints,
    terms: TermDictionary,
    lasting: Longs | None = None,
) -> pa.Table:
    """Events of a type: time, tx and seq of each, the ids of its values, and how long it lasts."""
    time, tx, seq = stamps
    return _messages(
        MessageKind.EVENT,
        type_,
        time,
        tx,
        seq=seq.astype(np.int32),
        values=_value_lists(ids, terms),
        **({} if lasting is None else {"diff": lasting}),
    )


def event_rows(type_: int, rows: Sequence[tuple[int, int, list[str | None]]]) -> pa.Table:
    """Events that changes of the graph caused: time, tx and values of each."""
    if not rows:
        return empty(MESSAGES)
    time, tx, values = zip(*rows, strict=True)
    return _messages(MessageKind.EVENT, type_, np.array(time), np.array(tx), values=list(values))


def firing_messages(
    rule: int, stamps: tuple[Longs, Longs, Longs], values: list[Any], events: list[Any]
) -> pa.Table:
    """Firings of a rule: stamps of what fired it, values, names of its events."""
    time, tx, seq = stamps
    return _messages(
        MessageKind.FIRING, rule, time, tx, seq=seq.astype(np.int32), values=values, events=events
    )


def token_messages(states: Sequence[bytes]) -> pa.Table:
    """The saved state of each pattern."""
    zeros = np.zeros(len(states), np.int64)
    ids = np.arange(len(states), dtype=np.int32)
    return _messages(MessageKind.TOKENS, ids, zeros, zeros, state=list(states))


def file_messages(files: Sequence[bytes]) -> pa.Table:
    """Files of output that were written, each described by some bytes."""
    zeros = np.zeros(len(files), np.int64)
    return _messages(MessageKind.FILE, 0, zeros, zeros, state=list(files))


def addressed(messages: pa.Table, kind: MessageKind, id_: int, type_: int = 0) -> pa.Table:
    """The same rows, as messages for a pattern or a rule."""
    for name, value in (("kind", int(kind)), ("id", id_), ("type", type_)):
        messages = replaced(messages, name, np.full(len(messages), value))
    return messages


def replaced(messages: pa.Table, name: str, numbers: Longs | Ints) -> pa.Table:
    """The same rows with other numbers in a column."""
    field = MESSAGES.field(name)
    column: Any = pa.array(numbers).cast(field.type)
    return messages.set_column(MESSAGES.get_field_index(name), field, column)


def _messages(
    kind: MessageKind, id_: int | Ints, time: Longs, tx: Longs, **columns: object
) -> pa.Table:
    n = len(time)
    known: dict[str, Any] = {
        "kind": np.full(n, int(kind), np.int8),
        "id": np.full(n, id_, np.int32),
        "time": time,
        "tx": tx,
        **columns,
    }
    zeros = np.zeros(n, np.int64)
    given = [
        known.get(f.name, zeros if pa.types.is_integer(f.type) else pa.nulls(n, f.type))
        for f in MESSAGES
    ]
    return table_of(
        MESSAGES, [_cast(column, f.type) for column, f in zip(given, MESSAGES, strict=True)]
    )


def _cast(column: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - whatever Arrow can convert
    if isinstance(column, np.ndarray) and pa.types.is_integer(kind):
        return column.astype(kind.to_pandas_dtype(), copy=False)
    return column


def _value_lists(ids: Ints, terms: TermDictionary | TextIds) -> pa.Array[Any]:
    n, width = ids.shape
    texts: Any = terms.decode_column(np.ascontiguousarray(ids).reshape(-1))
    offsets: Any = pa.array(np.arange(n + 1, dtype=np.int32) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, texts)


# --- readers ---


def of_kind(messages: pa.Table, kind: MessageKind, id_: int | None = None) -> pa.Table:
    """The messages of a kind, or those of them with one id.

    >>> stamps = np.array([7, 8]), np.array([0, 0])
    >>> two = delta_messages(3, stamps, np.array([1, -1]), np.zeros((2, 0), np.int32), TextIds())
    >>> of_kind(two, MessageKind.DELTA, 3)["time"].to_pylist()
    [7, 8]
    """
    mask = messages["kind"].to_numpy() == kind
    if id_ is not None:
        mask &= messages["id"].to_numpy() == id_
    if not mask.any():
        return empty(messages.schema)  # a slice would hold, and send, the rows of the others
    return messages if mask.all() else messages.take(np.flatnonzero(mask))


def value_ids(messages: pa.Table, width: int, texts: TextIds | TermDictionary) -> Ints:
    """The values of messages that have `width` of them as ids; unbound is 0."""
    rows: Any = messages["values"].combine_chunks()
    if not len(messages) or not width:
        return np.zeros((len(messages), width), np.int32)
    ids: Ints = texts.encode_column(rows.flatten()).reshape(len(messages), width)
    return ids


def value_columns(messages: pa.Table, names: Sequence[str]) -> dict[str, Any]:
    """The values of messages as a column per name."""
    rows: Any = messages["values"].combine_chunks()
    flat = rows.flatten()
    first = np.arange(len(messages)) * len(names)
    return {name: flat.take(pa.array(first + i, pa.int64())) for i, name in enumerate(names)}
