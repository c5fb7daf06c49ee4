"""Read quads in every RDF format, as inserts of one transaction at time 0."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from itertools import islice
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa
from pyoxigraph import Quad, parse

from graphtide.errors import DataError, TermError
from graphtide.rdf.broken import BrokenLine, BrokenLines, OnError
from graphtide.rdf.formats import Format, Source, find_format, open_text_source, source_name
from graphtide.rdf.quads import QuadText, inserts, quad_texts
from graphtide.rdf.read_lines import read_lines
from graphtide.rdf.syntax_error import place_and_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.changes import ChangeBatch

BATCH_ROWS: Final = 65_536


def read_quads(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002 - the name users expect
    base: str | None = None,
    on_error: OnError = "raise",
    broken: list[BrokenLine] | None = None,
) -> Iterator[ChangeBatch]:
    """Read N-Triples, N-Quads, Turtle, TriG, RDF/XML or JSON-LD in batches of inserts.

    All rows are of transaction (0, 0). Labels of blank nodes are kept as they are. With
    `on_error="collect"` broken lines go to the list `broken`, and reading goes on as far as the
    format lets it: with the next line, the next Turtle statement, but not in broken XML or JSON.

    >>> import io
    >>> turtle = io.BytesIO(b"@prefix ex: <http://example.org/> . ex:a ex:p 1, 2 .")
    >>> [len(batch) for batch in read_quads(turtle, format="ttl")]
    [2]
    """
    found = find_format(source, format)
    lines = BrokenLines(source_name(source), on_error, broken)
    if found.rdf is None:
        raise DataError(f"{found.name} holds changes: use read_changes", source=lines.source)
    file = open_text_source(source)
    try:
        with _io_errors(source):
            if found.family == "lines":
                yield from read_lines(file, found.rdf, lines)
            else:
                yield from _read_document(file, found, base, lines)
    finally:
        if file is not source:
            file.close()


def _read_document(
    file: IO[bytes], found: Format, base: str | None, broken: BrokenLines
) -> Iterator[ChangeBatch]:
    # Only JSON-LD calls an empty file a mistake; here it is no changes, as in every format.
    data: bytes | IO[bytes] = file.read() if found.name == "jsonld" else file
    if isinstance(data, bytes) and not data.strip():
        return
    rows = _document_rows(iter(parse(data, format=found.rdf, base_iri=base)), broken)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield inserts([pa.array(column, pa.string()) for column in zip(*batch, strict=True)])


def _document_rows(quads: Iterator[Quad], broken: BrokenLines) -> Iterator[QuadText]:
    """Return the texts of quads; after a mistake, those that pyoxigraph finds behind it."""
    while True:
        try:
            yield quad_texts(next(quads))
        except StopIteration:
            return
        except SyntaxError as error:
            line, column, reason = place_and_reason(error)
            broken.report(line, column, "", reason)
        except TermError as error:
            broken.report(1, 1, "", error.message)


@contextmanager
def _io_errors(source: Source) -> Iterator[None]:
    """Turn failures of the file itself into `DataError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read: {error}", source=source_name(source)) from None
