"""RDF Patch: a change log in text, read and written.

Rows, each ended by a dot and a line break; `#` starts a comment:

    H time 17 .            the time of the next transaction (or of the one just opened)
    H tx 3 .               its number, when it is not the next one
    PA ex: <http://…/> .   declare a prefix;   PD ex: .   remove it
    TX .                   open a transaction
    A s p o [g] .          insert a quad;      D s p o [g] .   delete it
    TC .                   commit;             TA .   abort: drop the transaction's changes

- Transactions are numbered 0, 1, 2… in the order of their `TX` rows, aborted and empty ones
  included. Without a time header a transaction has the time of the one before, the first has 0.
- Consecutive changes outside `TX` … `TC` are one transaction; any row but `A`, `D`, `PA` and `PD`
  ends it.
- A transaction that is still open at the end of the file is not applied, and is an error.
- With `on_error="skip"` only the invalid line is left out, not its whole transaction.
- Other headers are kept in `PatchReader.headers`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide.errors import DataError, TermError
from graphtide.limits import Limits
from graphtide.rdf.changes import ChangeBatch, OnError, RejectedRow, RejectedRows
from graphtide.rdf.formats.lines import (
    BLOCK_BYTES,
    LONG_LINE,
    NOT_UTF8,
    LineBlock,
    LineBuffer,
    line_text,
    scan_block,
)
from graphtide.rdf.kernels.lines import DELETE
from graphtide.rdf.terms import POSITIONS, TRIPLE_START, canonical_text, triple_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from graphtide.rdf.term_tables import Strings


# --- single rows: code, terms, and the column of each ---

_CODE = re.compile(r"\s*([A-Za-z]+)(?=[\s.]|$)")
_TOKEN = re.compile(
    r"(?P<iri><[^<>]*>)"
    r"|(?P<triple><<\(.*\)>>)"
    r'|(?P<literal>"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]*|\^\^<[^<>]*>)?)(?P<datatype>\^\^[^\s<]\S*?(?=\.?(?:\s|$)))?'
    r"|(?P<blank>_:(?:[^\s.]|\.(?=[^\s]))*)"
    r'|(?P<name>(?P<prefix>[\w.-]*):(?P<local>(?:\\.|[^\s<>"#;,.\\]|\.(?=[^\s.]))*))'
    r'|(?P<word>[^\s<>"]+?(?=\.?(?:\s|$)))'
)
_LOCAL_ESCAPE = re.compile(r"\\(.)")
_BLANK_IRI = re.compile(r"<_:(.*)>")

SHAPES: Final = {
    "A": ("A s p o [g] .", 3, 4),
    "D": ("D s p o [g] .", 3, 4),
    "H": ("H key value .", 2, 2),
    "PA": ("PA prefix iri .", 2, 2),
    "PD": ("PD prefix .", 1, 1),
    "TX": ("TX .", 0, 0),
    "TC": ("TC .", 0, 0),
    "TA": ("TA .", 0, 0),
}
"""Code of a row -> its syntax, and its least and greatest number of values."""


class RowError(Exception):
    """An invalid row: the reason, and the column (from 1)."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PatchValue:
    """A value of a row as it is written, and where it starts (column from 1)."""

    column: int
    match: re.Match[str]

    @property
    def text(self) -> str:
        """The value as it is written."""
        return self.match.group()


@dataclass(frozen=True, slots=True)
class PatchRow:
    """A row: its code (`A`, `TX`…), the column of that code, and its values."""

    code: str
    column: int
    values: tuple[PatchValue, ...]


def split_row(line: str) -> PatchRow:
    """Split a row into its parts, or raise `RowError`.

    >>> [value.text for value in split_row("A ex:a <ex:p> 'x'@en . # new").values][:2]
    ['ex:a', '<ex:p>']
    >>> split_row("TX").column
    Traceback (most recent call last):
        ...
    graphtide.rdf.formats.patch.RowError: the row does not end with ' .'
    """
    code = _CODE.match(line)
    if code is None or code.group(1) not in SHAPES:
        start = len(line) - len(line.lstrip())
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        raise RowError(start + 1, f"unknown row {word!r}; rows start with {', '.join(SHAPES)}")
    values, at = _values(line, code.end())
    shape, least, most = SHAPES[code.group(1)]
    if not least <= len(values) <= most:
        column = values[most].column if len(values) > most else at + 1
        raise RowError(column, f"{len(values)} values where the row is {shape!r}")
    return PatchRow(code.group(1), code.start(1) + 1, tuple(values))


