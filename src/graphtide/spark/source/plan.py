"""Plan: which slices of which files a micro-batch reads."""

from __future__ import annotations

import os
import time
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa

from graphtide.errors import DataError
from graphtide.limits import Limits
from graphtide.rdf.formats.registry import PACKED, find_format, unpacked
from graphtide.spark.files import Entry, Location
from graphtide.spark.source.offsets import Closing, FileRange, LogPosition, Offset
from graphtide.spark.source.scan import scan_lines, scan_patch, scan_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SLICE_LINES: Final = 50_000
QUIET_SECONDS: Final = 1.0
"""After this time without a write, the writer of a file pauses."""

STALE_SECONDS: Final = 10.0
"""A last file that cannot be read is rejected after this time without a write."""

NO_LIMIT: Final = 1 << 62
LOG_FAMILIES: Final = frozenset({"patch", "lines", "parquet"})
"""Families of formats that a change log can have."""

REJECTED: Final = -1
"""The offset in a file that is not read at all."""

GIVE_LATER_NAME: Final = "to have it read, give it a name behind all others"

UNREADABLE = (DataError, OSError, EOFError, zlib.error, pa.ArrowException)
_IGNORED_STARTS, _IGNORED_ENDS = (".", "_"), ("~", ".tmp", ".crc", ".part")


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A part of a file between two positions; with a `reason`, a rejected file."""

    path: Location
    start: LogPosition
    stop: int
    shift: int = 0
    finished: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a micro-batch may take; it takes at least one transaction or one file."""

    rows: int
    files: int


def check_log(path: Location) -> None:
    """Reject what is not there, and a single file that is no change log."""
    path.check()
    if path.is_dir():
        return
    if not path.exists():
        hint = "make it, and write change logs into it"
        raise DataError("there is no such directory", source=str(path), hint=hint)
    if find_format(str(path)).family not in LOG_FAMILIES:
        raise DataError(
            "is no change log that Spark can read",
            source=str(path),
            hint="use RDF Patch, N-Quads, N-Triples or Parquet, or run in process",
        )


@dataclass(slots=True)
class Directory:
    """A directory of change logs, and what is known of its files.

    With `only`, the log is one file of the directory. `base` is the absolute path of a file that is
    read before all others. `limits` bound what its files unpack to.
    """

    path: Location
    frozen: dict[str, int] | None = None
    seen: set[str] = field(default_factory=set)
    only: str | None = None
    base: Location | None = None
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(
        cls, path: Path | Location, base: Location | None = None, limits: Limits | None = None
    ) -> Directory:
        """The log of a directory, or of a single file."""
        where, limits = Location.of(path), limits or Limits()
        if where.is_dir():
            return cls(where, base=base, limits=limits)
        return cls(where.parent, only=where.name, base=base, limits=limits)

    def file(self, name: str) -> Location:
        """A file of the log."""
        return self.base if self.base is not None and name == str(self.base) else self.path / name

    def names(self) -> list[str]:
        """The files in the order of the log; hidden and temporary ones are not part of it."""
        if self.frozen is not None:
            return list(self.frozen)
        first = [] if self.base is None else [str(self.base)]
        if self.only is not None:
            return [*first, self.only]
        return first + [entry.name for entry in log_files(self.path)]

    def freeze(self) -> None:
        """From now on, what is there now is all there is."""
        names = self.names()
        sizes = {entry.name: entry.size for entry in self.path.entries()}
        self.frozen = {name: sizes.get(name, NO_LIMIT) for name in names}

    def age(self, name: str) -> float:
        """Seconds since a file was written to; none if it is gone."""
        found = self.file(name).info()
        return 0.0 if found is None else time.time() - found.modified

    def closing(self, name: str, *, last: bool, ended: bool) -> Closing:
        """What the end of a file means."""
        if not last:
            return Closing.END
        if ended:
            return Closing.ONCE
        return Closing.PAUSE if self.age(name) > QUIET_SECONDS else Closing.OPEN

    def late_files(self, names: list[str], start: Offset) -> list[str]:
        """Files that have turned up before the position that the log has been read to."""
        before = [name for name in names if name < start.position.file]
        if not self.seen:
            extra = max(len(before) + bool(start.position.file) - start.files, 0)
            written = {entry.name: entry.modified for entry in self.path.entries()}
            before.sort(key=lambda name: written.get(name, 0.0))
            self.seen.update(before[: len(before) - extra])
        late = sorted(set(before) - self.seen)
        self.seen.update(names)
        return late


def log_files(directory: Location) -> list[Entry]:
    """The files of a directory that are part of the log: no hidden and no temporary ones."""
    return [
        entry
        for entry in directory.entries()
        if entry.is_file
        and not entry.name.startswith(_IGNORED_STARTS)
        and not entry.name.endswith(_IGNORED_ENDS)
    ]


def plan(
    directory: Directory, start: Offset, budget: Budget, *, ended: bool
) -> tuple[list[LogSlice], Offset]:
    """The slices from an offset on, and the offset behind them; the same one if there are none."""
    names = directory.names()
    late = directory.late_files(names, start)
    reason = f"too late: files up to {start.position.file} were read already; {GIVE_LATER_NAME}"
    taken = [FileRange(name, 0, reason=reason) for name in late]
    slices = [_rejected(directory, part, start.position) for part in taken]
    position, lines, files = start.position, 0, start.files + len(late)
    queue = [name for name in names if name >= position.file]
    for name in queue:
        if lines >= budget.rows or len(taken) >= budget.files:
            break
        begin = position if name == position.file else position.begin(name)
        found = _take(directory, begin, budget.rows - lines, last=name == queue[-1], ended=ended)
        if found is None:
            break
        files += name != start.position.file
        part, parts, position = found
        lines += position.line - begin.line
        slices += parts
        taken += [part] if parts else []
    return (slices, Offset(position, tuple(taken), files)) if slices else ([], start)


