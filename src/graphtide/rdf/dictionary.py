"""`TermDictionary`: RDF terms to dense ids, ids to terms, and typed values by id.

A dictionary frees the terms whose ids nobody holds. So whatever stores ids across a safe point
(between two operations on a graph) has a method `held_ids` and is registered with `Holders`, or is
part of something that is. Ids in local variables of a running operation are safe without that,
because terms are freed between operations only (`engine/reclaim.py`); a generator that is suspended
between operations uses `HeldIds` (`rdf/holders.py`).
"""

from __future__ import annotations

from copy import deepcopy
from math import inf
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from graphtide.errors import DataError, LimitError, TermError
from graphtide.jit import JIT
from graphtide.rdf import term_tables
from graphtide.rdf.holders import Holders
from graphtide.rdf.kinds import UNBOUND
from graphtide.rdf.terms import Term, canonical_of, parse_term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

CACHED_TERMS: Final = 2_000_000
"""Single terms that the caches hold at most; a full cache is emptied."""

COST_OF_ARRAY, COST_OF_OBJECT = 1000, 50
"""What an array of held ids costs beside its ids, in ids that could be looked at meanwhile; and an
id that comes from a Python object: such arrays are int64."""

HIDDEN_GRAPHS: Final = 1 << 30
"""Ids from here on are internal graphs (the contents of windows), not terms."""