def _values(line: str, at: int) -> tuple[list[PatchValue], int]:
    """Return the values up to the final dot, and the index of that dot."""
    values: list[PatchValue] = []
    while True:
        while at < len(line) and line[at].isspace():
            at += 1
        if at >= len(line) or line[at] == "#":
            raise RowError(at + 1, "the row does not end with ' .'")
        if line[at] == ".":
            rest = line[at + 1 :].lstrip()
            if rest and not rest.startswith("#"):
                raise RowError(len(line) - len(rest) + 1, "text after the end of the row")
            return values, at
        found = _token(line, at)
        if found is None:
            raise RowError(at + 1, _token_reason(line[at]))
        values.append(PatchValue(at + 1, found))
        at = found.end()


def _token(line: str, at: int) -> re.Match[str] | None:
    if not line.startswith(TRIPLE_START, at):
        return _TOKEN.match(line, at)
    try:
        return _TOKEN.fullmatch(line, at, triple_end(line, at))
    except TermError as error:
        raise RowError(at + 1, error.message) from None


def _token_reason(first: str) -> str:
    match first:
        case '"':
            return "the closing quote is missing"
        case "<":
            return "the closing '>' is missing"
        case _:
            return f"unexpected {first!r}"


def change_terms(row: PatchRow, prefixes: Mapping[str, str]) -> list[str]:
    """Return the canonical texts of an `A` or `D` row's terms, or raise `RowError`.

    >>> change_terms(split_row("A ex:a ex:p 'x' ."), {"ex": "http://example.org/"})
    Traceback (most recent call last):
        ...
    graphtide.rdf.formats.patch.RowError: "'x'" is not a term
    """
    texts = [term_text(value, prefixes) for value in row.values]
    for value, text, position in zip(row.values, texts, POSITIONS.values(), strict=False):
        if not position.allows(text):
            raise RowError(value.column, position.rule)
    return texts


def term_text(value: PatchValue, prefixes: Mapping[str, str]) -> str:
    """Return the canonical text of a value, with prefixed names written out.

    >>> term_text(split_row("PD ex:a .").values[0], {"ex": "http://example.org/"})
    '<http://example.org/a>'
    """
    found = value.match
    text = found.group()
    if found["name"] is not None and found["blank"] is None:
        text = _expand(found["prefix"], found["local"], prefixes, value.column)
    elif found["datatype"] is not None:
        prefix, _, local = found["datatype"][2:].partition(":")
        column = value.column + len(found["literal"]) + 2
        text = f"{found['literal']}^^{_expand(prefix, local, prefixes, column)}"
    elif found["iri"] is not None:
        blank = _BLANK_IRI.fullmatch(text)
        text = f"_:{blank[1]}" if blank else text
    elif found["word"] is not None:
        raise RowError(value.column, f"{text!r} is not a term")
    try:
        return canonical_text(text)
    except TermError as error:
        raise RowError(value.column, error.message) from None


def _expand(prefix: str, local: str, prefixes: Mapping[str, str], column: int) -> str:
    if prefix not in prefixes:
        raise RowError(column, f"unknown prefix '{prefix}:'; declare it with PA {prefix}: <…> .")
    plain = _LOCAL_ESCAPE.sub(r"\1", local)
    return f"<{prefixes[prefix]}{plain}>"


class Segment(NamedTuple):
    """Rows from start to before stop, which are one transaction (or a part of one)."""

    start: int
    stop: int
    time: int
    tx: int


@dataclass(frozen=True, slots=True)
class PatchColumns:
    """Changes without time and transaction number."""

    diff: NDArray[np.int8]
    columns: tuple[Strings, ...]

    def __len__(self) -> int:
        return len(self.diff)

    def slice(self, start: int, stop: int) -> PatchColumns:
        """Return the rows from start to before stop."""
        return PatchColumns(self.diff[start:stop], tuple(c[start:stop] for c in self.columns))

    def batch(self, segments: Sequence[Segment]) -> ChangeBatch:
        """Return the rows of these transactions, without the rows between them."""
        starts, stops, times, numbers = np.array(segments, np.int64).T
        sizes = stops - starts
        part = self.slice(int(starts[0]), int(stops[-1]))
        if len(part) > sizes.sum():
            keep = np.zeros(len(part) + 1, np.int64)
            np.add.at(keep, starts - starts[0], 1)
            np.add.at(keep, stops - starts[0], -1)
            part = part.filter(np.cumsum(keep[:-1]) > 0)
        s, p, o, g = part.columns
        return ChangeBatch(
            np.repeat(times, sizes), np.repeat(numbers, sizes), part.diff, s, p, o, g
        )

    def filter(self, keep: NDArray[np.bool_]) -> PatchColumns:
        """Return the rows selected by a mask."""
        mask = pa.array(keep)
        return PatchColumns(self.diff[keep], tuple(column.filter(mask) for column in self.columns))


