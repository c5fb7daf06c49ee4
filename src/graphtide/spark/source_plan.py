"""Plan: which pieces of which files a micro-batch reads."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Final, cast

import pyarrow as pa

from graphtide.errors import DataError
from graphtide.rdf.formats.registry import find_format
from graphtide.spark.source_lines import scan_lines
from graphtide.spark.source_patch import scan_patch
from graphtide.spark.source_place import Closing, Offset, Place, Taken
from graphtide.spark.source_table import scan_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIECE_LINES: Final = 50_000
QUIET_SECONDS: Final = 1.0
STALE_SECONDS: Final = 10.0
NO_LIMIT: Final = 1 << 62
SET_ASIDE: Final = -1
"""The position in a file that is not read at all."""

GIVE_LATER_NAME: Final = "to have it read, give it a name behind all others"

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

    rows: int
    files: int


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
        """Seconds since a file was written to; none if it is gone."""
        try:
            return time.time() - (self.path / name).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def closing(self, name: str, *, last: bool, ended: bool) -> Closing:
        """What the end of a file means."""
        if not last:
            return Closing.END
        if ended:
            return Closing.ONCE
        return Closing.PAUSE if self.age(name) > QUIET_SECONDS else Closing.OPEN

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
    reason = f"too late: files up to {start.place.file} were read already; {GIVE_LATER_NAME}"
    taken = [Taken(name, 0, reason=reason) for name in late]
    pieces = [_aside(directory, part, start.place) for part in taken]
    place, lines, files = start.place, 0, start.files + len(late)
    queue = [name for name in names if name >= place.file]
    for name in queue:
        if lines >= budget.rows or len(taken) >= budget.files:
            break
        begin = place if name == place.file else place.begin(name)
        found = _take(directory, begin, budget.rows - lines, last=name == queue[-1], ended=ended)
        if found is None:
            break
        files += name != start.place.file
        part, parts, place = found
        lines += place.line - begin.line
        pieces += parts
        taken += [part] if parts else []
    return (pieces, Offset(place, tuple(taken), files)) if pieces else ([], start)


def replan(directory: Directory, start: Offset, end: Offset) -> list[Piece]:
    """The pieces between two offsets of a micro-batch, as they were planned before."""
    pieces: list[Piece] = []
    place = start.place
    for part in end.taken:
        begin = place if part.file == place.file else place.begin(part.file)
        if part.reason is None:
            closing = Closing.END if part.finished else Closing.ONCE
            parts, place = _cut(directory.path / part.file, begin, part.stop, closing)
            pieces += parts
        else:
            pieces.append(_aside(directory, part, place))
            place = place if part.file < place.file else replace(begin, position=SET_ASIDE)
    return pieces


def _take(
    directory: Directory, begin: Place, rows: int, *, last: bool, ended: bool
) -> tuple[Taken, list[Piece], Place] | None:
    """As much of a file as is complete and wanted; None: wait for it."""
    name, path = begin.file, directory.path / begin.file
    if begin.position == SET_ASIDE:
        return Taken(name, 0), [], begin
    stop = (directory.frozen or {}).get(name) if last and not _whole(path) else None
    try:
        closing = directory.closing(name, last=last, ended=ended)
        pieces, place = _cut(path, begin, stop, closing, rows)
    except UNREADABLE as error:
        if last and not ended and directory.age(name) < STALE_SECONDS:
            return None
        reason = error.message if isinstance(error, DataError) else f"cannot be read: {error}"
        part = Taken(name, 0, reason=f"{reason}; mend it, and {GIVE_LATER_NAME}")
        return part, [_aside(directory, part, begin)], replace(begin, position=SET_ASIDE)
    end = pieces[-1] if pieces else Piece(str(path), begin, begin.position)
    return Taken(name, end.stop, end.finished), pieces, place


def _cut(
    path: Path, begin: Place, stop: int | None, closing: Closing, rows: int = NO_LIMIT
) -> tuple[list[Piece], Place]:
    """Pieces of a file from a place on, behind so many rows at the latest; and their end."""
    closing = Closing.END if _whole(path) else closing
    most = NO_LIMIT if path.suffix == ".gz" else min(PIECE_LINES, rows)
    finished = closing == Closing.END
    pieces: list[Piece] = []
    start = last = begin
    # Cuts need not be exact to the line, and many small transactions are scanned sooner.
    for place in _scan(path, begin, stop, closing, step=max(1, most // 50)):
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
    return pieces, last


def _scan(
    path: Path, begin: Place, stop: int | None, closing: Closing, step: int
) -> Iterator[Place]:
    family = find_format(path).family
    if family == "parquet":
        yield from scan_table(path, begin, stop)
        return
    if family not in {"patch", "lines"}:
        raise DataError("a file of this format cannot be part of a log that grows")
    if _whole(path) and begin.position > 0:
        return
    with open_log(path, begin.position) as file:
        if family == "patch":
            yield from scan_patch(file, begin, stop, closing, step)
        else:
            yield from scan_lines(file, begin, stop, closing)


def open_log(path: Path, position: int) -> IO[bytes]:
    """Open a text log at a position, unpacking it if it is packed."""
    packed = path.suffix == ".gz"
    if not packed and path.stat().st_size < position:
        raise DataError("became shorter after it was read")
    file = cast("IO[bytes]", gzip.open(path) if packed else path.open("rb"))  # noqa: SIM115
    if not position:
        head = file.read(512)
        if b"\0" in head:
            file.close()
            raise DataError("is a binary file, not RDF text")
    file.seek(position)
    return file


def _whole(path: Path) -> bool:
    """Whether a file is read as a whole, because it is packed."""
    return path.suffix in {".gz", ".parquet"}


def _aside(directory: Directory, part: Taken, place: Place) -> Piece:
    return Piece(str(directory.path / part.file), place, 0, reason=part.reason)
