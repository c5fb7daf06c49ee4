"""Scan: positions between transactions in a file of changes, and readers that begin at one.

RDF Patch, N-Triples and N-Quads (each line is a transaction, numbered by the line), and Parquet.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphtide.errors import DataError
from graphtide.rdf.changes import ChangeBatch, RejectedRow, RejectedRows
from graphtide.rdf.formats import patch
from graphtide.rdf.formats.columnar import read_table
from graphtide.rdf.formats.lines import BLOCK_BYTES, unix_lines
from graphtide.rdf.formats.read import read_quads
from graphtide.spark.source.offsets import Closing, LogPosition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from graphtide.limits import Limits
    from graphtide.spark.files import Location


_IRI = rb"<[A-Za-z][A-Za-z0-9]*:[A-Za-z0-9/._-]*(?:#[A-Za-z0-9/._-]*)?>"
PLAIN = re.compile(rb"[AD] %s %s (?:%s|\"[A-Za-z0-9 ]*\") \.(?=\n)" % (_IRI, _IRI, _IRI))
"""A change that is valid whatever prefixes there are."""

_CONTROL = re.compile(rb"^[ \t]*(?:T[XCA]|H|P[AD])(?=[ \t.]|$).*$", re.MULTILINE)


_Fields = tuple[
    int, int, int | None, int, int | None, int, int, tuple[int, int] | None, dict[str, str]
]
"""The fields of a position, without its file."""


class ResumedPatch(patch.PatchReader):
    """Reads RDF Patch from a position on; `late` has the lines of late transactions."""

    def __init__(
        self,
        position: LogPosition,
        source: str,
        rejected: list[RejectedRow] | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(source, on_error="skip", rejected=rejected, limits=limits)
        self.prefixes = dict(position.prefixes)
        self.late: dict[tuple[int, int], int] = {}
        self._line = position.line
        self._time, self._tx = position.own_time, position.own_tx
        self._last = position.own_last
        self._latest = position.time

    def _commit(self, place: int, line: int) -> None:
        before, opened = self._last, self._opened
        super()._commit(place, line)
        if self._last is None or self._last is before:
            return
        if self._latest is not None and self._last[0] < self._latest:
            self.late[self._last] = opened or line
        else:
            self._latest = self._last[0]


class _Counted(patch.PatchRows):
    """Stands for change rows of which only the number matters."""

    def __init__(self) -> None:
        self.count = 0

    def rows_before(self, line: int) -> int:  # noqa: ARG002 - all rows so far stand before it
        return self.count


class PatchScan(ResumedPatch):
    """Finds positions between transactions without reading the changes in between.

    It runs the reader's own rules on the other rows, and of each run of changes looks at the first
    valid one only: the rules only ask whether there is any.
    """

    def __init__(self, position: LogPosition, step: int = 1) -> None:
        super().__init__(position, "")
        self._at = position
        self._number, self._shift = position.tx, position.shift
        self._step, self._shown = step, position.line
        self._passed: _Fields | None = None
        self._rows = _Counted()

    def positions(self, data: bytes) -> Iterator[LogPosition]:
        """Positions between the transactions of whole lines: `step` lines apart, and the last."""
        start, line, base = 0, self._at.line, self._at.offset
        text = data.replace(b"\r", b"\n")
        for row in _CONTROL.finditer(text):
            self._run(text, start, row.start())
            line += count_lines(data[start : row.start()])
            if row.group().split(maxsplit=1)[0] == b"TX" and self._opened is None and self._waits:
                self._commit(self._rows.count, line)
                yield from self._pass(base + row.start(), line)
            self._control(row.group().decode(errors="replace"), line)
            end = min(row.end() + 1, len(data))
            end += data[end - 1 : end + 1] == b"\r\n"
            line += count_lines(data[row.start() : end])
            start = end
            if self._opened is None and not self._waits:
                yield from self._pass(base + end, line)
        self._run(text, start, len(text))
        line += count_lines(data[start:])
        self._at = replace(self._at, offset=base + len(data), line=line)
        if self._opened is None and not self._waits:
            self._passed = self._fields(self._at.offset, line)
        if self._passed is not None:
            yield self._position(self._passed)
            self._shown, self._passed = self._passed[1], None

    def pause(self) -> LogPosition | None:
        """End changes outside of transactions; the position, unless a transaction is open."""
        if self._opened is not None:
            return None
        self._commit(self._rows.count, self._at.line)
        return self._position(self._fields(self._at.offset, self._at.line))

    def abandon(self) -> LogPosition:
        """The end of a finished file, whatever transaction is open."""
        self._opened, self._start = None, self._rows.count
        return self._position(self._fields(self._at.offset, self._at.line))

    def _pass(self, offset: int, line: int) -> Iterator[LogPosition]:
        """Note a position; yield it if it is far enough from the last one that was yielded."""
        self._passed = self._fields(offset, line)
        if line - self._shown >= self._step:
            yield self._position(self._passed)
            self._shown, self._passed = line, None

    @property
    def _waits(self) -> bool:
        return self._rows.count > self._start

    def _run(self, text: bytes, start: int, stop: int) -> None:
        """Note a valid change in these lines, if the transaction has none yet."""
        if start < stop and not self._waits and PLAIN.match(text, start, stop):
            self._rows.count += 1
        while start < stop and not self._waits:
            end = text.find(b"\n", start, stop)
            end = stop if end < 0 else end
            line = text[start:end].decode(errors="replace")
            start = end + 1
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                row = patch.split_row(line)
                if row.code in {"A", "D"}:
                    patch.change_terms(row, self.prefixes)
                    self._rows.count += 1
            except patch.RowError:
                continue

    def _control(self, text: str, line: int) -> None:
        try:
            row = _without_values(text) if text.startswith("T") else patch.split_row(text)
            if row.code in {"PA", "PD"}:
                self.prefixes = dict(self.prefixes)  # positions that were passed keep theirs
            self._row(row, line, self._rows, 0)
        except patch.RowError:
            return

    def _commit(self, place: int, line: int) -> None:
        before = self._last
        super()._commit(place, line)
        self.late.clear()
        self._segments.clear()
        if self._last is not None and self._last is not before:
            if self._shift is None:
                self._shift = self._at.shift_of(self._last[1])
            self._number = max(self._number, self._last[1] + self._shift)

    def _fields(self, offset: int, line: int) -> _Fields:
        """All that a position here needs. There are many of these, and few become positions."""
        numbers = self._latest, self._number, self._shift, self._time, self._tx
        return offset, line, *numbers, self._last, self.prefixes

    def _position(self, fields: _Fields) -> LogPosition:
        return LogPosition(self._at.file, *fields)


@lru_cache(maxsize=64)
def _without_values(text: str) -> patch.PatchRow:
    """A row that begins or ends a transaction: there are many of them, and few that differ."""
    return patch.split_row(text)


def scan_patch(
    file: IO[bytes], position: LogPosition, stop: int | None, closing: Closing, step: int = 1
) -> Iterator[LogPosition]:
    """Positions of a file from one on, `step` lines apart or more, up to `stop`.

    The last one is always among them.
    """
    scan, held, left = (
        PatchScan(position, step),
        b"",
        None if stop is None else stop - position.offset,
    )
    offset = position.offset
    while block := file.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
        left = None if left is None else left - len(block)
        offset += len(block)
        whole, newline, held = (held + block).rpartition(b"\n")
        yield from scan.positions(whole + newline)
    if held and closing.takes(held):
        for found in scan.positions(held + b"\n"):
            yield replace(found, offset=min(found.offset, offset))
    paused = scan.pause() if closing != Closing.OPEN else None
    if paused is not None:
        position = replace(paused, offset=min(paused.offset, offset))
        yield position
    elif closing == Closing.END:
        yield replace(scan.abandon(), offset=offset)


def count_lines(data: bytes) -> int:
    r"""How many line ends there are.

    >>> count_lines(b"a\r\nb\rc\n")
    3
    """
    return unix_lines(data).count(b"\n")


LINE_STEP = 1000
"""Lines from one position to the next."""


def scan_lines(
    file: IO[bytes], position: LogPosition, stop: int | None, closing: Closing
) -> Iterator[LogPosition]:
    """Positions of a file from one on, up to `stop` or the end of the last whole line."""
    held, left = b"", None if stop is None else stop - position.offset
    while block := file.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
        left = None if left is None else left - len(block)
        whole, newline, held = (held + block).rpartition(b"\n")
        data = whole + newline
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        cuts = [*ends[LINE_STEP - 1 : -1 : LINE_STEP].tolist(), len(data)]
        for start, end in zip([0, *cuts], cuts, strict=False):
            position = _moved_lines(position, data[start:end])
            yield position
    if held and closing.takes(held):
        yield _moved_lines(position, held, extra=1)


def _moved_lines(position: LogPosition, data: bytes, extra: int = 0) -> LogPosition:
    if not data:
        return position
    shift = position.shift_of(0)
    line = position.line + count_lines(data) + extra
    return replace(
        position,
        offset=position.offset + len(data),
        line=line,
        time=position.time or 0,
        tx=shift + line - 2,
        shift=shift,
    )


def read_statements(
    data: bytes,
    position: LogPosition,
    name: str,
    rejected: list[RejectedRow],
    limits: Limits | None = None,
) -> Iterator[ChangeBatch]:
    """The statements of whole lines, each as a transaction with the number of its line."""
    found: list[RejectedRow] = []
    data = unix_lines(data)
    file = io.BytesIO(data)
    batches = list(read_quads(file, format=name, on_error="skip", rejected=found, limits=limits))
    lines = _statement_lines(data, {bad.line for bad in found})
    if sum(map(len, batches)) != len(lines):  # several statements in one line
        for number, line in enumerate(data.split(b"\n")):
            part = replace(position, line=position.line + number)
            if line and b"\n" in data[:-1]:
                yield from read_statements(line, part, name, rejected, limits)
            elif line:
                yield from (_stamped(b, part, np.zeros(len(b), np.int64)) for b in batches)
        return
    rejected += [replace(bad, line=bad.line + position.line - 1) for bad in found]
    done = 0
    for batch in batches:
        yield _stamped(batch, position, lines[done : done + len(batch)])
        done += len(batch)


def _stamped(batch: ChangeBatch, position: LogPosition, lines: np.ndarray) -> ChangeBatch:
    time = np.full(len(batch), position.time or 0, np.int64)
    return replace(batch, time=time, tx=lines + (position.line - 1))


def _statement_lines(data: bytes, bad: set[int]) -> np.ndarray:
    """The lines, from 0, that hold a statement."""
    found = [
        number
        for number, line in enumerate(data.split(b"\n"))
        if number + 1 not in bad and line.strip() and not line.lstrip().startswith(b"#")
    ]
    return np.array(found, np.int64)


ROW_STEP = 10_000
"""Rows from one position to the next, at least."""


def scan_table(path: Location, position: LogPosition, stop: int | None) -> Iterator[LogPosition]:
    """Positions of a file from one on; `offset` and `line` count rows."""
    with path.open() as file:
        columns: Any = _open(path, file).read(columns=["time", "tx"])
    if columns.column_names != ["time", "tx"]:
        raise DataError("a change log needs the columns time, tx, diff, s, p and o")
    time, tx = (_filled(columns[name])[position.offset : stop] for name in ("time", "tx"))
    new = np.flatnonzero((np.diff(time) != 0) | (np.diff(tx) != 0)) + 1
    first, at = 0, position
    for end in [*new.tolist(), len(time)]:
        if end - first < ROW_STEP and end < len(time):
            continue
        if end > first:
            shift = at.shift_of(int(tx[first]))
            at = replace(
                at,
                offset=position.offset + end,
                line=position.line + end,
                shift=shift,
                tx=max(at.tx, int(tx[first:end].max()) + shift),
                time=max([int(time[first:end].max()), *([] if at.time is None else [at.time])]),
            )
            yield at
        first = end


def read_rows(
    path: Location, start: int, stop: int, rejected: list[RejectedRow]
) -> Iterator[ChangeBatch]:
    """The changes of rows; bad ones are collected with their row number."""
    with path.open() as file:
        table = _open(path, file).read().slice(start, stop - start)
    yield from read_table(table, RejectedRows(str(path), "skip", rejected), first_row=start)


def _open(path: Location, file: IO[bytes]) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        reason = f"is not a Parquet file that can be read: {error}"
        raise DataError(reason, source=str(path)) from None


def _filled(column: pa.ChunkedArray[Any]) -> NDArray[np.int64]:
    """Numbers, with the one before where there is none: such a row is rejected when it is read."""
    try:
        whole = column.combine_chunks().cast(pa.int64())
    except pa.ArrowException as error:
        raise DataError(f"time and tx are whole numbers: {error}") from None
    filled: Any = pa.compute.fill_null_forward(whole)
    found: NDArray[np.int64] = filled.fill_null(0).to_numpy()
    return found
