"""RDF Patch from any place of a file on: a scan that finds such places, and a reader for them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING

from graphtide.rdf.formats.lines import BLOCK_BYTES, unix_lines
from graphtide.rdf.formats.patch import PatchReader, PatchRows
from graphtide.rdf.formats.patch_row import PatchRow, RowError, change_terms, split_row
from graphtide.spark.source_place import Closing, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.changes import RejectedRow

_IRI = rb"<[A-Za-z][A-Za-z0-9]*:[A-Za-z0-9/._-]*(?:#[A-Za-z0-9/._-]*)?>"
PLAIN = re.compile(rb"[AD] %s %s (?:%s|\"[A-Za-z0-9 ]*\") \.(?=\n)" % (_IRI, _IRI, _IRI))
"""A change that is right beyond doubt, whatever prefixes there are."""

_CONTROL = re.compile(rb"^[ \t]*(?:T[XCA]|H|P[AD])(?=[ \t.]|$).*$", re.MULTILINE)


_Mark = tuple[
    int, int, int | None, int, int | None, int, int, tuple[int, int] | None, dict[str, str]
]
"""The fields of a place, without its file."""


class ResumedPatch(PatchReader):
    """Reads RDF Patch from a place on; `late` has the lines of transactions that come too late."""

    def __init__(
        self, place: Place, source: str, rejected: list[RejectedRow] | None = None
    ) -> None:
        super().__init__(source, on_error="skip", rejected=rejected)
        self.prefixes = dict(place.prefixes)
        self.late: dict[tuple[int, int], int] = {}
        self._line = place.line
        self._time, self._tx = place.own_time, place.own_tx
        self._last = place.own_last
        self._latest = place.time

    def _commit(self, place: int, line: int) -> None:
        before, opened = self._last, self._opened
        super()._commit(place, line)
        if self._last is None or self._last is before:
            return
        if self._latest is not None and self._last[0] < self._latest:
            self.late[self._last] = opened or line
        else:
            self._latest = self._last[0]


class _Counted(PatchRows):
    """Stands for change rows of which only the number matters."""

    def __init__(self) -> None:
        self.count = 0

    def rows_before(self, line: int) -> int:  # noqa: ARG002 - all rows so far come before it
        return self.count


class PatchScan(ResumedPatch):
    """Finds places between transactions without reading the changes in between.

    It runs the reader's own rules on the other rows, and of each run of changes looks at the first
    valid one only: whether there is any is all that the rules ask.
    """

    def __init__(self, place: Place, step: int = 1) -> None:
        super().__init__(place, "")
        self._at = place
        self._number, self._shift = place.tx, place.shift
        self._step, self._shown = step, place.line
        self._passed: _Mark | None = None
        self._rows = _Counted()

    def places(self, data: bytes) -> Iterator[Place]:
        """Places between the transactions of whole lines: some `step` lines apart, and the last."""
        start, line, base = 0, self._at.line, self._at.position
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
        self._at = replace(self._at, position=base + len(data), line=line)
        if self._opened is None and not self._waits:
            self._passed = self._mark(self._at.position, line)
        if self._passed is not None:
            yield self._place(self._passed)
            self._shown, self._passed = self._passed[1], None

    def pause(self) -> Place | None:
        """End a run of changes outside of transactions; the place, unless a transaction is open."""
        if self._opened is not None:
            return None
        self._commit(self._rows.count, self._at.line)
        return self._place(self._mark(self._at.position, self._at.line))

    def abandon(self) -> Place:
        """The end of a finished file, whatever transaction is open."""
        self._opened, self._start = None, self._rows.count
        return self._place(self._mark(self._at.position, self._at.line))

    def _pass(self, position: int, line: int) -> Iterator[Place]:
        """Take note of a place, and show it if the last one that was shown is far enough away."""
        self._passed = self._mark(position, line)
        if line - self._shown >= self._step:
            yield self._place(self._passed)
            self._shown, self._passed = line, None

    @property
    def _waits(self) -> bool:
        return self._rows.count > self._start

    def _run(self, text: bytes, start: int, stop: int) -> None:
        """Take note of a valid change in these lines, if the transaction has none yet."""
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
                row = split_row(line)
                if row.code in {"A", "D"}:
                    change_terms(row, self.prefixes)
                    self._rows.count += 1
            except RowError:
                continue

    def _control(self, text: str, line: int) -> None:
        try:
            row = _without_values(text) if text.startswith("T") else split_row(text)
            if row.code in {"PA", "PD"}:
                self.prefixes = dict(self.prefixes)  # places that were passed keep theirs
            self._row(row, line, self._rows, 0)
        except RowError:
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

    def _mark(self, position: int, line: int) -> _Mark:
        """All that a place here needs. There are many of these, and few become places."""
        numbers = self._latest, self._number, self._shift, self._time, self._tx
        return position, line, *numbers, self._last, self.prefixes

    def _place(self, mark: _Mark) -> Place:
        return Place(self._at.file, *mark)


@lru_cache(maxsize=64)
def _without_values(text: str) -> PatchRow:
    """A row that begins or ends a transaction: there are many of them, and few that differ."""
    return split_row(text)


def scan_patch(
    file: IO[bytes], place: Place, stop: int | None, closing: Closing, step: int = 1
) -> Iterator[Place]:
    """Places of a file from one on, `step` lines apart or more, as far as one can go up to `stop`.

    The last one is always among them.
    """
    scan, held, left = PatchScan(place, step), b"", None if stop is None else stop - place.position
    position = place.position
    while piece := file.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
        left = None if left is None else left - len(piece)
        position += len(piece)
        whole, newline, held = (held + piece).rpartition(b"\n")
        yield from scan.places(whole + newline)
    if held and closing.takes(held):
        for found in scan.places(held + b"\n"):
            yield replace(found, position=min(found.position, position))
    paused = scan.pause() if closing != Closing.OPEN else None
    if paused is not None:
        place = replace(paused, position=min(paused.position, position))
        yield place
    elif closing == Closing.END:
        yield replace(scan.abandon(), position=position)


def count_lines(data: bytes) -> int:
    r"""How many line ends there are.

    >>> count_lines(b"a\r\nb\rc\n")
    3
    """
    return unix_lines(data).count(b"\n")
