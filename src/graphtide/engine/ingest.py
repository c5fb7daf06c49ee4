"""How changes come in: batches as pieces of whole transactions of ids, quads of users, the buffer.

A piece is worth one kernel call. Single changes wait in the write buffer until they are one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphtide.arguments import wrong_type
from graphtide.errors import DataError, GraphtideError, LimitError, TermError
from graphtide.kernel.batch import DIFF, VALUES, Ints, Longs
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rdf.holders import HeldIds
from graphtide.rdf.kinds import XSD
from graphtide.rdf.terms import TERM_TYPES, Term, from_pyoxigraph
from graphtide.ticks import LATEST

if TYPE_CHECKING:
    from graphtide.engine.runtime import Runtime
    from graphtide.rdf.term_tables import BadRow, Strings

PIECE = 1 << 18
"""Changes per kernel call, if transactions allow: large enough to be quick, small in memory."""

Piece = tuple[Ints, Longs, Longs]
"""Changes `[transaction, diff, s, p, o, g]`, and per transaction its time and number."""

Transactions = tuple[Ints, Sequence[int] | Longs, Sequence[int] | Longs]
"""A piece, its times and numbers in any kind of sequence."""

Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

Problem = tuple[int, GraphtideError]
"""The index of the first change that is rejected, and why."""

Lines = tuple[Ints, Longs, Longs]
"""Changes, with a time and a transaction number for each of them."""


def pieces_of(
    batches: Iterable[ChangeBatch], terms: TermDictionary, matched: QuadFilter | None = None
) -> Iterator[Piece]:
    """Whole transactions only: the last one of a batch waits, the next batch may go on with it.

    An error comes after the transactions before the broken one, and with nothing of that one.
    """
    held: list[Lines] = []
    stamp: tuple[int, int] | None = None
    waiting = HeldIds()  # whoever takes the pieces may free terms in between
    terms.holders.add(waiting)
    try:
        for batch in batches:
            if not len(batch):
                continue
            with terms.lock:
                rows, bad = encode(batch, terms, matched)
                waiting.arrays.append(rows)
            lines = rows, batch.time, batch.tx
            at = bad[0] if bad else len(batch) - 1
            time, tx = int(batch.time[at]), int(batch.tx[at])
            begin = int(np.argmax((batch.time == time) & (batch.tx == tx)))
            if begin or stamp != (time, tx):
                yield from cut(*joined([*held, between(lines, 0, begin)]))
                held, waiting.arrays = [], [rows]
            if bad:
                held = []
                raise DataError(f"row {bad[0]}: {bad[1]}")
            held.append(between(lines, begin, len(batch)))
            stamp = time, tx
    except DataError as error:
        if error.transactions_are_whole and held:
            yield from cut(*joined(held))
        raise
    if held:
        yield from cut(*joined(held))


def pieces(
    runtime: Runtime,
    batches: ChangeBatch | Iterable[ChangeBatch],
    time: int | None,
    matched: QuadFilter | None = None,
    *,
    plain: bool,
) -> Iterator[Piece]:
    """Batches as pieces of whole transactions of ids; `plain` or with a `time`, as one."""
    listed = (batches,) if isinstance(batches, ChangeBatch) else batches
    if time is not None or plain:
        listed = restamped(listed, runtime.reach(time), runtime.last_tx + 1)
    return pieces_of(listed, runtime.terms, matched)


class QuadFilter(Protocol):
    """Which quads can match, of a graph that does not store the others."""

    def predicates(self, ids: Ints) -> Mask | None:
        """Which quads of some predicates can match; None if all can."""

    def objects(self, predicates: Ints, ids: Ints) -> Mask:
        """Which quads of some predicates and objects can match."""


def encode(
    batch: ChangeBatch, terms: TermDictionary, matched: QuadFilter | None = None
) -> tuple[Ints, tuple[int, str] | None]:
    """The changes of a batch as kernel rows; the first row that is not made of terms, and why.

    With a filter, all ids are 0 of quads that cannot match; their terms are only checked.
    """
    for given in (batch.s, batch.p, batch.o, batch.g):
        _check_lengths(given, terms.longest)
    rows = np.zeros((len(batch), 6), np.int32)
    rows[:, 1] = batch.diff
    rows[:, 3], bad = terms.intern_rows(batch.p)
    fits = None if matched is None else matched.predicates(rows[:, 3])
    for column, texts in ((4, batch.o), (2, batch.s), (5, batch.g)):
        rows[:, column], wrong = _matching_ids(terms, texts, fits, skip_empty=column == 5)
        bad += wrong
        if column == 4 and matched is not None and fits is not None:
            fits = fits & matched.objects(rows[:, 3], rows[:, 4])
    if fits is not None:
        rows[~fits, 2:] = 0
    return rows, min(bad, default=None)


def _check_lengths(texts: Strings, most: float) -> None:
    """Raise if one of some terms is too long."""
    if texts.nbytes > most:
        import pyarrow.compute as pc  # noqa: PLC0415 - few batches are as large, and it takes long

        longest = pc.max(pc.binary_length(texts)).as_py() or 0  # type: ignore[call-overload] # of strings
        if longest > most:
            what = f"a term of {longest:,} bytes is too long"
            raise LimitError(what, limit="literal_length", value=most)


def _matching_ids(
    terms: TermDictionary, texts: Strings, fits: Mask | None, *, skip_empty: bool
) -> tuple[Ints, list[BadRow]]:
    """The ids of those texts that fit, 0 for the others; and which are no terms."""
    if fits is None or fits.all():
        return terms.intern_rows(texts, skip_empty=skip_empty)
    ids, bad = np.zeros(len(fits), np.int32), []
    # What is not stored is checked in a dictionary of its own, which is dropped right away.
    for part, own in ((fits, terms), (~fits, TermDictionary())):
        found, wrong = own.intern_rows(texts.filter(pa.array(part)), skip_empty=skip_empty)
        places = np.flatnonzero(part)
        bad += [(int(places[row]), reason) for row, reason in wrong]
        if own is terms:
            ids[places] = found
    return ids, bad


def between(lines: Lines, begin: int, end: int) -> Lines:
    """Some of the lines."""
    rows, time, tx = lines
    return rows[begin:end], time[begin:end], tx[begin:end]


def joined(parts: list[Lines]) -> Lines:
    """Lines one after the other."""
    rows, time, tx = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return rows, time, tx


def first_transactions(piece: Piece, count: int) -> Piece:
    """The first transactions of a piece."""
    changes, times, txs = piece
    return changes[: np.searchsorted(changes[:, 0], count)], times[:count], txs[:count]


def one_by_one(piece: Transactions) -> Iterator[Piece]:
    """Each transaction of a piece as a piece of its own."""
    changes, times, txs = piece
    ends = np.searchsorted(changes[:, 0], np.arange(len(times)), side="right").tolist()
    begin = 0
    for number, end in enumerate(ends):
        one = changes[begin:end].copy()
        one[:, 0] = 0
        yield one, np.array([times[number]], np.int64), np.array([txs[number]], np.int64)
        begin = end


def cut(changes: Changes, time: Longs, tx: Longs) -> Iterator[Piece]:
    """Number the transactions and cut between them into pieces of about `PIECE` changes."""
    begin = 0
    while begin < len(changes):
        end = _next_start(time, tx, begin + PIECE)
        times, txs = time[begin:end], tx[begin:end]
        begins = np.ones(end - begin, np.bool_)
        begins[1:] = (times[1:] != times[:-1]) | (txs[1:] != txs[:-1])
        piece = np.ascontiguousarray(changes[begin:end])
        piece[:, 0] = np.cumsum(begins, dtype=np.int32)
        piece[:, 0] -= 1
        yield piece, times[begins], txs[begins]
        begin = end


def _next_start(time: Longs, tx: Longs, at: int) -> int:
    """Where the first transaction begins at a place or after it; a part is looked at at a time."""
    while at < len(time):
        end = min(at + PIECE, len(time))
        new = (time[at:end] != time[at - 1 : end - 1]) | (tx[at:end] != tx[at - 1 : end - 1])
        first = int(new.argmax())
        if new[first]:
            return at + first
        at = end
    return len(time)


def first_backwards(clock: int, time: Longs) -> Problem | None:
    """Times must not run backwards: the index of the first that does."""
    at = 0
    if not len(time):
        return None
    if time[0] >= clock:
        earlier = (time[1:] < time[:-1]).nonzero()[0]
        if not len(earlier):
            return None
        at = int(earlier[0]) + 1
    before = clock if at == 0 else int(time[at - 1])
    return at, GraphtideError(
        f"time runs backwards: a transaction at {int(time[at])} after one at {before}",
        hint="sort the changes by time, or give them one time with apply(..., time=...)",
    )


def check_order(clock: int, time: Longs) -> None:
    """Raise if times run backwards."""
    backwards = first_backwards(clock, time)
    if backwards:
        raise backwards[1]


GRAPH = 3
"""The column of a quad that has its graph."""


def restamped(batches: Iterable[ChangeBatch], time: int, tx: int) -> Iterator[ChangeBatch]:
    """The same changes as one transaction."""
    for batch in batches:
        n = len(batch)
        times, txs = np.full(n, time, np.int64), np.full(n, tx, np.int64)
        yield ChangeBatch(times, txs, batch.diff, batch.s, batch.p, batch.o, batch.g)


def signed(quads: Ints, diff: int) -> Ints:
    """Quads as changes of one transaction, all inserts or all deletes."""
    changes = np.zeros((len(quads), VALUES + 4), np.int32)
    changes[:, DIFF] = diff
    changes[:, VALUES:] = quads.reshape(-1, 4)
    return changes


# --- changes as arrays of ids ---


class IdRows:
    """Columns of ids that become kernel rows a part at a time: all of them would be a copy."""

    __slots__ = ("_columns", "_diff")

    def __init__(self, columns: Sequence[Longs], diff: Longs | None) -> None:
        self._columns, self._diff = columns, diff

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, part: slice) -> Ints:
        rows = np.zeros((len(self._columns[0][part]), VALUES + 4), np.int32)
        rows[:, DIFF] = 1 if self._diff is None else self._diff[part]
        for column, ids in enumerate(self._columns, start=VALUES):
            rows[:, column] = ids[part]
        return rows


Changes = Ints | IdRows
"""Kernel rows, or what becomes them."""


def id_rows(
    terms: TermDictionary, s: Ints, p: Ints, o: Ints, g: Ints | None, diff: Ints | None
) -> IdRows:
    """Changes given as columns, checked: ids in range, one length, diffs of +1 or -1."""
    named = {"s": s, "p": p, "o": o} if g is None else {"s": s, "p": p, "o": o, "g": g}
    if np.ndim(np.asarray(s)) != 1:
        raise wrong_type(s, "s", "an array of integers")
    columns = [integers(name, ids, len(s)) for name, ids in named.items()]
    for name, ids in zip(named, columns, strict=True):
        least = 0 if name == "g" else 1
        if len(ids) and (ids.min() < least or ids.max() > terms.top):
            raise GraphtideError(
                f"the ids of {name} run from {least} to {terms.top}",
                hint="make ids with graph.terms",
            )
        if terms.generation:
            terms.check(ids.astype(np.int32, copy=False))
    diffs = None if diff is None else integers("diff", diff, len(s))
    if diffs is not None and ((diffs != 1) & (diffs != -1)).any():
        raise GraphtideError("diff is +1 for an insert and -1 for a delete")
    return IdRows(columns, diffs)


def event_rows(
    terms: TermDictionary, times: Longs, quads: Ints, events: Longs | None
) -> tuple[Longs, Ints, Longs | None]:
    """Events given as ids, checked: rows of four ids in range, as many times and numbers."""
    rows = np.asarray(quads)
    if rows.ndim != 2 or rows.shape[1] != 4 or (len(rows) and rows.dtype.kind not in "iu"):
        raise wrong_type(quads, "quads", "an array of rows of four ids")
    if len(rows) and rows.max() > terms.top:
        raise GraphtideError(
            f"the ids of quads run from 0 to {terms.top}", hint="make ids with graph.terms"
        )
    terms.check(ids := rows.astype(np.int32, copy=False))
    if ids.size and not ids[:, :3].all():
        raise GraphtideError("only the graph of a quad may be 0", hint="make ids with graph.terms")
    moments = integers("times", times, len(rows))
    numbers = None if events is None else integers("events", events, len(rows))
    return moments, ids, numbers


def integers(name: str, values: Ints | Longs, count: int) -> Longs:
    """A column of so many integers, as an array."""
    column: Longs = np.asarray(values)
    if column.shape != (count,) or (count and column.dtype.kind not in "iu"):
        raise GraphtideError(
            f"{name} must be an array of {count} integers, one for each row,"
            f" not of {column.dtype} with shape {column.shape}"
        )
    if count and column.dtype.itemsize == 8:
        least, most = int(column.min()), int(column.max())
        if least < -LATEST or most > LATEST:
            raise GraphtideError(
                f"{name} has {least if least < -LATEST else most}, which is out of bounds",
                hint="give numbers from -2**62 to 2**62",
            )
        column = column.astype(np.int64, copy=False)
    return column


# --- quads as users give them ---

TermLike = Term | str
"""A term, or its N-Triples text such as `<http://example.org/a>` or `"a"@en`."""

ObjectLike = TermLike | int | float | Decimal | datetime | date
"""At the object position numbers, booleans, dates and times of Python are taken as literals."""

Ids = tuple[int, int, int, int]

_LARGE: Final = 1 << 63

NOT_MATCHED: Ids = (0, 0, 0, 0)
"""Stands for a quad that is not stored, because no query can match it."""


def checked_terms(
    s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None
) -> tuple[TermLike, TermLike, TermLike, TermLike | None]:
    """The terms of a quad; a term at a position where it cannot stand is refused.

    >>> str(checked_terms("<http://example.org/a>", "<http://example.org/p>", 5, None)[2])[:3]
    '"5"'
    """
    if s.__class__ is not str or s[:1] == '"' or s[:2] == "<<":
        _refuse(s, "subject", (NamedNode, BlankNode))
    if p.__class__ is not str or p[:1] != "<" or p[:2] == "<<":
        _refuse(p, "predicate", (NamedNode,))
    if g is not None and (g.__class__ is not str or g[:1] == '"' or g[:2] == "<<"):
        _refuse(g, "graph name", (NamedNode, BlankNode))
    return s, p, as_term(o), g


def quad_ids(
    terms: TermDictionary, s: TermLike, p: TermLike, o: ObjectLike, g: TermLike | None
) -> Ids:
    """The ids of a quad's terms; a term at a position where it cannot stand is refused.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> quad_ids(TermDictionary(), "<http://example.org/a>", "<http://example.org/p>", 5, None)
    (1, 2, 3, 0)
    """
    # What is greater than "<=" begins neither with a quote nor with "<<": one comparison tells for
    # nearly all IRIs and blank nodes.
    if s.__class__ is not str or (s <= "<=" and (s[:1] == '"' or s[:2] == "<<")):
        _refuse(s, "subject", (NamedNode, BlankNode))
    if p.__class__ is not str or not ("<=" < p < "=" or (p[:1] == "<" and p[:2] != "<<")):
        _refuse(p, "predicate", (NamedNode,))
    if o.__class__ is not str:
        if o.__class__ is int and -_LARGE < o < _LARGE:
            o = f'"{o}"^^<{XSD}integer>'  # whose id is found in less time than that of a `Literal`
        elif not isinstance(o, TERM_TYPES):
            o = as_term(o)
    known, graph = terms.known.get, 0
    if g is not None:
        if g.__class__ is not str or g[:1] == '"' or g[:2] == "<<":
            _refuse(g, "graph name", (NamedNode, BlankNode))
        graph = known(g) or terms.intern_given(g)
    return (
        known(s) or terms.intern_given(s),
        known(p) or terms.intern_given(p),
        known(o) or terms.intern_given(o),
        graph,
    )


def known_ids(terms: TermDictionary, quad: Sequence[object]) -> Ids | None:
    """The ids of a quad, or of a triple in the default graph; None if a term has none."""
    *triple, graph = quad if len(quad) == 4 else (*quad, None)
    s, p, o = (terms.lookup(as_term(term)) for term in triple)
    g = 0 if graph is None else terms.lookup(as_term(graph))
    return None if 0 in (s, p, o) or (graph is not None and not g) else (s, p, o, g)


def _refuse(term: object, position: str, kinds: tuple[type, ...]) -> None:
    if not isinstance(term, kinds):
        wanted = " or ".join("an IRI" if kind is NamedNode else "a blank node" for kind in kinds)
        raise TermError(
            f"{term!r} cannot be a {position}: {wanted} is needed",
            hint='write terms in N-Triples syntax, such as "<http://example.org/a>" or "_:b"',
        )


def as_term(value: object) -> TermLike:
    """A term or text as it is; a number, boolean, date or time of Python as a literal.

    >>> str(as_term(True)), str(as_term(date(2026, 2, 1)))[:12]
    ('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>', '"2026-02-01"')
    """
    if isinstance(value, (str, TERM_TYPES)):
        return value
    if isinstance(value, Triple):
        return from_pyoxigraph(value)
    if isinstance(value, (bool, int, float)):
        return Literal(value)
    if isinstance(value, Decimal) and value.is_finite():
        return Literal(f"{value:f}", datatype=NamedNode(f"{XSD}decimal"))
    if isinstance(value, datetime):
        return Literal(value.isoformat(), datatype=NamedNode(f"{XSD}dateTime"))
    if isinstance(value, date):
        return Literal(value.isoformat(), datatype=NamedNode(f"{XSD}date"))
    raise TermError(
        f"{value!r} is not an RDF term",
        hint="pass a term, its N-Triples text, or a number, boolean, date or time as object",
    )


# --- the write buffer ---

MAX_BUFFERED = 4096
"""Transactions of single changes that are applied together at most.

