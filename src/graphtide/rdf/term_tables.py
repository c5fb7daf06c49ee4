"""`TermTable`: the storage of a `TermDictionary`, and the columns of texts it takes.

A table maps texts to ids and back; `TermDictionary` adds caches for single terms and terms as
objects. `KernelTermTable` keeps texts in arrays; `PlainTermTable` is its plain-Python twin.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa

from graphtide.errors import DataError, TermError
from graphtide.rdf.kinds import DOUBLE, EXACT, OTHER, UNBOUND, XSD
from graphtide.rdf.terms import POSITIONS, canonical_text, typed_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

_LESS = ord("<")

BadRow = tuple[int, str]
"""A row of a column, and why its text is not a term."""


class TermTable(Protocol):
    """Texts to ids and back, with the typed side columns.

    `top` is the highest id in use. Ids below it that no term has are in `free`, the next one to be
    used last; above `top`, ids are consecutive.
    """

    kinds: NDArray[np.int8]
    numbers: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many terms there are."""

    @property
    def top(self) -> int:
        """The highest id in use."""

    def encode(self, column: TextColumn) -> tuple[NDArray[np.int32], list[BadRow]]:
        """Return the id of every text, adding new terms; 0 and a `BadRow` for an invalid one."""

    def find(self, text: str) -> int:
        """Return the id of a canonical text, or 0."""

    def add(self, text: str) -> int:
        """Return the id of a canonical text, adding it when it is new."""

    def add_text(self, text: str) -> int:
        """Return the id of the term with a text in any spelling, adding it when it is new."""

    def add_numbers(self, pairs: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ids of integers, with a second number 0, and of means: sums and counts."""

    def classify(self, rows: NDArray[np.int32], at: int, classes: NDArray[np.int32]) -> None:
        """Note for each id in a column of some rows whether it is a number (`kernels.numerals`)."""

    def text(self, term: int) -> str:
        """Return the canonical text of an id; empty if no term has it."""

    def texts(self, ids: NDArray[np.int32]) -> Strings:
        """Return the texts of many ids; null for id 0, empty for an id that no term has."""

    def sweep(self, live: NDArray[np.bool_], *, reuse: bool) -> None:
        """Free the terms of all ids that are not `live`; unless `reuse`, their ids stay unused."""

    @property
    def nbytes(self) -> int:
        """The size of the table in bytes."""


def unused_ids(live: NDArray[np.bool_], top: int) -> NDArray[np.int32]:
    """The ids up to `top` that are not live, the lowest one last: it is used next.

    >>> unused_ids(np.array([False, True, False, False, True]), 4).tolist()
    [3, 2]
    """
    return (np.flatnonzero(~live[1 : top + 1]) + 1)[::-1].astype(np.int32)


def number_text(total: int, count: int) -> str:
    """The text of an integer; with a count, of a mean, cut after 18 digits of its fraction.

    >>> number_text(-7, 0), number_text(-7, 2)[:6], number_text(2, 3)[:22]
    ('"-7"^^<http://www.w3.org/2001/XMLSchema#integer>', '"-3.5"', '"0.666666666666666666"')
    """
    if not count:
        return f'"{total}"^^<{XSD}integer>'
    whole, rest = divmod(abs(total) * 10**18 // count, 10**18)
    digits = f"{whole}.{rest:018}".rstrip("0").removesuffix(".")
    return f'"{"-" * (total < 0 and digits != "0")}{digits}"^^<{XSD}decimal>'


def resized(array: NDArray[T], capacity: int, used: int | None = None) -> NDArray[T]:
    """Return a copy with so many rows: without the last ones, or extended with zeros.

    Only the rows in use are copied: zeros that nobody writes to take no memory.
    """
    other = np.zeros((capacity, *array.shape[1:]), array.dtype)
    many = min(capacity, len(array) if used is None else used)
    other[:many] = array[:many]
    return other


class PlainTermTable:
    """A `TermTable` of a dict and a list: the twin of `KernelTermTable`."""

    def __init__(self) -> None:
        self._free = np.empty(0, np.int32)
        self.kinds = np.zeros(64, np.int8)
        self.numbers = np.zeros(64, np.float64)
        self._ids: dict[str, int] = {}
        self._texts: list[str] = [""]

    @property
    def count(self) -> int:
        """How many terms there are."""
        return len(self._ids)

    @property
    def top(self) -> int:
        """The highest id in use."""
        return len(self._texts) - 1

    def encode(self, column: TextColumn) -> tuple[NDArray[np.int32], list[BadRow]]:
        """Return the id of every text, adding new terms; 0 and a `BadRow` for an invalid one."""
        ids = np.zeros(len(column), np.int32)
        bad: list[BadRow] = []
        for row in range(len(column)):
            if column.valid is None or column.valid[row]:
                text = column.text(row)
                try:
                    ids[row] = self._ids.get(text) or self.add(canonical_text(text))
                except TermError as error:
                    bad.append((row, error.message))
        return ids, bad

    def find(self, text: str) -> int:
        """Return the id of a canonical text, or 0."""
        return self._ids.get(text, 0)

    def add(self, text: str) -> int:
        """Return the id of a canonical text, adding it when it is new."""
        found = self._ids.get(text)
        if found is not None:
            return found
        kind, number = typed_value(text)  # before anything is changed: it may be interrupted
        term = int(self._free[-1]) if len(self._free) else len(self._texts)
        if term + 1 >= self.kinds.size:
            self.kinds = resized(self.kinds, 2 * term)
            self.numbers = resized(self.numbers, 2 * term)
        if term < len(self._texts):
            self._free = self._free[:-1]
            self._texts[term] = text
        else:
            self._texts.append(text)
        self.kinds[term], self.numbers[term] = kind, number
        self._ids[text] = term
        return term

    def add_text(self, text: str) -> int:
        """Return the id of the term with a text in any spelling, adding it when it is new."""
        return self._ids.get(text) or self.add(canonical_text(text))

    def add_numbers(self, pairs: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ids of integers, with a second number 0, and of means: sums and counts."""
        return np.array([self.add(number_text(*pair)) for pair in pairs.tolist()], np.int32)

    def classify(self, rows: NDArray[np.int32], at: int, classes: NDArray[np.int32]) -> None:
        """Note for each id in a column of some rows whether it is a number (`kernels.numerals`)."""
        for term in rows[:, at].tolist():
            classes[term] |= self._number_class(term)

    def _number_class(self, term: int) -> int:
        whole = self._texts[term].endswith(f'"^^<{XSD}integer>')
        if self.kinds[term] == EXACT and whole and abs(self.numbers[term]) < 2.0**53:
            return 2
        return 3 if self.kinds[term] in (EXACT, DOUBLE, OTHER) else 1

    def text(self, term: int) -> str:
        """Return the canonical text of an id; empty if no term has it."""
        return self._texts[term]

    def texts(self, ids: NDArray[np.int32]) -> Strings:
        """Return the texts of many ids; null for id 0, empty for an id that no term has."""
        return pa.array([self._texts[term] if term else None for term in ids.tolist()], pa.string())

    def sweep(self, live: NDArray[np.bool_], *, reuse: bool) -> None:
        """Free the terms of all ids that are not `live`; unless `reuse`, their ids stay unused."""
        self._ids = {text: term for text, term in self._ids.items() if live[term]}
        for term in np.flatnonzero(~live[1:]).tolist():
            self._texts[term + 1] = ""
            self.kinds[term + 1], self.numbers[term + 1] = UNBOUND, 0.0
        if reuse:
            del self._texts[max(self._ids.values(), default=0) + 1 :]
            self._free = unused_ids(live, self.top)

    @property
    def nbytes(self) -> int:
        """The size of the table in bytes."""
        texts = sum(map(sys.getsizeof, self._texts)) + sys.getsizeof(self._ids)
        return self.kinds.nbytes + self.numbers.nbytes + texts


Strings: TypeAlias = "pa.Array[Any]"
"""An Arrow array of strings."""

Texts: TypeAlias = "Strings | pa.ChunkedArray[Any] | NDArray[Any] | Sequence[str | None]"
"""What is accepted as a column of texts."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """UTF-8 texts: row i is `data[offsets[i]:offsets[i + 1]]`; `valid` is False at nulls."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return self.offsets.size - 1

    def text(self, row: int) -> str:
        """Return one row's text."""
        raw = self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()
        return raw.decode(errors="replace")

    def without_empty(self) -> TextColumn:
        """Return the column with its empty texts taken as nulls."""
        filled = self.offsets[1:] > self.offsets[:-1]
        return replace(self, valid=filled if self.valid is None else filled & self.valid)


def text_column(array: Strings) -> TextColumn:
    """View an Arrow string array, sliced or not, without copying its bytes.

    >>> column = text_column(pa.array(["a", None, "bcd"]).slice(1))
    >>> column.text(1), column.valid.tolist()
    ('bcd', [False, True])
    """
    kind = array.type
    wide = pa.types.is_large_string(kind)
    if not (wide or pa.types.is_string(kind)):
        raise DataError(f"a column of terms must hold strings, not {kind}")
    _, offset_buffer, data_buffer = array.buffers()
    count, skip = len(array), array.offset
    if offset_buffer is None or count == 0:
        return TextColumn(np.empty(0, np.uint8), np.zeros(count + 1, np.int64), None)
    memory: Any = offset_buffer
    raw = np.frombuffer(memory, np.int64 if wide else np.int32, count + skip + 1)
    offsets = raw[skip:].astype(np.int64)
    data = (
        np.frombuffer(cast("Any", data_buffer), np.uint8) if data_buffer else np.empty(0, np.uint8)
    )
    data.setflags(write=False)  # as buffers of files are: loops are compiled for one of the two
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return TextColumn(data, offsets, valid)


def wrong_rows(column: Strings, name: str) -> NDArray[np.bool_]:
    """Return a mask of the rows whose term is not allowed in the column of that name.

    >>> wrong_rows(pa.array(["<ex:a>", '"x"']), "s").tolist()
    [False, True]
    """
    if name == "g" and column.null_count == len(column):
        return np.zeros(len(column), np.bool_)
    texts = text_column(column)
    allowed = np.zeros(256, np.bool_)
    allowed[list(POSITIONS[name].starts.encode())] = True
    empty = texts.offsets[1:] == texts.offsets[:-1]
    wrong = empty
    if texts.data.size:
        firsts = texts.data[np.minimum(texts.offsets[:-1], texts.data.size - 1)]
        wrong = ~allowed[firsts] | empty
        if not POSITIONS[name].triples:  # a triple term starts as an IRI does
            seconds = texts.data[np.minimum(texts.offsets[:-1] + 1, texts.data.size - 1)]
            wrong |= (firsts == _LESS) & (seconds == _LESS)
    missing = empty if texts.valid is None else empty | ~texts.valid
    marked: NDArray[np.bool_] = wrong & ~missing if name == "g" else wrong | missing
    return marked


MANY_TEXTS: Final = 1 << 20
"""Texts for which importing pandas would not matter."""


def string_array(texts: list[str]) -> Strings:
    """Return an Arrow array of texts, without importing pandas.

    `pa.array` does that if it can, which takes longer than a few hundred thousand texts.

    >>> string_array(["a", None]).null_count
    1
    """
    if "pandas" in sys.modules or len(texts) > MANY_TEXTS:
        return pa.array(texts, pa.string(), from_pandas=True)
    builder: Any = pa.lib.StringBuilder()
    builder.append_values(texts)
    made: Strings = builder.finish()
    return made


def as_chunks(texts: Texts) -> list[Strings]:
    """Return a column of texts as Arrow arrays, one per chunk.

    >>> as_chunks(["a", "b"])[0].type
    DataType(string)
    """
    if isinstance(texts, pa.ChunkedArray):
        return list(texts.chunks)
    if isinstance(texts, pa.Array):
        return [texts]
    try:
        if isinstance(texts, list):
            return [string_array(texts)]
        return [pa.array(texts, pa.string(), from_pandas=True)]
    except (TypeError, pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise DataError(f"a column of terms must hold strings: {error}") from None


def buffer_of(array: NDArray[Any]) -> pa.Buffer:
    """Return the memory of a NumPy array as an Arrow buffer, without copying it.

    >>> buffer_of(np.zeros(3, np.int64)).size
    24
    """
    return pa.py_buffer(cast("Any", array))
