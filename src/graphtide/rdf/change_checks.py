"""What must hold for the columns of a `ChangeBatch`, checked on whole columns at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from graphtide.errors import DataError
from graphtide.rdf.term_text import shorten
from graphtide.rdf.text_column import Strings, text_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STARTS: Final = {"s": b"<_", "p": b"<", "o": b'<_"', "g": b"<_"}
POSITION_RULES: Final = {
    "s": "a subject is an IRI or a blank node",
    "p": "a predicate is an IRI",
    "o": "an object is an IRI, a blank node or a literal",
    "g": "a graph name is an IRI or a blank node, and null or empty for the default graph",
}


def check_numbers(**columns: object) -> None:
    """Raise `DataError` unless the columns are int64 (diff: int8) vectors.

    >>> check_numbers(time=np.zeros(2, np.int64), diff=np.ones(2, np.int8))
    """
    for name, column in columns.items():
        wanted = np.int8 if name == "diff" else np.int64
        if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype != wanted:
            found = getattr(column, "dtype", type(column).__name__)
            raise DataError(f"column {name} must be a vector of {wanted.__name__}, not of {found}")


def check_diffs(diff: NDArray[np.integer]) -> None:
    """Raise `DataError` unless every diff is +1 or -1.

    >>> check_diffs(np.array([1, 2]))
    Traceback (most recent call last):
        ...
    graphtide.errors.DataError: row 1: diff is 2, not +1 or -1
    """
    wrong = (diff != 1) & (diff != -1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"row {row}: diff is {diff[row]}, not +1 or -1")


def check_runs(time: NDArray[np.int64], tx: NDArray[np.int64]) -> None:
    """Raise `DataError` unless the rows of each transaction stand together.

    >>> check_runs(np.array([1, 2, 1]), np.array([0, 0, 0]))
    Traceback (most recent call last):
        ...
    graphtide.errors.DataError: row 2: transaction (time 1, tx 0) has ended before this row
      hint: keep the rows of one transaction together
    """
    time_step, tx_step = np.diff(time), np.diff(tx)
    if ((time_step > 0) | ((time_step == 0) & (tx_step >= 0))).all():
        return
    seen: set[tuple[int, int]] = set()
    firsts = np.concatenate([[0], np.flatnonzero((time_step != 0) | (tx_step != 0)) + 1])
    for row in firsts.tolist():
        key = (int(time[row]), int(tx[row]))
        if key in seen:
            raise DataError(
                f"row {row}: transaction (time {key[0]}, tx {key[1]}) has ended before this row",
                hint="keep the rows of one transaction together",
            )
        seen.add(key)


def check_positions(**columns: object) -> None:
    """Raise `DataError` where a term cannot stand in its column, judging by its first character.

    >>> check_positions(p=pa.array(["_:b"]))
    Traceback (most recent call last):
        ...
    graphtide.errors.DataError: row 0: p is '_:b': a predicate is an IRI
    """
    for name, column in columns.items():
        if not isinstance(column, pa.Array) or column.type != pa.string():
            found = getattr(column, "type", type(column).__name__)
            raise DataError(f"column {name} must be an Arrow array of strings, not of {found}")
        wrong = wrong_rows(column, name)
        if wrong.any():
            row = int(np.argmax(wrong))
            text = column[row].as_py()
            shown = "null" if text is None else repr(shorten(text))
            raise DataError(f"row {row}: {name} is {shown}: {POSITION_RULES[name]}")


def wrong_rows(column: Strings, name: str) -> NDArray[np.bool_]:
    """Mark the rows whose term cannot stand in the column of that name.

    >>> wrong_rows(pa.array(["<ex:a>", '"x"']), "s").tolist()
    [False, True]
    """
    if name == "g" and column.null_count == len(column):
        return np.zeros(len(column), np.bool_)
    texts = text_column(column)
    allowed = np.zeros(256, np.bool_)
    allowed[list(_STARTS[name])] = True
    empty = texts.offsets[1:] == texts.offsets[:-1]
    wrong = empty
    if texts.data.size:
        firsts = texts.data[np.minimum(texts.offsets[:-1], texts.data.size - 1)]
        wrong = ~allowed[firsts] | empty
    missing = empty if texts.valid is None else empty | ~texts.valid
    marked: NDArray[np.bool_] = wrong & ~missing if name == "g" else wrong | missing
    return marked