A kernel call costs more than a change. A batch keeps its transactions apart, and every look at an
answer flushes first, so nobody can tell that changes waited."""

_ROW = struct.Struct("6i")
_write = _ROW.pack_into

FEW = 8
"""Fewer changes are a batch that is at hand: to make one takes as long as to write a change."""

_Space = tuple[Ints, memoryview, tuple[Ints, ...]]
"""Room for changes: rows, their bytes, and by number the first few rows as a batch."""


class WriteBuffer:
    """Changes of whole transactions, with their times and numbers; `waiting` counts transactions.

    >>> buffer = WriteBuffer()
    >>> buffer.several(17, 0, [(1, (2, 3, 4, 0))])
    1
    >>> buffer.take()[0].tolist()
    [[0, 1, 2, 3, 4, 0]]
    """

    __slots__ = ("_bytes", "_end", "_first", "_other", "_space", "_times", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self._end = 0
        self._first = 0  # the number of the first transaction; those of the others follow
        self._times: list[int] = []
        self._space, self._other = _space(MAX_BUFFERED), _space(MAX_BUFFERED)
        self._bytes = self._space[1]

    def _make_room(self) -> memoryview:
        rows = self._space[0]
        larger = _space(2 * len(rows))
        larger[0][: len(rows)] = rows
        self._space, self._bytes = larger, larger[1]
        return self._bytes

    def several(self, time: int, tx: int, changes: Sequence[tuple[int, Ids]]) -> int:
        """Add a transaction, which is there when all of it is written; how many changes wait."""
        end, waiting, room = self._end, self.waiting, self._bytes
        for diff, (s, p, o, g) in changes:
            try:
                _write(room, end, waiting, diff, s, p, o, g)
            except struct.error:  # there is no room
                room = self._make_room()
                _write(room, end, waiting, diff, s, p, o, g)
            end += 24
        times = self._times
        times += (time,)  # from here on nothing is called: an interrupt comes before or after
        if not waiting:
            self._first = tx
        self._end = end
        self.waiting = waiting + 1
        return end // 24

    def single(self, time: int, tx: int, diff: int, ids: Ids) -> int:
        """Add a transaction of one change; how many transactions wait now."""
        end, waiting = self._end, self.waiting
        s, p, o, g = ids
        try:
            _write(self._bytes, end, waiting, diff, s, p, o, g)
        except struct.error:  # there is no room
            _write(self._make_room(), end, waiting, diff, s, p, o, g)
        times = self._times
        times += (time,)  # from here on nothing is called: an interrupt comes before or after
        if not waiting:
            self._first = tx
        self._end = end + 24
        self.waiting = waiting = waiting + 1
        return waiting

    def held_ids(self) -> Iterator[Ints]:
        """The ids of the changes that wait."""
        yield self._space[0][: self._end // 24, VALUES:]

    def take(self, to: Runtime | None = None) -> Transactions:
        """Empty the buffer: what was waiting. A runtime that it is given `to` has it underway then.

        That is a batch of changes, with the times and numbers of its transactions; the batch is
        good until the buffer is emptied twice.
        """
        space, rows, many, first = self._space, self._end // 24, self.waiting, self._first
        changes = space[2][rows] if rows < FEW else space[0][:rows]
        if many == 1:  # tuples take less memory, and no time of the collector
            piece: Transactions = changes, (self._times[0],), (first,)
        else:
            piece = changes, self._times, range(first, first + many)
        if to is not None:
            to.underway = piece, [changes], to.done
        # Nothing is called since it is underway: an interrupt comes before or after.
        if rows:  # so that two batches with changes, one after the other, are never one array
            self._space, self._other = self._other, space
            self._bytes = self._space[1]
        self._times = []
        self._end = self.waiting = 0
        return piece

    def drop(self, tx: int) -> bool:
        """Drop the last transaction, if it has that number; returns whether it had.

        >>> buffer = WriteBuffer()
        >>> [buffer.several(17, tx, [(1, (2, 3, 4, 0))] * 2) for tx in (5, 6)]
        [2, 4]
        >>> buffer.drop(5), buffer.drop(6), buffer.take()[0].tolist()
        (False, True, [[0, 1, 2, 3, 4, 0], [0, 1, 2, 3, 4, 0]])
        """
        last = self.waiting - 1
        if last < 0 or self._first + last != tx:
            return False
        rows = self._space[0][: self._end // 24]
        end, times = 24 * int(np.count_nonzero(rows[:, 0] != last)), self._times[:last]
        # From here on nothing is called: an interrupt comes before or after.
        self._end, self.waiting, self._times = end, last, times
        return True

    def clear(self) -> None:
        """Drop what waits. An interrupt comes before or after this: nothing is called in it."""
        self._times = []
        self._end = self.waiting = 0


def _space(rows: int) -> _Space:
    made = np.zeros((rows, 6), np.int32)
    return made, made.data.cast("B"), tuple(made[:few] for few in range(FEW))
