"""Read a file, a growing file or standard input: changes as soon as their transaction is complete.

- RDF Patch: a transaction is complete with its `TC` row; changes outside of transactions when the
  writer pauses.
- N-Triples and N-Quads know no transactions: each line is one.
"""

from __future__ import annotations

import io
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from graphtide.errors import DataError, GraphtideError
from graphtide.rdf.changes import ChangeBatch, OnError, RejectedRow
from graphtide.rdf.formats.patch import PatchReader
from graphtide.rdf.formats.read import read_quads
from graphtide.rdf.formats.registry import find_format, open_text_source

if TYPE_CHECKING:
    from collections.abc import Iterator


POLL_SECONDS = 0.05

PIECE_BYTES = 1 << 20

STANDARD_INPUT = Path("-")


class Reader(Protocol):
    """Takes text piece by piece, and gives back changes of whole transactions."""

    def feed(self, text: bytes) -> list[ChangeBatch]:
        """Take more text."""
        ...

    def flush(self) -> list[ChangeBatch]:
        """Give back what is complete unless more comes: the writer pauses."""
        ...

    def finish(self) -> list[ChangeBatch]:
        """Give back the rest: the text has ended."""
        ...


class LineReader:
    r"""Reads N-Triples or N-Quads piece by piece; each line is a transaction, at time 0.

    >>> reader = LineReader("log.nt", "nt")
    >>> [len(batch) for batch in reader.feed(b"<ex:a> <ex:p> <ex:b> .\n<ex:a> ")]
    [1]
    >>> reader.feed(b"<ex:p> <ex:c> .\n")[0].tx.tolist()
    [1]
    """

    def __init__(
        self,
        source: str,
        format: str,  # noqa: A002 - as in read_quads
        *,
        on_error: OnError = "raise",
        rejected: list[RejectedRow] | None = None,
    ) -> None:
        self._source = source
        self._format = format
        self._on_error: OnError = on_error
        self._rejected = [] if rejected is None else rejected
        self._held = b""
        self._lines = 0
        self._tx = 0

    def feed(self, text: bytes) -> list[ChangeBatch]:
        """Take more text; return the changes of its complete lines."""
        whole, line_end, self._held = (self._held + text).rpartition(b"\n")
        return self._read(whole + line_end)

    def flush(self) -> list[ChangeBatch]:
        """Nothing waits but an incomplete line."""
        return []

    def finish(self) -> list[ChangeBatch]:
        """Read the last line, even without its end."""
        rest, self._held = self._held, b""
        return self._read(rest)

    def _read(self, text: bytes) -> list[ChangeBatch]:
        found: list[RejectedRow] = []
        try:
            batches = list(
                read_quads(
                    io.BytesIO(text), format=self._format, on_error=self._on_error, rejected=found
                )
            )
        except DataError as error:
            error.source, error.line = self._source, (error.line or 1) + self._lines
            raise
        self._rejected += [
            replace(line, file=self._source, line=line.line + self._lines) for line in found
        ]
        self._lines += text.count(b"\n")
        return [self._numbered(batch) for batch in batches]

    def _numbered(self, batch: ChangeBatch) -> ChangeBatch:
        first, self._tx = self._tx, self._tx + len(batch)
        return replace(batch, tx=np.arange(first, self._tx))


def read_pieces(
    path: Path,
    *,
    wait: bool,
    on_error: OnError = "raise",
    rejected: list[RejectedRow] | None = None,
) -> Iterator[list[ChangeBatch]]:
    """Whole transactions of a file, or of standard input (`-`), piece by piece.

    With `wait` a file has no end: an empty list comes at every pause.
    """
    if path == STANDARD_INPUT:
        yield from _read_input(PatchReader("<stdin>", on_error=on_error, rejected=rejected))
        return
    reader = _reader(path, on_error, rejected)
    if wait and path.suffix == ".gz":
        raise _cannot_follow(path)
    with open_text_source(path) as file:
        while True:
            while piece := file.read(PIECE_BYTES):
                yield reader.feed(piece)
            if not wait:
                yield reader.finish()
                return
            yield reader.flush()
            if path.stat().st_size < file.tell():
                raise DataError("became shorter while it was followed", source=str(path))
            time.sleep(POLL_SECONDS)


def _read_input(reader: PatchReader) -> Iterator[list[ChangeBatch]]:
    if sys.stdin.isatty():
        print("reading RDF Patch from the keyboard; end with Ctrl-D", file=sys.stderr)
    while piece := os.read(sys.stdin.fileno(), PIECE_BYTES):
        yield reader.feed(piece)
    yield reader.finish()


def _reader(path: Path, on_error: OnError, rejected: list[RejectedRow] | None) -> Reader:
    found = find_format(path)
    if found.family == "patch":
        return PatchReader(str(path), on_error=on_error, rejected=rejected)
    if found.family == "lines":
        return LineReader(str(path), found.name, on_error=on_error, rejected=rejected)
    raise _cannot_follow(path)


def _cannot_follow(path: Path) -> GraphtideError:
    return GraphtideError(
        f"{path}: a file of this format cannot be followed while it grows",
        hint="--follow reads RDF Patch (.rdfp), N-Triples (.nt) and N-Quads (.nq), not packed",
    )
