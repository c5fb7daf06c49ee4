"""Chunks: inputs of a graph as bytes. A chunk is two Arrow streams, its rows and its terms.

The rows have the columns `at` (the transaction or event of the entry that a row is of), `time`,
`tx`, `diff`, and `s`, `p`, `o`, `g`, which are places in the terms of the chunk, from 1; 0 is the
default graph. A row of diff 0 stands for a transaction without changes. The metadata of the rows'
schema has a JSON list of entries: each its kind, how many rows are its own, and further fields.

Ids of the dictionary are private to a process and are given again to other terms, so a chunk has
the texts of its terms, and can be read on its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from graphtide.errors import TermError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs
from graphtide.rdf.kinds import UNBOUND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term_tables import TermTable

ROWS: Final = pa.schema(
    {"at": pa.int32(), "time": pa.int64(), "tx": pa.int64(), "diff": pa.int8()}
    | dict.fromkeys("spog", pa.int32())
)
TERMS: Final = pa.schema({"term": pa.large_string()})
OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")

NO_ROWS: Final[Ints] = np.empty((0, VALUES + 4), np.int32)
NO_STAMPS: Final[Longs] = np.empty(0, np.int64)


@dataclass(slots=True)
class InputEntry:
    """An input. `rows` are at, diff, s, p, o, g; `times` and `txs` have one value for each row.

    `at` counts transactions of changes, or events. `fields` is what JSON can hold.
    """

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    rows: Ints = field(default_factory=lambda: NO_ROWS)
    times: Longs = field(default_factory=lambda: NO_STAMPS)
    txs: Longs = field(default_factory=lambda: NO_STAMPS)

    @property
    def transactions(self) -> int:
        """How many transactions, or events, its rows are of."""
        return int(self.rows[-1, TX]) + 1 if len(self.rows) else 0

    def piece(self) -> tuple[Ints, Longs, Longs]:
        """The rows as transactions of changes, with a time and a tx for each."""
        first = np.flatnonzero(np.diff(self.rows[:, TX], prepend=-1))
        real = self.rows[:, DIFF] != 0
        return np.ascontiguousarray(self.rows[real]), self.times[first], self.txs[first]

    def same_as(self, other: InputEntry) -> bool:
        """Whether another entry says the same."""
        arrays = (self.rows, other.rows), (self.times, other.times), (self.txs, other.txs)
        same = (self.kind, self.fields) == (other.kind, other.fields)
        return same and all(np.array_equal(*pair) for pair in arrays)

    def part(self, first: int, last: int) -> InputEntry:
        """The transactions of changes from one up to another."""
        begin, end = np.searchsorted(self.rows[:, TX], [first, last])
        rows = self.rows[begin:end].copy()
        rows[:, TX] -= first
        return InputEntry(self.kind, self.fields, rows, self.times[begin:end], self.txs[begin:end])


def changes_entry(
    changes: Ints, times: Sequence[int] | Longs, txs: Sequence[int] | Longs
) -> InputEntry:
    """Transactions of changes; `changes` is copied, as its owner may use it again.

    >>> entry = changes_entry(np.array([[1, 1, 5, 6, 7, 0]], np.int32), [3, 4], [0, 1])
    >>> entry.rows.tolist(), [part.tolist() for part in entry.piece()]
    ([[0, 0, 0, 0, 0, 0], [1, 1, 5, 6, 7, 0]], [[[1, 1, 5, 6, 7, 0]], [3, 4], [0, 1]])
    """
    rows = changes.copy()
    if np.count_nonzero(np.diff(changes[:, TX], prepend=-1)) < len(times):
        empty = np.setdiff1d(np.arange(len(times), dtype=np.int32), changes[:, TX])
        more = np.zeros((len(empty), rows.shape[1]), np.int32)
        more[:, TX] = empty
        rows = np.concatenate([rows, more])
        rows = rows[np.argsort(rows[:, TX], kind="stable")]
    at = rows[:, TX]
    return InputEntry(
        "changes", {}, rows, np.asarray(times, np.int64)[at], np.asarray(txs, np.int64)[at]
    )


def merged(entries: Sequence[InputEntry]) -> list[InputEntry]:
    """Entries in which neighbouring changes are one, of the same transactions."""
    found: list[InputEntry] = []
    run: list[InputEntry] = []
    for entry in entries:
        if entry.kind != "changes" and run:
            found.append(_joined(run))
            run = []
        (run if entry.kind == "changes" else found).append(entry)
    return [*found, _joined(run)] if run else found


def _joined(run: Sequence[InputEntry]) -> InputEntry:
    if len(run) == 1:
        return run[0]
    rows = np.concatenate([entry.rows for entry in run])
    counts = [entry.transactions for entry in run]
    firsts = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(np.int32)
    rows[:, TX] += np.repeat(firsts, [len(entry.rows) for entry in run])
    times = np.concatenate([entry.times for entry in run])
    return InputEntry("changes", {}, rows, times, np.concatenate([entry.txs for entry in run]))


def encoded(entries: Sequence[InputEntry], terms: TermTable) -> bytes:
    """A chunk, without a lock: `terms` has the ids of the entries."""
    return to_bytes(*encode_entries(merged(entries), terms))


def encode_entries(entries: Sequence[InputEntry], terms: TermTable) -> tuple[pa.Table, pa.Table]:
    """The rows and the terms of a chunk."""
    rows = np.concatenate([NO_ROWS, *(entry.rows for entry in entries)])
    codes, texts = coded(rows[:, VALUES:], terms)
    headers = [{"kind": e.kind, "rows": len(e.rows), **e.fields} for e in entries]
    columns = [
        rows[:, TX],
        np.concatenate([NO_STAMPS, *(entry.times for entry in entries)]),
        np.concatenate([NO_STAMPS, *(entry.txs for entry in entries)]),
        rows[:, DIFF].astype(np.int8),
        *codes.T,
    ]
    schema = ROWS.with_metadata({"entries": json.dumps(headers)})
    arrays: list[Any] = [pa.array(np.ascontiguousarray(column)) for column in columns]
    return pa.Table.from_arrays(arrays, schema=schema), texts


def coded(ids: Ints, terms: TermTable) -> tuple[Ints, pa.Table]:
    """Ids as places in a table of the terms that they stand for, from 1; and that table."""
    top = terms.top + 1
    if ids.size * 4 > top:  # a table of all terms is smaller than what sorting would need
        used = np.zeros(top, np.bool_)
        used[ids] = True
        used[0] = False
        distinct = np.flatnonzero(used).astype(np.int32)
        places = np.zeros(top, np.int32)
        places[distinct] = np.arange(1, len(distinct) + 1, dtype=np.int32)
        codes: Ints = places[ids]
    else:
        found, inverse = np.unique(ids, return_inverse=True)
        distinct = found[found != 0]
        codes = (inverse.reshape(ids.shape) + (0 if len(found) > len(distinct) else 1)).astype(
            np.int32
        )
    if len(distinct) and (distinct[0] < 0 or distinct[-1] >= top):
        raise TermError(f"ids run from 1 to {top - 1}, not from {distinct[0]} to {distinct[-1]}")
    if (terms.kinds[distinct] == UNBOUND).any():
        raise TermError("a term that is to be written was freed")
    texts: Any = terms.texts(distinct)
    return codes, pa.Table.from_arrays([texts.cast(pa.large_string())], schema=TERMS)


def decode_entries(rows: pa.Table, texts: pa.Table, terms: TermDictionary) -> Iterator[InputEntry]:
    """The entries of a chunk, with the ids that a dictionary has for its terms."""
    ids = interned(texts, terms)
    columns: Mapping[str, Any] = {name: rows[name].to_numpy() for name in ROWS.names}
    table = np.empty((len(rows), VALUES + 4), np.int32)
    table[:, TX], table[:, DIFF] = columns["at"], columns["diff"]
    for place, name in enumerate("spog"):
        table[:, VALUES + place] = ids[columns[name]]
    begin = 0
    for header in headers_of(rows):
        kind, many = header.pop("kind"), header.pop("rows")
        part = slice(begin, begin + many)
        yield InputEntry(kind, header, table[part], columns["time"][part], columns["tx"][part])
        begin += many


def headers_of(rows: pa.Table) -> list[dict[str, Any]]:
    """The entries of a chunk without their rows."""
    metadata = rows.schema.metadata or {}
    found: list[dict[str, Any]] = json.loads(metadata[b"entries"])
    return found


def interned(texts: pa.Table, terms: TermDictionary) -> Ints:
    """The ids that a dictionary has for a table of terms, after 0 for none."""
    column: Any = texts["term"]
    parts = [terms.intern_column(chunk.cast(pa.string())) for chunk in column.chunks]
    return np.concatenate([np.zeros(1, np.int32), *parts]).astype(np.int32)


def to_bytes(*tables: pa.Table) -> bytes:
    """Tables as Arrow streams, one after the other."""
    buffer: Any = pa.BufferOutputStream()  # which does not take the interpreter's lock
    write_streams(buffer, *tables)
    data: bytes = buffer.getvalue().to_pybytes()
    return data


def write_streams(file: Any, *tables: pa.Table) -> None:  # noqa: ANN401 - any file object
    """Write tables as Arrow streams, one after the other."""
    for table in tables:
        with pa.ipc.new_stream(file, table.schema, options=OPTIONS) as writer:
            writer.write_table(table, max_chunksize=1 << 20)


def from_bytes(data: bytes | pa.Buffer) -> list[pa.Table]:
    """The tables of Arrow streams, one after the other.

    >>> [table.num_rows for table in from_bytes(to_bytes(pa.table({"a": [1]}), pa.table({})))]
    [1, 0]
    """
    reader: Any = pa.BufferReader(data)
    tables = []
    while reader.tell() < reader.size():
        tables.append(pa.ipc.open_stream(reader).read_all())
    return tables