def latest(directory: Directory, start: Offset) -> Offset:
    """The offset behind all that is written so far."""
    names = directory.names()
    if not names:
        return start
    last = Offset(start.position.begin(names[-1]), files=len(names))
    _, end = plan(directory, last, Budget(NO_LIMIT, NO_LIMIT), ended=False)
    return Offset(end.position, files=len(names))


def replan(directory: Directory, start: Offset, end: Offset) -> list[LogSlice]:
    """The slices between two offsets of a micro-batch, as they were planned before."""
    slices: list[LogSlice] = []
    position = start.position
    for part in end.taken:
        begin = position if part.file == position.file else position.begin(part.file)
        if part.reason is None:
            closing = Closing.END if part.finished else Closing.ONCE
            parts, position = _cut(directory, begin, part.stop, closing)
            slices += parts
        else:
            slices.append(_rejected(directory, part, position))
            position = position if part.file < position.file else replace(begin, offset=REJECTED)
    return slices


def _take(
    directory: Directory, begin: LogPosition, rows: int, *, last: bool, ended: bool
) -> tuple[FileRange, list[LogSlice], LogPosition] | None:
    """As much of a file as is complete and wanted; None: wait for it."""
    name, path = begin.file, directory.file(begin.file)
    if begin.offset == REJECTED:
        return FileRange(name, 0), [], begin
    stop = (directory.frozen or {}).get(name) if last and not _whole(path) else None
    try:
        closing = directory.closing(name, last=last, ended=ended)
        slices, position = _cut(directory, begin, stop, closing, rows)
    except UNREADABLE as error:
        if last and not ended and directory.age(name) < STALE_SECONDS:
            return None
        reason = error.message if isinstance(error, DataError) else f"cannot be read: {error}"
        part = FileRange(name, 0, reason=f"{reason}; fix it, and {GIVE_LATER_NAME}")
        return part, [_rejected(directory, part, begin)], replace(begin, offset=REJECTED)
    end = slices[-1] if slices else LogSlice(path, begin, begin.offset)
    return FileRange(name, end.stop, end.finished), slices, position


def _cut(
    directory: Directory,
    begin: LogPosition,
    stop: int | None,
    closing: Closing,
    rows: int = NO_LIMIT,
) -> tuple[list[LogSlice], LogPosition]:
    """Pieces of a file from a position on, behind so many rows at the latest; and their end."""
    path = directory.file(begin.file)
    closing = Closing.END if _whole(path) else closing
    most = NO_LIMIT if path.suffix in PACKED else min(SLICE_LINES, rows)
    finished = closing == Closing.END
    slices: list[LogSlice] = []
    start = last = begin
    # Cuts need not be exact to the line, and many small transactions are scanned sooner.
    step = max(1, most // 50)
    for position in _scan(path, begin, stop, closing, step, directory.limits):
        last = position
        if position.line - start.line >= most:
            slices.append(LogSlice(path, start, position.offset, position.shift or 0))
            start = position
            if position.line - begin.line >= rows:
                finished = False
                break
    if last.offset > start.offset:
        slices.append(LogSlice(path, start, last.offset, last.shift or 0))
    if slices and finished:
        slices[-1] = replace(slices[-1], finished=True)
    return slices, last


def _scan(
    path: Location,
    begin: LogPosition,
    stop: int | None,
    closing: Closing,
    step: int,
    limits: Limits,
) -> Iterator[LogPosition]:
    family = find_format(path.name).family
    if family == "parquet":
        yield from scan_table(path, begin, stop)
        return
    if family not in LOG_FAMILIES:
        raise DataError("a file of this format cannot be part of a log that grows")
    if _whole(path) and begin.offset > 0:
        return
    with open_log(path, begin.offset, limits) as file:
        if family == "patch":
            yield from scan_patch(file, begin, stop, closing, step)
        else:
            yield from scan_lines(file, begin, stop, closing)


@contextmanager
def open_log(path: Location, offset: int, limits: Limits) -> Iterator[IO[bytes]]:
    """Open a text log at an offset; one that is packed is unpacked, and read from its start."""
    with path.open() as stored:
        if path.suffix in PACKED:
            with unpacked(stored, str(path), limits) as file:
                _check_text(file.peek(512)[:512])
                yield file
            return
        if stored.seek(0, os.SEEK_END) < offset:
            raise DataError("became shorter after it was read")
        stored.seek(0)
        if not offset:
            _check_text(stored.read(512))
        stored.seek(offset)
        yield stored


def _check_text(begin: bytes) -> None:
    if b"\0" in begin:
        raise DataError("is a binary file, not RDF text")


def _whole(path: Location) -> bool:
    """Whether a file is read as a whole, because it is packed."""
    return path.suffix in PACKED or path.suffix == ".parquet"


def _rejected(directory: Directory, part: FileRange, position: LogPosition) -> LogSlice:
    return LogSlice(directory.file(part.file), position, 0, reason=part.reason)
