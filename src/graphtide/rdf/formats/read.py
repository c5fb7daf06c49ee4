"""Quads in every RDF format: read as inserts of one transaction at time 0, and written."""

from __future__ import annotations

import re
import zlib
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import IO, TYPE_CHECKING, Any, Final, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import Quad, RdfFormat, parse, serialize

from graphtide.errors import DataError, TermError
from graphtide.limits import Limits
from graphtide.rdf.changes import ChangeBatch, OnError, RejectedRow, RejectedRows
from graphtide.rdf.formats import registry
from graphtide.rdf.formats.guards import (
    DEEPEST,
    MOST_CONTEXTS,
    DocumentGuard,
    context_depth,
    json_depth,
)
from graphtide.rdf.formats.lines import (
    QuadText,
    batch_quads,
    inserts,
    position_and_reason,
    quad_texts,
    read_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.rdf.term_tables import Strings

BATCH_ROWS: Final = 65_536
_SYNTAXES: Final[dict[str, Literal["xml", "json"]]] = {"rdf": "xml", "jsonld": "json"}


def read_quads(
    source: registry.Source,
    *,
    format: str | None = None,  # noqa: A002 - the name users expect
    base: str | None = None,
    on_error: OnError = "raise",
    rejected: list[RejectedRow] | None = None,
    limits: Limits | None = None,
) -> Iterator[ChangeBatch]:
    """Read N-Triples, N-Quads, Turtle, TriG, RDF/XML or JSON-LD in batches of inserts.

    All rows are of transaction (0, 0). Labels of blank nodes are kept. With `on_error="skip"`
    invalid lines are added to the list `rejected`, and reading goes on with the next line or Turtle
    statement; XML and JSON cannot be read beyond a syntax error.

    >>> import io
    >>> turtle = io.BytesIO(b"@prefix ex: <http://example.org/> . ex:a ex:p 1, 2 .")
    >>> [len(batch) for batch in read_quads(turtle, format="ttl")]
    [2]
    """
    found = registry.find_format(source, format)
    limits = Limits() if limits is None else limits
    lines = RejectedRows(registry.source_name(source), on_error, rejected, limits)
    if found.rdf is None:
        raise DataError(f"{found.name} holds changes: use read_changes", source=lines.source)
    file = registry.open_text_source(source, limits)
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
    file: IO[bytes], found: registry.Format, base: str | None, rejected: RejectedRows
) -> Iterator[ChangeBatch]:
    guard = DocumentGuard(file, _SYNTAXES.get(found.name, "turtle"), rejected)
    data: bytes | DocumentGuard = guard
    if found.name == "jsonld":
        # Only JSON-LD calls an empty file an error; here it holds no changes, as in every format.
        data = b"".join(iter(guard.read, b""))
        if not data.strip():
            return
        if json_depth(data) > DEEPEST:
            guard.refuse_depth()
        if context_depth(data) > MOST_CONTEXTS:
            what = f"contexts are nested more than {MOST_CONTEXTS} levels deep"
            raise DataError(what, source=rejected.source, line=guard.line)
    quads = parse(cast("IO[bytes]", data), format=found.rdf, base_iri=base)  # it only calls read()
    rows = _document_rows(iter(quads), guard, rejected)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield inserts([pa.array(column, pa.string()) for column in zip(*batch, strict=True)])


def _document_rows(
    quads: Iterator[Quad], guard: DocumentGuard, rejected: RejectedRows
) -> Iterator[QuadText]:
    """Return the texts of quads, going on after an error as far as pyoxigraph does."""
    most = rejected.limits.literal_length
    while True:
        try:
            texts = quad_texts(next(quads))
            if most is not None and len(texts[2]) > most:
                rejected.report_long(guard.line, "a literal")
            else:
                yield texts
            guard.next_statement()
        except StopIteration:
            return
        except SyntaxError as error:
            line, column, reason = position_and_reason(error)
            rejected.report(line, column, "", reason)
        except TermError as error:
            rejected.report(1, 1, "", error.message)
        except MemoryError as error:  # pyoxigraph has a limit of its own
            what = f"a statement is too long to be parsed: {error}"
            raise rejected.limits.data_error(
                "literal_length", what, source=rejected.source, line=guard.line
            ) from None


