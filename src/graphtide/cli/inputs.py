"""Input files of the commands: queries, data, and changes as soon as a transaction is complete.

A transaction of RDF Patch is complete with its `TC` row; changes outside of transactions when the
writer pauses. N-Triples and N-Quads have no transactions: each line is one.
"""

from __future__ import annotations

import io
import os
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from graphtide.durable.journal import FILE
from graphtide.errors import DataError, GraphtideError, QueryError
from graphtide.graph import LiveGraph
from graphtide.lang.sparql.parse import parse_any_query, parse_standing
from graphtide.lang.sparql.prefixes import file_text
from graphtide.limits import Limits
from graphtide.rdf.changes import ChangeBatch, OnError, RejectedRow
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.lines import LineBuffer
from graphtide.rdf.formats.patch import PatchReader
from graphtide.rdf.formats.read import read_quads
from graphtide.rdf.formats.registry import PACKED, find_format, open_text_source
from graphtide.streams.read import GENERATED_AT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.algebra.queries import Query as ParsedQuery
    from graphtide.algebra.windows import WindowedQuery

QUERY_SUFFIXES: Final = (".rq", ".sparql")
STANDARD_INPUT: Final = Path("-")
POLL_SECONDS: Final = 0.05
READ_BYTES: Final = 1 << 20


# --- queries ---


def read_query(path: Path) -> SelectQuery | WindowedQuery:
    """Read and parse a standing query, with windows or without; errors name the file."""
    try:
        return parse_standing(read_text(path))
    except QueryError as error:
        error.source = str(path)
        raise


def read_any_query(path: Path) -> tuple[ParsedQuery, str]:
    """Read and parse a query of any form, to be evaluated once; and its text."""
    text = read_text(path)
    try:
        return parse_any_query(text), text
    except QueryError as error:
        error.source = str(path)
        raise