@dataclass(slots=True)
class PatchRows:
    """The change rows of a block: plain ones from the kernel, the others added one by one."""

    block: LineBlock
    lines: list[int] = field(default_factory=list)
    diffs: list[int] = field(default_factory=list)
    quads: list[list[str | None]] = field(default_factory=list)

    def rows_before(self, line: int) -> int:
        """How many change rows come before this line of the block."""
        return int(np.searchsorted(self.block.rows, line)) + len(self.lines)

    def add(self, line: int, diff: int, terms: Sequence[str]) -> None:
        """Add a change that the kernel did not read; lines come in ascending order."""
        self.lines.append(line)
        self.diffs.append(diff)
        self.quads.append([*terms, None][:4])

    def part(self) -> PatchColumns:
        """Return all change rows in the order of their lines."""
        deleted = self.block.status[self.block.rows] == DELETE
        diff = np.where(deleted, -1, 1).astype(np.int8)
        if not self.lines:
            return PatchColumns(diff, self.block.columns)
        order = np.argsort(np.concatenate([self.block.rows, self.lines]), kind="stable")
        extra = [pa.array(texts, pa.string()) for texts in zip(*self.quads, strict=True)]
        places: Any = pa.array(order)
        columns = tuple(
            pa.concat_arrays([plain, added]).take(places)
            for plain, added in zip(self.block.columns, extra, strict=True)
        )
        return PatchColumns(np.concatenate([diff, np.array(self.diffs, np.int8)])[order], columns)


_INT64: Final = range(-(2**63), 2**63)
_NOT_IN_ONE: Final = "no transaction is open"