class TermDictionary:
    r"""Gives every RDF term a dense id (int32, from 1; 0 means unbound, or the default graph).

    `encode` and `encode_column` pin what they encode: its ids are valid until `release`. The
    engine itself interns terms (`intern`), and `reclaim` frees those whose ids nobody holds
    (`holders`); `generation` counts how often it has. Freed ids are given to other terms.

    One term has one id, however it is spelt:

    >>> terms = TermDictionary()
    >>> terms.encode('"a"'), terms.encode('"\\u0061"^^<http://www.w3.org/2001/XMLSchema#string>')
    (1, 1)
    >>> terms.encode_column(["<http://example.org/x>", '"a"', None])
    array([2, 1, 0], dtype=int32)
    """

    __slots__ = (
        "__weakref__", "_hidden", "_pins", "_table", "_terms", "generation", "grown", "holders",
        "known", "lock", "longest", "reuses",
    )  # fmt: skip

    def __init__(self, lock: RLock | None = None) -> None:
        self._hidden: dict[str, int] = {}
        self._table: term_tables.TermTable = _new_table()
        self.known: dict[Term | str, int] = {}
        self.lock = RLock() if lock is None else lock
        """Of the graph, too: results are decoded by any thread while others change the graph."""
        self.holders = Holders(self.lock)
        self.generation = 0
        self.longest = inf
        """Characters of a single term that is added, at most."""
        self.grown = False
        """Whether there may be new terms since somebody who cares for the size reset this."""
        self.reuses = True
        self._pins = np.zeros(64, np.bool_)
        self._terms: dict[int, Term] = {}

    def table(self) -> term_tables.TermTable:
        """The table, with all terms so far: any thread may read their texts without the lock.

        New terms do not change what it has, and terms are freed in a copy of it (`reclaim`).
        """
        return self._table

    def encode(self, term: Term | str) -> int:
        """Return the id of a term or of its N-Triples text, and pin it: it is valid until released.

        >>> TermDictionary().encode("<http://example.org/a>")
        1
        """
        with self.lock:
            found = self.intern(term)
            self.pin(found)
        return found

    def intern(self, term: Term | str) -> int:
        """Return the id of a term without pinning it: whoever stores it has to be a holder.

        >>> terms = TermDictionary()
        >>> terms.intern("<http://example.org/a>"), terms.reclaim(), len(terms)
        (1, 1, 0)
        """
        found = self.known.get(term)
        return self.intern_new(term) if found is None else found

    def pin(self, ids: int | NDArray[np.integer]) -> None:
        """Retain the terms of some ids until they are released."""
        if self.top >= len(self._pins):
            self._pins = term_tables.resized(self._pins, 2 * self.top)
        if isinstance(ids, np.ndarray):
            _mark(ids, self._pins)
        else:
            self._pins[ids] = True

    def release(self, ids: int | NDArray[np.integer]) -> None:
        """Let go of ids that were pinned: their terms are freed once nobody else holds them.

        >>> terms = TermDictionary()
        >>> ids = terms.encode_column(['"a"', '"b"'])
        >>> terms.release(ids[:1])
        >>> terms.reclaim(), terms.lookup('"a"'), terms.text(ids[1])
        (2, 0, '"b"')
        """
        wanted = np.atleast_1d(np.asarray(ids))
        self._pins[wanted[(wanted >= 0) & (wanted < len(self._pins))]] = False

    def intern_new(self, term: Term | str) -> int:
        """Return the id of a term that `known` lacks."""
        self.grown = True
        found = self._table.add_text(term if isinstance(term, str) else canonical_of(term))
        self._remember(term, found)
        return found

    def intern_given(self, term: Term | str) -> int:
        """Return the id of a term that a user gives and `known` lacks."""
        text = term if isinstance(term, str) else getattr(term, "value", "")
        if len(text) > self.longest:
            what = f"a term of {len(text):,} characters is too long"
            raise LimitError(what, limit="literal_length", value=self.longest)
        return self.intern_new(term)

    def intern_numbers(self, pairs: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ids of integers, with a second number 0, and of means: sums and counts."""
        self.grown = True
        return self._table.add_numbers(pairs)

    def hidden_graph(self, name: str) -> int:
        """Return the id of an internal graph, which no graph variable ranges over."""
        return self._hidden.setdefault(name, HIDDEN_GRAPHS + len(self._hidden))

    def hidden_name(self, graph: int) -> str:
        """Return the name of an internal graph.

        >>> terms = TermDictionary()
        >>> terms.hidden_name(terms.hidden_graph("w"))
        'w'
        """
        return next(name for name, found in self._hidden.items() if found == graph)

    def lookup(self, term: Term | str) -> int:
        """Return the id of a term, or 0 when it has none.

        >>> TermDictionary().lookup("<http://example.org/a>")
        0
        """
        found = self.known.get(term)
        if found is None:
            found = self._table.find(canonical_of(term))
            if found:
                self._remember(term, found)
        return found

    def _remember(self, term: Term | str, found: int) -> None:
        if len(self.known) >= CACHED_TERMS:
            self.known.clear()
        self.known[term] = found

    def text(self, term: int) -> str:
        """Return the canonical N-Triples text of an id.

        >>> terms = TermDictionary()
        >>> terms.text(terms.encode('"a"@EN'))
        '"a"@en'
        """
        with self.lock:
            if not 0 < term <= self.top:
                self._refuse(term)
            return self._table.text(term) or self._refuse(term)

    def decode(self, term: int) -> Term:
        """Return the term of an id.

        >>> terms = TermDictionary()
        >>> terms.decode(terms.encode("_:b"))
        <BlankNode value=b>
        """
        found = self._terms.get(term)
        if found is None:
            with self.lock:
                found = parse_term(self.text(term))
                if len(self._terms) >= CACHED_TERMS:
                    self._terms.clear()
                self._terms[term] = found
        return found

    def encode_column(self, column: term_tables.Texts) -> NDArray[np.int32]:
        """Return the ids of a whole column of N-Triples texts, pinned; null gives 0.

        A text that is not a term raises `DataError` with its row; `intern_rows` reports it instead.

        >>> TermDictionary().encode_column(pa.array(['"a"', '"b"', '"a"']))
        array([1, 2, 1], dtype=int32)
        """
        with self.lock:
            ids = self.intern_column(column)
            self.pin(ids)
        return ids

    def intern_column(
        self, column: term_tables.Texts, *, skip_empty: bool = False
    ) -> NDArray[np.int32]:
        """Return the ids of a column without pinning them; with `skip_empty` as `intern_rows`."""
        ids, bad = self.intern_rows(column, skip_empty=skip_empty)
        if bad:
            _raise_bad(bad)
        return ids

    def intern_rows(
        self, column: term_tables.Texts, *, skip_empty: bool = False
    ) -> tuple[NDArray[np.int32], list[term_tables.BadRow]]:
        """Return the ids of a column without pinning them, 0 and a `BadRow` for an invalid text.

        With `skip_empty` an empty text gives 0, as a null does.

        >>> TermDictionary().intern_rows(['"a"', "<a b>"])[1][0][0]
        1
        """
        parts: list[NDArray[np.int32]] = []
        bad: list[term_tables.BadRow] = []
        start = 0
        for chunk in term_tables.as_chunks(column):
            ids, chunk_bad = self._encode_chunk(chunk, skip_empty=skip_empty)
            parts.append(ids)
            bad += [(start + row, reason) for row, reason in chunk_bad]
            start += len(chunk)
        if len(parts) == 1:
            return parts[0], bad
        return np.concatenate([np.empty(0, np.int32), *parts]), bad

    def _encode_chunk(
        self, chunk: pa.Array[Any], *, skip_empty: bool
    ) -> tuple[NDArray[np.int32], list[term_tables.BadRow]]:
        if pa.types.is_null(chunk.type):
            return np.zeros(len(chunk), np.int32), []
        if not pa.types.is_dictionary(chunk.type):
            texts = term_tables.text_column(chunk)
            self.grown = True
            return self._table.encode(texts.without_empty() if skip_empty else texts)
        coded: Any = chunk
        value_ids, value_bad = self._encode_chunk(coded.dictionary, skip_empty=skip_empty)
        codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        ids = np.append(value_ids, np.int32(0))[codes]
        if not value_bad:
            return ids, []
        reasons = dict(value_bad)
        return ids, [
            (row, reasons[code]) for row, code in enumerate(codes.tolist()) if code in reasons
        ]

    def decode_column(self, ids: NDArray[np.integer] | Sequence[int]) -> term_tables.Strings:
        """Return the canonical texts of many ids as an Arrow string array; 0 gives null.

        >>> terms = TermDictionary()
        >>> terms.decode_column(terms.encode_column(['"a"', None])).to_pylist()
        ['"a"', None]
        """
        wanted = np.ascontiguousarray(ids, np.int32)
        with self.lock:
            self.check(wanted)
            return self._table.texts(wanted)

    def check(self, ids: NDArray[np.int32]) -> None:
        """Raise unless each id is that of a term, or 0."""
        if not ids.size:
            return
        if ids.min() < 0 or ids.max() > self.top:
            self._refuse(int(ids.min()) if ids.min() < 0 else int(ids.max()))
        if self.generation:
            freed = ids[(self._table.kinds[ids] == UNBOUND) & (ids != 0)]
            if freed.size:
                self._refuse(int(freed[0]))

    # --- freeing ---

    def reclaim(self, least: int = 1) -> int:
        """Free the terms whose ids are neither pinned nor held; what that cost, in ids looked at.

        Fewer than `least` stay. For use between operations: ids in local variables are not held.
        """
        before = len(self)
        cost = self.top
        live = np.zeros(self.top + 1, np.bool_)
        many = min(len(live), len(self._pins))
        live[:many] = self._pins[:many]
        for ids in self.holders.held_ids():
            cost += COST_OF_ARRAY + ids.size * (COST_OF_OBJECT if ids.dtype == np.int64 else 1)
            _mark(ids, live)
        if self.generation:
            # Among what holders give there may be numbers that are ids of no term.
            live &= self._table.kinds[: len(live)] != UNBOUND
        live[0] = False
        if int(np.count_nonzero(live)) + least <= before:
            # All is made before anything is replaced: an interrupt comes before or after that.
            alive = live.tolist()  # in which Python looks things up faster
            known = {term: i for term, i in self.known.items() if alive[i]}
            terms = {i: term for i, term in self._terms.items() if alive[i]}
            table = deepcopy(self._table)
            table.sweep(live, reuse=self.reuses)
            pins = self._pins[: max(64, table.top + 1)].copy()
            self.known, self._terms, self._table, self._pins = known, terms, table, pins
            self.generation += 1
        return cost

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of each id (`graphtide.rdf.kinds`); longer than the dictionary.

        The array is replaced when the dictionary grows: do not keep it across an encode.
        """
        return self._table.kinds

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The numeric value of each id, where its kind has one; see `kinds`."""
        return self._table.numbers

    @property
    def nbytes(self) -> int:
        """The size of texts, table and typed side columns in bytes, without the caches."""
        return self._table.nbytes

    @property
    def top(self) -> int:
        """The highest id in use."""
        return self._table.top

    def __len__(self) -> int:
        return self._table.count

    def __contains__(self, term: Term | str) -> bool:
        return self.lookup(term) != 0

    def _refuse(self, term: int) -> NoReturn:
        if 0 < term <= self.top:
            raise TermError(
                f"the term of id {term} was freed",
                hint="graph.terms.encode() and pin() give ids that stay valid",
            )
        raise TermError(f"no term has id {term}; ids run from 1 to {self.top}")


def _new_table() -> term_tables.TermTable:
    if not JIT:
        return term_tables.PlainTermTable()
    from graphtide.rdf.kernels.table import KernelTermTable  # noqa: PLC0415 - needs Numba

    return KernelTermTable()


def _mark(ids: NDArray[np.integer], live: NDArray[np.bool_]) -> None:
    if JIT:
        from graphtide.rdf.kernels.packing import mark_ids  # noqa: PLC0415 - needs Numba

        mark_ids(np.ascontiguousarray(ids, np.int32).reshape(-1), live)
    else:
        live[ids[(ids > 0) & (ids < len(live))]] = True


def _raise_bad(bad: list[term_tables.BadRow]) -> NoReturn:
    row, reason = bad[0]
    more = f" (and {len(bad) - 1} more bad rows)" if len(bad) > 1 else ""
    raise DataError(f"row {row}: {reason}{more}")
