"""Columns of terms as canonical texts: checked, compared and hashed without giving terms ids.

The pack stage sees each term once or twice, so a dictionary of them would cost more than it saves.
"""

from __future__ import annotations

from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.errors import TermError
from graphtide.jit import JIT
from graphtide.rdf.term_tables import text_column, wrong_rows
from graphtide.rdf.terms import POSITIONS, Term, canonical_of, canonical_text
from graphtide.spark.partition.hashing import text_hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


SAMPLE: Final = 1000
"""From so many rows it is estimated whether a column has few different texts."""

_text_of = lru_cache(4096)(canonical_of)
"""The constants of patterns are looked for in every batch."""


class TermColumn:
    """A column of terms: `codes` has for each row which of `texts` it is; -1 is null.

    Texts may be repeated. What is asked of them is asked once of each.
    """

    def __init__(self, texts: pa.Array[Any], codes: NDArray[np.int32]) -> None:
        self.texts = texts
        self.codes = codes
        self._equal: dict[str, NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def nulls(cls, count: int) -> TermColumn:
        """A column without terms."""
        return cls(pa.array([], pa.string()), np.full(count, -1, np.int32))

    def at(self, rows: NDArray[np.int64]) -> TermColumn:
        """Some rows of it."""
        return TermColumn(self.texts, self.codes[rows])

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which rows have a term."""
        return self.codes >= 0

    @cached_property
    def hashes(self) -> NDArray[np.int64]:
        """A non-negative hash of each row's text."""
        return _by_code(text_hashes(self.texts), self.codes)

    def equals(self, term: Term | str) -> NDArray[np.bool_]:
        """Which rows have a term."""
        text = _text_of(term)
        if text not in self._equal:
            same: Any = pc.equal(self.texts, pa.scalar(text, self.texts.type))
            mask = same.fill_null(False).to_numpy(zero_copy_only=False)
            self._equal[text] = _by_code(mask, self.codes) & self.valid
        return self._equal[text]

    def same(self, other: TermColumn) -> NDArray[np.bool_]:
        """Which rows have the same term as another column."""
        texts = (column.texts.take(_with_nulls(column.codes)) for column in (self, other))
        equal: Any = pc.equal(*texts)
        return np.asarray(equal.fill_null(False).to_numpy(zero_copy_only=False))

    def sample(self, step: int) -> list[str]:
        """The text of every so many rows, all of which have one."""
        found: Any = self.texts.take(self.codes[::step])
        return cast("list[str]", found.to_pylist())

    def coded(self, rows: NDArray[np.int64]) -> pa.Array[Any]:
        """Some rows as a column of `messages.TERM`, with the texts that they have."""
        codes = self.codes[rows]
        valid = codes >= 0
        found = codes[valid]  # a dictionary of Arrow must not have nulls
        places = np.arange(len(found), dtype=np.int32)
        if len(self.texts) < len(self.codes):
            used = np.zeros(len(self.texts), np.bool_)
            used[found] = True
            places = (np.cumsum(used, dtype=np.int32) - 1)[found]
            found = np.flatnonzero(used).astype(np.int32)
        at = np.full(len(codes), -1, np.int32)
        at[valid] = places
        return pa.DictionaryArray.from_arrays(_with_nulls(at), self.texts.take(found))


Reasons = dict[int, str]
"""By row, what is wrong with it."""


def read_quads(columns: Sequence[pa.Array[Any]]) -> tuple[tuple[TermColumn, ...], Reasons]:
    """The columns `s`, `p`, `o` and `g` of changes; of several reasons the first counts."""
    read = [read_column(name, column) for name, column in zip("spog", columns, strict=True)]
    bad: Reasons = {}
    for _, wrong in reversed(read):
        bad |= wrong
    return tuple(column for column, _ in read), bad


def read_column(name: str, column: pa.Array[Any]) -> tuple[TermColumn, Reasons]:
    """The terms in the column `s`, `p`, `o` or `g` of changes; in `g` an empty text is null.

    >>> read, bad = read_column("o", pa.array(['"a"@EN', None, "<a b>", "<ex:a>"]))
    >>> read.texts.to_pylist()[0], sorted(bad), read.equals("<ex:a>").tolist()
    ('"a"@en', [1, 2], [False, False, False, True])
    """
    if not column.null_count < len(column):
        return TermColumn.nulls(len(column)), _missing(name, range(len(column)))
    texts, codes = _coded(column)
    if name == "g":
        empty: Any = pc.equal(texts, pa.scalar("", texts.type)).fill_null(False)
        default = _by_code(empty.to_numpy(zero_copy_only=False), codes)
        codes = np.where(default, np.int32(-1), codes)
    texts, wrong = canonical_texts(texts)
    read = TermColumn(texts, codes)
    bad = _missing(name, np.flatnonzero(codes < 0).tolist())
    misplaced = wrong_rows(texts, name)
    if misplaced.any():
        rule = f"column {name}: {POSITIONS[name].rule}"
        rows = np.flatnonzero(_by_code(misplaced, codes) & read.valid)
        bad |= dict.fromkeys(rows.tolist(), rule)
    if wrong:
        odd = np.zeros(len(texts), np.bool_)
        odd[list(wrong)] = True
        rows = np.flatnonzero(_by_code(odd, codes) & read.valid)
        bad |= {row: f"column {name}: {wrong[int(codes[row])]}" for row in rows.tolist()}
    return read, bad


def _missing(name: str, rows: list[int] | range) -> Reasons:
    return {} if name == "g" else dict.fromkeys(rows, f"column {name}: {POSITIONS[name].rule}")


def _with_nulls(codes: NDArray[np.int32]) -> pa.Array[Any]:
    """Codes for Arrow, which has nulls instead of -1."""
    missing = codes < 0
    return pa.array(codes, mask=missing if missing.any() else None)


def _by_code(values: NDArray[Any], codes: NDArray[np.int32]) -> NDArray[Any]:
    """The value of each row's text; what rows without one get means nothing."""
    return values[codes] if len(values) else np.zeros(len(codes), values.dtype)


def _coded(column: pa.Array[Any]) -> tuple[pa.Array[Any], NDArray[np.int32]]:
    """Texts, and which of them each row has; each text once if there seem to be few."""
    texts: Any = column
    sample = texts.slice(0, SAMPLE)
    if 2 * len(sample.unique()) <= len(sample):
        coded = texts.dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return coded.dictionary, codes.astype(np.int32, copy=False)
    codes = np.arange(len(texts), dtype=np.int32)
    if texts.null_count:
        codes[texts.is_null().to_numpy(zero_copy_only=False)] = -1
    return texts, codes


def canonical_texts(texts: pa.Array[Any]) -> tuple[pa.Array[Any], Reasons]:
    r"""Texts of terms as canonical ones; and by row, what is wrong with those that are none.

    Most texts are canonical, which a compiled loop sees; then nothing is copied.

    >>> canonical_texts(pa.array(["<ex:a>", None, '"caf\\u00e9"']))[0].to_pylist()
    ['<ex:a>', None, '"café"']
    """
    column = text_column(texts)
    rows = np.arange(len(column)) if column.valid is None else np.flatnonzero(column.valid)
    if JIT:
        from graphtide.rdf.kernels.texts import ODD, check_texts  # noqa: PLC0415 - needs Numba

        codes, closes = np.empty(rows.size, np.int8), np.empty(rows.size, np.int64)
        check_texts(column.data, column.offsets, rows, codes, closes)
        rows = rows[codes == ODD]
    if not rows.size:
        return texts, {}
    canonical: list[str] = []
    wrong: Reasons = {}
    known = cache(canonical_text)
    for row in rows.tolist():
        text = column.text(row)
        try:
            canonical.append(known(text))
        except TermError as error:
            canonical.append(text)
            wrong[row] = error.message
    mask = np.zeros(len(texts), np.bool_)
    mask[rows] = True
    replaced: Any = pc.replace_with_mask(texts, pa.array(mask), pa.array(canonical, texts.type))
    return replaced, wrong
