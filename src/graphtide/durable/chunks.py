"""Chunks: inputs of a graph as bytes, in the packed form (`durable.packed`).

The header is a JSON list of entries: each its kind, how many rows are its own, and further fields.
The first column has, one after the other, `at` (the transaction or event of the entry that a row is
of), diff, s, p, o and g of all rows; the next ones have `time` and `tx` of all rows, the lengths of
all terms, and their texts. Terms of a row are places among those of the chunk, from 1; 0 is the
default graph. A row of diff 0 stands for a transaction without changes.

Ids of the dictionary are private to a process and are given again to other terms, so a chunk has
the texts of its terms, and can be read on its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from graphtide.durable.packed import pack, unpack
from graphtide.errors import TermError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs
from graphtide.rdf.kinds import UNBOUND
from graphtide.rdf.term_tables import buffer_of, text_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term_tables import TermTable

NO_ROWS: Final[Ints] = np.empty((0, VALUES + 4), np.int32)
NO_STAMPS: Final[Longs] = np.empty(0, np.int64)
NO_TEXT: Final = np.empty(0, np.uint8)
NO_ID: Final = np.zeros(1, np.int32)


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
    """Return a chunk, without a lock: `terms` has the ids of the entries."""
    entries = merged(entries)
    rows = np.concatenate([NO_ROWS, *(entry.rows for entry in entries)])
    codes, lengths, texts = coded(rows[:, VALUES:], terms)
    rows[:, VALUES:] = codes
    headers = [{"kind": e.kind, "rows": len(e.rows), **e.fields} for e in entries]
    times = np.concatenate([NO_STAMPS, *(entry.times for entry in entries)])
    txs = np.concatenate([NO_STAMPS, *(entry.txs for entry in entries)])
    header = json.dumps(headers, separators=(",", ":")).encode()
    return pack(header, [rows.T.reshape(-1), times, txs, lengths, texts])


def coded(ids: Ints, terms: TermTable) -> tuple[Ints, Longs, NDArray[np.uint8]]:
    """Return ids as places among the terms that they stand for, from 1.

    Also the lengths of these terms, and their texts one after the other.
    """
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
    texts = text_column(terms.texts(distinct))
    return codes, np.diff(texts.offsets), texts.data[texts.offsets[0] : texts.offsets[-1]]


def interned(lengths: Longs, texts: NDArray[np.uint8], terms: TermDictionary) -> Ints:
    """Return the ids that a dictionary has for coded terms, after 0 for none."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, buffer_of(offsets), buffer_of(texts)]
    column = pa.Array.from_buffers(pa.large_string(), len(lengths), buffers)
    return np.concatenate([NO_ID, terms.intern_column(column)])


def decoded(data: Sequence[bytes], terms: TermDictionary) -> list[list[InputEntry]]:
    """Return the entries of each of some chunks, with the ids of a dictionary for their terms.

    The terms of all chunks are looked up together: chunk by chunk, that takes most of the time.
    """
    found = list(map(unpack, data))
    lengths = np.concatenate([NO_STAMPS, *(columns[3] for _, columns in found)])
    ids = interned(lengths, np.concatenate([NO_TEXT, *(own[4] for _, own in found)]), terms)
    result, first = [], 1
    for header, (flat, times, txs, own, _) in found:
        rows = np.ascontiguousarray(flat.reshape(VALUES + 4, -1).T, np.int32)
        known = np.concatenate([NO_ID, ids[first : first + len(own)]])
        rows[:, VALUES:] = known[rows[:, VALUES:]]
        result.append(list(_entries(json.loads(header), rows, times, txs)))
        first += len(own)
    return result


def _entries(
    headers: list[dict[str, Any]], rows: Ints, times: Longs, txs: Longs
) -> Iterator[InputEntry]:
    times, txs = times.astype(np.int64), txs.astype(np.int64)
    begin = 0
    for header in headers:
        kind, many = header.pop("kind"), header.pop("rows")
        part = slice(begin, begin + many)
        yield InputEntry(kind, header, rows[part], times[part], txs[part])
        begin += many


def headers_of(data: bytes) -> list[dict[str, Any]]:
    """Return the entries of a chunk without their rows."""
    found: list[dict[str, Any]] = json.loads(unpack(data)[0])
    return found