@contextmanager
def _io_errors(source: registry.Source) -> Iterator[None]:
    """Turn I/O errors into `DataError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read: {error}", source=registry.source_name(source)) from None


_XML_NAME = re.compile(r"[^\W\d][\w.-]*\Z")


def write_quads(
    batches: ChangeBatch | Iterable[ChangeBatch],
    target: registry.Source,
    *,
    format: str | None = None,  # noqa: A002 - the name users expect
) -> None:
    r"""Write inserts as quads, in the format of the target's suffix or `format`.

    >>> import io
    >>> file = io.BytesIO()
    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', None)])
    >>> write_quads(batch, file, format="nt")
    >>> file.getvalue()
    b'<ex:a> <ex:p> "x" .\n'
    """
    found = registry.find_format(target, format)
    if found.rdf is None:
        raise DataError(f"{found.name} holds changes: use write_changes")
    parts = [batches] if isinstance(batches, ChangeBatch) else batches
    checked = (_checked(part, found, target) for part in parts)
    file = registry.open_target(target)
    try:
        if found.family == "lines":
            _write_lines(checked, file)
        else:
            quads = (quad for part in checked for quad in batch_quads(part))
            _write_document(quads, file, found.rdf)
    finally:
        if file is not target:
            file.close()


def _checked(batch: ChangeBatch, found: registry.Format, target: registry.Source) -> ChangeBatch:
    if (batch.diff < 0).any():
        raise DataError(
            "deletes cannot be written as quads",
            source=registry.source_name(target),
            hint="write a change log: .rdfp, .parquet or .arrow",
        )
    if not found.has_graphs and any(batch.g.unique().to_pylist()):
        raise DataError(
            f"{found.name} cannot hold named graphs",
            source=registry.source_name(target),
            hint="write .nq, .trig or .jsonld",
        )
    return batch


def _write_lines(batches: Iterable[ChangeBatch], file: IO[bytes]) -> None:
    for batch in batches:
        file.write("".join(f"{line}\n" for line in statement_lines(batch).to_pylist()).encode())


def _write_document(quads: Iterator[Quad], file: IO[bytes], rdf: RdfFormat) -> None:
    if rdf == RdfFormat.RDF_XML:
        quads = map(_xml_quad, quads)
    items = quads if rdf.supports_datasets else (quad.triple for quad in quads)
    serialize(items, file, format=rdf)


def _xml_quad(quad: Quad) -> Quad:
    if not _XML_NAME.search(quad.predicate.value):
        raise DataError(
            f"RDF/XML cannot write the predicate {quad.predicate}: no XML name at its end"
        )
    return quad


def write_patch(batches: Iterable[ChangeBatch], file: IO[bytes]) -> None:
    r"""Write each transaction between `TX` and `TC`, with its time and, where needed, its number.

    A transaction that spans batches is written as one.

    >>> import io
    >>> from graphtide.rdf.changes import ChangeBatch
    >>> file = io.BytesIO()
    >>> write_patch([ChangeBatch.of([(17, 0, -1, "<ex:a>", "<ex:p>", '"x"', None)])], file)
    >>> print(file.getvalue().decode())
    TX .
    H time 17 .
    D <ex:a> <ex:p> "x" .
    TC .
    <BLANKLINE>
    """
    time, tx = 0, -1
    opened = False
    for batch in batches:
        rows = statement_lines(batch, pc.if_else(pa.array(batch.diff > 0), "A", "D"))
        borders = [*batch.transaction_starts().tolist(), len(batch)]
        for start, stop in pairwise(borders):
            key = (int(batch.time[start]), int(batch.tx[start]))
            if not opened or key != (time, tx):
                headers = [f"H time {key[0]} ."] if key[0] != time else []
                headers += [f"H tx {key[1]} ."] if key[1] != tx + 1 else []
                lines = [*(["TC ."] if opened else []), "TX .", *headers, ""]
                file.write("\n".join(lines).encode())
                opened, (time, tx) = True, key
            file.write("".join(f"{row}\n" for row in rows[start:stop].to_pylist()).encode())
    if opened:
        file.write(b"TC .\n")


def statement_lines(batch: ChangeBatch, code: Strings | None = None) -> Strings:
    """Return the rows of a batch as statements `s p o [g] .`, after a code when there is one.

    >>> from graphtide.rdf.changes import ChangeBatch
    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', "<ex:g>")])
    >>> statement_lines(batch).to_pylist()
    ['<ex:a> <ex:p> "x" <ex:g> .']
    """
    compute: Any = pc
    graph = compute.if_else(compute.equal(batch.g, ""), None, batch.g)
    parts = [batch.s, batch.p, batch.o, graph, ".", " "]
    parts = parts if code is None else [code, *parts]
    lines: Strings = compute.binary_join_element_wise(*parts, null_handling="skip")
    return lines