class PatchReader:
    r"""Incremental reader of RDF Patch: `feed` it text as it arrives, then `finish`.

    It holds back an incomplete line and an open transaction until they are complete.

    >>> reader = PatchReader("log.rdfp")
    >>> reader.feed("TX .\nA <ex:a> <ex:p> <ex:b> .\nT")
    []
    >>> [len(batch) for batch in reader.feed("C .\n")]
    [1]
    >>> reader.finish()
    []
    """

    def __init__(
        self,
        source: str = "<patch>",
        *,
        on_error: OnError = "raise",
        rejected: list[RejectedRow] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.headers: dict[str, str] = {}
        self.prefixes: dict[str, str] = {}
        limits = Limits() if limits is None else limits
        self._rejected = RejectedRows(source, on_error, rejected, limits)
        self._lines = LineBuffer(limits)
        self._line = 1  # the line that the next piece starts with
        self._opened: int | None = None  # the line of the TX row of the open transaction
        self._time = 0
        self._tx = 0
        self._last: tuple[int, int] | None = None  # (time, tx) of the last one committed
        self._pending: list[
            PatchColumns
        ] = []  # changes of the open transaction, from earlier pieces
        self._start = 0  # its first row in this piece
        self._out: list[ChangeBatch] = []
        self._segments: list[Segment] = []
        self._failure: DataError | None = None

    def feed(self, text: str | bytes) -> list[ChangeBatch]:
        """Take more text; return the changes of the transactions that it completes.

        At an invalid line, the transactions before it are returned first; the next call raises.
        """
        self._raise_failure()
        data = self._lines.feed(text.encode() if isinstance(text, str) else text)
        if data:
            self._read(data)
        if not self._out:
            self._raise_failure()
        return self._take()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def flush(self) -> list[ChangeBatch]:
        """Commit the changes outside `TX` … `TC` that were read so far."""
        if self._opened is None:
            self._commit(0, self._line)
        return self._take()

    def finish(self) -> list[ChangeBatch]:
        """End of input: an open transaction is an error, and its changes are dropped."""
        self._raise_failure()
        if rest := self._lines.rest():
            self._read(rest)
            self._raise_failure()
        if self._opened is not None:
            line, self._opened, self._pending = self._opened, None, []
            reason = "the transaction that starts here is never committed"
            self._rejected.report(line, 1, "TX .", reason)
        return self.flush()

    def _take(self) -> list[ChangeBatch]:
        out, self._out = self._out, []
        return out

    def _read(self, data: bytes) -> None:
        """Read whole lines: plain changes in bulk, every other row one by one."""
        block = scan_block(data, self._line, positions=4, patch=True)
        rows = PatchRows(block)
        for index in block.odd_lines():
            line, (text, wrong) = block.first_line + index, line_text(block.line(index))
            try:
                try:
                    if wrong:
                        raise RowError(wrong, NOT_UTF8)
                    if text == LONG_LINE.decode():
                        self._rejected.report_long(line)
                        continue
                    self._row(split_row(text), line, rows, index)
                except RowError as error:
                    self._rejected.report(line, error.column, text, error.reason)
            except DataError as failure:
                self._failure = failure
                break
        part = rows.part()
        if self._segments:
            self._out.append(part.batch(self._segments))
        if len(part) > self._start:
            self._pending.append(part.slice(self._start, len(part)))
        self._start, self._segments = 0, []
        self._line += data.count(b"\n")

    def _row(self, row: PatchRow, line: int, rows: PatchRows, index: int) -> None:
        place = rows.rows_before(index)
        match row.code:
            case "A" | "D":
                rows.add(index, 1 if row.code == "A" else -1, change_terms(row, self.prefixes))
            case "PA":
                self._declare(row.values[0], row.values[1])
            case "PD":
                self.prefixes.pop(_prefix(row.values[0]), None)
            case "H":
                self._header(row.values[0], row.values[1], place, line)
            case "TX":
                self._open(row, place, line)
            case "TC":
                self._close(row)
                self._commit(place, line)
            case _:
                self._close(row)
                self._abort(place)

    def _declare(self, prefix: PatchValue, iri: PatchValue) -> None:
        text = f"<{_inner(iri)}>" if iri.match["literal"] else iri.text
        if not text.startswith("<"):
            raise RowError(iri.column, "the value of a prefix must be an <iri>")
        self.prefixes[_prefix(prefix)] = text[1:-1]

    def _header(self, key: PatchValue, value: PatchValue, place: int, line: int) -> None:
        name = _inner(key)
        number = _integer(value) if name in {"time", "tx"} else 0
        changed = place > self._start or bool(self._pending)
        if self._opened is None:
            self._commit(place, line)
        elif changed and name in {"time", "tx"}:
            raise RowError(key.column, f"H {name} must come before the transaction's first change")
        match name:
            case "time":
                self._time = number
            case "tx":
                self._tx = number
            case _:
                self.headers[name] = _inner(value)

    def _open(self, row: PatchRow, place: int, line: int) -> None:
        if self._opened is not None:
            raise RowError(row.column, f"the transaction of line {self._opened} is still open")
        self._commit(place, line)
        self._opened = line

    def _close(self, row: PatchRow) -> None:
        if self._opened is None:
            raise RowError(row.column, _NOT_IN_ONE)

    def _abort(self, place: int) -> None:
        self._start, self._pending, self._opened = place, [], None
        self._tx += 1

    def _commit(self, place: int, line: int) -> None:
        """Commit the rows before row `place`; outside `TX` … `TC` there may be none."""
        changed = place > self._start or bool(self._pending)
        if self._opened is None and not changed:
            return
        key = (self._time, self._tx)
        last = self._last
        if changed and last is not None and key[0] <= last[0] and key[1] <= last[1]:
            reason = "transaction (time {}, tx {}) does not come after ({}, {})"
            self._rejected.report(self._opened or line, 1, "", reason.format(*key, *last))
            self._abort(place)
            return
        if changed:
            self._out += [part.batch([Segment(0, len(part), *key)]) for part in self._pending]
            self._last = key
        if place > self._start:
            self._segments.append(Segment(self._start, place, *key))
        self._abort(place)


def read_patch(file: IO[bytes], rejected: RejectedRows) -> Iterator[ChangeBatch]:
    r"""Read a file of RDF Patch.

    >>> import io
    >>> file = io.BytesIO(b"H time 5 .\nTX .\nD <ex:a> <ex:p> <ex:b> .\nTC .\n")
    >>> [batch.time.tolist() for batch in read_patch(file, RejectedRows("log.rdfp"))]
    [[5]]
    """
    reader = PatchReader(
        rejected.source,
        on_error=rejected.on_error,
        rejected=rejected.rows,
        limits=rejected.limits,
    )
    try:
        while piece := file.read(BLOCK_BYTES):
            yield from reader.feed(piece)
        yield from reader.finish()
    except DataError as error:
        error.transactions_are_whole = True  # only committed transactions have been returned
        raise


def _inner(value: PatchValue) -> str:
    """Return a value without the quotes of a literal or the brackets of an IRI."""
    if value.match["literal"] is not None:
        return value.text[1 : value.text.rindex('"')]
    return value.text[1:-1] if value.match["iri"] is not None else value.text


def _prefix(value: PatchValue) -> str:
    name = _inner(value).removesuffix(":")
    if value.match["iri"] is not None or ":" in name:
        raise RowError(value.column, f"{value.text!r} is not a prefix")
    return name


def _integer(value: PatchValue) -> int:
    text = _inner(value)
    try:
        number = int(text)
    except ValueError:
        raise RowError(value.column, f"{text!r} is not a whole number") from None
    if number not in _INT64:
        raise RowError(value.column, f"{text} does not fit into 64 bits")
    return number
