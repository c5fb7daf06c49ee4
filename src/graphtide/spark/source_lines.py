"""N-Triples and N-Quads from any line on: each line is a transaction, numbered by the line."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import IO, TYPE_CHECKING

import numpy as np

from graphtide.rdf.formats.lines import BLOCK_BYTES, unix_lines
from graphtide.rdf.formats.read import read_quads
from graphtide.spark.source_patch import count_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.changes import ChangeBatch, RejectedRow
    from graphtide.spark.source_place import Closing, Place

STEP = 1000
"""Lines from one place to the next."""


def scan_lines(
    file: IO[bytes], place: Place, stop: int | None, closing: Closing
) -> Iterator[Place]:
    """Places of a file from one on, up to `stop` or the end of the last whole line."""
    held, left = b"", None if stop is None else stop - place.position
    while piece := file.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
        left = None if left is None else left - len(piece)
        whole, newline, held = (held + piece).rpartition(b"\n")
        data = whole + newline
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        cuts = [*ends[STEP - 1 : -1 : STEP].tolist(), len(data)]
        for start, end in zip([0, *cuts], cuts, strict=False):
            place = _moved(place, data[start:end])
            yield place
    if held and closing.takes(held):
        yield _moved(place, held, extra=1)


def _moved(place: Place, data: bytes, extra: int = 0) -> Place:
    if not data:
        return place
    shift = place.shift_of(0)
    line = place.line + count_lines(data) + extra
    return replace(
        place,
        position=place.position + len(data),
        line=line,
        time=place.time or 0,
        tx=shift + line - 2,
        shift=shift,
    )


def read_statements(
    data: bytes, place: Place, name: str, rejected: list[RejectedRow]
) -> Iterator[ChangeBatch]:
    """The statements of whole lines, each as a transaction with the number of its line."""
    found: list[RejectedRow] = []
    data = unix_lines(data)
    batches = list(read_quads(io.BytesIO(data), format=name, on_error="skip", rejected=found))
    lines = _statement_lines(data, {bad.line for bad in found})
    if sum(map(len, batches)) != len(lines):  # several statements in one line
        for number, line in enumerate(data.split(b"\n")):
            part = replace(place, line=place.line + number)
            if line and b"\n" in data[:-1]:
                yield from read_statements(line, part, name, rejected)
            elif line:
                yield from (_stamped(b, part, np.zeros(len(b), np.int64)) for b in batches)
        return
    rejected += [replace(bad, line=bad.line + place.line - 1) for bad in found]
    done = 0
    for batch in batches:
        yield _stamped(batch, place, lines[done : done + len(batch)])
        done += len(batch)


def _stamped(batch: ChangeBatch, place: Place, lines: np.ndarray) -> ChangeBatch:
    time = np.full(len(batch), place.time or 0, np.int64)
    return replace(batch, time=time, tx=lines + (place.line - 1))


def _statement_lines(data: bytes, bad: set[int]) -> np.ndarray:
    """The lines, from 0, that hold a statement."""
    kept = [
        number
        for number, line in enumerate(data.split(b"\n"))
        if number + 1 not in bad and line.strip() and not line.lstrip().startswith(b"#")
    ]
    return np.array(kept, np.int64)