def read_text(path: Path) -> str:
    """The text of a file with a query or an update request; errors name the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise QueryError("there is no such file", source=str(path)) from None
    except IsADirectoryError:
        raise QueryError("is a directory, not a query file", source=str(path)) from None
    except UnicodeDecodeError:
        hint = "a query is a text file in UTF-8"
        raise QueryError("is not a text file", source=str(path), hint=hint) from None
    except OSError as error:
        raise QueryError(f"cannot be read: {error.strerror}", source=str(path)) from None
    if not text.strip():
        update = path.suffix == ".ru"
        example = "INSERT DATA { <ex:a> <ex:p> 1 }" if update else "SELECT * WHERE { ?s ?p ?o }"
        hint = f"write {'an update' if update else 'a query'} into it, such as {example}"
        raise QueryError("is empty", source=str(path), hint=hint)
    return file_text(text)


# --- data ---


@dataclass(slots=True)
class Rejects:
    """Input rows that could not be parsed, and what to do about them."""

    on_error: OnError = "raise"
    rows: list[RejectedRow] = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)

    def read(self, path: Path) -> Iterator[ChangeBatch]:
        """Read a file of changes or RDF."""
        return read_changes(path, on_error=self.on_error, rejected=self.rows, limits=self.limits)


def load_data(graph: LiveGraph, paths: Iterable[Path], rejects: Rejects | None = None) -> None:
    """Load files, each as one transaction at the current time."""
    rejects = rejects or Rejects(limits=graph.limits)
    for path in paths:
        reject_query(path, "--data")
        graph.apply(rejects.read(path), time=graph.clock)


def reject_query(path: Path, option: str) -> None:
    """Reject a query where data is expected: an easy mistake with repeated options."""
    if path.suffix in QUERY_SUFFIXES:
        raise DataError(
            f"is a query, and {option} takes a file of data",
            source=str(path),
            hint="give queries as arguments, without an option before them",
        )


# --- changes ---


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """A file of changes, and how to read it.

    Where the named graphs of RDF are events, `timestamp` is the predicate of the triples that give
    their times. The clock advances to `until` at the end of the file.
    """

    path: Path
    follow: bool = False
    rejects: Rejects = field(default_factory=Rejects)
    timestamp: str = GENERATED_AT
    until: int | None = None

    def check(self) -> None:
        """Reject what is no file of changes, before any work is done."""
        reject_query(self.path, "--changes")
        if str(self.path).startswith("--"):
            raise GraphtideError(f"--changes needs a file, and {self.path} is an option")
        if self.until is not None and self.follow:
            raise GraphtideError(
                "--until is for a log that ends, and with --follow it has no end",
                hint="leave one of them out",
            )

    @property
    def is_read_in_pieces(self) -> bool:
        """Whether transactions are applied while the rest of the file is still to be read."""
        if self.follow or self.path == STANDARD_INPUT:
            return True
        return find_format(self.path).family == "patch"

    def pieces(self) -> Iterator[list[ChangeBatch]]:
        """Whole transactions, piece by piece."""
        return read_pieces(self.path, self.rejects, wait=self.follow)


class Reader(Protocol):
    """Takes text piece by piece, and returns changes of whole transactions."""

    def feed(self, text: bytes) -> list[ChangeBatch]:
        """Take more text."""
        ...

    def flush(self) -> list[ChangeBatch]:
        """Return what is complete unless more follows: the writer pauses."""
        ...

    def finish(self) -> list[ChangeBatch]:
        """Return the rest: the text has ended."""
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
        rejects: Rejects | None = None,
    ) -> None:
        self._source = source
        self._format = format
        self._rejects = rejects or Rejects()
        self._rest = LineBuffer(self._rejects.limits)
        self._lines = 0
        self._tx = 0

    def feed(self, text: bytes) -> list[ChangeBatch]:
        """Take more text; return the changes of its complete lines."""
        return self._read(self._rest.feed(text))

    def flush(self) -> list[ChangeBatch]:
        """Return nothing: only an incomplete line can be left."""
        return []

    def finish(self) -> list[ChangeBatch]:
        """Read the last line, even without its end."""
        return self._read(self._rest.rest())

    def _read(self, text: bytes) -> list[ChangeBatch]:
        rejected: list[RejectedRow] = []
        source = io.BytesIO(text)
        try:
            batches = list(
                read_quads(
                    source,
                    format=self._format,
                    on_error=self._rejects.on_error,
                    rejected=rejected,
                    limits=self._rejects.limits,
                )
            )
        except DataError as error:
            error.source, error.line = self._source, (error.line or 1) + self._lines
            raise
        self._rejects.rows += [
            replace(line, file=self._source, line=line.line + self._lines) for line in rejected
        ]
        self._lines += text.count(b"\n")
        return [self._with_tx(batch) for batch in batches]

    def _with_tx(self, batch: ChangeBatch) -> ChangeBatch:
        first, self._tx = self._tx, self._tx + len(batch)
        return replace(batch, tx=np.arange(first, self._tx))


def read_pieces(
    path: Path, rejects: Rejects | None = None, *, wait: bool
) -> Iterator[list[ChangeBatch]]:
    """Whole transactions of a file, or of standard input (`-`), piece by piece.

    With `wait` a file has no end: every pause of its writer gives an empty list.
    """
    rejects = rejects or Rejects()
    if path == STANDARD_INPUT:
        yield from _read_input(_patch_reader("<stdin>", rejects))
        return
    reader = _reader(path, rejects)
    if wait and path.suffix in PACKED:
        raise _cannot_follow(path)
    with open_text_source(path, rejects.limits) as file:
        while True:
            while piece := file.read(READ_BYTES):
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
    while piece := os.read(sys.stdin.fileno(), READ_BYTES):
        yield reader.feed(piece)
    yield reader.finish()


def _patch_reader(source: str, rejects: Rejects) -> PatchReader:
    return PatchReader(
        source, on_error=rejects.on_error, rejected=rejects.rows, limits=rejects.limits
    )


def _reader(path: Path, rejects: Rejects) -> Reader:
    found = find_format(path)
    if found.family == "patch":
        return _patch_reader(str(path), rejects)
    if found.family == "lines":
        return LineReader(str(path), found.name, rejects)
    raise _cannot_follow(path)


def _cannot_follow(path: Path) -> GraphtideError:
    return GraphtideError(
        f"{path}: a file of this format cannot be followed while it grows",
        hint="--follow reads RDF Patch (.rdfp), N-Triples (.nt) and N-Quads (.nq), not packed",
    )


def open_graph(
    store: Path | None,
    limits: Limits,
    functions: Mapping[str, Callable[..., object]] | None = None,
    **options: Any,  # noqa: ANN401 - those of the live graph
) -> LiveGraph:
    """A graph in memory or that of a store; `options` are for a new one."""
    if store is None:
        return LiveGraph(limits=limits, **options)
    made = (store / FILE).exists()
    return LiveGraph.open(store, limits=limits, functions=functions, **({} if made else options))
