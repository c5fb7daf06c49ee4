"""Plan: which pieces of which files a micro-batch reads."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Final, cast

import pyarrow as pa

from graphtide.errors import DataError
from graphtide.rdf.formats import find_format
from graphtide.spark.source_lines import scan_lines
from graphtide.spark.source_patch import scan_patch
from graphtide.spark.source_place import Closing, Offset, Place, Taken
from graphtide.spark.source_table import scan_table

PIECE_LINES: Final = 50_000
QUIET_SECONDS: Final = 1.0
STALE_SECONDS: Final = 10.0
SET_ASIDE: Final = -1
"""The position in a file that is not read at all."""

UNREADABLE = (DataError, OSError, EOFError, zlib.error, pa.ArrowException)
_IGNORED_STARTS, _IGNORED_ENDS = (".", "_"), ("~", ".tmp", ".crc", ".part")


@dataclass(frozen=True, slots=True)
class Piece:
    """What one Spark task reads: a part of a file between two places, or a file set aside."""

    path: str
    start: Place
    stop: int
    shift: int = 0
    finished: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a micro-batch may take; it takes at least one transaction or one file."""

    rows: int = 1 << 62
    files: int = 1 << 62


@dataclass(slots=True)
class Directory:
    """A directory of change logs, and what is known of its files."""

    path: Path
    frozen: dict[str, int] | None = None
    seen: set[str] = field(default_factory=set)

    def names(self) -> list[str]:
        """The files in the order of the log; hidden and temporary ones are not part of it."""
        if self.frozen is not None:
            return sorted(self.frozen)
        return sorted(
            entry.name
            for entry in os.scandir(self.path)
            if entry.is_file()
            and not entry.name.startswith(_IGNORED_STARTS)
            and not entry.name.endswith(_IGNORED_ENDS)
        )

    def freeze(self) -> None:
        """From now on, what is there now is all there is."""
        self.frozen = {name: (self.path / name).stat().st_size for name in self.names()}

    def age(self, name: str) -> float:
        """Seconds since a file was written to."""
        return time.time() - (self.path / name).stat().st_mtime

    def too_late(self, names: list[str], start: Offset) -> list[str]:
        """Files that have turned up before the place that the log has been read to."""
        before = [name for name in names if name < start.place.file]
        if not self.seen:
            extra = max(len(before) + bool(start.place.file) - start.files, 0)
            before.sort(key=lambda name: -self.age(name))
            self.seen.update(before[: len(before) - extra])
        late = sorted(set(before) - self.seen)
        self.seen.update(names)
        return late


def plan(
    directory: Directory, start: Offset, budget: Budget, *, ended: bool
) -> tuple[list[Piece], Offset]:
    """The pieces from an offset on, and the offset behind them; the same one if there are none."""
    names = directory.names()
    late = directory.too_late(names, start)
    reason = f"too late: files up to {start.place.file} were read already"
    taken = [Taken(name, 0, reason=reason) for name in late]
    pieces = [_aside(directory, part, start.place) for part in taken]
    place, lines = start.place, 0
    queue = [name for name in names if name >= place.file]
    new = len(late)
    for name in queue:
        if lines >= budget.rows or len(taken) >= budget.files:
            break
        begin = place if name == place.file else place.begin(name)
        new += name != start.place.file
        found = _take(directory, begin, budget.rows - lines, last=name == queue[-1], ended=ended)
        if found is None:
            new -= name != start.place.file
            break
        part, parts, place = found
        lines += max(place.line - begin.line, 0)
        pieces += parts
        taken += [part] if parts else []
    if not pieces:
        return [], start
    return pieces, Offset(place, tuple(taken), start.files + new)


def replan(directory: Directory, start: Offset, end: Offset) -> list[Piece]:
    """The pieces between two offsets of a micro-batch, as they were planned before."""
    pieces: list[Piece] = []
    place = start.place
    for part in end.taken:
        if part.reason is not None:
            pieces.append(_aside(directory, part, place))
            place = (
                replace(place.begin(part.file), position=SET_ASIDE)
                if (part.file > place.file)
                else place
            )
            continue
        begin = place if part.file == place.file else place.begin(part.file)
        closing = Closing.END if part.finished else Closing.ONCE
        path = directory.path / part.file
        pieces += _pieces(path, begin, part.stop, closing, Budget().rows)
        place = pieces_end(path, begin, part.stop, closing)
    return pieces


