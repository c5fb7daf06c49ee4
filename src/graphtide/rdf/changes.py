"""`ChangeBatch`: changes in columns `(time, tx, diff, s, p, o, g)`, as all readers return them.

Construction checks whole columns at once. `RejectedRow` is an input row that is not a change.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from graphtide.arguments import iterable, wrong_type
from graphtide.errors import DataError
from graphtide.limits import Limits
from graphtide.rdf.term_tables import Strings, wrong_rows
from graphtide.rdf.terms import POSITIONS, shorten
from graphtide.ticks import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

log = getLogger(__name__)


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
    """Raise `DataError` unless the rows of each transaction are adjacent.

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
    """Raise `DataError` where a term is not allowed in its column, judging by its first character.

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
            raise DataError(f"row {row}: {name} is {shown}: {POSITIONS[name].rule}")


def check_times(time: NDArray[np.int64]) -> None:
    """Raise unless sums of two times are still int64."""
    wrong = (time > LATEST) | (time < -LATEST)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"row {row}: time {time[row]} is out of bounds, -2**62 to 2**62")


def _whole(values: Sequence[object], name: str) -> NDArray[Any]:
    """Return whole numbers as an array; a float would be rounded, and so is refused."""
    for row, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise DataError(f"row {row}: {name} is no whole number: {value!r:.60}")
        if not -(2**63) <= int(value) < 2**63:
            raise DataError(f"row {row}: {name} is out of bounds: {str(value)[:60]}")
    return np.array([int(value) for value in values], np.int64)  # type: ignore[call-overload]


def _diffs(values: NDArray[np.int64]) -> NDArray[np.int8]:
    check_diffs(values)
    return values.astype(np.int8)


def _texts(values: Sequence[object], name: str) -> Strings:
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError) as error:
        raise DataError(f"column {name} must have texts of terms: {error}") from None


KEPT: Final = 100_000
"""Characters that are kept of the text of a rejected row."""

OnError: TypeAlias = Literal["raise", "skip"]
"""What a reader does with a row that it cannot read: raise `DataError`, or reject it and go on."""

_COLUMNS: Final[list[pa.Field[Any]]] = [
    pa.field("time", pa.int64(), nullable=False),
    pa.field("tx", pa.int64(), nullable=False),
    pa.field("diff", pa.int8(), nullable=False),
    pa.field("s", pa.string(), nullable=False),
    pa.field("p", pa.string(), nullable=False),
    pa.field("o", pa.string(), nullable=False),
    pa.field("g", pa.string()),
]

CHANGE_SCHEMA: Final = pa.schema(_COLUMNS)
"""The columns of a change log; `g` may be null (the default graph) or be left out."""


@dataclass(frozen=True, slots=True, eq=False)
class ChangeBatch:
    """Changes `(time, tx, diff, s, p, o, g)` in the order of their arrival.

    The rows that share one `(time, tx)` are one transaction, and adjacent. Terms are N-Triples
    texts; `g` null or empty is the default graph. Construction checks shapes, diffs and which kinds
    of term are in which column; whether a text is a valid term is checked when it is encoded.

    >>> batch = ChangeBatch.of([(17, 0, +1, "<ex:a>", "<ex:p>", '"1"', None)])
    >>> len(batch), batch.time.tolist(), batch.o.to_pylist()
    (1, [17], ['"1"'])
    """

    time: NDArray[np.int64]
    tx: NDArray[np.int64]
    diff: NDArray[np.int8]
    s: Strings
    p: Strings
    o: Strings
    g: Strings

    def __post_init__(self) -> None:
        count = len(self.time)
        for name in CHANGE_SCHEMA.names:
            size = len(getattr(self, name))
            if size != count:
                raise DataError(f"column {name} has {size} rows and column time has {count}")
        check_numbers(time=self.time, tx=self.tx, diff=self.diff)
        check_diffs(self.diff)
        check_times(self.time)
        check_runs(self.time, self.tx)
        check_positions(s=self.s, p=self.p, o=self.o, g=self.g)

    def __len__(self) -> int:
        return len(self.time)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChangeBatch) and bool(self.to_arrow().equals(other.to_arrow()))

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, str, str, str, str | None]]) -> ChangeBatch:
        """Make a batch from rows `(time, tx, diff, s, p, o, g)`.

        >>> len(ChangeBatch.of([]))
        0
        """
        listed = list(iterable(rows, "rows", "an iterable of changes"))
        for each in listed:
            if not isinstance(each, (tuple, list)) or len(each) != len(CHANGE_SCHEMA.names):
                raise wrong_type(each, "a change", "a tuple (time, tx, diff, s, p, o, g)")
        columns: list[list[object]] = [list(column) for column in zip(*listed, strict=True)]
        time, tx, diff, *terms = columns or [[] for _ in CHANGE_SCHEMA.names]
        return cls(
            _whole(time, "time"),
            _whole(tx, "tx"),
            _diffs(_whole(diff, "diff")),
            *(_texts(column, name) for column, name in zip(terms, "spog", strict=True)),
        )

    @classmethod
    def from_arrow(cls, table: pa.Table | pa.RecordBatch) -> ChangeBatch:
        """Make a batch from the columnar form; raise `DataError` naming what does not fit.

        Other integer types, large and dictionary-encoded strings are accepted.

        >>> ChangeBatch.from_arrow(pa.table({"time": [1]}))
        Traceback (most recent call last):
            ...
        graphtide.errors.DataError: a change log needs the columns tx, diff, s, p, o
          hint: its columns are time, tx, diff, s, p, o and, if there are named graphs, g
        """
        missing = [
            name for name in CHANGE_SCHEMA.names if name not in table.schema.names and name != "g"
        ]
        if missing:
            raise DataError(
                f"a change log needs the columns {', '.join(missing)}",
                hint="its columns are time, tx, diff, s, p, o and, if there are named graphs, g",
            )
        numbers = [_integers(table, name) for name in ("time", "tx", "diff")]
        diff = numbers[2]
        check_diffs(diff)
        terms = [column_of_strings(table, name) for name in ("s", "p", "o", "g")]
        return cls(numbers[0], numbers[1], diff.astype(np.int8), *terms)

    def to_arrow(self) -> pa.Table:
        """Return the columnar form, of `CHANGE_SCHEMA`.

        >>> ChangeBatch.of([(0, 0, -1, "<ex:a>", "<ex:p>", "_:b", "")]).to_arrow().num_rows
        1
        """
        numbers = [pa.array(column) for column in (self.time, self.tx, self.diff)]
        arrays: Any = [*numbers, self.s, self.p, self.o, self.g]
        return pa.Table.from_arrays(arrays, schema=CHANGE_SCHEMA)

    def slice(self, start: int, stop: int) -> ChangeBatch:
        """Return the rows from start to before stop, without copying.

        >>> rows = [(t, t, 1, "<ex:a>", "<ex:p>", "<ex:b>", None) for t in range(3)]
        >>> ChangeBatch.of(rows).slice(1, 3).time.tolist()
        [1, 2]
        """
        return ChangeBatch(*(getattr(self, name)[start:stop] for name in CHANGE_SCHEMA.names))

    def transaction_starts(self) -> NDArray[np.int64]:
        """Return the first row of each transaction.

        >>> rows = [(t, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None) for t in (4, 4, 9)]
        >>> ChangeBatch.of(rows).transaction_starts().tolist()
        [0, 2]
        """
        if not len(self):
            return np.empty(0, np.int64)
        new = (np.diff(self.time) != 0) | (np.diff(self.tx) != 0)
        return np.concatenate([[0], np.flatnonzero(new) + 1]).astype(np.int64)

    def transactions(self) -> Iterator[ChangeBatch]:
        """Split the batch into its transactions.

        >>> rows = [(t, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None) for t in (4, 4, 9)]
        >>> [len(transaction) for transaction in ChangeBatch.of(rows).transactions()]
        [2, 1]
        """
        starts = [*self.transaction_starts().tolist(), len(self)]
        for start, stop in itertools.pairwise(starts):
            yield self.slice(start, stop)


def concat_batches(batches: Iterable[ChangeBatch]) -> ChangeBatch:
    """Concatenate batches.

    >>> one = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None)])
    >>> len(concat_batches([one, one]))
    2
    """
    parts = list(batches)
    if not parts:
        return ChangeBatch.of([])
    return ChangeBatch(
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.tx for part in parts]),
        np.concatenate([part.diff for part in parts]),
        *(pa.concat_arrays([getattr(part, name) for part in parts]) for name in "spog"),
    )


def _integers(table: pa.Table | pa.RecordBatch, name: str) -> NDArray[np.int64]:
    column = table.column(name)
    if not pa.types.is_integer(column.type):
        raise DataError(f"column {name} must hold integers, not {column.type}")
    if column.null_count:
        raise DataError(f"column {name} has no value in {column.null_count} rows")
    try:
        wide: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise DataError(f"column {name} must hold 64-bit integers: {error}") from None
    return wide


def column_of_strings(table: pa.Table | pa.RecordBatch, name: str) -> Strings:
    """Return a column as one string array, or raise `DataError`; a missing column is all null.

    >>> column_of_strings(pa.table({"s": ["a"]}), "g").to_pylist()
    [None]
    """
    if name not in table.schema.names:
        return pa.nulls(table.num_rows, pa.string())
    column: Any = table.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise DataError(f"column {name} must hold strings, not {column.type}")
    if isinstance(column, pa.ChunkedArray):
        # One chunk is taken as it is: combining copies it, even if it is the only one.
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    texts: Strings = column.cast(pa.string())
    return texts


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """An input line or table row that could not be read, and why.

    `line` and `column` count from 1; a row of a table counts from 0 as its line.

    >>> print(RejectedRow("log.rdfp", 3, 7, "A <a b> .", "a space in an IRI"))
    log.rdfp:3:7: a space in an IRI
    """

    file: str
    line: int
    column: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.reason}"


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """Where a reader reports the rejected rows of one source: raises, or fills a list."""

    source: str
    on_error: OnError = "raise"
    rows: list[RejectedRow] | None = None
    limits: Limits = field(default_factory=Limits)

    def report(self, line: int, column: int, text: str, reason: str) -> None:
        """Raise `DataError`, or add a row to the list.

        >>> rejected = RejectedRows("a.nt", "skip", [])
        >>> rejected.report(1, 2, "x", "no term")
        >>> len(rejected.rows)
        1
        """
        if self.on_error == "raise":
            raise DataError(reason, source=self.source, line=line, column=column)
        log.info("rejected %s:%d:%d: %s", self.source, line, column, reason)
        if self.rows is not None:
            self.rows.append(RejectedRow(self.source, line, column, shorten(text, KEPT), reason))

    def report_long(self, line: int, what: str = "a line") -> None:
        """Raise, or add to the list, a line or a term that is too long to be read."""
        most = self.limits.literal_length
        error = self.limits.data_error(
            "literal_length", f"{what} of more than {most:,} bytes", source=self.source, line=line
        )
        if self.on_error == "raise":
            raise error
        self.report(line, 1, "", f"{error.message}; {error.hint}")