def pieces_end(path: Path, begin: Place, stop: int, closing: Closing) -> Place:
    """The last place of a part of a file."""
    place = begin
    for place in _scan(path, begin, stop, closing):  # noqa: B007 - the last one is wanted
        pass
    return place


def _take(
    directory: Directory, begin: Place, rows: int, *, last: bool, ended: bool
) -> tuple[Taken, list[Piece], Place] | None:
    """As much of a file as is complete and wanted; None: wait for it."""
    name, path = begin.file, directory.path / begin.file
    if begin.position == SET_ASIDE:
        return Taken(name, 0), [], begin
    closing = Closing.END
    if last:
        closing = Closing.ONCE if ended else Closing.OPEN
        if closing == Closing.OPEN and directory.age(name) > QUIET_SECONDS:
            closing = Closing.PAUSE
    try:
        stop = (directory.frozen or {}).get(name) if last and not _whole(path) else None
        pieces = _pieces(path, begin, stop, closing, rows)
    except UNREADABLE as error:
        if last and not ended and directory.age(name) < STALE_SECONDS:
            return None
        reason = error.message if isinstance(error, DataError) else f"cannot be read: {error}"
        part = Taken(name, 0, reason=reason)
        return part, [_aside(directory, part, begin)], replace(begin, position=SET_ASIDE)
    return _taken(path, begin, pieces)


def _taken(path: Path, begin: Place, pieces: list[Piece]) -> tuple[Taken, list[Piece], Place]:
    if not pieces:
        return Taken(begin.file, begin.position), [], begin
    end = pieces[-1]
    closing = Closing.END if end.finished else Closing.ONCE
    place = pieces_end(path, end.start, end.stop, closing)
    return Taken(begin.file, end.stop, end.finished), pieces, place


def _pieces(path: Path, begin: Place, stop: int | None, closing: Closing, rows: int) -> list[Piece]:
    """Cut a file from a place on; ends behind so many rows at the latest."""
    pieces: list[Piece] = []
    start = last = begin
    most = Budget().rows if path.suffix == ".gz" else min(PIECE_LINES, rows)
    finished = closing == Closing.END
    for place in _scan(path, begin, stop, closing):
        last = place
        if place.line - start.line >= most:
            pieces.append(Piece(str(path), start, place.position, place.shift or 0))
            start = place
            if place.line - begin.line >= rows:
                finished = False
                break
    if last.position > start.position:
        pieces.append(Piece(str(path), start, last.position, last.shift or 0))
    if pieces and finished:
        pieces[-1] = replace(pieces[-1], finished=True)
    return pieces


def _scan(path: Path, begin: Place, stop: int | None, closing: Closing) -> Iterator[Place]:
    family = find_format(path).family
    if family == "parquet":
        yield from scan_table(path, begin, stop)
        return
    if family not in {"patch", "lines"}:
        raise DataError("a file of this format cannot be part of a log that grows")
    if _whole(path) and begin.position > 0:
        return
    with open_log(path, begin.position) as file:
        scan = scan_patch if family == "patch" else scan_lines
        yield from scan(file, begin, stop, Closing.END if _whole(path) else closing)


def open_log(path: Path, position: int) -> IO[bytes]:
    """Open a text log at a position, unpacking it if it is packed."""
    packed = path.suffix == ".gz"
    if not packed and path.stat().st_size < position:
        raise DataError("became shorter after it was read")
    file = cast("IO[bytes]", gzip.open(path) if packed else path.open("rb"))
    if not position:
        head = file.read(512)
        if b"\0" in head:
            file.close()
            raise DataError("is a binary file, not RDF text")
    file.seek(position)
    return file


def _whole(path: Path) -> bool:
    """Whether a file is read as a whole, because it is packed."""
    return path.suffix == ".gz" or path.suffix == ".parquet"


def _aside(directory: Directory, part: Taken, place: Place) -> Piece:
    return Piece(str(directory.path / part.file), place, 0, reason=part.reason)
